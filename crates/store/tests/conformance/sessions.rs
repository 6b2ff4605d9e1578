use std::sync::Arc;

use tiller_core::prompt::UiContext;
use tiller_core::{
    Answer, Approval, Attachment, Behavior, Commit, DecisionRequest, Epoch, Event, EventBody, Image, Options,
    Page, Prompt, PromptId, RawJson, Reply, RequestId, Run, SessionId, SessionQuery, SessionRecord,
    SessionStatus, Settings, StatusChange, Store, StoredSession, Timestamp, TitleSource, TurnRecord,
};

use tiller_message::Summary;

use super::open;

/// Totals of a session in which something has happened.
fn summary() -> Summary {
    let mut summary = Summary::default();
    summary.turn_started(1);
    let end = r#"{"type":"result","subtype":"success","total_cost_usd":0.1,"usage":{"input_tokens":7}}"#;
    assert!(summary.push_json(end, 5));
    summary
}

pub(super) fn record(title: &str) -> SessionRecord {
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
        run: Some(Run {
            name: "run 3".to_owned(),
            position: 1 << 40,
            resumes: true,
            started: Options::default().with("tools", vec!["Read"]),
            options: Options::default().with("maxBudgetUsd", 1.5),
            hooks: vec!["PreToolUse".to_owned()],
        }),
    }
}

