//! Sessions and events for tests, with something in every field.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails, and says where")]

use std::sync::Arc;

use tiller_core::backend::{
    Abilities, AgentChannels, Attach, Backend, BackendInfo, Launch, OptionChange, OptionInfo, OptionRefused,
    OptionRules, Verdict,
};
use tiller_core::prompt::UiContext;
use tiller_core::{
    Approval, Attachment, Commit, DecisionRequest, Epoch, Event, EventBody, HistoryEntry, Image, Options,
    Prompt, PromptId, RawJson, RequestId, RewindUndo, RewoundPart, RunRecord, SessionId, SessionQuery,
    SessionRecord, SessionStatus, Settings, StatusChange, Store, StoredSession, Timestamp, TitleSource,
    TurnRecord,
};
use tiller_message::{Summary, TurnFigures};

/// Totals of a session with some activity.
fn summary() -> Summary {
    let mut summary = Summary::default();
    summary.turn_started(1);
    let end = r#"{"type":"result","subtype":"success","total_cost_usd":0.1,"usage":{"input_tokens":7}}"#;
    assert!(summary.push_json(end, 5));
    summary
}

pub fn record(title: &str) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        owner: Some("ci".to_owned()),
        title: title.to_owned(),
        title_source: TitleSource::Model,
        archived: true,
        conversation: Some("c1".to_owned()),
        expired: true,
        fork_of: Some("c0".to_owned()),
        fork_at: Some("m0".to_owned()),
        rewound: vec![RewoundPart {
            after: 1,
            through: 2,
            undo: Some(RewindUndo {
                conversation: Some("c9".to_owned()),
                last_prompt: Some("before".to_owned()),
                ..RewindUndo::default()
            }),
        }],
        summary: Some(Arc::new(summary())),
        delete_at: Some(Timestamp(40)),
        status: SessionStatus::Running,
        cwd: "/项目/a b".to_owned(),
        backend: Some("claude".to_owned()),
        settings: Settings {
            approval: Approval::Auto,
            options: Options::default()
                .with("allowedTools", "Read,Bash(git *)")
                .with("tools", vec!["Read", "mcp__查询__a"])
                .with("maxTurns", 7)
                .with("maxBudgetUsd", 0.25)
                .with("of its own", true),
        },
        last_prompt: Some("do \"it\"\n".to_owned()),
        created_at: Timestamp(10),
        updated_at: Timestamp(20),
        queue: vec![Prompt::new(id_of("next"), "next".to_owned()), full_prompt("二")],
        last_seq: 0,
        runs: 3,
        turn: Some(TurnRecord {
            prompt_seq: 2,
            stopping: true,
            undelivered: true,
            after_stop: 2,
        }),
        run: Some(RunRecord {
            name: "run 3".to_owned(),
            position: 1 << 40,
            resumes: true,
            started: Options::default().with("tools", vec!["Read"]),
            options: Options::default().with("maxBudgetUsd", 1.5),
            hooks: vec!["PreToolUse".to_owned()],
            stale: true,
        }),
    }
}

