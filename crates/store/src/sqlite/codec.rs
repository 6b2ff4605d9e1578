//! Encodes the core's types as columns, and decodes them.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tiller_core::prompt::UiContext;
use tiller_core::{
    Approval, Attachment, Behavior, Decided, DecisionAnswer, DecisionRequest, Event, EventBody, HistoryEntry,
    HistoryKind, Options, Prompt, PromptId, RawJson, Reply, RequestId, RewindUndo, RewoundPart, RunRecord,
    SessionId, SessionRecord, SessionStatus, Settings, StatusChange, StoreError, Timestamp, TitleSource,
    TurnRecord, UnreadableLine,
};
use tiller_message::{TurnFigures, UnreadableReason};

use super::store_error;

/// The kind of a row of `messages` or `events`. The column `kind` says it; the text of a row never does, because an
/// agent may write any text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A prompt of the user, in `messages`.
    Prompt,
    /// A message of the agent, unchanged, in `messages`.
    Message,
    /// A line of the agent that is not a message, complete, in `messages`.
    Unreadable,
    /// A change of the session's status, in `events`.
    Status,
    /// A requested decision, in `events`.
    Requested,
    /// The end of a decision, in `events`.
    Resolved,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Prompt,
        Self::Message,
        Self::Unreadable,
        Self::Status,
        Self::Requested,
        Self::Resolved,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Message => "message",
            Self::Unreadable => "unreadable",
            Self::Status => "session.status",
            Self::Requested => "permission.request",
            Self::Resolved => "permission.resolved",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// How much of an unreadable row is shown in its place.
const SHOWN: usize = 64 << 10;

/// A prompt in the queue. In older files a prompt with text only is a string, and none has an id.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum QueuedPrompt {
    Words(String),
    More {
        #[serde(default)]
        id: Option<String>,
        prompt: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Box<UiContext>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_use_id: Option<String>,
    },
}

impl From<&Prompt> for QueuedPrompt {
    fn from(prompt: &Prompt) -> Self {
        Self::More {
            id: Some(prompt.id.to_string()),
            prompt: prompt.text.clone(),
            attachments: prompt.attachments.clone(),
            context: prompt.context.clone().map(Box::new),
            parent_tool_use_id: prompt.parent_tool_use_id.clone(),
        }
    }
}

impl QueuedPrompt {
    /// `new_id` creates the id of one that has none.
    fn into_prompt(self, new_id: PromptId) -> Result<Prompt, StoreError> {
        Ok(match self {
            Self::Words(text) => Prompt::new(new_id, text),
            Self::More {
                id,
                prompt,
                attachments,
                context,
                parent_tool_use_id,
            } => Prompt {
                id: id.as_deref().map_or(Ok(new_id), prompt_id)?,
                text: prompt,
                attachments,
                context: context.map(|context| *context),
                parent_tool_use_id,
            },
        })
    }
}

pub(super) fn encode_queue(queue: &[Prompt]) -> serde_json::Result<String> {
    serde_json::to_string(&queue.iter().map(QueuedPrompt::from).collect::<Vec<_>>())
}

fn decode_queue(json: &str, session: SessionId, made: Timestamp) -> Result<Vec<Prompt>, StoreError> {
    let waiting: Vec<QueuedPrompt> = from_json(json)?;
    let with_id = |(place, waiting): (usize, QueuedPrompt)| {
        waiting.into_prompt(PromptId::of_queued(session, made, place))
    };
    waiting.into_iter().enumerate().map(with_id).collect()
}

#[derive(Deserialize, Serialize)]
struct StoredStatus {
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnFigures>,
}

#[derive(Deserialize, Serialize)]
struct StoredRequest {
    id: String,
    agent_request: String,
    tool_use_id: String,
    tool_name: String,
    input: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suggestions: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked_path: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct StoredResolution {
    id: String,
    tool_use_id: String,
    behavior: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<StoredReply>,
}

/// The answer to the agent.
#[derive(Deserialize, Serialize)]
struct StoredReply {
    agent_request: String,
    allow: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permissions: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default)]
    interrupt: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl StoredReply {
    fn of(reply: &Reply) -> serde_json::Result<Self> {
        let raw = |raw: &RawJson| RawValue::from_string(raw.as_str().to_owned());
        let agent_request = reply.agent_request.clone();
        Ok(match &reply.answer {
            DecisionAnswer::Allow { input, permissions } => Self {
                agent_request,
                allow: true,
                input: input.as_ref().map(raw).transpose()?,
                permissions: permissions.as_ref().map(raw).transpose()?,
                message: None,
                interrupt: false,
                edited: reply.edited,
                by: reply.by.clone(),
            },
            DecisionAnswer::Deny { message, interrupt } => Self {
                agent_request,
                allow: false,
                input: None,
                permissions: None,
                message: message.clone(),
                interrupt: *interrupt,
                edited: false,
                by: reply.by.clone(),
            },
        })
    }

    fn into_reply(self) -> Reply {
        let answer = if self.allow {
            DecisionAnswer::Allow {
                input: self.input.map(RawJson::from),
                permissions: self.permissions.map(RawJson::from),
            }
        } else {
            DecisionAnswer::Deny {
                message: self.message,
                interrupt: self.interrupt,
            }
        };
        Reply {
            agent_request: self.agent_request,
            answer,
            edited: self.edited,
            by: self.by,
        }
    }
}

