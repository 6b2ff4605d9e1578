//! How all sessions stood at some moment, to tell later which of them have changed: what a client that hears all of them may
//! have missed. It compares and asks no clock for an order, as clocks are set back.

use std::collections::HashMap;

use tiller_core::{SessionId, SessionRecord, Timestamp};

pub(super) struct Known(HashMap<SessionId, Stand>);

/// The last event, and when something was last said. Whatever changes without changing these, the list tells.
type Stand = (u64, Timestamp);

impl Known {
    /// To be asked for after the live feed, which tells what comes then.
    pub(super) fn of(listed: &[(SessionRecord, usize)]) -> Self {
        Self(listed.iter().map(stand).collect())
    }

    /// The sessions that stand otherwise than they did, or are new. From now on this is what is known.
    pub(super) fn changed(&mut self, listed: &[(SessionRecord, usize)]) -> Vec<SessionId> {
        let before = std::mem::replace(self, Self::of(listed));
        let is_new = |(id, stand): &(SessionId, Stand)| before.0.get(id) != Some(stand);
        listed
            .iter()
            .map(stand)
            .filter(is_new)
            .map(|(id, _)| id)
            .collect()
    }
}

fn stand((record, _): &(SessionRecord, usize)) -> (SessionId, Stand) {
    (record.id, (record.last_seq, record.updated_at))
}

#[cfg(test)]
mod tests {
    use tiller_core::{SessionStatus, Settings, TitleSource};

    use super::*;

    fn session(last_seq: u64, updated_at: i64) -> (SessionRecord, usize) {
        let record = SessionRecord {
            id: SessionId::random(),
            owner: None,
            title: String::new(),
            title_source: TitleSource::Prompt,
            archived: false,
            conversation: None,
            expired: false,
            fork_of: None,
            fork_at: None,
            delete_at: None,
            status: SessionStatus::Idle,
            cwd: String::new(),
            backend: None,
            settings: Settings::default(),
            last_prompt: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(updated_at),
            queue: Vec::new(),
            last_seq,
            runs: 0,
            turn: None,
            run: None,
        };
        (record, 0)
    }

    #[test]
    fn what_happened_after_the_clock_was_set_back_has_changed() {
        let mut listed = vec![session(5, 1_000), session(5, 1_000), session(5, 1_000)];
        let mut known = Known::of(&listed);
        assert_eq!(known.changed(&listed), []);
        (listed[0].0.last_seq, listed[0].0.updated_at) = (6, Timestamp(10));
        listed[1].0.updated_at = Timestamp(10);
        listed.push(session(1, 10));
        let changed = [listed[0].0.id, listed[1].0.id, listed[3].0.id];
        assert_eq!(known.changed(&listed), changed);
        assert_eq!(known.changed(&listed), [], "it is known now");
    }
}
