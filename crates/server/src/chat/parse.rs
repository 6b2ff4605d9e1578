//! Parses a text frame into a message of the chat API, or into an error for the client. Pure.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tiller_core::{CommandError, repeated};

use super::wire::{ClientMessage, Code, CommandId};
use crate::error::{ErrorCode, shortened};

/// Why a message was refused, for its sender.
#[derive(Debug, PartialEq)]
pub(super) struct Refused(pub(super) Code, pub(super) String);

impl From<CommandError> for Refused {
    fn from(error: CommandError) -> Self {
        let code = match ErrorCode::from(&error) {
            // An invalid name is reported as an unknown session.
            _ if matches!(error, CommandError::Name) => Code::InvalidSession,
            ErrorCode::SessionNotFound => Code::InvalidSession,
            ErrorCode::PromptEmpty if matches!(error, CommandError::Prompt(_)) => Code::EmptyMessage,
            ErrorCode::UnknownModel => Code::InvalidModel,
            ErrorCode::WorkingDirInvalid => Code::InvalidCwd,
            ErrorCode::Forbidden => Code::Forbidden,
            ErrorCode::RequestNotFound => Code::RequestNotFound,
            ErrorCode::AlreadyAnswered => Code::AlreadyAnswered,
            ErrorCode::NotAsShown => Code::NotAsShown,
            ErrorCode::NoResumeId => Code::NoResumeId,
            ErrorCode::AttachmentInvalid => Code::InvalidImage,
            ErrorCode::Storage | ErrorCode::Internal => Code::Internal,
            _ => Code::ParseError,
        };
        Self(code, error.to_string())
    }
}

/// Parses one frame of a connection whose session is named `name`. Returns the client's `command_id` and the message.
pub(super) fn parse(frame: &str, name: &str) -> (Option<CommandId>, Result<ClientMessage, Refused>) {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        command_id: Option<&'a RawValue>,
    }
    // A frame that is not an object has no id, and is refused below.
    let named = serde_json::from_str::<Named>(frame).ok();
    match named
        .and_then(|named| named.command_id)
        .map(|id| CommandId::parse(id.get()))
    {
        Some(Ok(command)) => (command, message(frame, name)),
        Some(Err(refused)) => (None, Err(refused)),
        None => (None, message(frame, name)),
    }
}

fn message(frame: &str, name: &str) -> Result<ClientMessage, Refused> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        r#type: Option<Value>,
        session_id: Option<Value>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let wrong = |reason: String| Refused(Code::ParseError, reason);
    // serde would accept a list for an object, in the order of its fields.
    let is_object = |json: &str| json.trim_start().starts_with('{');
    if !is_object(frame) {
        return Err(wrong("The message is not a JSON object.".to_owned()));
    }
    let envelope: Envelope = serde_json::from_str(frame).map_err(|error| {
        wrong(format!(
            "The message is not a JSON object: {}",
            shortened(&error.to_string())
        ))
    })?;
    let Some(Value::String(kind)) = envelope.r#type else {
        return Err(wrong("Expected 'type' field in message".to_owned()));
    };
    let content = envelope.message.filter(|_| kind == "user_message");
    if content.is_some_and(|content| !is_object(content.get())) {
        let reason = "Invalid 'user_message': 'message' must be an object with 'content'.";
        return Err(wrong(reason.to_owned()));
    }
    match envelope.session_id {
        None | Some(Value::Null) => {}
        Some(Value::String(named)) if named == name => {}
        Some(_) => {
            let reason = format!(
                "This connection is for the session '{name}'. Open another connection for another session."
            );
            return Err(Refused(Code::InvalidSession, reason));
        }
    }
    serde_json::from_str(frame).map_err(|error| {
        let reason = error.to_string();
        // serde's own message would list all types.
        wrong(
            if reason.starts_with("unknown variant") && reason.contains(&format!("`{kind}`")) {
                format!("Unknown message type '{}'", repeated(&kind))
            } else {
                let (kind, reason) = (repeated(&kind), shortened(&reason));
                format!("Invalid '{kind}': {reason}")
            },
        )
    })
}

impl CommandId {
    /// In characters.
    const LONGEST: usize = 64;

    /// `null` counts as absent.
    fn parse(json: &str) -> Result<Option<Self>, Refused> {
        let wrong = || {
            let longest = Self::LONGEST;
            let reason = format!("'command_id' must be a string of at most {longest} characters.");
            Refused(Code::ParseError, reason)
        };
        let text: Option<String> = serde_json::from_str(json).map_err(|_| wrong())?;
        if text
            .as_ref()
            .is_some_and(|text| text.chars().count() > Self::LONGEST)
        {
            return Err(wrong());
        }
        Ok(text.map(Self))
    }
}