#[derive(Deserialize, Serialize)]
struct StoredTurn {
    prompt_seq: u64,
    stopping: bool,
    /// Absent in older files.
    #[serde(default)]
    undelivered: bool,
    #[serde(default)]
    after_stop: usize,
}

/// A part of the log that the conversation no longer has.
#[derive(Deserialize, Serialize)]
struct StoredPart {
    after: u64,
    through: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<StoredUndo>,
}

#[derive(Deserialize, Serialize)]
struct StoredUndo {
    conversation: Option<String>,
    expired: bool,
    fork_of: Option<String>,
    fork_at: Option<String>,
    last_prompt: Option<String>,
}

pub(super) fn encode_rewound(parts: &[RewoundPart]) -> serde_json::Result<Option<String>> {
    if parts.is_empty() {
        return Ok(None);
    }
    let stored = |part: &RewoundPart| StoredPart {
        after: part.after,
        through: part.through,
        undo: part.undo.clone().map(|undo| StoredUndo {
            conversation: undo.conversation,
            expired: undo.expired,
            fork_of: undo.fork_of,
            fork_at: undo.fork_at,
            last_prompt: undo.last_prompt,
        }),
    };
    let parts: Vec<_> = parts.iter().map(stored).collect();
    serde_json::to_string(&parts).map(Some)
}

fn decode_rewound(parts: &str) -> Result<Vec<RewoundPart>, StoreError> {
    let parts: Vec<StoredPart> = from_json(parts)?;
    let part = |part: StoredPart| RewoundPart {
        after: part.after,
        through: part.through,
        undo: part.undo.map(|undo| RewindUndo {
            conversation: undo.conversation,
            expired: undo.expired,
            fork_of: undo.fork_of,
            fork_at: undo.fork_at,
            last_prompt: undo.last_prompt,
        }),
    };
    Ok(parts.into_iter().map(part).collect())
}

pub(super) fn encode_turn(turn: TurnRecord) -> serde_json::Result<String> {
    serde_json::to_string(&StoredTurn {
        prompt_seq: turn.prompt_seq,
        stopping: turn.stopping,
        undelivered: turn.undelivered,
        after_stop: turn.after_stop,
    })
}

/// The run of an agent: its process and options. The position in its output is a column of its own.
#[derive(Deserialize, Serialize)]
struct StoredRun {
    name: String,
    resumes: bool,
    hooks: Vec<String>,
    started: Options,
    options: Options,
    #[serde(default)]
    stale: bool,
}

pub(super) fn encode_run(run: &RunRecord) -> serde_json::Result<String> {
    serde_json::to_string(&StoredRun {
        name: run.name.clone(),
        resumes: run.resumes,
        hooks: run.hooks.clone(),
        started: run.started.clone(),
        options: run.options.clone(),
        stale: run.stale,
    })
}

/// The name of a run whose other data may be damaged.
pub(super) fn run_name(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    serde_json::from_str::<Name>(json).ok().map(|run| run.name)
}

fn decode_run(json: &str, position: u64) -> Result<RunRecord, StoreError> {
    let kept: StoredRun = from_json(json)?;
    Ok(RunRecord {
        name: kept.name,
        position,
        resumes: kept.resumes,
        started: kept.started,
        options: kept.options,
        hooks: kept.hooks,
        stale: kept.stale,
    })
}

/// The table of an event.
pub(super) enum Encoded<'a> {
    Message {
        kind: Kind,
        id: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    Event {
        kind: Kind,
        data: String,
    },
}

/// The id of an agent's message, or a new one.
pub(super) fn message_id(uuid: Option<&str>) -> Cow<'_, str> {
    uuid.map_or_else(|| uuid::Uuid::new_v4().to_string().into(), Cow::from)
}

