//! One session: its settings, its state machine, its actor.

mod actor;
mod state;
mod step;

pub(crate) use actor::{ActorHandle, Command, CommandFailed, spawn};
pub use state::{
    AgentState, Answer, Approval, DecisionRef, PermissionMode, SessionRecord, SessionStatus, Settings, State,
};
pub use step::{Effect, Input, Refusal, step};

#[cfg(test)]
mod step_tests;
