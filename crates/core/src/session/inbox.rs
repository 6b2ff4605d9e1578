//! The commands of a session, on their way to its actor.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};

use crate::ids::{Cause, Timestamp};
use crate::prompt::Image;
use crate::session::state::{AgentState, State};
use crate::session::step::{Input, Refusal};
use crate::store::StoreError;

/// How many commands may wait for one session. The channel is full only if its actor does not read.
const COMMANDS: usize = 64;

pub(crate) enum Command {
    Input {
        input: Box<Input>,
        /// The bytes of the images that the input refers to.
        images: Vec<Image>,
        cause: Option<Cause>,
        reply: oneshot::Sender<Result<Acknowledged, CommandFailed>>,
    },
    /// Asks for the name of the running agent's run. `None`: no agent is running.
    FindRun(oneshot::Sender<Option<String>>),
    /// Ends the agent, deletes the session, ends the actor. Answers false if the deletion does not apply; then nothing
    /// happens.
    Delete(Deletion, oneshot::Sender<Result<bool, StoreError>>),
    /// Answers when everything is stored. Afterwards nothing more happens in the session; its agent continues.
    Leave(oneshot::Sender<()>),
    /// Ends the agent, answers when the agent has ended, ends the actor.
    Close {
        reason: &'static str,
        done: oneshot::Sender<()>,
    },
}

/// The condition of a deletion. Checked by the actor, so that nothing can happen between check and deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deletion {
    Now,
    /// If the deletion is due by then and was not cancelled.
    Due(Timestamp),
    /// If the session had no activity since then and nothing is pending.
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

/// The acknowledgement of a command that is stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Acknowledged {
    /// Events that the command causes have higher numbers than this one.
    New(u64),
    /// A duplicate: the command was executed before.
    Duplicate,
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

/// Delivers the commands in order.
pub(super) struct Inbox {
    commands: mpsc::Receiver<Command>,
    /// Commands that arrived when they could not be executed.
    held: VecDeque<Command>,
}

/// A command that arrived while nothing can be stored.
pub(super) enum Refused {
    Input(oneshot::Sender<Result<Acknowledged, CommandFailed>>),
    Delete(oneshot::Sender<Result<bool, StoreError>>),
    FindRun(oneshot::Sender<Option<String>>),
    /// The session is to be closed; the command is kept for later.
    Closing,
}

impl Inbox {
    /// The next command. During a reconnect to an agent, only commands that need neither the agent nor an event number:
    /// the next numbers belong to events that an earlier server may have published. Cancel-safe.
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

    /// The next command that must be refused instead of waiting. Cancel-safe.
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
                // All handles were dropped, so no command can arrive.
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
    fn a_session_that_is_used_again_is_not_deleted() {
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
