//! Odd rows, owners that were overtaken, and which sessions a list or a start finds.

use std::sync::Arc;

use tiller_core::*;

use super::open;
use super::sessions::*;

/// What an agent says is data, whatever it looks like.
#[tokio::test]
async fn what_looks_like_a_record_of_ours_comes_back_as_it_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [
        r#"{"type":"user_prompt","x":1}"#,
        r#"{"type":"user_prompt","prompt":"p"}"#,
        r#"{"type":"user_prompt","prompt":"p","uuid":"u"}"#,
        r#"{"type":"session.status","payload":{"status":"running"}}"#,
        r#"{"type":null}"#,
        r#"{"type":["assistant"]}"#,
        "null",
        "[1]",
        "\"words\"",
        "1e400",
        &deep,
    ];
    let bodies = || -> Vec<_> {
        let odd = odd.map(|text| EventBody::Message {
            raw: RawJson::parse(text).unwrap(),
            uuid: Some("u".to_owned()),
        });
        [prompt("p")].into_iter().chain(odd).collect()
    };
    // Few are written one by one, many together.
    for times in [1, 3] {
        let mut session = record("odd");
        let all = (0..times).flat_map(|_| bodies()).collect();
        let written = append(&store, &mut session, all).await;
        let store = open(folder.path());
        assert_eq!(store.replay(session.id, 0, 100).await.unwrap(), written);
        let history = store.history(session.id, Page::All).await.unwrap();
        let odd_again: Vec<_> = history.iter().map(|(_, raw)| raw.as_str()).skip(1).collect();
        assert_eq!(odd_again[..odd.len()], odd);
        assert_eq!(
            store.said_since(session.id, 1).await.unwrap(),
            [written[0].clone()]
        );
        let fork = record("fork");
        store.fork(session.id, fork.clone()).await.unwrap();
        let copied = store.replay(fork.id, 0, 100).await.unwrap();
        let bodies = |events: &[Event]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
        assert_eq!(bodies(&copied), bodies(&written));
    }
}

#[tokio::test]
async fn a_row_that_can_not_be_read_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = record("damaged rows");
    let bodies = || {
        vec![
            status(SessionStatus::Running),
            prompt("p"),
            message("a"),
            message("b"),
            message("c"),
            message("d"),
        ]
    };
    let written = append(&store, &mut session, bodies()).await;
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE events SET data = '{' WHERE seq = 1;
             UPDATE messages SET data = '{\"type\":\"user_prompt\"}' WHERE seq = 2;
             UPDATE messages SET data = 'no JSON' WHERE seq = 3;
             UPDATE messages SET kind = 'unheard-of' WHERE seq = 4;
             UPDATE messages SET data = CAST(x'ff7b7d' AS TEXT) WHERE seq = 5;",
        )
        .unwrap();
    let events = store.replay(session.id, 0, 100).await.unwrap();
    assert_eq!(events.len(), written.len());
    assert_eq!(events[5], written[5]);
    for event in &events[..5] {
        let EventBody::Message { raw, .. } = &event.body else {
            panic!("{event:?}");
        };
        assert!(
            raw.as_str()
                .contains(r#""subtype":"unreadable","reason":"damaged""#),
            "{raw:?}"
        );
    }
    let history = store.history(session.id, Page::All).await.unwrap();
    let readable: Vec<_> = history
        .iter()
        .map(|(seq, raw)| (*seq, !raw.as_str().contains("unreadable")))
        .collect();
    assert_eq!(
        readable,
        [(2, true), (3, false), (4, false), (5, false), (6, true)]
    );
}

/// One owner at a time, however many believe that they are.
#[tokio::test]
async fn a_stale_owner_writes_nothing_and_hurts_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (mut session, mut other) = (record("session"), record("other"));
    append(&store, &mut session, vec![message("one")]).await;
    append(&store, &mut other, vec![message("one")]).await;
    let commit = |record: &SessionRecord, epoch, body| {
        let seq = record.last_seq + 1;
        Commit {
            epoch,
            expected_last_seq: record.last_seq,
            record: SessionRecord {
                last_seq: seq,
                ..record.clone()
            },
            events: vec![Arc::new(Event {
                session: record.id,
                seq,
                at: Timestamp(30),
                body,
            })],
            images: vec![image("a1")],
            prompts: Vec::new(),
        }
    };
    let stale = own(&store, &session, 1).await;
    let fresh = own(&store, &session, 1).await;
    assert!(fresh > stale);
    let theirs = own(&store, &other, 1).await;
    // In one group.
    let (refused, taken, others) = tokio::join!(
        store.commit(commit(&session, stale, message("stale"))),
        store.commit(commit(&session, fresh, message("fresh"))),
        store.commit(commit(&other, theirs, message("other"))),
    );
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    taken.unwrap();
    others.unwrap();
    let events = store.replay(session.id, 1, 10).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].body, message("fresh"));
    assert_eq!(store.replay(other.id, 1, 10).await.unwrap().len(), 1);

    // An owner that does not know where its session ends does not own it, whatever it believes.
    let behind = store.commit(commit(&session, fresh, message("again"))).await;
    assert!(matches!(behind, Err(StoreError::Stale)), "{behind:?}");
    session.last_seq = 7;
    let ahead = store.commit(commit(&session, fresh, message("ahead"))).await;
    assert!(matches!(ahead, Err(StoreError::Stale)), "{ahead:?}");

    // What is there is not made again, and what is gone does not come back.
    let made = store.create(session.clone()).await;
    assert!(matches!(made, Err(StoreError::Stale)), "{made:?}");
    session.last_seq = 2;
    store.delete(session.id).await.unwrap();
    let late = store.commit(commit(&session, fresh, message("late"))).await;
    assert!(matches!(late, Err(StoreError::Stale)), "{late:?}");
    assert_eq!(store.load(session.id).await.unwrap(), None);
    assert_eq!(store.acquire(session.id).await.unwrap(), None);
    let epoch = store.create(record("new")).await.unwrap();
    let again = store.acquire(all(&store).await[0].0.id).await.unwrap().unwrap().0;
    assert!(again > Epoch(0) && epoch > Epoch(0));
}

