//! Translates between the event API's types and the core's. Pure functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tiller_core::backend::{HookCall, SandboxView};
use tiller_core::{
    AgentStatus, AgentUsage, CommandError, DamagedSession, DecisionAnswer, DecisionRef, DecisionRequest,
    Event, EventBody, HistoryPage, Inquiry, NewImage, NewPrompt, Page, Prompt, PromptId, PromptRefused,
    RawJson, RewoundPart, SessionId, SessionRecord, Settings, StartSession,
};

use super::commands::decisions::{PermissionResponse, PermissionResult};
use super::commands::history::HistoryRequest;
use super::commands::hooks::{HookCallback, HookEvent};
use super::commands::inquire::Subject;
use super::commands::prompts::{NewAttachment, SessionQueue};
use super::commands::start::SessionStart;
use super::parse::NotUnderstood;
use super::protocol::{CommandId, Frame};
use super::settings::SettingsInfo;
use super::table::ServerEvent;
use super::wire::{
    AgentInfo, AgentState, Attachment, DriverInfo, History, HistoryKind, PermissionRequest,
    PermissionResolved, QueuedPrompt, RewoundRange, RunnerError, SandboxInfo, SessionInfo, SessionStatus,
    StatusChange, StreamMessage, StreamUserPrompt, UiContext,
};
use crate::decided::DecidedCall;
use crate::error::ErrorCode;

/// `approval`: the mode if the client does not choose one.
pub(super) fn start(
    mut start: SessionStart,
    approval: tiller_core::Approval,
) -> Result<StartSession, CommandError> {
    let defaults = Settings {
        approval,
        ..Settings::default()
    };
    let settings = start.take_settings().applied(&defaults);
    Ok(StartSession {
        title: start.title.unwrap_or_default(),
        prompt: prompt(start.prompt_id, start.prompt, start.attachments, start.context)?,
        cwd: start.cwd,
        backend: start.backend,
        settings,
        ..StartSession::default()
    })
}

pub(super) fn prompt(
    id: Option<PromptId>,
    text: String,
    attachments: Vec<NewAttachment>,
    context: Option<UiContext>,
) -> Result<NewPrompt, CommandError> {
    let images = attachments.into_iter().enumerate().map(|(number, attachment)| {
        let unreadable = |_| {
            let name = attachment.name.clone();
            PromptRefused::NotAnImage(name.unwrap_or_else(|| format!("{}", number + 1)))
        };
        Ok(NewImage {
            bytes: BASE64.decode(attachment.data.as_bytes()).map_err(unreadable)?,
            media_type: attachment.media_type,
            name: attachment.name,
        })
    });
    Ok(NewPrompt {
        id,
        parent_tool_use_id: None,
        afresh: false,
        text,
        images: images.collect::<Result<_, PromptRefused>>()?,
        context: context.map(|context| tiller_core::prompt::UiContext {
            mode: context.mode,
            current_view: context.current_view,
            selected_element: context
                .selected_element
                .map(|element| tiller_core::prompt::SelectedElement {
                    tag_name: element.tag_name,
                    selector: element.selector,
                    text_content: element.text_content,
                }),
            selected_file: context
                .selected_file
                .map(|file| tiller_core::prompt::SelectedFile {
                    path: file.path,
                    start_line: file.start_line,
                    end_line: file.end_line,
                }),
        }),
    })
}

fn context(context: &tiller_core::prompt::UiContext) -> UiContext {
    UiContext {
        mode: context.mode.clone(),
        current_view: context.current_view.clone(),
        selected_element: context
            .selected_element
            .as_ref()
            .map(|element| super::wire::SelectedElement {
                tag_name: element.tag_name.clone(),
                selector: element.selector.clone(),
                text_content: element.text_content.clone(),
            }),
        selected_file: context
            .selected_file
            .as_ref()
            .map(|file| super::wire::SelectedFile {
                path: file.path.clone(),
                start_line: file.start_line,
                end_line: file.end_line,
            }),
    }
}

pub(super) fn inquiry(subject: Subject, query: Option<String>) -> Inquiry {
    match subject {
        Subject::ContextUsage => Inquiry::ContextUsage,
        Subject::McpStatus => Inquiry::McpStatus,
        Subject::FileSuggestions => Inquiry::FileSuggestions {
            query: query.unwrap_or_default(),
        },
        Subject::Commands => Inquiry::Commands,
        Subject::Models => Inquiry::Models,
        Subject::PermissionRules => Inquiry::PermissionRules,
        Subject::Hooks => Inquiry::Hooks,
        Subject::Usage => Inquiry::Usage,
        Subject::Settings => Inquiry::Settings,
    }
}

