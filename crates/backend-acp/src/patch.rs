//! The diff between two texts, in the format of the product's messages.

use serde_json::{Value, json};

/// The number of context lines around a change.
const CONTEXT: usize = 3;

/// One hunk from the first changed line to the last; none if nothing changed.
pub(crate) fn structured_patch(old: &str, new: &str) -> Vec<Value> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same)
        .count();
    let removed = &old_rest[..old_rest.len() - after];
    let added = &new_rest[..new_rest.len() - after];
    if removed.is_empty() && added.is_empty() {
        return Vec::new();
    }
    let start = before.saturating_sub(CONTEXT);
    let leading = &old[start..before];
    let trailing = &old_rest[removed.len()..(removed.len() + CONTEXT).min(old_rest.len())];
    let marked = |mark: &'static str, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    };
    let lines = [
        marked(" ", leading),
        marked("-", removed),
        marked("+", added),
        marked(" ", trailing),
    ]
    .concat();
    let around = leading.len() + trailing.len();
    vec![json!({
        "oldStart": start + 1, "oldLines": around + removed.len(),
        "newStart": start + 1, "newLines": around + added.len(),
        "lines": lines,
    })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_has_what_changed_and_a_little_around_it() {
        let patch = structured_patch("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
        assert_eq!(
            patch,
            [json!({
                "oldStart": 2, "oldLines": 7, "newStart": 2, "newLines": 7,
                "lines": [" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
            })]
        );
        assert_eq!(
            structured_patch("", "new\n"),
            [json!({ "oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+new"] })]
        );
        assert_eq!(structured_patch("a\na\n", "a\n")[0]["lines"], json!([" a", "-a"]));
        assert!(structured_patch("a\nb", "a\nb").is_empty());
    }
}
