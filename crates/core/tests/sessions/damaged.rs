//! Sessions that can't be read, beside others that can.

use std::sync::Arc;

use tiller_core::{
    CommandError, ListedSession, SessionStatus, Sessions, Store, StoredSession, TitlePolicy, TurnRecord,
};
use tiller_store_suite::fixtures::{NoAgents, append, message, prompt, put, quiet, status};
use tiller_store_suite::{Damage, MemoryStore};

use super::paths;

#[tokio::test]
async fn a_damaged_session_is_listed_and_deleted_and_stops_no_other() {
    let home = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let mut whole = quiet("whole", 20);
    append(&store, &mut whole, vec![message("a")]).await;
    let unreadable = quiet("record", 20);
    put(&store, &unreadable, Vec::new()).await;
    // The next server would have to send the prompt again, and can't read it.
    let mut unfinished = quiet("log", 20);
    unfinished.status = SessionStatus::Running;
    unfinished.turn = Some(TurnRecord {
        prompt_seq: 2,
        stopping: false,
        undelivered: true,
        after_stop: 0,
    });
    append(
        &store,
        &mut unfinished,
        vec![status(SessionStatus::Running), prompt("p")],
    )
    .await;
    store.damage(unreadable.id, Damage::Record);
    store.damage(unfinished.id, Damage::Log);

    let sessions = Sessions::open(
        Arc::new(store.clone()),
        Arc::new(NoAgents),
        paths(home.path()),
        TitlePolicy::Prompt,
    )
    .await
    .unwrap();
    let listed = sessions.list(None, None, None).await.unwrap().sessions;
    assert_eq!(listed.len(), 3);
    for session in &listed {
        let is_damaged = matches!(session, ListedSession::Damaged(_));
        assert_eq!(is_damaged, session.id() != whole.id, "{session:?}");
    }
    sessions.rename(whole.id, "still used").await.unwrap();
    for damaged in [&unreadable, &unfinished] {
        for refused in [
            sessions.find(damaged.id).await.map(drop),
            sessions.rename(damaged.id, "other").await,
            sessions.prompt(damaged.id, "go on").await.map(drop),
        ] {
            assert!(
                matches!(refused, Err(CommandError::Damaged { .. })),
                "{}: {refused:?}",
                damaged.title
            );
        }
        assert!(store.load(damaged.id).await.unwrap().is_some(), "it is kept");
        sessions.delete(damaged.id).await.unwrap();
        assert_eq!(store.load(damaged.id).await.unwrap(), None);
    }
    let left = store.load(whole.id).await.unwrap();
    assert!(matches!(left, Some(StoredSession::Readable { record, .. }) if record.title == "still used"));
}