pub(super) fn refusal(error: &CommandError, session_id: Option<String>) -> RunnerError {
    let driver = match error {
        CommandError::DrivenElsewhere(driver) => Some(DriverInfo {
            pid: driver.pid,
            command: driver.command.clone(),
            since: driver.since.0,
        }),
        _ => None,
    };
    RunnerError {
        message: error.to_string(),
        code: ErrorCode::from(error),
        session_id,
        driver,
    }
}

pub(super) fn page(request: &HistoryRequest) -> Result<Page, NotUnderstood> {
    match (request.after_seq, request.before_seq, request.limit) {
        (Some(_), Some(_), _) => Err("Give either 'afterSeq' or 'beforeSeq', not both.".into()),
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
    let unknown = |_| NotUnderstood::from("No such request is waiting. It may have been withdrawn.");
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
        (None, None) => Err("Name the request with 'toolUseId' or 'requestId'.".into()),
    }
}

pub(super) fn hook_callback(session: SessionId, call: &HookCall) -> HookCallback {
    HookCallback {
        session_id: session.to_string(),
        callback_id: call.agent_request.clone(),
        hook_event: call.event.clone(),
        input: call.input.clone(),
        tool_use_id: call.tool_use_id.clone(),
    }
}

/// The agent's own name of the event.
pub(super) fn hook_name(event: HookEvent) -> String {
    let name = match event {
        HookEvent::PreToolUse => "PreToolUse",
        HookEvent::PostToolUse => "PostToolUse",
        HookEvent::UserPromptSubmit => "UserPromptSubmit",
        HookEvent::Stop => "Stop",
        HookEvent::SubagentStop => "SubagentStop",
        HookEvent::PreCompact => "PreCompact",
    };
    name.to_owned()
}

pub(super) fn answer(result: PermissionResult) -> Result<DecisionAnswer, NotUnderstood> {
    let raw = |error: serde_json::Error| NotUnderstood::from(error.to_string());
    Ok(match result {
        PermissionResult::Allow {
            updated_input,
            updated_permissions,
        } => DecisionAnswer::Allow {
            input: updated_input
                .map(|input| RawJson::of(&input))
                .transpose()
                .map_err(raw)?,
            permissions: updated_permissions
                .map(|rules| RawJson::of(&rules))
                .transpose()
                .map_err(raw)?,
        },
        PermissionResult::Deny { message, interrupt } => DecisionAnswer::Deny {
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
            turn: change.turn,
            seq: Some(seq),
        }),
        EventBody::UserPrompt { prompt } => ServerEvent::StreamUserPrompt(StreamUserPrompt {
            session_id,
            prompt: prompt.text.clone(),
            prompt_id: prompt.id.to_string(),
            uuid: prompt.id.to_string(),
            attachments: prompt.attachments.iter().map(attachment).collect(),
            context: prompt.context.as_ref().map(context),
            seq,
            at: event.at.0,
        }),
        EventBody::Message { raw, .. } => ServerEvent::StreamMessage(StreamMessage {
            session_id,
            message: raw.clone(),
            seq,
        }),
        EventBody::Unreadable(line) => ServerEvent::StreamMessage(StreamMessage {
            session_id,
            message: line.shown(),
            seq,
        }),
        EventBody::DecisionRequested(asked) => {
            ServerEvent::PermissionRequest(request(session_id, asked, Some(seq)))
        }
        EventBody::DecisionResolved {
            request,
            tool_use_id,
            behavior,
            reply,
        } => ServerEvent::PermissionResolved(PermissionResolved {
            session_id,
            tool_use_id: tool_use_id.clone(),
            request_id: request.to_string(),
            behavior: (*behavior).into(),
            edited_input: reply.as_deref().and_then(|reply| reply.edited_input().cloned()),
            seq,
        }),
    }
}

/// The event as the text of a frame.
pub(super) fn frame(event: &Event, command: Option<&CommandId>) -> Result<String, serde_json::Error> {
    // Most frames are messages, which are already JSON.
    if let EventBody::Message { raw, .. } = &event.body {
        let mut session = [0; 36];
        let session = event.session.in_text(&mut session);
        let seq = event.seq.to_string();
        return Ok([
            r#"{"type":"stream.message","payload":{"sessionId":""#,
            session,
            r#"","message":"#,
            raw.as_str(),
            r#","seq":"#,
            &seq,
            "}}",
        ]
        .concat());
    }
    let event = &self::event(event);
    Frame { event, command }.text()
}

