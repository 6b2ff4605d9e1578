//! Relates events to the connection's commands that caused them.
//!
//! The core attaches a [`Cause`] to the effects of a command; the client knows the command by its `commandId`. Pure.

use std::collections::{BTreeMap, HashMap};

use tiller_core::{Cause, Event, EventBody, SessionId};

use super::protocol::CommandId;

/// How many commands are remembered until their effects arrive. A prompt may wait in the queue for days; the oldest are
/// forgotten.
const REMEMBERED: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Causes {
    /// Commands whose effects have not arrived.
    commands: BTreeMap<Cause, CommandId>,
    /// Effects of commands that are sent later, from the log.
    kept_back: HashMap<(SessionId, u64), CommandId>,
}

impl Causes {
    /// Registers a command that is about to be executed.
    pub(super) fn add(&mut self, command: CommandId) -> Cause {
        let cause = Cause::unique();
        self.commands.insert(cause, command);
        if self.commands.len() > REMEMBERED {
            self.commands.pop_first();
        }
        cause
    }

    /// The command that caused a change other than its last effect, which is the change of status.
    pub(super) fn peek(&self, cause: Option<Cause>) -> Option<&CommandId> {
        self.commands.get(&cause?)
    }

    /// An event is sent later, from the log, which does not have causes.
    pub(super) fn keep_back(&mut self, event: &Event) {
        if let Some(command) = self.caused(event)
            && self.kept_back.len() < REMEMBERED
        {
            self.kept_back.insert((event.session, event.seq), command);
        }
    }

    /// The command that caused an event which is sent now.
    pub(super) fn take(&mut self, event: &Event) -> Option<CommandId> {
        let EventBody::Status(_) = &event.body else {
            return None;
        };
        let kept = self.kept_back.remove(&(event.session, event.seq));
        kept.or_else(|| self.caused(event))
    }

    fn caused(&mut self, event: &Event) -> Option<CommandId> {
        let EventBody::Status(change) = &event.body else {
            return None;
        };
        self.commands.remove(&change.cause?)
    }
}

#[cfg(test)]
mod tests {
    use tiller_core::{SessionStatus, StatusChange, Timestamp};

    use super::*;

    fn status(session: SessionId, seq: u64, cause: Option<Cause>) -> Event {
        let change = StatusChange {
            status: SessionStatus::Running,
            title: None,
            cwd: None,
            error: None,
            turn: None,
            cause,
        };
        Event {
            session,
            seq,
            at: Timestamp(0),
            body: EventBody::Status(Box::new(change)),
        }
    }

    fn id(text: &str) -> CommandId {
        CommandId::new(text.to_owned()).unwrap()
    }

    #[test]
    fn an_effect_names_its_command_once_and_in_any_order() {
        let session = SessionId::random();
        let mut causes = Causes::default();
        let (first, second) = (causes.add(id("first")), causes.add(id("second")));
        let foreign = Cause::unique();
        assert_eq!(causes.take(&status(session, 1, Some(second))), Some(id("second")));
        assert_eq!(causes.take(&status(session, 1, Some(second))), None);
        assert_eq!(causes.take(&status(session, 2, Some(foreign))), None);
        assert_eq!(causes.take(&status(session, 3, None)), None);
        assert_eq!(causes.peek(Some(first)), Some(&id("first")));
        // Held back, then sent from the log without a cause.
        causes.keep_back(&status(session, 4, Some(first)));
        assert_eq!(causes.peek(Some(first)), None);
        assert_eq!(causes.take(&status(session, 4, None)), Some(id("first")));
        assert_eq!(causes.take(&status(session, 4, None)), None);
    }

    #[test]
    fn a_command_without_effects_is_forgotten() {
        let mut causes = Causes::default();
        let first = causes.add(id("first"));
        for _ in 0..REMEMBERED {
            causes.add(id("other"));
        }
        assert_eq!(causes.peek(Some(first)), None);
        assert_eq!(causes.commands.len(), REMEMBERED);
    }
}
