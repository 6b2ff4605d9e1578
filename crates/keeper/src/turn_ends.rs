//! The one thing that a keeper knows about its agent's output: the end of a turn.

use memchr::memmem;

/// Finds the end of a turn in output that arrives in pieces. The program that starts the agent says what it looks like.
pub(crate) struct TurnEnds {
    /// The text that marks the end of a turn; empty: unknown.
    sign: Vec<u8>,
    /// The end of the last piece, in which the mark may have begun.
    tail: Vec<u8>,
}

impl TurnEnds {
    pub(crate) fn new(sign: Vec<u8>) -> Self {
        Self {
            sign,
            tail: Vec::new(),
        }
    }

    pub(crate) fn found_in(&mut self, piece: &[u8]) -> bool {
        let Some(before) = self.sign.len().checked_sub(1) else {
            return false;
        };
        let across = &piece[..piece.len().min(before)];
        self.tail.extend_from_slice(across);
        let found =
            memmem::find(&self.tail, &self.sign).is_some() || memmem::find(piece, &self.sign).is_some();
        if piece.len() > before {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - before..]);
        } else {
            let extra = self.tail.len().saturating_sub(before);
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
        let sign = br#""type":"result""#;
        let line = br#"{"duration_ms":1,"type":"result","subtype":"success"}"#;
        for size in 1..line.len() {
            let mut ends = TurnEnds::new(sign.to_vec());
            let found = line.chunks(size).filter(|piece| ends.found_in(piece)).count();
            assert_eq!(found, 1, "in pieces of {size}");
        }
        let mut ends = TurnEnds::new(sign.to_vec());
        assert!(!ends.found_in(br#"{"text":"{\"type\":\"result\"}"}"#));
        let mut never = TurnEnds::new(Vec::new());
        assert!(!never.found_in(line));
    }
}
