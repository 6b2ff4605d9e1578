//! Between the event API's types and the core's. Pure functions.

use tiller_core::{
    Answer, DecisionRef, DecisionRequest, Event, EventBody, HistoryPage, Page, RawJson, SessionRecord,
    Settings, StartSession,
};

use super::wire::{
    Approval, Behavior, ClientEvent, History, HistoryRequest, PermissionMode, PermissionRequest,
    PermissionResponse, PermissionResult, ServerEvent, SessionInfo, SessionStart, SessionStatus,
    StatusChange,
};

/// A frame that is not understood, in words for the one who sent it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NotUnderstood(pub(super) String);

pub(super) fn parse(frame: &str) -> Result<ClientEvent, NotUnderstood> {
    // Not taken apart by one `from_str` alone: its words for an unknown type would list every type there is.
    #[derive(serde::Deserialize)]
    struct Envelope {
        r#type: Option<String>,
    }
    let envelope: Envelope = serde_json::from_str(frame)
        .map_err(|error| NotUnderstood(format!("The frame is not a JSON object with a 'type': {error}")))?;
    let Some(kind) = envelope.r#type else {
        return Err(NotUnderstood("The frame has no 'type'.".to_owned()));
    };
    serde_json::from_str(frame).map_err(|error| {
        let reason = error.to_string();
        if reason.starts_with("unknown variant") {
            NotUnderstood(format!("Unknown event type '{kind}'."))
        } else {
            NotUnderstood(format!("The event '{kind}' is not understood: {reason}"))
        }
    })
}

pub(super) fn start(start: SessionStart) -> StartSession {
    StartSession {
        title: start.title.unwrap_or_default(),
        prompt: start.prompt,
        cwd: start.cwd,
        settings: Settings {
            allowed_tools: start.allowed_tools.filter(|tools| !tools.trim().is_empty()),
            tools: None,
            max_turns: None,
            model: start.model.filter(|model| !model.trim().is_empty()),
            permission_mode: match start.permission_mode.unwrap_or(PermissionMode::Default) {
                PermissionMode::Default => tiller_core::PermissionMode::Default,
                PermissionMode::AcceptEdits => tiller_core::PermissionMode::AcceptEdits,
                PermissionMode::Plan => tiller_core::PermissionMode::Plan,
                PermissionMode::BypassPermissions => tiller_core::PermissionMode::BypassPermissions,
            },
            approval: match start.approval.unwrap_or(Approval::Ask) {
                Approval::Ask => tiller_core::Approval::Ask,
                Approval::Auto => tiller_core::Approval::Auto,
            },
        },
        resume: None,
    }
}

pub(super) fn page(request: &HistoryRequest) -> Result<Page, NotUnderstood> {
    match (request.after_seq, request.before_seq, request.limit) {
        (Some(_), Some(_), _) => Err(NotUnderstood(
            "Give either 'afterSeq' or 'beforeSeq', not both.".to_owned(),
        )),
        (Some(seq), None, limit) => Ok(Page::After {
            seq,
            limit: limit.unwrap_or(u32::MAX),
        }),
        (None, Some(seq), limit) => Ok(Page::Before {
            seq,
            limit: limit.unwrap_or(u32::MAX),
        }),
        (None, None, Some(limit)) => Ok(Page::Last { limit }),
        (None, None, None) => Ok(Page::All),
    }
}

pub(super) fn decision(response: &PermissionResponse) -> Result<DecisionRef, NotUnderstood> {
    let unknown = |_| NotUnderstood("No such request is waiting for an answer.".to_owned());
    let request = response
        .request_id
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(unknown)?;
    match (request, response.tool_use_id.clone()) {
        (Some(request), Some(tool_use)) => Ok(DecisionRef::Both { request, tool_use }),
        (Some(request), None) => Ok(DecisionRef::Request(request)),
        (None, Some(tool_use)) => Ok(DecisionRef::ToolUse(tool_use)),
        (None, None) => Err(NotUnderstood(
            "Say which request: 'toolUseId' or 'requestId' is missing.".to_owned(),
        )),
    }
}

pub(super) fn answer(result: PermissionResult) -> Result<Answer, NotUnderstood> {
    let raw = |error: serde_json::Error| NotUnderstood(error.to_string());
    Ok(match result {
        PermissionResult::Allow {
            updated_input,
            updated_permissions,
        } => Answer::Allow {
            input: updated_input
                .map(|input| RawJson::of(&input))
                .transpose()
                .map_err(raw)?,
            permissions: updated_permissions
                .map(|rules| RawJson::of(&rules))
                .transpose()
                .map_err(raw)?,
        },
        PermissionResult::Deny { message, interrupt } => Answer::Deny {
            message,
            interrupt: interrupt.unwrap_or(false),
        },
    })
}

pub(super) fn event(event: &Event) -> ServerEvent {
    let session_id = event.session.to_string();
    let seq = event.seq;
    match &event.body {
        EventBody::Status(change) => ServerEvent::SessionStatus(StatusChange {
            session_id,
            status: status(change.status),
            title: change.title.clone(),
            cwd: change.cwd.clone(),
            error: change.error.clone(),
            seq,
        }),
        EventBody::UserPrompt { prompt } => ServerEvent::StreamUserPrompt {
            session_id,
            prompt: prompt.clone(),
            seq,
        },
        EventBody::Message { raw, .. } => ServerEvent::StreamMessage {
            session_id,
            message: raw.shared(),
            seq,
        },
        EventBody::DecisionRequested(asked) => {
            ServerEvent::PermissionRequest(request(session_id, asked, Some(seq)))
        }
        EventBody::DecisionResolved {
            request,
            tool_use_id,
            behavior,
        } => ServerEvent::PermissionResolved {
            session_id,
            tool_use_id: tool_use_id.clone(),
            request_id: request.to_string(),
            behavior: match behavior {
                tiller_core::Behavior::Allow => Behavior::Allow,
                tiller_core::Behavior::Deny => Behavior::Deny,
                tiller_core::Behavior::Withdrawn => Behavior::Withdrawn,
            },
            seq,
        },
    }
}

