//! How long sessions are kept. The clock is the test's.

use std::sync::Arc;
use std::time::Duration;

use tiller_core::{
    EventBody, ListedSession, Prompt, PromptId, Retention, SessionRecord, Sessions, Timestamp, TitlePolicy,
};
use tiller_store_suite::MemoryStore;
use tiller_store_suite::fixtures::{NoAgents, all, append, put, quiet, request};

use super::paths;

const DAY: i64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn old_sessions_are_removed_unless_something_waits_in_them() {
    let store = MemoryStore::default();
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
    let asked = request(asking.id, 1);
    append(
        &store,
        &mut asking,
        vec![EventBody::DecisionRequested(Box::new(asked))],
    )
    .await;

    let home = tempfile::tempdir().unwrap();
    let paths = paths(home.path());
    let sessions = Sessions::open(
        Arc::new(store.clone()),
        Arc::new(NoAgents),
        paths,
        TitlePolicy::Prompt,
    )
    .await
    .unwrap();
    let titles = async || {
        let page = sessions.list(None, None, None).await.unwrap();
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
    assert_eq!(kept.len(), 3, "from the store as well");
}