pub(super) fn history(page: HistoryPage) -> History {
    let session_id = page.record.id.to_string();
    let (mut messages, mut seqs, mut kinds, mut times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in page.entries {
        messages.push(entry.json);
        seqs.push(entry.seq);
        times.push(entry.at.0);
        kinds.push(match entry.kind {
            tiller_core::HistoryKind::Prompt => HistoryKind::UserPrompt,
            tiller_core::HistoryKind::Message => HistoryKind::Message,
        });
    }
    let statuses = page.statuses.iter().filter_map(|changed| match event(changed) {
        ServerEvent::SessionStatus(change) => Some(change),
        _ => None,
    });
    History {
        status: status(page.record.status),
        statuses: statuses.collect(),
        decided: page.decided.into_iter().map(DecidedCall::from).collect(),
        messages,
        seqs,
        kinds,
        times,
        last_seq: page.record.last_seq,
        summary: page.record.summary.map(|summary| summary.view()),
        pending: page
            .pending
            .iter()
            .map(|asked| request(session_id.clone(), asked, None))
            .collect(),
        queue: texts(&page.record.queue),
        queue_items: queued(&page.record.queue),
        session_id,
    }
}

/// What keeps a session's agent in its place.
pub(super) struct Protection {
    /// Why agents are not shielded.
    pub(super) not_shielded: Option<String>,
    pub(super) sandbox: Option<SandboxView>,
}

pub(super) fn session(
    record: SessionRecord,
    pending: usize,
    agent: AgentStatus,
    usage: Option<AgentUsage>,
    protection: Protection,
) -> SessionInfo {
    let settings = SettingsInfo::from(&record.settings);
    let (rewound, can_undo_rewind) = (rewound(&record), record.can_undo_rewind());
    SessionInfo {
        id: record.id.to_string(),
        title: record.title,
        status: status(record.status),
        cwd: record.cwd,
        claude_session_id: record.conversation,
        created_at: record.created_at.0,
        updated_at: record.updated_at.0,
        allowed_tools: settings.allowed_tools.clone(),
        last_prompt: record.last_prompt,
        model: settings.model.clone(),
        permission_mode: settings.permission_mode,
        approval: settings.approval,
        settings,
        archived: record.archived,
        pending: u32::try_from(pending).unwrap_or(u32::MAX),
        queue: texts(&record.queue),
        queue_items: queued(&record.queue),
        agent: AgentInfo {
            state: match agent {
                AgentStatus::Absent => AgentState::Absent,
                AgentStatus::Starting => AgentState::Starting,
                AgentStatus::Running => AgentState::Running,
                AgentStatus::Idle => AgentState::Idle,
                AgentStatus::Hibernated => AgentState::Hibernated,
            },
            memory_bytes: usage.map(|usage| usage.memory_bytes),
            cpu: usage.map(|usage| f64::from(usage.cpu)),
            shielded: protection.not_shielded.is_none(),
            not_shielded: protection.not_shielded,
            sandbox: protection.sandbox.map(|sandbox| SandboxInfo {
                folders: sandbox
                    .folders
                    .iter()
                    .map(|folder| folder.to_string_lossy().into_owned())
                    .collect(),
                hosts: sandbox
                    .hosts
                    .map(|hosts| hosts.iter().map(ToString::to_string).collect()),
            }),
        },
        delete_at: record.delete_at.map(|at| at.0),
        rewound,
        can_undo_rewind,
        last_seq: record.last_seq,
        summary: record.summary.map(|summary| summary.view()),
        damaged: false,
        error: None,
    }
}

fn rewound(record: &SessionRecord) -> Vec<RewoundRange> {
    let range = |part: &RewoundPart| RewoundRange {
        after_seq: part.after,
        through_seq: part.through,
    };
    record.rewound.iter().map(range).collect()
}

/// The entry of a session that can't be read: what is known of it, and the reason.
pub(super) fn damaged_session(session: DamagedSession) -> SessionInfo {
    let settings = SettingsInfo::from(&Settings::default());
    SessionInfo {
        id: session.id.to_string(),
        title: session.title,
        status: SessionStatus::Error,
        cwd: session.cwd,
        claude_session_id: None,
        created_at: session.created_at.0,
        updated_at: session.updated_at.0,
        allowed_tools: None,
        last_prompt: None,
        model: None,
        permission_mode: settings.permission_mode,
        approval: settings.approval,
        settings,
        archived: false,
        pending: 0,
        queue: Vec::new(),
        queue_items: Vec::new(),
        agent: AgentInfo {
            state: AgentState::Absent,
            memory_bytes: None,
            cpu: None,
            // It has no agent and can't get one.
            shielded: false,
            not_shielded: None,
            sandbox: None,
        },
        delete_at: None,
        rewound: Vec::new(),
        can_undo_rewind: false,
        last_seq: 0,
        summary: None,
        damaged: true,
        error: Some(session.reason),
    }
}

/// The current status of a session, which is not an event of its log.
pub(super) fn current_status(record: &SessionRecord) -> StatusChange {
    StatusChange {
        session_id: record.id.to_string(),
        status: status(record.status),
        title: Some(record.title.clone()),
        cwd: Some(record.cwd.clone()),
        error: None,
        turn: None,
        seq: None,
    }
}

/// For a client that waits for the status of the session that it wanted to start: no session was created.
pub(super) fn refused_start(session: SessionId, error: &CommandError) -> StatusChange {
    StatusChange {
        session_id: session.to_string(),
        status: SessionStatus::Error,
        title: None,
        cwd: None,
        error: Some(error.to_string()),
        turn: None,
        seq: None,
    }
}

pub(super) fn queue(session: SessionId, prompts: &[Prompt]) -> SessionQueue {
    SessionQueue {
        session_id: session.to_string(),
        prompts: texts(prompts),
        items: queued(prompts),
    }
}

fn queued(prompts: &[Prompt]) -> Vec<QueuedPrompt> {
    let item = |prompt: &Prompt| QueuedPrompt {
        prompt_id: prompt.id.to_string(),
        prompt: prompt.text.clone(),
    };
    prompts.iter().map(item).collect()
}

/// The pending decisions of a session, to be sent again.
pub(super) fn waiting(session: SessionId, pending: &[DecisionRequest]) -> Vec<PermissionRequest> {
    let session_id = session.to_string();
    let again = |asked| request(session_id.clone(), asked, None);
    pending.iter().map(again).collect()
}

fn texts(prompts: &[Prompt]) -> Vec<String> {
    prompts.iter().map(|prompt| prompt.text.clone()).collect()
}

fn attachment(attachment: &tiller_core::Attachment) -> Attachment {
    Attachment {
        id: attachment.id.clone(),
        media_type: attachment.media_type.clone(),
        name: attachment.name.clone(),
        size: attachment.size,
    }
}

fn request(session_id: String, asked: &DecisionRequest, seq: Option<u64>) -> PermissionRequest {
    PermissionRequest {
        session_id,
        tool_use_id: asked.tool_use_id.clone(),
        request_id: asked.id.to_string(),
        tool_name: asked.tool_name.clone(),
        input: asked.input.clone(),
        shown: asked.input_hash(),
        suggestions: asked.suggestions.clone(),
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
    use super::super::parse::parse;
    use super::super::table::ClientEvent;
    use super::*;

    #[test]
    fn an_answer_keeps_the_input_that_was_changed() {
        let frame = r#"{"type":"permission.response","payload":{"sessionId":"s","toolUseId":"t",
            "result":{"behavior":"allow","updatedInput":{"answers":{"Q":"A"}}}}}"#;
        let ClientEvent::PermissionResponse(response) = parse(frame).unwrap().event else {
            panic!("not understood")
        };
        let Ok(DecisionAnswer::Allow {
            input: Some(input),
            permissions: None,
        }) = answer(response.result)
        else {
            panic!("not an answer")
        };
        assert_eq!(input.as_str(), r#"{"answers":{"Q":"A"}}"#);
    }

    #[test]
    fn a_message_is_framed_as_its_type_says() {
        let event = Event {
            session: tiller_core::SessionId::random(),
            seq: 7,
            at: tiller_core::Timestamp(0),
            body: EventBody::Message {
                raw: RawJson::parse(r#"{"type":"assistant","text":"a \"b\""}"#).unwrap(),
                uuid: None,
            },
        };
        assert_eq!(
            frame(&event, None).unwrap(),
            Frame {
                event: &self::event(&event),
                command: None
            }
            .text()
            .unwrap()
        );
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
            shown: None,
        };
        assert_eq!(
            decision(&response(Some("t"), None)).ok(),
            Some(DecisionRef::ToolUse("t".to_owned()))
        );
        assert!(decision(&response(None, None)).is_err());
        assert!(decision(&response(Some("t"), Some("not an id"))).is_err());
    }
}