pub(super) fn encode(body: &EventBody) -> serde_json::Result<Encoded<'_>> {
    let event = |kind, data| Ok(Encoded::Event { kind, data });
    match body {
        EventBody::UserPrompt { prompt } => {
            let data = prompt.to_entry()?;
            Ok(Encoded::Message {
                kind: Kind::Prompt,
                id: prompt.id.to_string().into(),
                data: data.as_str().to_owned().into(),
            })
        }
        EventBody::Message { raw, uuid } => Ok(Encoded::Message {
            kind: Kind::Message,
            id: message_id(uuid.as_deref()),
            data: raw.as_str().into(),
        }),
        EventBody::Unreadable(line) => Ok(Encoded::Message {
            kind: Kind::Unreadable,
            id: message_id(None),
            data: serde_json::to_string(&StoredLine {
                reason: line.reason.as_str().to_owned(),
                line: (&*line.line).into(),
            })?
            .into(),
        }),
        EventBody::Status(change) => event(
            Kind::Status,
            serde_json::to_string(&StoredStatus {
                status: change.status.as_str().to_owned(),
                title: change.title.clone(),
                cwd: change.cwd.clone(),
                error: change.error.clone(),
                turn: change.turn,
            })?,
        ),
        EventBody::DecisionRequested(request) => event(
            Kind::Requested,
            serde_json::to_string(&StoredRequest {
                id: request.id.to_string(),
                agent_request: request.agent_request.clone(),
                tool_use_id: request.tool_use_id.clone(),
                tool_name: request.tool_name.clone(),
                input: RawValue::from_string(request.input.as_str().to_owned())?,
                suggestions: request
                    .suggestions
                    .as_ref()
                    .map(|raw| RawValue::from_string(raw.as_str().to_owned()))
                    .transpose()?,
                description: request.description.clone(),
                blocked_path: request.blocked_path.clone(),
            })?,
        ),
        EventBody::DecisionResolved {
            request,
            tool_use_id,
            behavior,
            reply,
        } => event(
            Kind::Resolved,
            serde_json::to_string(&StoredResolution {
                id: request.to_string(),
                tool_use_id: tool_use_id.clone(),
                behavior: behavior.as_str().to_owned(),
                reply: reply.as_deref().map(StoredReply::of).transpose()?,
            })?,
        ),
    }
}

/// A row of `seq, created_at, kind, id, data`. An unreadable row becomes an event that says so: its number stays used,
/// and the rows before and after it can be read as usual.
pub(super) fn decode_event_or_damage(session: SessionId, row: &Row<'_>) -> Result<Event, StoreError> {
    match decode_event(session, row) {
        Err(StoreError::Damaged(reason)) => {
            tracing::warn!(%session, reason, "a row can't be read");
            Ok(Event {
                session,
                seq: row.get(0).map_err(store_error)?,
                at: Timestamp(row.get(1).map_err(store_error)?),
                body: EventBody::Message {
                    raw: damaged(row, 4)?,
                    uuid: None,
                },
            })
        }
        decoded => decoded,
    }
}

/// A row of `seq, kind, data, created_at` as clients see it. An unreadable row is replaced by a message that says so.
pub(super) fn history_entry(row: &Row<'_>) -> Result<HistoryEntry, StoreError> {
    let read = || {
        let data = text(row, 2)?;
        match named(Kind::parse, text(row, 1)?)? {
            Kind::Prompt => Ok((HistoryKind::Prompt, raw_json(data)?)),
            Kind::Unreadable => Ok((HistoryKind::Message, unreadable(data)?.shown())),
            _ => Ok((HistoryKind::Message, raw_json(data)?)),
        }
    };
    let (kind, json) = match read() {
        Ok(entry) => entry,
        Err::<_, StoreError>(_) => (HistoryKind::Message, damaged(row, 2)?),
    };
    Ok(HistoryEntry {
        seq: row.get(0).map_err(store_error)?,
        at: Timestamp(row.get(3).map_err(store_error)?),
        kind,
        json,
    })
}

/// A line of an agent that is not a message, as it is stored.
#[derive(Deserialize, Serialize)]
struct StoredLine<'a> {
    reason: String,
    line: Cow<'a, str>,
}

fn unreadable(data: &str) -> Result<UnreadableLine, StoreError> {
    let StoredLine { reason, line } = from_json(data)?;
    Ok(UnreadableLine {
        reason: named(UnreadableReason::parse, &reason)?,
        line: line.into_owned(),
    })
}

