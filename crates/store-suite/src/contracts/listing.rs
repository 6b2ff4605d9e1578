//! Which sessions a list finds, and which a starting server finds.

use std::sync::Arc;

use tiller_core::{
    EventBody, ListedSession, Owners, SessionId, SessionQuery, SessionRecord, SessionStatus, Store,
    StoredSession, Timestamp, UnfinishedSession,
};
use tiller_message::Summary;

use crate::Harness;
use crate::fixtures::{append, message, put, quiet, record, request};

pub async fn sessions_are_listed_by_page<H: Harness>(harness: &H) {
    let store = harness.open();
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
            // Clients send it as text.
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
    let key = Owners::key("ci");
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
        conversations: vec!["c7".to_owned(), expected[0].id.to_string(), "unknown".to_owned()],
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

pub async fn a_list_has_own_listed_and_folders_sessions<H: Harness>(harness: &H) {
    let store = harness.open();
    let of = |name: &str, owner: Option<&str>, cwd: &str| SessionRecord {
        owner: owner.map(str::to_owned),
        cwd: cwd.to_owned(),
        ..quiet(name, 20)
    };
    let sessions = [
        of("own", Some("ci"), "/elsewhere"),
        of("listed", Some("other"), "/elsewhere"),
        of("folder", None, "/home/me_too"),
        of("beneath", None, "/home/me_too/code"),
        of("beside", None, "/home/me_too2"),
        of("sign", None, "/home/meXtoo/code"),
    ];
    for session in &sessions {
        put(&store, session, Vec::new()).await;
    }
    let found = async |listed: &[SessionId], folders: &[&str]| {
        let owners = Owners::Seen {
            key: "ci".to_owned(),
            sessions: listed.to_vec(),
            folders: folders.iter().map(|folder| (*folder).to_owned()).collect(),
        };
        let cwds = store.recent_cwds(owners.clone(), 9).await.unwrap();
        let query = SessionQuery {
            owners,
            ..SessionQuery::default()
        };
        let list = store.list(query).await.unwrap();
        let found = |record: &SessionRecord| list.iter().any(|listed| listed.id() == record.id);
        for session in sessions.iter().filter(|session| found(session)) {
            assert!(cwds.contains(&session.cwd), "{cwds:?}");
        }
        sessions.iter().map(found).collect::<Vec<_>>()
    };
    assert_eq!(found(&[], &[]).await, [true, false, false, false, false, false]);
    assert_eq!(
        found(&[sessions[1].id], &[]).await,
        [true, true, false, false, false, false]
    );
    assert_eq!(
        found(&[], &["/home/me_too"]).await,
        [true, false, true, true, false, false]
    );
    assert_eq!(found(&[], &["/"]).await, [true; 6]);
}

pub async fn only_sessions_that_need_someone_are_unfinished_or_due<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut asking = quiet("asking", 20);
    let asked = request(asking.id, 1);
    append(
        &store,
        &mut asking,
        vec![EventBody::DecisionRequested(Box::new(asked))],
    )
    .await;
    let running = SessionRecord {
        status: SessionStatus::Running,
        ..quiet("running", 20)
    };
    let started = SessionRecord {
        run: record("").run,
        ..quiet("started", 20)
    };
    let waiting = SessionRecord {
        queue: record("").queue,
        ..quiet("waiting", 20)
    };
    let discarded = SessionRecord {
        delete_at: Some(Timestamp(7)),
        ..quiet("discarded", 20)
    };
    let resting = quiet("resting", 20);
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

pub async fn missing_totals_are_stored_once_and_change_nothing_else<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut session = SessionRecord {
        summary: None,
        ..quiet("older", 7)
    };
    append(&store, &mut session, vec![message("one")]).await;
    put(&store, &record("counted"), Vec::new()).await;
    let without_summary = async || -> Vec<SessionId> {
        let query = SessionQuery {
            without_summary: true,
            ..SessionQuery::default()
        };
        let found = store.list(query).await.unwrap();
        found.iter().map(ListedSession::id).collect()
    };
    assert_eq!(without_summary().await, [session.id]);

    let stored = async || match store.load(session.id).await.unwrap() {
        Some(StoredSession::Readable { record, .. }) => *record,
        other => panic!("{other:?}"),
    };
    let mut totals = Summary::default();
    totals.turn_started(1);
    let totals = Arc::new(totals);
    let backfill = |last_seq, summary| store.backfill_summary(session.id, last_seq, summary);
    backfill(session.last_seq - 1, Arc::clone(&totals)).await.unwrap();
    assert_eq!(stored().await, session, "counted from another state of the log");
    backfill(session.last_seq, Arc::clone(&totals)).await.unwrap();
    let counted = SessionRecord {
        summary: Some(totals),
        ..session.clone()
    };
    assert_eq!(stored().await, counted, "only the totals changed");
    backfill(session.last_seq, Arc::default()).await.unwrap();
    assert_eq!(stored().await, counted, "totals that exist stay");
    assert_eq!(without_summary().await, []);
    let unknown = record("unknown").id;
    store.backfill_summary(unknown, 0, Arc::default()).await.unwrap();
}
