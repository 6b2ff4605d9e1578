//! One session: its settings, its state machine, its actor.

mod actor;
mod settings;
mod state;
mod step;

pub(crate) use actor::{ActorHandle, Command, CommandFailed, spawn};
pub use settings::{Settings, SettingsPatch};
pub use state::{
    AgentSettings, AgentState, AgentStatus, Answer, Approval, DecisionRef, Delivery, PermissionMode,
    SessionRecord, SessionStatus, State, TitleSource,
};
pub use step::{Effect, Input, Refusal, step};

#[cfg(test)]
mod step_tests;
