//! One session: its settings, its state machine, its actor.

mod actor;
mod inbox;
mod journal;
mod settings;
mod state;
mod step;

pub(crate) use actor::{ActorHandle, spawn};
pub(crate) use inbox::{Acknowledged, Command, CommandFailed, Deletion};
pub use settings::{Settings, SettingsPatch};
pub use state::{
    AgentState, AgentStatus, Approval, DecisionAnswer, DecisionRef, Delivery, RewindUndo, RewoundPart,
    RunRecord, SessionRecord, SessionStatus, State, TitleSource, TurnRecord,
};
pub(crate) use step::totals;
pub use step::{Effect, Input, Kept, QueueItem, Refusal, step};

#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod step_tests;