#[tokio::test]
async fn sessions_are_listed_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut expected = Vec::new();
    for number in 0..25 {
        let mut session = record(&number.to_string());
        // Some have changed at the same time.
        session.updated_at = Timestamp(i64::from(number / 3));
        session.owner = (number % 2 == 0).then(|| "ci".to_owned());
        session.cwd = format!("/{}", number % 4);
        session.conversation = Some(format!("c{number}"));
        put(&store, &session, Vec::new()).await;
        expected.push(session);
    }
    expected.sort_by(|a, b| {
        b.updated_at
            .cmp(&a.updated_at)
            .then(a.id.to_string().cmp(&b.id.to_string()))
    });
    let pages = async |query: SessionQuery| {
        let (mut found, mut query) = (Vec::new(), query);
        loop {
            let page = store.list(query.clone()).await.unwrap();
            assert!(page.len() <= 4);
            let Some(last) = page.last().map(ListedSession::cursor) else {
                return found;
            };
            // As a client has it.
            query.after = Some(last.to_string().parse().unwrap());
            found.extend(page.into_iter().map(|session| match session {
                ListedSession::Readable { record, pending: 0 } => *record,
                other => panic!("{other:?}"),
            }));
        }
    };
    let query = SessionQuery {
        limit: Some(4),
        ..SessionQuery::default()
    };
    assert_eq!(pages(query.clone()).await, expected);
    let key = Owners::Key("ci".to_owned());
    let only = |wanted: &dyn Fn(&SessionRecord) -> bool| -> Vec<_> {
        expected.iter().filter(|record| wanted(record)).cloned().collect()
    };
    let own = SessionQuery {
        owners: key.clone(),
        ..query.clone()
    };
    assert_eq!(pages(own).await, only(&|record| record.owner.is_some()));
    let in_folder = SessionQuery {
        owners: key.clone(),
        cwd: Some("/2".to_owned()),
        ..query.clone()
    };
    let expected_there = only(&|record| record.owner.is_some() && record.cwd == "/2");
    assert!(!expected_there.is_empty());
    assert_eq!(pages(in_folder).await, expected_there);
    let by_name = SessionQuery {
        conversations: vec!["c7".to_owned(), expected[0].id.to_string(), "no one's".to_owned()],
        ..query
    };
    let named = only(&|record| record.conversation.as_deref() == Some("c7") || record.id == expected[0].id);
    assert_eq!(pages(by_name).await, named);

    let cwds = store.recent_cwds(Owners::All, 3).await.unwrap();
    assert_eq!(cwds.len(), 3);
    assert_eq!(cwds[0], expected[0].cwd);
    let own = store.recent_cwds(key, 9).await.unwrap();
    assert_eq!(own.len(), 2, "{own:?}");
}

#[tokio::test]
async fn only_what_needs_someone_is_found_unfinished_or_due() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let quiet = |title: &str| SessionRecord {
        status: SessionStatus::Completed,
        queue: Vec::new(),
        delete_at: None,
        turn: None,
        run: None,
        ..record(title)
    };
    let mut asking = quiet("asking");
    let asked = request(asking.id, 1);
    append(
        &store,
        &mut asking,
        vec![EventBody::DecisionRequested(Box::new(asked))],
    )
    .await;
    let running = SessionRecord {
        status: SessionStatus::Running,
        ..quiet("running")
    };
    let started = SessionRecord {
        run: record("").run,
        ..quiet("started")
    };
    let waiting = SessionRecord {
        queue: record("").queue,
        ..quiet("waiting")
    };
    let discarded = SessionRecord {
        delete_at: Some(Timestamp(7)),
        ..quiet("discarded")
    };
    let resting = quiet("resting");
    for session in [&running, &started, &waiting, &discarded, &resting] {
        put(&store, session, Vec::new()).await;
    }
    let mut unfinished = store.unfinished().await.unwrap();
    unfinished.sort_by_key(|session| session.id);
    let mut expected = [&asking, &running, &started].map(|session| UnfinishedSession {
        id: session.id,
        run: session.run.as_ref().map(|run| run.name.clone()),
    });
    expected.sort_by_key(|session| session.id);
    assert_eq!(unfinished, expected);
    assert_eq!(store.deletions().await.unwrap(), [(discarded.id, Timestamp(7))]);
    let mut unused = [started.id, discarded.id, resting.id];
    unused.sort();
    let since = Timestamp(21);
    assert_eq!(store.unused_since(since, None, 9).await.unwrap(), unused);
    assert_eq!(
        store.unused_since(since, Some(unused[0]), 1).await.unwrap(),
        [unused[1]]
    );
    assert_eq!(store.unused_since(Timestamp(20), None, 9).await.unwrap(), []);
}