pub(super) fn message(text: &str) -> EventBody {
    let raw = RawJson::parse(&format!(r#"{{"type":"assistant", "text":"{text}","n":1.0}}"#)).unwrap();
    EventBody::Message {
        raw,
        uuid: Some(format!("uuid-{text}")),
    }
}

pub(super) fn prompt(text: &str) -> EventBody {
    EventBody::UserPrompt {
        prompt: Box::new(full_prompt(text)),
    }
}

/// The same for the same text.
fn id_of(text: &str) -> PromptId {
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

pub(super) fn status(status: SessionStatus) -> EventBody {
    EventBody::Status(Box::new(StatusChange {
        status,
        title: Some("t".to_owned()),
        cwd: None,
        error: Some("e".to_owned()),
        cause: None,
    }))
}

pub(super) fn request(session: SessionId, seq: u64) -> DecisionRequest {
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

/// Becomes the owner of a session, which begins with `last_seq` if there is none.
pub(super) async fn own(store: &dyn Store, record: &SessionRecord, last_seq: u64) -> Epoch {
    if let Some((epoch, _)) = store.acquire(record.id).await.unwrap() {
        return epoch;
    }
    let record = SessionRecord {
        last_seq,
        ..record.clone()
    };
    store.create(record).await.unwrap()
}

/// Writes nothing but the record and images.
pub(super) async fn put(store: &dyn Store, record: &SessionRecord, images: Vec<Image>) {
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

/// All sessions, the last changed first.
pub(super) async fn all(store: &dyn Store) -> Vec<(SessionRecord, Vec<DecisionRequest>)> {
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
pub(super) async fn append(
    store: &dyn Store,
    record: &mut SessionRecord,
    bodies: Vec<EventBody>,
) -> Vec<Event> {
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

fn texts(messages: &[(u64, RawJson)]) -> Vec<(u64, &str)> {
    messages.iter().map(|(seq, raw)| (*seq, raw.as_str())).collect()
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = record("first");
    let asked = request(record.id, 4);
    let bodies = vec![
        status(SessionStatus::Running),
        prompt("hi"),
        message("one"),
        EventBody::DecisionRequested(Box::new(asked.clone())),
    ];
    let written = append(&open(folder.path()), &mut record, bodies).await;

    let store = open(folder.path());
    assert_eq!(all(&store).await, [(record.clone(), vec![asked.clone()])]);
    assert_eq!(store.replay(record.id, 0, 100).await.unwrap(), written);

    let resolved = EventBody::DecisionResolved {
        request: asked.id,
        tool_use_id: asked.tool_use_id,
        behavior: Behavior::Allow,
        reply: Some(Box::new(Reply {
            agent_request: "a1".to_owned(),
            answer: Answer::Allow {
                input: Some(RawJson::parse(r#"{"b":1,"a":"二"}"#).unwrap()),
                permissions: None,
            },
            by: Some("a-key".to_owned()),
        })),
    };
    append(&store, &mut record, vec![resolved, message("two")]).await;
    let events = store.replay(record.id, 0, 100).await.unwrap();
    let said = store.said_since(record.id, 2).await.unwrap();
    assert_eq!(
        said,
        [events[1].clone(), events[4].clone()],
        "the prompt and the answer"
    );
    assert_eq!(
        all(&open(folder.path())).await,
        [(record, Vec::new())],
        "a resolved decision is not open"
    );
}

#[tokio::test]
async fn messages_keep_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut record = record("bytes");
    let odd = "{ \"z\" : 1.50, \"a\":\"\\u00e9 é 𝄞\", \"type\":\"x\" }";
    let body = EventBody::Message {
        raw: RawJson::parse(odd).unwrap(),
        uuid: None,
    };
    append(&store, &mut record, vec![body]).await;
    let page = store.history(record.id, Page::All).await.unwrap();
    assert_eq!(texts(&page), [(1, odd)]);
}

#[tokio::test]
async fn history_has_prompts_and_messages_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut record = record("pages");
    let bodies = vec![
        status(SessionStatus::Running),
        prompt("p"),
        message("a"),
        message("b"),
        message("c"),
    ];
    append(&store, &mut record, bodies).await;
    let seqs = async |page| -> Vec<u64> {
        store
            .history(record.id, page)
            .await
            .unwrap()
            .into_iter()
            .map(|(seq, _)| seq)
            .collect()
    };
    assert_eq!(seqs(Page::All).await, [2, 3, 4, 5]);
    assert_eq!(seqs(Page::After { seq: 2, limit: 2 }).await, [3, 4]);
    assert_eq!(seqs(Page::Before { seq: 5, limit: 2 }).await, [3, 4]);
    assert_eq!(seqs(Page::Last { limit: 2 }).await, [4, 5]);
    assert_eq!(seqs(Page::Last { limit: 0 }).await, [0u64; 0]);
    assert_eq!(
        seqs(Page::After {
            seq: u64::MAX >> 1,
            limit: 2
        })
        .await,
        [0u64; 0]
    );
    let first = store
        .history(record.id, Page::After { seq: 0, limit: 1 })
        .await
        .unwrap();
    let id = id_of("p");
    let said = [
        &format!(r#"{{"type":"user_prompt","prompt":"p","promptId":"{id}","uuid":"{id}","#),
        r#""attachments":[{"id":"a1","mediaType":"image/png","name":"图.png","size":3}],"#,
        r#""context":{"mode":"code","currentView":""},"parent_tool_use_id":"toolu_1"}"#,
    ]
    .concat();
    assert_eq!(texts(&first), [(2, said.as_str())]);
}

#[tokio::test]
async fn a_session_is_never_told_what_belongs_to_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut records = ["before", "between", "after"].map(record);
    for round in 0..3 {
        for record in &mut records {
            append(
                &store,
                record,
                vec![message(&format!("{}-{round}", record.title))],
            )
            .await;
        }
    }
    let [before, between, after] = records;
    for (seq, limit) in [(u64::MAX, 9), (u64::from(u32::MAX), 9), (3, 9), (0, 0)] {
        let beyond = Page::After { seq, limit };
        assert_eq!(store.history(between.id, beyond).await.unwrap(), []);
        assert_eq!(store.replay(between.id, seq, limit).await.unwrap(), []);
    }
    let all = store.history(between.id, Page::All).await.unwrap();
    for seq in [4, 1 << 32, u64::MAX] {
        let page = Page::Before { seq, limit: 100 };
        assert_eq!(store.history(between.id, page).await.unwrap(), all);
    }
    assert_eq!(
        store
            .history(between.id, Page::Before { seq: 0, limit: 9 })
            .await
            .unwrap(),
        []
    );

    // The newest goes, and its room is used by the next one.
    store.delete(after.id).await.unwrap();
    let mut next = record("next");
    append(&store, &mut next, vec![message("next-0")]).await;
    store.delete(before.id).await.unwrap();
    assert_eq!(store.history(between.id, Page::All).await.unwrap(), all);
    assert_eq!(store.history(next.id, Page::All).await.unwrap().len(), 1);
    for gone in [before.id, after.id] {
        assert_eq!(store.history(gone, Page::All).await.unwrap(), []);
        assert_eq!(store.replay(gone, 0, 9).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_replay_is_gapless_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut record = record("replay");
    let mut written = Vec::new();
    for round in 0..20 {
        let bodies = vec![
            status(SessionStatus::Running),
            prompt("p"),
            message(&round.to_string()),
        ];
        written.extend(append(&store, &mut record, bodies).await);
    }
    let mut read = store.replay(record.id, 0, 7).await.unwrap();
    while let Some(last) = read
        .last()
        .map(|event| event.seq)
        .filter(|seq| *seq < record.last_seq)
    {
        read.extend(store.replay(record.id, last, 7).await.unwrap());
    }
    assert_eq!(read, written);
}

#[tokio::test]
async fn a_commit_is_all_or_nothing_and_hurts_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut good = record("good");
    let mut bad = record("bad");
    append(&*store, &mut bad, vec![prompt("p")]).await;
    let before = all(&*store).await;

    // The second event has a number that is taken.
    let event = |record: &SessionRecord, seq, body| {
        Arc::new(Event {
            session: record.id,
            seq,
            at: Timestamp(1),
            body,
        })
    };
    let clash = Commit {
        epoch: own(&*store, &bad, 1).await,
        expected_last_seq: 1,
        record: SessionRecord {
            title: "changed".to_owned(),
            last_seq: 3,
            ..bad.clone()
        },
        events: vec![event(&bad, 2, message("x")), event(&bad, 1, message("y"))],
        images: Vec::new(),
        prompts: Vec::new(),
    };
    let epoch = own(&*store, &good, 0).await;
    good.last_seq = 1;
    let fine = Commit {
        epoch,
        expected_last_seq: 0,
        record: good.clone(),
        events: vec![event(&good, 1, prompt("p"))],
        images: Vec::new(),
        prompts: Vec::new(),
    };
    let (clashed, went_fine) = tokio::join!(store.commit(clash), store.commit(fine));
    assert!(clashed.is_err());
    went_fine.unwrap();

    let after = all(&*store).await;
    let same = |sessions: &[(SessionRecord, Vec<DecisionRequest>)]| {
        sessions.iter().find(|(record, _)| record.id == bad.id).cloned()
    };
    assert_eq!(same(&after), same(&before));
    assert_eq!(store.replay(bad.id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.replay(good.id, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_come_newest_first_and_go_with_all_that_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut old = record("old");
    let mut new = record("new");
    new.updated_at = Timestamp(99);
    for record in [&mut old, &mut new] {
        let asked = request(record.id, 1);
        append(
            &store,
            record,
            vec![EventBody::DecisionRequested(Box::new(asked)), message("m")],
        )
        .await;
    }
    let titles = async || -> Vec<String> {
        all(&store)
            .await
            .into_iter()
            .map(|(record, _)| record.title)
            .collect()
    };
    assert_eq!(titles().await, ["new", "old"]);
    store.delete(new.id).await.unwrap();
    store.delete(new.id).await.unwrap();
    assert_eq!(titles().await, ["old"]);
    assert!(store.replay(new.id, 0, 10).await.unwrap().is_empty());
    assert!(store.history(new.id, Page::All).await.unwrap().is_empty());
    assert_eq!(store.replay(old.id, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn commits_of_one_session_keep_their_order_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut record = record(&number.to_string());
            for round in 0..50 {
                append(&*store, &mut record, vec![message(&round.to_string())]).await;
            }
            record
        });
    }
    while let Some(record) = tasks.join_next().await {
        let record = record.unwrap();
        let seqs: Vec<_> = store
            .replay(record.id, 0, 100)
            .await
            .unwrap()
            .iter()
            .map(|event| event.seq)
            .collect();
        assert_eq!(seqs, (1..=50).collect::<Vec<_>>());
    }
}

/// The end of a turn is never found without the words that it was written with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reads_while_others_write_finds_commits_whole() {
    const COMMITS: u64 = 1000;
    const TOGETHER: u64 = 4;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut record = record("busy");
    let session = record.id;
    append(&*store, &mut record, vec![prompt("p")]).await;
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for round in 0..COMMITS {
                let words = (1..TOGETHER).map(|word| message(&format!("{round}-{word}")));
                let bodies = words.chain([status(SessionStatus::Completed)]).collect();
                append(&*store, &mut record, bodies).await;
            }
        }
    });
    let mut last = 1;
    while last < 1 + COMMITS * TOGETHER {
        for event in store.replay(session, last, 100).await.unwrap() {
            assert_eq!(event.seq, last + 1, "{event:?}");
            last = event.seq;
        }
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_name_belongs_to_its_owner_and_goes_away_with_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (ours, theirs) = (record("ours"), SessionId::random());
    let key = || Some("ci".to_owned());
    let claim = async |owner: Option<String>, session| {
        store.claim_name(owner, "默认".to_owned(), session).await.unwrap()
    };
    assert_eq!(store.named(key(), "默认".to_owned()).await.unwrap(), None);
    assert_eq!(claim(key(), ours.id).await, ours.id);
    assert_eq!(claim(key(), theirs).await, ours.id, "the first has it");
    assert_eq!(claim(None, theirs).await, theirs, "another owner's is another's");
    put(&store, &ours, Vec::new()).await;
    drop(store);

    let store = open(folder.path());
    assert_eq!(
        store.named(key(), "默认".to_owned()).await.unwrap(),
        Some(ours.id)
    );
    store.delete(ours.id).await.unwrap();
    assert_eq!(store.named(key(), "默认".to_owned()).await.unwrap(), None);
    assert_eq!(store.named(None, "默认".to_owned()).await.unwrap(), Some(theirs));
}

pub(super) fn image(id: &str) -> Image {
    Image {
        id: id.to_owned(),
        media_type: "image/png".to_owned(),
        bytes: (*b"png").into(),
    }
}

#[tokio::test]
async fn an_image_is_kept_once_and_goes_with_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (mine, other) = (record("mine"), record("other"));
    for (record, images) in [
        (&mine, vec![image("a1"), image("a2")]),
        (&mine, vec![image("a1")]),
        (&other, vec![]),
    ] {
        put(&store, record, images).await;
    }
    let found = |session, id: &str| store.image(session, id.to_owned());
    assert_eq!(found(mine.id, "a1").await.unwrap(), Some(image("a1")));
    assert_eq!(found(mine.id, "a2").await.unwrap(), Some(image("a2")));
    assert_eq!(found(other.id, "a1").await.unwrap(), None, "another's image");
    store.delete(mine.id).await.unwrap();
    assert_eq!(found(mine.id, "a1").await.unwrap(), None);
}

#[tokio::test]
async fn a_fork_begins_with_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut source = record("source");
    let bodies = vec![
        status(SessionStatus::Running),
        prompt("one"),
        message("two"),
        EventBody::DecisionRequested(Box::new(request(source.id, 4))),
    ];
    append(&store, &mut source, bodies).await;
    put(&store, &source, vec![image("a1")]).await;

    let mut fork = record("fork");
    let last_seq = store.fork(source.id, fork.clone()).await.unwrap();
    fork.last_seq = last_seq;
    let events = store.replay(fork.id, 0, 100).await.unwrap();
    let bodies: Vec<_> = events
        .iter()
        .map(|event| (event.seq, event.body.clone()))
        .collect();
    assert_eq!(bodies, [(1, prompt("one")), (2, message("two"))]);
    assert_eq!(last_seq, 2);
    assert_eq!(
        store.image(fork.id, "a1".to_owned()).await.unwrap(),
        Some(image("a1"))
    );
    // Each goes its own way.
    append(&store, &mut fork, vec![message("three")]).await;
    assert_eq!(store.replay(source.id, 4, 100).await.unwrap(), []);
    let loaded = all(&store).await;
    let pending = |id| loaded.iter().find(|(record, _)| record.id == id).unwrap().1.len();
    assert_eq!((pending(source.id), pending(fork.id)), (1, 0));
}

#[tokio::test]
async fn notes_are_kept_with_their_session_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (record("one"), record("two"));
    let json = |text: &str| RawJson::parse(text).unwrap();
    {
        let store = open(folder.path());
        for record in [&one, &two] {
            put(&store, record, Vec::new()).await;
        }
        for (session, key, value) in [
            (one.id, "task.a", "1"),
            (one.id, "task.a", r#"{"again":true}"#),
            (one.id, "task_b", "2"),
            (two.id, "task.c", "null"),
            (two.id, "task.d", "3"),
            (SessionId::random(), "task.e", "4"),
        ] {
            store.note(session, key.to_owned(), json(value)).await.unwrap();
        }
        store.erase_notes(two.id, "task.d".to_owned()).await.unwrap();
    }
    let store = open(folder.path());
    let mut expected = vec![
        (one.id, "task.a".to_owned(), json(r#"{"again":true}"#)),
        (two.id, "task.c".to_owned(), json("null")),
    ];
    expected.sort_by_key(|(session, ..)| session.to_string());
    assert_eq!(store.notes("task.".to_owned()).await.unwrap(), expected);
    let one_note = store.note_of(one.id, "task_b".to_owned()).await.unwrap();
    assert_eq!(one_note, Some(json("2")));
    assert_eq!(store.note_of(two.id, "task_b".to_owned()).await.unwrap(), None);
    store.delete(one.id).await.unwrap();
    assert_eq!(store.notes(String::new()).await.unwrap().len(), 1);
}

/// Enough to keep a store busy for a while.
const LONG: u64 = 40_000;

/// Whether the ends of a long session are there, looked at one after the other.
async fn ends(store: &dyn Store, session: SessionId, backwards: bool) -> [bool; 2] {
    let first = async || {
        let page = Page::After { seq: 0, limit: 1 };
        !store.history(session, page).await.unwrap().is_empty()
    };
    let last = async || !store.replay(session, LONG - 1, 1).await.unwrap().is_empty();
    if backwards {
        [last().await, first().await]
    } else {
        [first().await, last().await]
    }
}

#[tokio::test]
async fn others_get_on_while_a_long_session_is_copied_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut long = record("long");
    for _ in 0..LONG / 2000 {
        append(&store, &mut long, (0..2000).map(|_| message("x")).collect()).await;
    }
    append(&store, &mut long, vec![status(SessionStatus::Idle)]).await;
    let (mut other, fork) = (record("other"), record("fork"));

    let (copying, source, copy) = (store.clone(), long.id, fork.clone());
    let copied = tokio::spawn(async move { copying.fork(source, copy).await.unwrap() });
    let mut during_copy = 0;
    while !copied.is_finished() {
        append(&store, &mut other, vec![message("other")]).await;
        during_copy += 1;
        // Whoever sees some of it sees all of it.
        assert_ne!(ends(&store, fork.id, during_copy % 2 == 0).await, [true, false]);
    }
    assert_eq!(copied.await.unwrap(), LONG);
    let said = store.history(fork.id, Page::All).await.unwrap();
    assert_eq!(said.len() as u64, LONG);

    let removing = store.clone();
    let removed = tokio::spawn(async move { removing.delete(source).await.unwrap() });
    let mut during_removal = 0;
    while !removed.is_finished() {
        append(&store, &mut other, vec![message("other")]).await;
        during_removal += 1;
        // Whoever misses some of it misses all of it.
        assert_ne!(
            ends(&store, long.id, during_removal % 2 == 0).await,
            [false, true]
        );
    }
    removed.await.unwrap();
    assert_eq!(ends(&store, long.id, false).await, [false, false]);
    let said = store.history(other.id, Page::All).await.unwrap();
    assert_eq!(said.len() as u64, other.last_seq);
    // Those that wait for all of it to be done are the one before it, the one with it, and the one after it.
    assert!(
        during_copy > 4 && during_removal > 4,
        "{during_copy} and {during_removal} commits came through"
    );
}
