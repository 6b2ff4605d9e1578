//! The few things that a keeper knows of its agent's words.

use std::time::Duration;

use memchr::memmem;

/// How an agent's output and input look where it matters to a keeper. The program that starts the agent says so; what is empty
/// never occurs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Signs {
    /// What an agent writes when it has done its work: from then on, and until it is given more, it is without work.
    /// Empty: nothing tells, and it is never without work.
    pub turn_end: Vec<u8>,
    /// What it writes when it asks something and waits for the answer.
    pub asks: Vec<u8>,
    /// What it writes when it does not wait for that any more.
    pub withdraws: Vec<u8>,
    /// What is in a line that answers it.
    pub answers: Vec<u8>,
}

/// Counts a sign in what comes in pieces.
struct Counter {
    sign: Vec<u8>,
    /// The end of the last piece, in which a sign may have begun.
    tail: Vec<u8>,
}

impl Counter {
    fn new(sign: Vec<u8>) -> Self {
        Self {
            sign,
            tail: Vec::new(),
        }
    }

    fn count_in(&mut self, piece: &[u8]) -> u64 {
        let Some(before) = self.sign.len().checked_sub(1) else {
            return 0;
        };
        // Too short to hold a sign that was counted in either of its halves.
        self.tail.extend_from_slice(&piece[..piece.len().min(before)]);
        let across = memmem::find_iter(&self.tail, &self.sign).count();
        let within = memmem::find_iter(piece, &self.sign).count();
        if piece.len() > before {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - before..]);
        } else {
            let extra = self.tail.len().saturating_sub(before);
            self.tail.drain(..extra);
        }
        (across + within) as u64
    }
}

/// What an agent is about, as far as the signs tell.
pub(crate) struct Doing {
    turn_ends: Counter,
    asks: Counter,
    withdraws: Counter,
    answers: Vec<u8>,
    /// It has work.
    pub(crate) busy: bool,
    /// How many of its questions wait for an answer.
    open: u64,
}

impl Doing {
    pub(crate) fn new(signs: Signs) -> Self {
        Self {
            turn_ends: Counter::new(signs.turn_end),
            asks: Counter::new(signs.asks),
            withdraws: Counter::new(signs.withdraws),
            answers: signs.answers,
            busy: false,
            open: 0,
        }
    }

    pub(crate) fn says(&mut self, piece: &[u8]) {
        self.open += self.asks.count_in(piece);
        self.open = self.open.saturating_sub(self.withdraws.count_in(piece));
        if self.turn_ends.count_in(piece) > 0 {
            self.busy = false;
            self.open = 0;
        }
    }

    pub(crate) fn hears(&mut self, line: &[u8]) {
        if !self.answers.is_empty() && memmem::find(line, &self.answers).is_some() {
            self.open = self.open.saturating_sub(1);
        }
    }

    /// How long it may go without a program: `idle` without work, `waiting` if it waits for an answer. `None`: it works.
    pub(crate) fn patience(&self, idle: Duration, waiting: Duration) -> Option<Duration> {
        if !self.busy {
            Some(idle)
        } else if self.waits() {
            Some(waiting)
        } else {
            None
        }
    }

    /// It has work and can't go on with it before someone answers.
    pub(crate) fn waits(&self) -> bool {
        self.busy && self.open > 0
    }
}

/// Why an agent was ended that waited for an answer for so long, for its last words.
pub(crate) fn waited_in_vain(patience: Duration) -> Vec<u8> {
    format!(
        "\nThe agent waited for an answer, and for {} s no Tiller was running that could give one, so the agent was ended. Send a \
         message to go on; the agent will ask again.",
        patience.as_secs()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_counted_once_however_it_is_split() {
        let sign = br#""type":"result""#;
        let line = br#"{"duration_ms":1,"type":"result","x":{"type":"result"},"subtype":"success"}"#;
        for size in 1..line.len() {
            let mut counter = Counter::new(sign.to_vec());
            let found: u64 = line.chunks(size).map(|piece| counter.count_in(piece)).sum();
            assert_eq!(found, 2, "in pieces of {size}");
        }
        let mut counter = Counter::new(sign.to_vec());
        assert_eq!(counter.count_in(br#"{"text":"{\"type\":\"result\"}"}"#), 0);
        assert_eq!(Counter::new(Vec::new()).count_in(line), 0);
    }

    #[test]
    fn an_agent_waits_until_all_of_its_questions_are_answered_or_taken_back() {
        let signs = Signs {
            turn_end: b"END".to_vec(),
            asks: b"ASK".to_vec(),
            withdraws: b"NEVERMIND".to_vec(),
            answers: b"ANSWER".to_vec(),
        };
        let mut doing = Doing::new(signs.clone());
        doing.busy = true;
        doing.says(b"ASK 1\nASK 2\n");
        doing.hears(b"a prompt");
        assert!(doing.waits());
        doing.hears(b"ANSWER 1");
        assert!(doing.waits());
        doing.says(b"NEVERMIND 2\n");
        assert!(!doing.waits());
        doing.says(b"ASK 3\nEND\n");
        assert!(!doing.waits() && !doing.busy);

        let mut without = Doing::new(Signs {
            asks: Vec::new(),
            ..signs
        });
        without.busy = true;
        without.says(b"ASK\n");
        assert!(!without.waits());
    }
}
