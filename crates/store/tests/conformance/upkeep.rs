//! What is kept for how long. The clock is the test's.

use std::sync::Arc;
use std::time::Duration;

use tiller_core::backend::{
    Abilities, AgentChannels, Attach, Backend, BackendInfo, Launch, OptionChange, OptionInfo, OptionRefused,
    OptionRules, Options, Verdict,
};
use tiller_core::{
    EventBody, ListedSession, PathPolicy, Prompt, PromptId, RawJson, Retention, SessionRecord, SessionStatus,
    Sessions, Store, Timestamp, Titles,
};

use super::open;
use super::sessions::{all, append, message, prompt, put, record, status};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Nobody is to be started.
pub(super) struct NoAgents;

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
        AgentChannels::of_nobody()
    }
}

/// Takes every option, and changes none while an agent runs.
#[derive(Debug)]
pub(super) struct AnyOptions;

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

pub(super) fn no_agent() -> BackendInfo {
    BackendInfo::named("none")
}

fn piece(text: &str) -> EventBody {
    let raw = RawJson::parse(&format!(
        r#"{{"uuid":"u","type":"stream_event","event":"{text}"}}"#
    ))
    .unwrap();
    EventBody::Message { raw, uuid: None }
}

fn quiet(title: &str, updated_at: i64) -> SessionRecord {
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

#[tokio::test]
async fn streamed_pieces_go_and_everything_else_stays_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut done = quiet("done", 0);
    let bodies = || {
        vec![
            status(SessionStatus::Running),
            prompt("p"),
            piece("a"),
            piece("b"),
            message("ab"),
            status(SessionStatus::Completed),
        ]
    };
    // Written at 30.
    append(&store, &mut done, bodies()).await;
    let mut running = SessionRecord {
        status: SessionStatus::Running,
        ..quiet("running", 0)
    };
    append(&store, &mut running, bodies()).await;

    assert_eq!(store.compact(Timestamp(30)).await.unwrap(), 0, "not old enough");
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 2);
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 0, "done once");
    let seqs = async |session| {
        let events = store.replay(session, 0, 100).await.unwrap();
        events.iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(done.id).await, [1, 2, 5, 6]);
    assert_eq!(seqs(running.id).await, [1, 2, 3, 4, 5, 6], "a turn runs");

    // What comes next gets the next number, and is compacted in its time.
    append(&store, &mut done, bodies()).await;
    assert_eq!(seqs(done.id).await, [1, 2, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 2);
    assert_eq!(seqs(done.id).await, [1, 2, 5, 6, 7, 8, 11, 12]);
}

/// As the agent writes it.
fn raw(json: &str) -> EventBody {
    let raw = RawJson::parse(json).unwrap();
    EventBody::Message { raw, uuid: None }
}

#[tokio::test]
async fn pieces_of_a_message_that_was_never_finished_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut killed = quiet("killed", 0);
    let start = |id: &str| {
        raw(&format!(
            r#"{{"type":"stream_event","parent_tool_use_id":null,"event":{{"type":"message_start","message":{{"id":"{id}"}}}}}}"#
        ))
    };
    let delta = || {
        raw(
            r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","delta":{"text":"a"}}}"#,
        )
    };
    let whole = |id: &str| {
        raw(&format!(
            r#"{{"type":"assistant","parent_tool_use_id":null,"message":{{"id":"{id}"}}}}"#
        ))
    };
    let turns = vec![
        prompt("killed"),
        start("m1"),
        delta(),
        delta(),
        status(SessionStatus::Error),
        prompt("finished"),
        start("m2"),
        delta(),
        whole("m2"),
        status(SessionStatus::Completed),
        prompt("killed later"),
        start("m3"),
        delta(),
        whole("m3"),
        delta(),
        status(SessionStatus::Error),
    ];
    append(&store, &mut killed, turns).await;
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 3);
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 0, "done once");
    let seqs = async |session| {
        let events = store.replay(session, 0, u32::MAX).await.unwrap();
        events.iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    let left = [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 14, 15, 16];
    assert_eq!(seqs(killed.id).await, left);

    // Of any length: what begins a message may be far from where it is said as a whole.
    let mut long = quiet("long", 0);
    let finished = [start("m1")]
        .into_iter()
        .chain((0..5000).map(|_| delta()))
        .chain([whole("m1")]);
    append(&store, &mut long, finished.collect()).await;
    let cut = [start("m2")].into_iter().chain((0..5000).map(|_| delta()));
    append(&store, &mut long, cut.collect()).await;
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 5001);
    assert_eq!(seqs(long.id).await, (5002..=long.last_seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_message_that_is_nested_deeper_than_sqlite_reads_keeps_nothing_from_being_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let deep = format!("{}{}", "[".repeat(1500), "]".repeat(1500));
    let call = raw(&format!(
        r#"{{"type":"assistant","message":{{"id":"m1","content":[{{"type":"tool_use","input":{deep}}}]}}}}"#
    ));
    let mut session = quiet("deep", 0);
    append(&store, &mut session, vec![piece("a"), call, message("a")]).await;
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 1);
    let left = store.replay(session.id, 0, 100).await.unwrap();
    assert_eq!(left.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 3]);
}

