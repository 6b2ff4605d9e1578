//! What an error repeats of what someone sent: a short piece, in which nothing is hidden.

/// As many characters as a name that anyone means has.
const LONGEST: usize = 80;

/// The beginning of a text, without control characters; `…` stands for the rest.
pub fn repeated(text: &str) -> String {
    let mut visible = text.chars().filter(|character| !character.is_control());
    let mut piece: String = visible.by_ref().take(LONGEST).collect();
    if visible.next().is_some() {
        piece.push('…');
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_a_short_one_is_not() {
        assert_eq!(repeated("opus\u{1b}[31m\0"), "opus[31m");
        assert_eq!(repeated(&"字".repeat(LONGEST)), "字".repeat(LONGEST));
        assert_eq!(repeated(&"x".repeat(20_000)), "x".repeat(LONGEST) + "…");
    }
}
