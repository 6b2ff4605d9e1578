//! The error codes: one list for all doors, for the page, and for the documentation.

use serde::Serialize;
use tiller_core::session::Refusal;
use tiller_core::{CommandError, InquiryFailed, PromptRefused};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::options;

/// Why a request was refused or failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "errors.ts")]
pub enum ErrorCode {
    PromptEmpty,
    PromptTooLong,
    /// An image is too large, of an unsupported type, or one too many.
    AttachmentInvalid,
    WorkingDirInvalid,
    /// A session can't change its working directory.
    WorkingDirLocked,
    SessionNotFound,
    /// The session is about to be deleted.
    SessionDeleted,
    QuestionNotFound,
    RequestNotFound,
    InvalidAnswer,
    AlreadyAnswered,
    /// The pending request differs from what the client showed.
    NotAsShown,
    /// The stored data of the session can't be read.
    SessionDamaged,
    TaskInterrupted,
    InvalidRequest,
    UnknownModel,
    Unauthorized,
    Forbidden,
    RateLimited,
    Timeout,
    /// The queue changed since the client looked at it.
    QueueChanged,
    /// A turn is running.
    Busy,
    /// The session has no conversation that could be resumed.
    NoResumeId,
    /// The session has spent what it may.
    BudgetSpent,
    /// Another process is using the conversation.
    DrivenElsewhere,
    TakeoverFailed,
    /// No agent is running in the session.
    NoAgent,
    /// The agent does not support this.
    Unsupported,
    /// The agent is not installed on this machine.
    AgentNotInstalled,
    AgentFailed,
    /// The store can't be written right now.
    Storage,
    /// The events of a session can't be stored, so its agent waits.
    HeldUp,
    /// The server is about to end. What was asked was not done.
    Stopping,
    Internal,
}

/// The only mapping from errors of the core to codes. Doors have their own texts for a code, never for an error of the
/// core.
impl From<&CommandError> for ErrorCode {
    fn from(error: &CommandError) -> Self {
        match error {
            CommandError::UnknownSession => Self::SessionNotFound,
            CommandError::Damaged { .. } => Self::SessionDamaged,
            CommandError::Option(refused) if refused.option == options::MODEL => Self::UnknownModel,
            CommandError::Prompt(PromptRefused::Empty) | CommandError::Refused(Refusal::EmptyPrompt) => {
                Self::PromptEmpty
            }
            CommandError::Prompt(PromptRefused::Nul)
            | CommandError::Option(_)
            | CommandError::Backend(_)
            | CommandError::Title
            | CommandError::Arrangement(_)
            | CommandError::Name
            | CommandError::Refused(Refusal::PromptIdUsed | Refusal::NothingToUndo) => Self::InvalidRequest,
            CommandError::Prompt(
                PromptRefused::TooManyImages | PromptRefused::ImageTooLarge(_) | PromptRefused::NotAnImage(_),
            ) => Self::AttachmentInvalid,
            CommandError::Busy | CommandError::Refused(Refusal::TurnRuns) => Self::Busy,
            CommandError::DrivenElsewhere(_) => Self::DrivenElsewhere,
            CommandError::Takeover(_) => Self::TakeoverFailed,
            CommandError::Inquiry(InquiryFailed::NoAgent) => Self::NoAgent,
            CommandError::Unsupported { .. } | CommandError::Inquiry(InquiryFailed::Unsupported) => {
                Self::Unsupported
            }
            CommandError::Inquiry(InquiryFailed::Failed(_)) => Self::AgentFailed,
            CommandError::NotInstalled { .. } => Self::AgentNotInstalled,
            CommandError::Path(_) => Self::WorkingDirInvalid,
            CommandError::Refused(Refusal::NoResumeId) => Self::NoResumeId,
            CommandError::Refused(Refusal::BudgetSpent) => Self::BudgetSpent,
            CommandError::Refused(Refusal::RequestNotFound) => Self::RequestNotFound,
            CommandError::Refused(Refusal::AlreadyAnswered) => Self::AlreadyAnswered,
            CommandError::Refused(Refusal::NotAsShown) => Self::NotAsShown,
            CommandError::Refused(Refusal::QueueChanged) => Self::QueueChanged,
            CommandError::Refused(Refusal::Deleted) => Self::SessionDeleted,
            CommandError::Forbidden | CommandError::SandboxUnavailable | CommandError::ShieldUnavailable => {
                Self::Forbidden
            }
            CommandError::Store(_) => Self::Storage,
            CommandError::Stopping => Self::Stopping,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_it_is_called() {
        let named = [
            (ErrorCode::PromptEmpty, "prompt_empty"),
            (
                ErrorCode::from(&CommandError::UnknownSession),
                "session_not_found",
            ),
            (
                ErrorCode::from(&CommandError::from(Refusal::PromptIdUsed)),
                "invalid_request",
            ),
            (ErrorCode::HeldUp, "held_up"),
        ];
        for (code, name) in named {
            assert_eq!(serde_json::to_value(code).unwrap(), name);
        }
    }
}
