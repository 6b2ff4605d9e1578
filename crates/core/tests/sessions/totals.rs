//! The totals of sessions that were stored without them.

use std::sync::Arc;

use tiller_core::{
    EventBody, ListedSession, RawJson, SessionQuery, SessionRecord, SessionStatus, Sessions, Store,
    TitlePolicy,
};
use tiller_store_suite::fixtures::{NoAgents, append, quiet, status};
use tiller_store_suite::{Damage, MemoryStore};

use super::paths;

#[tokio::test]
async fn older_sessions_get_their_totals_in_the_background_and_damaged_ones_are_skipped() {
    let store = MemoryStore::default();
    let mut records = ["first", "damaged", "second"].map(|title| SessionRecord {
        summary: None,
        ..quiet(title, 7)
    });
    let result = r#"{"type":"result","subtype":"success","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":2}}"#;
    for record in &mut records {
        let turn = vec![
            status(SessionStatus::Running),
            EventBody::Message {
                raw: RawJson::parse(result).unwrap(),
                uuid: None,
            },
            status(SessionStatus::Completed),
        ];
        append(&store, record, turn).await;
    }
    store.damage(records[1].id, Damage::Record);
    let home = tempfile::tempdir().unwrap();
    let sessions = Sessions::open(
        Arc::new(store.clone()),
        Arc::new(NoAgents),
        paths(home.path()),
        TitlePolicy::Prompt,
    );
    let sessions = sessions.await.unwrap();

    sessions.backfill_totals().await.unwrap();
    let page = sessions.list(None, None, None).await.unwrap();
    assert_eq!(page.sessions.len(), records.len());
    for session in page.sessions {
        match session {
            ListedSession::Readable { record, .. } => {
                let totals = record.summary.unwrap().view();
                assert_eq!((totals.turns, totals.tokens_in, totals.tokens_out), (1, 7, 2));
                assert!((totals.cost_usd - 0.5).abs() < f64::EPSILON);
                let before = records.iter().find(|before| before.id == record.id).unwrap();
                assert_eq!(record.updated_at, before.updated_at, "the list keeps its order");
            }
            ListedSession::Damaged(damaged) => assert_eq!(damaged.title, "damaged"),
        }
    }
    let without_summary = SessionQuery {
        without_summary: true,
        ..SessionQuery::default()
    };
    let left = store.list(without_summary).await.unwrap();
    assert!(
        matches!(&left[..], [ListedSession::Damaged(_)]),
        "stored, not only counted: {left:?}"
    );
}
