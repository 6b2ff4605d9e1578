//! A stale owner is refused.

use std::sync::Arc;

use tiller_core::{Commit, Epoch, Event, SessionRecord, Store, StoreError, Timestamp};

use crate::Harness;
use crate::fixtures::{all, append, image, message, own, record};

/// A session has one owner at a time, however many owners believe to be the one.
pub async fn a_stale_owner_writes_nothing_and_hurts_no_other<H: Harness>(harness: &H) {
    let store = harness.open();
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
    // In one transaction.
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

    // An owner that is wrong about the last event of its session does not own it.
    let behind = store.commit(commit(&session, fresh, message("again"))).await;
    assert!(matches!(behind, Err(StoreError::Stale)), "{behind:?}");
    session.last_seq = 7;
    let ahead = store.commit(commit(&session, fresh, message("ahead"))).await;
    assert!(matches!(ahead, Err(StoreError::Stale)), "{ahead:?}");

    // An existing session is not created again, and a deleted one does not come back.
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
