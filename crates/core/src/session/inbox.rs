//! What is asked of a session, on its way to its actor.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};

use crate::ids::{Cause, Timestamp};
use crate::prompt::Image;
use crate::session::state::{AgentState, State};
use crate::session::step::{Input, Refusal};
use crate::store::StoreError;

/// How many commands may wait for one session. More would mean that its actor does not read them.
const COMMANDS: usize = 64;

pub(crate) enum Command {
    Input {
        input: Box<Input>,
        /// The bytes of the images that the input names.
        images: Vec<Image>,
        cause: Option<Cause>,
        reply: oneshot::Sender<Result<Taken, CommandFailed>>,
    },
    /// Asks for the name of the run of the agent that is running. `None`: no agent is.
    FindRun(oneshot::Sender<Option<String>>),
    /// Ends the agent, removes everything, ends the actor. False: it was not to be, nothing has happened.
    Delete(Deletion, oneshot::Sender<Result<bool, StoreError>>),
    /// Answers when everything is on disk. Nothing happens in the session afterwards; its agent goes on.
    Leave(oneshot::Sender<()>),
    /// Ends the agent, answers when it is gone, ends the actor.
    Close {
        reason: &'static str,
        done: oneshot::Sender<()>,
    },
}

/// When a session is to be deleted. Looked at by its actor, so that nothing comes between the look and the deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deletion {
    Now,
    /// If it is due by then, and was not restored.
    Due(Timestamp),
    /// If nothing has happened in it since, and nothing waits in it.
    UnusedSince(Timestamp),
}

impl Deletion {
    pub(super) fn applies_to(self, state: &State) -> bool {
        match self {
            Self::Now => true,
            Self::Due(by) => state.record.delete_at.is_some_and(|at| at <= by),
            Self::UnusedSince(time) => {
                state.agent == AgentState::Absent && state.record.is_unused_since(time, &state.pending)
            }
        }
    }
}

/// A command is on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    /// What it caused comes after this event.
    After(u64),
    /// It was taken before, and is not carried out again.
    Before,
}

#[derive(Debug)]
pub(crate) enum CommandFailed {
    Refused(Refusal),
    Store(StoreError),
}

pub(super) fn channel() -> (mpsc::Sender<Command>, Inbox) {
    let (sender, commands) = mpsc::channel(COMMANDS);
    let held = VecDeque::new();
    (sender, Inbox { commands, held })
}

/// The commands, in order.
pub(super) struct Inbox {
    commands: mpsc::Receiver<Command>,
    /// What came at a moment at which it could not be done.
    held: VecDeque<Command>,
}

/// What was asked at a moment at which nothing can be stored.
pub(super) enum Refused {
    Input(oneshot::Sender<Result<Taken, CommandFailed>>),
    Delete(oneshot::Sender<Result<bool, StoreError>>),
    FindRun(oneshot::Sender<Option<String>>),
    /// The session is to be closed. That is held.
    Closing,
}

impl Inbox {
    /// While an agent is being found again, only what needs neither it nor a number: what it has said without us was
    /// shown by an earlier server, under the numbers that come next. May be dropped and called again.
    pub(super) async fn next(&mut self, attaching: bool) -> Option<Command> {
        if !attaching && let Some(command) = self.held.pop_front() {
            return Some(command);
        }
        loop {
            if self.held.len() >= COMMANDS {
                return std::future::pending().await;
            }
            match self.commands.recv().await? {
                command @ (Command::Input { .. } | Command::FindRun(_)) if attaching => {
                    self.held.push_back(command);
                }
                command => return Some(command),
            }
        }
    }

    /// The next that is not to wait. May be dropped and called again.
    pub(super) async fn next_to_refuse(&mut self) -> Refused {
        loop {
            match self.commands.recv().await {
                Some(Command::Input { reply, .. }) => return Refused::Input(reply),
                Some(Command::Delete(_, reply)) => return Refused::Delete(reply),
                Some(Command::FindRun(reply)) => return Refused::FindRun(reply),
                Some(close @ Command::Close { .. }) => {
                    self.held.push_back(close);
                    return Refused::Closing;
                }
                Some(leave @ Command::Leave(_)) => self.held.push_back(leave),
                // All handles are gone, so no command can come.
                None => return std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::step_tests::{Story, TestRules, prompt, record, success};

    #[test]
    fn a_session_that_someone_uses_again_is_not_deleted() {
        let unused = Deletion::UnusedSince(Timestamp(50));
        let due = Deletion::Due(Timestamp(50));
        let mut story = Story {
            state: State::new(record(), Vec::new(), std::sync::Arc::new(TestRules)),
            effects: Vec::new(),
        };
        assert!(unused.applies_to(&story.state));
        assert!(!due.applies_to(&story.state));
        story.take(Input::Discard { at: Timestamp(50) });
        assert!(due.applies_to(&story.state));
        story.take(Input::Restore);
        assert!(!due.applies_to(&story.state), "it was brought back");
        story.take(prompt("go on"));
        assert!(!unused.applies_to(&story.state), "a turn runs");
        story.take(success());
        assert!(!unused.applies_to(&story.state), "its agent is there");
        assert!(Deletion::Now.applies_to(&story.state));
    }
}
