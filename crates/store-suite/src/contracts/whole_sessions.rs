//! Whole sessions: copied, deleted, named.

use tiller_core::{
    EventBody, Extent, Page, RawJson, RewoundPart, SessionId, SessionRecord, SessionStatus, Store, Timestamp,
};

use crate::Harness;
use crate::fixtures::{all, append, image, message, prompt, put, record, request, status};

pub async fn sessions_come_newest_first_and_go_with_all_that_is_theirs<H: Harness>(harness: &H) {
    let store = harness.open();
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

pub async fn a_name_belongs_to_its_owner_and_goes_away_with_its_session<H: Harness>(harness: &H) {
    let store = harness.open();
    let (ours, theirs) = (record("ours"), SessionId::random());
    let key = || Some("ci".to_owned());
    let claim = async |owner: Option<String>, session| {
        store.claim_name(owner, "默认".to_owned(), session).await.unwrap()
    };
    assert_eq!(store.named(key(), "默认".to_owned()).await.unwrap(), None);
    assert_eq!(claim(key(), ours.id).await, ours.id);
    assert_eq!(claim(key(), theirs).await, ours.id, "the first has it");
    assert_eq!(claim(None, theirs).await, theirs, "names belong to their owners");
    put(&store, &ours, Vec::new()).await;
    drop(store);

    let store = harness.open();
    assert_eq!(
        store.named(key(), "默认".to_owned()).await.unwrap(),
        Some(ours.id)
    );
    store.delete(ours.id).await.unwrap();
    assert_eq!(store.named(key(), "默认".to_owned()).await.unwrap(), None);
    assert_eq!(store.named(None, "默认".to_owned()).await.unwrap(), Some(theirs));
}

pub async fn an_image_is_kept_once_and_goes_with_its_session<H: Harness>(harness: &H) {
    let store = harness.open();
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
    assert_eq!(
        found(other.id, "a1").await.unwrap(),
        None,
        "it belongs to the other session"
    );
    store.delete(mine.id).await.unwrap();
    assert_eq!(found(mine.id, "a1").await.unwrap(), None);
}

pub async fn a_fork_has_no_more_of_its_source_than_is_wanted<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut source = record("source");
    let bodies = ["one", "two", "three", "four", "five", "six"].map(message);
    append(&store, &mut source, bodies.to_vec()).await;
    let part = |after, through| RewoundPart {
        after,
        through,
        undo: None,
    };
    let fork = record("fork");
    let extent = Extent {
        through: Some(5),
        without: vec![part(1, 2), part(3, 4), part(5, 6)],
    };
    assert_eq!(store.fork(source.id, fork.clone(), extent).await.unwrap(), 3);
    let events = store.replay(fork.id, 0, 100).await.unwrap();
    let bodies: Vec<_> = events.into_iter().map(|event| (event.seq, event.body)).collect();
    assert_eq!(
        bodies,
        [(1, message("one")), (2, message("three")), (3, message("five"))]
    );
}

pub async fn a_fork_begins_with_the_messages_of_its_source<H: Harness>(harness: &H) {
    let store = harness.open();
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
    let last_seq = store
        .fork(source.id, fork.clone(), Extent::default())
        .await
        .unwrap();
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
    // Each continues on its own.
    append(&store, &mut fork, vec![message("three")]).await;
    assert_eq!(store.replay(source.id, 4, 100).await.unwrap(), []);
    let loaded = all(&store).await;
    let pending = |id| loaded.iter().find(|(record, _)| record.id == id).unwrap().1.len();
    assert_eq!((pending(source.id), pending(fork.id)), (1, 0));
}

pub async fn notes_are_kept_with_their_session_and_go_with_it<H: Harness>(harness: &H) {
    let (one, two) = (record("one"), record("two"));
    let json = |text: &str| RawJson::parse(text).unwrap();
    {
        let store = harness.open();
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
    let store = harness.open();
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

/// Whether both ends of a long session exist, read one after the other.
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

/// A store that copies or deletes a session in one step lets at most three commits through: one before it, one with it,
/// one after it.
const COMMITS_BESIDE_ONE_STEP: u32 = 3;

/// How often a copy and a deletion are tried until enough commits came through beside them: a busy machine may not let
/// the test run while the store works.
const ROUNDS: u32 = 20;

pub async fn others_go_on_while_a_long_session_is_copied_and_removed<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut long = record("long");
    for _ in 0..LONG / 2000 {
        append(&store, &mut long, (0..2000).map(|_| message("x")).collect()).await;
    }
    append(&store, &mut long, vec![status(SessionStatus::Idle)]).await;
    let mut other = record("other");

    let mut source = long.id;
    let (mut during_copy, mut during_removal) = (0, 0);
    for round in 0..ROUNDS {
        let fork = record(&format!("fork-{round}"));
        during_copy = during_copy.max(commits_during_copy(&store, source, &fork, &mut other).await);
        during_removal = during_removal.max(commits_during_removal(&store, source, &mut other).await);
        source = fork.id;
        if !H::COPIES_IN_STEPS || during_copy.min(during_removal) > COMMITS_BESIDE_ONE_STEP {
            break;
        }
    }
    let said = store.history(other.id, Page::All).await.unwrap();
    assert_eq!(said.len() as u64, other.last_seq);
    if H::COPIES_IN_STEPS {
        assert!(
            during_copy.min(during_removal) > COMMITS_BESIDE_ONE_STEP,
            "{during_copy} and {during_removal} commits came through"
        );
    }
}

async fn commits_during_copy<S: Store + Clone>(
    store: &S,
    source: SessionId,
    fork: &SessionRecord,
    other: &mut SessionRecord,
) -> u32 {
    let (copying, copy) = (store.clone(), fork.clone());
    let copied = tokio::spawn(async move { copying.fork(source, copy, Extent::default()).await.unwrap() });
    let mut commits = 0;
    while !copied.is_finished() {
        append(store, other, vec![message("other")]).await;
        commits += 1;
        // A reader sees all of it or nothing.
        assert_ne!(ends(store, fork.id, commits % 2 == 0).await, [true, false]);
    }
    assert_eq!(copied.await.unwrap(), LONG);
    let said = store.history(fork.id, Page::All).await.unwrap();
    assert_eq!(said.len() as u64, LONG);
    commits
}

async fn commits_during_removal<S: Store + Clone>(
    store: &S,
    long: SessionId,
    other: &mut SessionRecord,
) -> u32 {
    let removing = store.clone();
    let removed = tokio::spawn(async move { removing.delete(long).await.unwrap() });
    let mut commits = 0;
    while !removed.is_finished() {
        append(store, other, vec![message("other")]).await;
        commits += 1;
        // A reader sees all of it or nothing.
        assert_ne!(ends(store, long, commits % 2 == 0).await, [false, true]);
    }
    removed.await.unwrap();
    assert_eq!(ends(store, long, false).await, [false, false]);
    commits
}