/// The message that replaces an unreadable row.
fn damaged(row: &Row<'_>, data: usize) -> Result<RawJson, StoreError> {
    #[derive(Serialize)]
    struct Unreadable<'a> {
        r#type: &'static str,
        subtype: &'static str,
        reason: &'static str,
        raw: &'a str,
    }
    let bytes = row.get_ref(data).map_err(store_error)?;
    let text = String::from_utf8_lossy(bytes.as_bytes().unwrap_or_default());
    let message = Unreadable {
        r#type: "system",
        subtype: "unreadable",
        reason: "damaged",
        raw: &text[..text.floor_char_boundary(SHOWN)],
    };
    RawJson::of(&message).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, StoreError> {
    let value = row.get_ref(column).map_err(store_error)?;
    value
        .as_str()
        .map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A row of `seq, created_at, kind, id, data`.
pub(super) fn decode_event(session: SessionId, row: &Row<'_>) -> Result<Event, StoreError> {
    let column = |error| store_error(error);
    let seq = row.get(0).map_err(column)?;
    let at = Timestamp(row.get(1).map_err(column)?);
    let kind = named(Kind::parse, text(row, 2)?)?;
    let data = text(row, 4)?;
    let body = match kind {
        Kind::Prompt => {
            // Entries of older versions have their id only in the row. Without any id, the prompt gets a deterministic
            // one.
            let row_id = text(row, 3)?.parse().ok();
            let id_without = || row_id.unwrap_or_else(|| PromptId::of_event(session, seq));
            let prompt = Prompt::from_entry(data, id_without)
                .map_err(|error| StoreError::Damaged(error.to_string()))?;
            EventBody::UserPrompt {
                prompt: Box::new(prompt),
            }
        }
        Kind::Message => EventBody::Message {
            raw: raw_json(data)?,
            uuid: Some(text(row, 3)?.to_owned()),
        },
        Kind::Unreadable => EventBody::Unreadable(Box::new(unreadable(data)?)),
        Kind::Status => {
            let StoredStatus {
                status,
                title,
                cwd,
                error,
                turn,
            } = from_json(data)?;
            EventBody::Status(Box::new(StatusChange {
                status: named(SessionStatus::parse, &status)?,
                title,
                cwd,
                error,
                turn,
                cause: None,
            }))
        }
        Kind::Requested => {
            let requested: StoredRequest = from_json(data)?;
            EventBody::DecisionRequested(Box::new(DecisionRequest {
                id: request_id(&requested.id)?,
                agent_request: requested.agent_request,
                tool_use_id: requested.tool_use_id,
                tool_name: requested.tool_name,
                input: requested.input.into(),
                suggestions: requested.suggestions.map(RawJson::from),
                description: requested.description,
                blocked_path: requested.blocked_path,
            }))
        }
        Kind::Resolved => {
            let StoredResolution {
                id,
                tool_use_id,
                behavior,
                reply,
            } = from_json(data)?;
            EventBody::DecisionResolved {
                request: request_id(&id)?,
                tool_use_id,
                behavior: named(Behavior::parse, &behavior)?,
                reply: reply.map(StoredReply::into_reply).map(Box::new),
            }
        }
    };
    Ok(Event {
        session,
        seq,
        at,
        body,
    })
}

pub(super) const SESSION_COLUMNS: &str = "id, title, claude_session_id, status, cwd, last_prompt, \
     created_at, updated_at, backend, options, approval, owner, expired, queue, last_seq, \
     archived, title_source, fork_of, delete_at, runs, turn, run, run_position, \
     fork_at, summary, rewound";

/// A row of [`SESSION_COLUMNS`].
pub(super) fn decode_session(row: &Row<'_>) -> Result<SessionRecord, StoreError> {
    fn text(row: &Row<'_>, column: &str) -> Result<String, StoreError> {
        row.get(column).map_err(store_error)
    }
    fn optional(row: &Row<'_>, column: &str) -> Result<Option<String>, StoreError> {
        row.get(column).map_err(store_error)
    }
    /// One of the known names of a value.
    fn value_of<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
        in_column(column, named(parse, &text(row, column)?))
    }
    let time = |column| row.get(column).map(Timestamp).map_err(store_error);
    let id = text(row, "id")?;
    let session = id
        .parse()
        .map_err(|_| StoreError::Damaged(format!("a session with the id {id:?}")))?;
    Ok(SessionRecord {
        id: session,
        owner: optional(row, "owner")?,
        title: text(row, "title")?,
        title_source: value_of(row, "title_source", TitleSource::parse)?,
        archived: row.get("archived").map_err(store_error)?,
        conversation: optional(row, "claude_session_id")?,
        expired: row.get("expired").map_err(store_error)?,
        fork_of: optional(row, "fork_of")?,
        fork_at: optional(row, "fork_at")?,
        rewound: optional(row, "rewound")?
            .as_deref()
            .map(|parts| in_column("rewound", decode_rewound(parts)))
            .transpose()?
            .unwrap_or_default(),
        // Totals that can't be read are counted again.
        summary: optional(row, "summary")?
            .and_then(|summary| serde_json::from_str(&summary).ok().map(Arc::new)),
        delete_at: row
            .get::<_, Option<i64>>("delete_at")
            .map_err(store_error)?
            .map(Timestamp),
        status: value_of(row, "status", SessionStatus::parse)?,
        cwd: text(row, "cwd")?,
        backend: optional(row, "backend")?,
        settings: Settings {
            approval: value_of(row, "approval", Approval::parse)?,
            options: in_column("options", from_json(&text(row, "options")?))?,
        },
        last_prompt: optional(row, "last_prompt")?,
        created_at: time("created_at")?,
        updated_at: time("updated_at")?,
        queue: in_column(
            "queue",
            decode_queue(&text(row, "queue")?, session, time("created_at")?),
        )?,
        last_seq: row.get("last_seq").map_err(store_error)?,
        runs: row.get("runs").map_err(store_error)?,
        turn: optional(row, "turn")?
            .as_deref()
            .map(|turn| in_column("turn", from_json::<StoredTurn>(turn)))
            .transpose()?
            .map(|turn| TurnRecord {
                prompt_seq: turn.prompt_seq,
                stopping: turn.stopping,
                undelivered: turn.undelivered,
                after_stop: turn.after_stop,
            }),
        run: optional(row, "run")?
            .map(|run| {
                let position: Option<u64> = row.get("run_position").map_err(store_error)?;
                in_column("run", decode_run(&run, position.unwrap_or(0)))
            })
            .transpose()?,
    })
}