#[tokio::test]
async fn a_session_that_can_not_be_compacted_does_not_keep_the_others() {
    // Whichever comes first.
    for broken in ["one", "two"] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let mut sessions = [quiet("one", 0), quiet("two", 0)];
        for session in &mut sessions {
            append(&store, session, vec![piece("a"), message("a")]).await;
        }
        let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
        let trigger = format!(
            "CREATE TRIGGER broken BEFORE DELETE ON messages \
             WHEN old.session_id = (SELECT id FROM sessions WHERE title = '{broken}') \
             BEGIN SELECT RAISE(ABORT, 'broken'); END"
        );
        connection.execute_batch(&trigger).unwrap();
        let error = store.compact(Timestamp(31)).await.unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
        for session in &sessions {
            let left = store.replay(session.id, 0, 100).await.unwrap().len();
            let expected = if session.title == broken { 2 } else { 1 };
            assert_eq!(left, expected, "{} while {broken} is broken", session.title);
        }
    }
}

#[tokio::test]
async fn the_file_shrinks_when_much_is_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = quiet("large", 0);
    let pieces = (0..2000).map(|_| piece(&"x".repeat(2000)));
    append(&store, &mut session, pieces.chain([message("x")]).collect()).await;
    let pages = || {
        let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
        connection
            .pragma_query_value(None, "page_count", |row| row.get::<_, u64>(0))
            .unwrap()
    };
    let before = pages();
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 2000);
    assert!(pages() * 5 < before, "{} of {before} pages", pages());
}

#[tokio::test]
async fn old_sessions_are_removed_unless_someone_waits() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let now = 100 * DAY;
    let (old, fresh) = (quiet("old", now - 31 * DAY), quiet("fresh", now - 29 * DAY));
    let mut waiting = quiet("waiting", now - 60 * DAY);
    waiting.queue = vec![Prompt::new(PromptId::random(), "later".to_owned())];
    let mut asking = quiet("asking", now - 60 * DAY);
    let discarded = SessionRecord {
        delete_at: Some(Timestamp(now + 1)),
        ..quiet("discarded", now - 60 * DAY)
    };
    for record in [&old, &fresh, &waiting, &asking, &discarded] {
        put(&store, record, Vec::new()).await;
    }
    let asked = super::sessions::request(asking.id, 1);
    append(
        &store,
        &mut asking,
        vec![EventBody::DecisionRequested(Box::new(asked))],
    )
    .await;

    let home = folder.path();
    let paths = PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap();
    let sessions = Sessions::open(Arc::new(store.clone()), Arc::new(NoAgents), paths, Titles::Prompt)
        .await
        .unwrap();
    let titles = async || {
        let page = sessions.list(None, None).await.unwrap();
        let mut titles: Vec<_> = page
            .sessions
            .into_iter()
            .map(|session| match session {
                ListedSession::Readable { record, .. } => record.title,
                ListedSession::Damaged(damaged) => panic!("{damaged:?}"),
            })
            .collect();
        titles.sort();
        titles
    };
    let retention = |days: Option<u32>| Retention {
        sessions: days.map(|days| Duration::from_hours(24) * days),
        pieces: Duration::from_hours(1),
    };
    sessions.tidy(Timestamp(now), retention(None)).await;
    assert_eq!(titles().await.len(), 5, "switched off");
    sessions.tidy(Timestamp(now), retention(Some(30))).await;
    // The question was withdrawn when the sessions were opened, a moment ago by the machine's clock.
    assert_eq!(titles().await, ["asking", "fresh", "waiting"]);
    let kept = all(&store).await;
    assert_eq!(kept.len(), 3, "from the database as well");
}