pub(super) fn history(page: HistoryPage) -> ServerEvent {
    let session_id = page.record.id.to_string();
    let (seqs, messages) = page
        .messages
        .into_iter()
        .map(|(seq, message)| (seq, message.shared()))
        .unzip();
    ServerEvent::SessionHistory(History {
        status: status(page.record.status),
        messages,
        seqs,
        last_seq: page.record.last_seq,
        pending: page
            .pending
            .iter()
            .map(|asked| request(session_id.clone(), asked, None))
            .collect(),
        queue: page.record.queue,
        session_id,
    })
}

pub(super) fn session(record: SessionRecord, pending: usize) -> SessionInfo {
    SessionInfo {
        id: record.id.to_string(),
        title: record.title,
        status: status(record.status),
        cwd: record.cwd,
        claude_session_id: record.claude_session_id,
        created_at: record.created_at.0,
        updated_at: record.updated_at.0,
        allowed_tools: record.settings.allowed_tools,
        last_prompt: record.last_prompt,
        model: record.settings.model,
        permission_mode: match record.settings.permission_mode {
            tiller_core::PermissionMode::Default => PermissionMode::Default,
            tiller_core::PermissionMode::AcceptEdits => PermissionMode::AcceptEdits,
            tiller_core::PermissionMode::Plan => PermissionMode::Plan,
            tiller_core::PermissionMode::BypassPermissions => PermissionMode::BypassPermissions,
        },
        approval: match record.settings.approval {
            tiller_core::Approval::Ask => Approval::Ask,
            tiller_core::Approval::Auto => Approval::Auto,
        },
        pending: u32::try_from(pending).unwrap_or(u32::MAX),
        last_seq: record.last_seq,
    }
}

fn request(session_id: String, asked: &DecisionRequest, seq: Option<u64>) -> PermissionRequest {
    PermissionRequest {
        session_id,
        tool_use_id: asked.tool_use_id.clone(),
        request_id: asked.id.to_string(),
        tool_name: asked.tool_name.clone(),
        input: asked.input.shared(),
        suggestions: asked.suggestions.as_ref().map(RawJson::shared),
        description: asked.description.clone(),
        seq,
    }
}

fn status(status: tiller_core::SessionStatus) -> SessionStatus {
    match status {
        tiller_core::SessionStatus::Idle => SessionStatus::Idle,
        tiller_core::SessionStatus::Running => SessionStatus::Running,
        tiller_core::SessionStatus::Completed => SessionStatus::Completed,
        tiller_core::SessionStatus::Error => SessionStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(frame: &str) -> String {
        parse(frame).unwrap_err().0
    }

    #[test]
    fn frames_of_the_contract_are_understood() {
        assert!(matches!(
            parse(r#"{"type":"session.list"}"#),
            Ok(ClientEvent::SessionList)
        ));
        let frame = r#"{"payload":{"prompt":"hi","unknown":1,"title":"t"},"type":"session.start"}"#;
        let Ok(ClientEvent::SessionStart(start)) = parse(frame) else {
            panic!("not understood")
        };
        assert_eq!(start.prompt, "hi");
        let frame = r#"{"type":"permission.response","payload":{"sessionId":"s","toolUseId":"t",
            "result":{"behavior":"allow","updatedInput":{"answers":{"Q":"A"}}}}}"#;
        let Ok(ClientEvent::PermissionResponse(response)) = parse(frame) else {
            panic!("not understood")
        };
        let Ok(Answer::Allow {
            input: Some(input),
            permissions: None,
        }) = answer(response.result)
        else {
            panic!("not an answer")
        };
        assert_eq!(input.as_str(), r#"{"answers":{"Q":"A"}}"#);
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        assert!(refusal("hello").starts_with("The frame is not a JSON object"));
        assert!(refusal("[]").starts_with("The frame is not a JSON object"));
        assert_eq!(refusal("{}"), "The frame has no 'type'.");
        assert_eq!(
            refusal(r#"{"type":"session.explode"}"#),
            "Unknown event type 'session.explode'."
        );
        assert!(refusal(r#"{"type":"session.start","payload":{}}"#).contains("missing field `prompt`"));
        assert!(refusal(r#"{"type":"session.stop"}"#).contains("missing field `payload`"));
    }

    #[test]
    fn a_decision_must_be_named() {
        let response = |tool_use: Option<&str>, request: Option<&str>| PermissionResponse {
            session_id: String::new(),
            tool_use_id: tool_use.map(str::to_owned),
            request_id: request.map(str::to_owned),
            result: PermissionResult::Deny {
                message: None,
                interrupt: None,
            },
        };
        assert_eq!(
            decision(&response(Some("t"), None)),
            Ok(DecisionRef::ToolUse("t".to_owned()))
        );
        assert!(decision(&response(None, None)).is_err());
        assert!(decision(&response(Some("t"), Some("not an id"))).is_err());
    }
}