/// A row of `tool_use_id, behavior, input, answer`, where the answer to what was allowed is the input that ran. `None`: it
/// was allowed as it was asked for, in other letters at most.
pub(super) fn decode_decided(row: &Row<'_>) -> Result<Option<Decided>, StoreError> {
    let behavior = named(Behavior::parse, text(row, 1)?)?;
    let answer: Option<String> = row.get(3).map_err(store_error)?;
    let edited = match answer.filter(|_| behavior == Behavior::Allow) {
        Some(answer) => {
            let (asked, edited) = (raw_json(text(row, 2)?)?, raw_json(&answer)?);
            Some(edited).filter(|edited| !edited.says_the_same(&asked))
        }
        None => None,
    };
    let decided = Decided {
        tool_use_id: text(row, 0)?.to_owned(),
        behavior,
        edited,
    };
    Ok(Some(decided).filter(Decided::is_worth_telling))
}

/// Says which column of a session can't be read.
fn in_column<T>(column: &str, read: Result<T, StoreError>) -> Result<T, StoreError> {
    read.map_err(|error| match error {
        StoreError::Damaged(reason) => StoreError::Damaged(format!("the {column} of the session: {reason}")),
        other => other,
    })
}

/// A row of `id, agent_request_id, tool_use_id, tool_name, input, suggestions, description, blocked_path`.
pub(super) fn decode_decision(row: &Row<'_>) -> Result<DecisionRequest, StoreError> {
    let text = |column: usize| row.get::<_, String>(column).map_err(store_error);
    let optional = |column: usize| row.get::<_, Option<String>>(column).map_err(store_error);
    Ok(DecisionRequest {
        id: request_id(&text(0)?)?,
        agent_request: text(1)?,
        tool_use_id: text(2)?,
        tool_name: text(3)?,
        input: in_column("decision", raw_json(&text(4)?))?,
        suggestions: in_column("decision", optional(5)?.as_deref().map(raw_json).transpose())?,
        description: optional(6)?,
        blocked_path: optional(7)?,
    })
}

pub(super) fn raw_json(data: &str) -> Result<RawJson, StoreError> {
    RawJson::parse(data).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn from_json<T: for<'de> Deserialize<'de>>(data: &str) -> Result<T, StoreError> {
    serde_json::from_str(data).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn named<T>(parse: fn(&str) -> Option<T>, text: &str) -> Result<T, StoreError> {
    parse(text).ok_or_else(|| StoreError::Damaged(format!("the unknown value {text:?}")))
}

fn prompt_id(text: &str) -> Result<PromptId, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Damaged(format!("a prompt with the id {text:?}")))
}

fn request_id(text: &str) -> Result<RequestId, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Damaged(format!("a decision with the id {text:?}")))
}
