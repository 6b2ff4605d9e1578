//! A database of an earlier version opens without loss, through every migration since.

use std::sync::Arc;

use tiller_core::credentials::{CredentialStore, SecretHash};
use tiller_core::{
    AcceptedPrompt, Approval, EventBody, Options, Page, PathPolicy, PromptId, RawJson, SessionId,
    SessionRecord, SessionStatus, Sessions, Store, StoredSession, Timestamp, TitlePolicy, TitleSource,
    TurnRecord,
};
use tiller_store::SqliteStore;
use tiller_store_suite::fixtures::NoAgents;

use super::open;

/// What version 0.1.0 wrote before kinds were columns.
const SCHEMA_11: &str = include_str!("fixtures/schema-11.sql");

fn session(number: u8) -> SessionId {
    format!("00000000-0000-4000-8000-0000000000{number:02x}")
        .parse()
        .unwrap()
}

fn prompt(number: u8) -> PromptId {
    format!("10000000-0000-4000-8000-0000000000{number:02x}")
        .parse()
        .unwrap()
}

fn migrated(folder: &std::path::Path) -> SqliteStore {
    let older = rusqlite::Connection::open(folder.join("sessions.db")).unwrap();
    older.execute_batch(SCHEMA_11).unwrap();
    drop(older);
    open(folder)
}

async fn load(store: &SqliteStore, number: u8) -> (SessionRecord, Vec<tiller_core::DecisionRequest>) {
    match store.load(session(number)).await.unwrap().unwrap() {
        StoredSession::Readable { record, pending } => (*record, pending),
        StoredSession::Damaged(damaged) => panic!("{damaged:?}"),
    }
}

/// The history as clients get it.
async fn history(store: &SqliteStore, number: u8) -> Vec<(u64, String)> {
    let page = store.history(session(number), Page::All).await.unwrap();
    let entries = page.iter();
    entries
        .map(|entry| (entry.seq, entry.json.as_str().to_owned()))
        .collect()
}

