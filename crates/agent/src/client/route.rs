//! Which turn a message belongs to. Pure: it sees messages and prompts in order, and decides.
//!
//! The client has at most one prompt at the CLI at a time, because the CLI merges prompts that wait. Even so, the next
//! result is not always the answer to it: the CLI starts turns of its own, for example when a background task has
//! ended, and such a turn may be under way when the prompt arrives.
//!
//! Newer versions tell which prompt a turn began with (`command_lifecycle`) and what started any other turn (`origin`).
//! Older ones do neither, so there a turn is the CLI's own if a `task_notification` came before its `init` while no turn
//! was open. Every version sends a prompt back (`isReplay`) when the model has begun to answer it.

use tiller_message::{Body, Kind, Message};

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// To the turn that is under way.
    Turn,
    /// To the turn that is under way, which ends with it.
    TurnEnds,
    /// To no turn: nothing was asked, or the turn is the CLI's own.
    Outside,
    /// To nobody: it only says that a prompt was taken.
    Hidden,
}

#[derive(Debug, Default)]
pub(super) struct Router {
    /// The id of the prompt that the CLI has.
    prompt: Option<String>,
    /// The CLI has begun with the prompt.
    taken: bool,
    /// The caller wants to see prompts that come back.
    show_replays: bool,
    /// This version tells when it begins with a prompt.
    announces: bool,
    /// A turn has begun and not ended.
    open: bool,
    /// A background task has ended while no turn was open.
    notified: bool,
    /// The turn that is open is the CLI's own, as far as can be told.
    own: bool,
}

impl Router {
    pub(super) fn new(show_replays: bool) -> Self {
        Self {
            show_replays,
            ..Self::default()
        }
    }

    /// A prompt is on its way to the CLI.
    pub(super) fn sent(&mut self, prompt: String) {
        self.prompt = Some(prompt);
        self.taken = false;
    }

    pub(super) fn route(&mut self, message: &Message) -> Route {
        match (message.kind(), message.subtype()) {
            (Kind::CommandLifecycle, _) => {
                self.announces = true;
                if let Body::CommandLifecycle(command) = message.body()
                    && self.prompt.as_ref() == Some(&command.command_uuid)
                    && command.state == "started"
                {
                    self.taken = true;
                }
            }
            (Kind::User, _) if self.prompt.is_some() && self.prompt.as_deref() == message.uuid() => {
                self.taken = true;
                if !self.show_replays {
                    return Route::Hidden;
                }
            }
            (Kind::User, _) if !self.show_replays && is_replay(message) => return Route::Hidden,
            (Kind::System, Some("init")) => {
                self.own = self.notified && !self.taken;
                self.notified = false;
                self.open = true;
            }
            (Kind::System, Some("task_notification")) => self.notified |= !self.open,
            (Kind::Result, _) => return self.result(message),
            _ => {}
        }
        if self.is_ours() {
            Route::Turn
        } else {
            Route::Outside
        }
    }

    fn result(&mut self, message: &Message) -> Route {
        let is_answer = || message.result().is_none_or(|result| result.is_answer());
        let ends = self.taken || (self.is_ours() && is_answer());
        self.own = false;
        self.open = false;
        if !ends {
            return Route::Outside;
        }
        self.prompt = None;
        self.taken = false;
        Route::TurnEnds
    }

    /// Whether what the CLI says now is about the prompt. Before an older version has begun with it, that is a guess.
    fn is_ours(&self) -> bool {
        self.prompt.is_some() && (self.taken || (!self.announces && !self.own))
    }
}

/// Looks for the field first: the results of tools are user messages as well, and may be large.
fn is_replay(message: &Message) -> bool {
    message.json().contains("\"isReplay\":true")
        && matches!(message.body(), Body::User(user) if user.is_replay)
}

#[cfg(test)]
#[path = "route/tests.rs"]
mod tests;