pub fn message(text: &str) -> EventBody {
    let raw = RawJson::parse(&format!(r#"{{"type":"assistant", "text":"{text}","n":1.0}}"#)).unwrap();
    EventBody::Message {
        raw,
        uuid: Some(format!("uuid-{text}")),
    }
}

pub fn prompt(text: &str) -> EventBody {
    EventBody::UserPrompt {
        prompt: Box::new(full_prompt(text)),
    }
}

/// The same id for the same text.
pub(crate) fn id_of(text: &str) -> PromptId {
    let session = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10".parse().unwrap();
    let bytes = text.bytes().map(u64::from);
    PromptId::of_event(
        session,
        bytes.fold(0, |sum: u64, byte| sum.wrapping_mul(257).wrapping_add(byte)),
    )
}

fn full_prompt(text: &str) -> Prompt {
    Prompt {
        id: id_of(text),
        text: text.to_owned(),
        attachments: vec![Attachment {
            id: "a1".to_owned(),
            media_type: "image/png".to_owned(),
            name: Some("图.png".to_owned()),
            size: 3,
        }],
        context: Some(UiContext {
            mode: "code".to_owned(),
            ..UiContext::default()
        }),
        parent_tool_use_id: Some("toolu_1".to_owned()),
    }
}

pub fn status(status: SessionStatus) -> EventBody {
    EventBody::Status(Box::new(StatusChange {
        status,
        title: Some("t".to_owned()),
        cwd: None,
        error: Some("e".to_owned()),
        turn: Some(TurnFigures {
            duration_ms: 7,
            tokens_in: 6,
            tokens_out: 5,
            cost_usd: 0.25,
        }),
        cause: None,
    }))
}

pub fn request(session: SessionId, seq: u64) -> DecisionRequest {
    DecisionRequest {
        id: RequestId::of(session, seq),
        agent_request: format!("r{seq}"),
        tool_use_id: format!("t{seq}"),
        tool_name: "Bash".to_owned(),
        input: RawJson::parse(r#"{"b":1,"a":"x"}"#).unwrap(),
        suggestions: Some(RawJson::parse("[1]").unwrap()),
        description: Some("why".to_owned()),
        blocked_path: Some("/etc/hosts".to_owned()),
    }
}

/// Becomes the owner of a session. If it does not exist, it is created with `last_seq`.
pub async fn own(store: &dyn Store, record: &SessionRecord, last_seq: u64) -> Epoch {
    if let Some((epoch, _)) = store.acquire(record.id).await.unwrap() {
        return epoch;
    }
    let record = SessionRecord {
        last_seq,
        ..record.clone()
    };
    store.create(record).await.unwrap()
}

/// Writes only the record and images.
pub async fn put(store: &dyn Store, record: &SessionRecord, images: Vec<Image>) {
    let commit = Commit {
        epoch: own(store, record, record.last_seq).await,
        expected_last_seq: record.last_seq,
        record: record.clone(),
        events: Vec::new(),
        images,
        prompts: Vec::new(),
    };
    store.commit(commit).await.unwrap();
}

/// All sessions, the most recently changed first.
pub async fn all(store: &dyn Store) -> Vec<(SessionRecord, Vec<DecisionRequest>)> {
    let mut all = Vec::new();
    for session in store.list(SessionQuery::default()).await.unwrap() {
        match store.load(session.id()).await.unwrap().unwrap() {
            StoredSession::Readable { record, pending } => all.push((*record, pending)),
            StoredSession::Damaged(damaged) => panic!("{damaged:?}"),
        }
    }
    all
}

/// Writes the bodies as the session's next events and returns them.
pub async fn append(store: &dyn Store, record: &mut SessionRecord, bodies: Vec<EventBody>) -> Vec<Event> {
    let events: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            record.last_seq += 1;
            Event {
                session: record.id,
                seq: record.last_seq,
                at: Timestamp(30),
                body,
            }
        })
        .collect();
    let before = record.last_seq - events.len() as u64;
    let commit = Commit {
        epoch: own(store, record, before).await,
        expected_last_seq: before,
        record: record.clone(),
        events: events.iter().cloned().map(Arc::new).collect(),
        images: Vec::new(),
        prompts: Vec::new(),
    };
    store.commit(commit).await.unwrap();
    events
}

pub fn image(id: &str) -> Image {
    Image {
        id: id.to_owned(),
        media_type: "image/png".to_owned(),
        bytes: (*b"png").into(),
    }
}

pub(crate) fn texts(entries: &[HistoryEntry]) -> Vec<(u64, &str)> {
    let texts = entries.iter().map(|entry| (entry.seq, entry.json.as_str()));
    texts.collect()
}

/// A fragment of a streamed message.
pub fn piece(text: &str) -> EventBody {
    let raw = RawJson::parse(&format!(
        r#"{{"uuid":"u","type":"stream_event","event":"{text}"}}"#
    ))
    .unwrap();
    EventBody::Message { raw, uuid: None }
}

/// A session without a running turn and without pending decisions.
pub fn quiet(title: &str, updated_at: i64) -> SessionRecord {
    SessionRecord {
        status: SessionStatus::Completed,
        updated_at: Timestamp(updated_at),
        queue: Vec::new(),
        delete_at: None,
        turn: None,
        run: None,
        ..record(title)
    }
}

/// A backend for tests that start no agent: a start fails the test.
pub struct NoAgents;

impl Backend for NoAgents {
    fn info(&self) -> BackendInfo {
        no_agent()
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::new(AnyOptions)
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        panic!("{launch:?}")
    }

    fn attach(&self, _attach: Attach) -> AgentChannels {
        AgentChannels::of_ended_agent()
    }
}

/// Accepts every option, and changes none while an agent runs.
#[derive(Debug)]
pub struct AnyOptions;

impl OptionRules for AnyOptions {
    fn describe(&self) -> Vec<OptionInfo> {
        Vec::new()
    }

    fn check(&self, options: Options, _before: Option<&Options>) -> Result<Options, OptionRefused> {
        Ok(options)
    }

    fn live_changes(&self, _started: &Options, _current: &Options, _wanted: &Options) -> Vec<OptionChange> {
        Vec::new()
    }

    fn verdict(&self, _options: &Options, _tool: &str) -> Verdict {
        Verdict::Ask
    }
}

/// The description of a backend for tests.
pub fn no_agent() -> BackendInfo {
    BackendInfo::named("none")
}
