//! The one thing that a keeper knows of its agent's words.

use memchr::memmem;

/// How the CLI says that it has done what it was asked to do. In text that a tool or a model writes the quotes would
/// have backslashes before them.
const TURN_END: &[u8] = b"\"type\":\"result\"";

/// Looks for the end of a turn in what comes in pieces.
#[derive(Default)]
pub(crate) struct TurnEnds {
    /// The end of the last piece, in which a sign may have begun.
    tail: Vec<u8>,
}

impl TurnEnds {
    pub(crate) fn found_in(&mut self, piece: &[u8]) -> bool {
        let across = &piece[..piece.len().min(TURN_END.len() - 1)];
        self.tail.extend_from_slice(across);
        let found = memmem::find(&self.tail, TURN_END).is_some() || memmem::find(piece, TURN_END).is_some();
        if piece.len() >= TURN_END.len() {
            self.tail.clear();
            self.tail
                .extend_from_slice(&piece[piece.len() + 1 - TURN_END.len()..]);
        } else {
            let extra = self.tail.len().saturating_sub(TURN_END.len() - 1);
            self.tail.drain(..extra);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::TurnEnds;

    #[test]
    fn the_end_of_a_turn_is_found_however_it_is_split() {
        let line = br#"{"duration_ms":1,"type":"result","subtype":"success"}"#;
        for size in 1..line.len() {
            let mut ends = TurnEnds::default();
            let found = line.chunks(size).filter(|piece| ends.found_in(piece)).count();
            assert_eq!(found, 1, "in pieces of {size}");
        }
        let mut ends = TurnEnds::default();
        assert!(!ends.found_in(br#"{"text":"{\"type\":\"result\"}"}"#));
    }
}