#[tokio::test]
async fn a_finished_session_keeps_all_that_was_chosen_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = migrated(folder.path());
    let key = store.find_key(SecretHash([0xab; 32])).await.unwrap().unwrap();
    assert_eq!((key.name.as_str(), key.created_at), ("ci", Timestamp(5)));
    let (record, pending) = load(&store, 1).await;
    assert_eq!(pending, []);
    assert_eq!(
        record.owner.as_ref(),
        Some(&key.id),
        "the key's sessions stay its own"
    );
    assert_eq!(record.title, "全部 \"chosen\"");
    assert_eq!((record.title_source, record.archived), (TitleSource::User, true));
    assert_eq!(record.conversation.as_deref(), Some("c1"));
    assert_eq!(
        (record.status, record.last_seq, record.runs),
        (SessionStatus::Completed, 9, 2)
    );
    assert_eq!(
        (record.created_at, record.updated_at),
        (Timestamp(1001), Timestamp(2001))
    );
    assert_eq!(
        (record.cwd.as_str(), record.last_prompt.as_deref()),
        ("/srv/项目", Some("look"))
    );
    assert_eq!(record.settings.approval, Approval::Auto);
    let options = Options::default()
        .with("allowedTools", "Read,Bash(git *)")
        .with("tools", vec!["Read", "Bash"])
        .with("model", "opus")
        .with("permissionMode", "acceptEdits")
        .with("effort", "high")
        .with("maxTurns", 7)
        .with("maxBudgetUsd", 0.25);
    assert_eq!(record.settings.options, options);
    assert_eq!(
        record.summary, None,
        "its totals are counted when it is next used"
    );

    let events = store.replay(session(1), 0, 100).await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| (event.seq, event.at)).collect();
    let written = (1..=9).zip((3001..).map(Timestamp));
    assert_eq!(numbers, written.collect::<Vec<_>>());
    let EventBody::UserPrompt { prompt: said } = &events[1].body else {
        panic!("{:?}", events[1]);
    };
    assert_eq!((said.id, said.text.as_str()), (prompt(1), "look"));
    assert_eq!(said.attachments[0].name.as_deref(), Some("图.png"));
    assert!(
        matches!(&events[5].body, EventBody::DecisionResolved { reply: Some(reply), .. } if reply.by.as_deref() == Some("ci"))
    );
    let (seq, result) = history(&store, 1).await.pop().unwrap();
    assert_eq!(seq, 8);
    assert!(
        result.starts_with(r#"{ "type":"result", "subtype":"success""#),
        "every byte: {result}"
    );

    let image = store.image(session(1), "a1".to_owned()).await.unwrap().unwrap();
    assert_eq!(&image.bytes[..], b"png");
    let named = store
        .named(Some(key.id.clone()), "默认".to_owned())
        .await
        .unwrap();
    assert_eq!(named, Some(session(1)));
    let note = store.note_of(session(1), "task.limit".to_owned()).await.unwrap();
    assert_eq!(note, Some(RawJson::parse(r#"{"seconds":5}"#).unwrap()));
    let accepted = store.accepted_prompt(Some(key.id), prompt(1)).await.unwrap();
    let there = AcceptedPrompt {
        session: session(1),
        seq: Some(2),
    };
    assert_eq!(accepted, Some(there));
}

#[tokio::test]
async fn an_unfinished_session_can_be_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = migrated(folder.path());
    let unfinished = store.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), 1);
    assert_eq!(
        (unfinished[0].id, unfinished[0].run.as_deref()),
        (session(2), Some("run-2"))
    );
    let (record, pending) = load(&store, 2).await;
    assert_eq!(record.status, SessionStatus::Running);
    let turn = TurnRecord {
        prompt_seq: 2,
        stopping: false,
        undelivered: false,
        after_stop: 0,
    };
    assert_eq!(record.turn, Some(turn));
    let run = record.run.unwrap();
    assert_eq!(
        (run.position, run.resumes, run.hooks),
        (77, true, vec!["Stop".to_owned()])
    );
    let options = Options::default()
        .with("model", "sonnet")
        .with("permissionMode", "plan");
    assert_eq!((&run.options, &run.started), (&options, &options));
    let queue: Vec<_> = record.queue.iter().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(queue, ["then this", "and this"]);
    assert_eq!(record.queue[1].parent_tool_use_id.as_deref(), Some("t9"));
    assert_eq!(pending.len(), 1);
    let asked = &pending[0];
    assert_eq!(
        (asked.agent_request.as_str(), asked.input.as_str()),
        ("r2", r#"{"command":"ls"}"#)
    );
    assert_eq!(
        (asked.description.as_deref(), asked.blocked_path.as_deref()),
        (Some("lists"), Some("/etc"))
    );
    let said = store.agent_input_since(session(2), 2).await.unwrap();
    assert!(
        matches!(&said[..], [event] if matches!(event.body, EventBody::UserPrompt { .. })),
        "{said:?}"
    );
    assert!(store.acquire(session(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn odd_sessions_stay_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = migrated(folder.path());
    let entries = history(&store, 3).await;
    assert_eq!(entries[1], (3, r#"{"type":"user_prompt","x":1}"#.to_owned()));
    assert!(
        entries[2]
            .1
            .starts_with(r#"{"type":"system","subtype":"turn_stopped""#),
        "{entries:?}"
    );
    let imitation = store.replay(session(3), 2, 1).await.unwrap();
    assert!(
        matches!(imitation[0].body, EventBody::Message { .. }),
        "a message, not a prompt"
    );

    let (fork, _) = load(&store, 4).await;
    assert_eq!(
        (fork.fork_of.as_deref(), fork.fork_at.as_deref()),
        (Some("c1"), Some("m18"))
    );
    assert_eq!(history(&store, 4).await.len(), 2);
    let (discarded, _) = load(&store, 5).await;
    assert_eq!(
        (discarded.expired, discarded.delete_at),
        (true, Some(Timestamp(9999)))
    );
    assert_eq!(discarded.owner.as_deref(), Some("gone key"));
    assert_eq!(store.deletions().await.unwrap(), [(session(5), Timestamp(9999))]);
    // A cookie without the page's own secret is no longer valid; printed links are.
    assert_eq!(store.sign_ins(Timestamp(10)).await.unwrap(), []);
}

#[tokio::test]
async fn totals_are_counted_from_the_log_and_then_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = migrated(folder.path());
    // Nobody is here to continue with its agent.
    store.delete(session(2)).await.unwrap();
    let home = folder.path();
    let paths = PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap();
    let sessions = Sessions::open(
        Arc::new(store.clone()),
        Arc::new(NoAgents),
        paths,
        TitlePolicy::Prompt,
    )
    .await
    .unwrap();
    sessions.rename(session(1), "used again").await.unwrap();
    let (record, _) = load(&store, 1).await;
    assert_eq!(record.title, "used again");
    let totals = record.summary.unwrap().view();
    assert_eq!((totals.turns, totals.tokens_in, totals.tokens_out), (1, 10, 5));
    assert!((totals.cost_usd - 0.125).abs() < 1e-9, "{totals:?}");
    assert_eq!(totals.files_changed, ["a.txt"]);
}
