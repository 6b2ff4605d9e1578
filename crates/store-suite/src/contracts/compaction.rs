//! Streamed pieces of finished messages are removed.

use tiller_core::{EventBody, RawJson, SessionRecord, SessionStatus, Store, Timestamp};

use crate::Harness;
use crate::fixtures::{append, message, piece, prompt, quiet, status};

pub async fn streamed_pieces_go_and_everything_else_stays_with_its_number<H: Harness>(harness: &H) {
    let store = harness.open();
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

    // The next events get the next numbers, and are compacted later.
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

pub async fn pieces_of_a_message_that_was_never_finished_stay<H: Harness>(harness: &H) {
    let store = harness.open();
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

    // Messages of any length: the whole message may be far from its beginning.
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

pub async fn a_deeply_nested_message_does_not_keep_others_from_being_compacted<H: Harness>(harness: &H) {
    let store = harness.open();
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
