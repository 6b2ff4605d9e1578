//! Prompts that arrive before it is known whether the agent of an earlier server is still there.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tiller_core::backend::{AgentEvent, Driver, Exit, PositionedEvent};
use tiller_core::{CommandError, SessionRecord, SessionStatus, Sessions, Timestamp, TitlePolicy};

use tiller_store_suite::MemoryStore;
use tiller_store_suite::fixtures::{put, record};

use super::agent::Found;
use super::paths;

#[tokio::test]
async fn a_prompt_waits_until_it_is_known_who_drives() {
    let folder = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let resting = SessionRecord {
        status: SessionStatus::Completed,
        conversation: Some("c1".to_owned()),
        backend: None,
        queue: Vec::new(),
        delete_at: None,
        turn: None,
        cwd: folder.path().to_string_lossy().into_owned(),
        ..record("resting")
    };
    assert!(resting.run.is_some(), "an earlier server has started an agent");
    let (id, last_seq) = (resting.id, resting.last_seq);
    put(&store, &resting, Vec::new()).await;
    let paths = paths(folder.path());
    // The search for the agent takes a while, and another process has taken over the conversation.
    let backend = Arc::new(Found {
        rival: Some(Driver {
            pid: 7,
            command: "claude".to_owned(),
            since: Timestamp(0),
            started: 0,
        }),
        ..Found::default()
    });
    let sessions = Sessions::open(Arc::new(store), backend.clone(), paths, TitlePolicy::Prompt)
        .await
        .unwrap();

    let mut said = Box::pin(sessions.prompt(id, "hello"));
    // Whatever is ready is done; then it waits.
    for _ in 0..100 {
        let waits = poll_fn(|context| Poll::Ready(said.as_mut().poll(context).is_pending())).await;
        assert!(waits, "nothing is known yet");
        tokio::task::yield_now().await;
    }
    let looking = backend.tell.lock().unwrap().take().expect("it is looked for");
    let gone = AgentEvent::Exited(Exit::Ended {
        message: "gone".to_owned(),
    });
    looking
        .send(vec![PositionedEvent::without_position(gone)])
        .await
        .unwrap();
    let refused = said.await.unwrap_err();
    assert!(
        matches!(&refused, CommandError::DrivenElsewhere(driver) if driver.pid == 7),
        "{refused}"
    );
    let (record, _) = sessions.find(id).await.unwrap();
    assert_eq!(
        (record.status, record.last_seq),
        (SessionStatus::Completed, last_seq)
    );
}
