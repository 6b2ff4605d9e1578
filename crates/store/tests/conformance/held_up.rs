//! What is seen while nothing can be written.

use std::sync::{Arc, Mutex};

use tiller_core::backend::{
    AgentChannels, AgentCommand, AgentEvent, Attach, Backend, BackendInfo, Heard, Launch, Meaning, TurnEnd,
};
use tiller_core::{
    Commit, Event, EventBody, Notice, PathPolicy, RawJson, SessionRecord, SessionStatus, Sessions, Store,
    Titles, TurnRecord,
};
use tokio::sync::{mpsc, oneshot};

use super::open;
use super::sessions::record;
use super::upkeep::no_agent;

/// An agent that an earlier server has started, and that says what the test lets it say.
#[derive(Default)]
struct Found {
    tell: Mutex<Option<mpsc::Sender<Vec<Heard>>>>,
    told: Mutex<Option<mpsc::Receiver<AgentCommand>>>,
}

impl Backend for Found {
    fn info(&self) -> BackendInfo {
        no_agent()
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        panic!("{launch:?}")
    }

    fn attach(&self, _attach: Attach) -> AgentChannels {
        let (tell, events) = mpsc::channel(1);
        let (commands, told) = mpsc::channel(8);
        *self.tell.lock().unwrap() = Some(tell);
        *self.told.lock().unwrap() = Some(told);
        AgentChannels {
            commands,
            events,
            settled: oneshot::channel().0,
        }
    }
}

fn says(text: &str, meaning: Meaning, position: u64) -> Heard {
    Heard {
        event: AgentEvent::Message {
            raw: RawJson::parse(&format!(r#"{{"text":"{text}"}}"#)).unwrap(),
            uuid: None,
            meaning,
        },
        position: Some(position),
    }
}

fn text(event: &Arc<Event>) -> &str {
    match &event.body {
        EventBody::Message { raw, .. } => raw.as_str(),
        EventBody::Status(change) if change.status == SessionStatus::Completed => "completed",
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_last_words_of_a_turn_do_not_wait_for_its_end_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let running = SessionRecord {
        cwd: folder.path().to_string_lossy().into_owned(),
        delete_at: None,
        queue: Vec::new(),
        turn: Some(TurnRecord {
            prompt_seq: 1,
            stopping: false,
        }),
        ..record("running")
    };
    let first = Commit {
        record: running,
        events: Vec::new(),
        images: Vec::new(),
    };
    store.commit(first).await.unwrap();
    let home = folder.path();
    let paths = PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap();
    let backend = Arc::new(Found::default());
    let sessions = Sessions::open(Arc::new(store), backend.clone(), paths, Titles::Prompt)
        .await
        .unwrap();
    let mut feed = sessions.watch();
    let mut shown = async || loop {
        if let Notice::Event(event) = feed.next().await.unwrap().unwrap() {
            return event;
        }
    };

    let intruder = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let tell = backend.tell.lock().unwrap().take().unwrap();
    let end = Meaning::TurnEnded(TurnEnd::Success);
    let together = vec![
        says("almost", Meaning::Nothing, 10),
        says("done", Meaning::Nothing, 20),
        says("result", end, 30),
    ];
    tell.send(together).await.unwrap();
    assert_eq!(text(&shown().await), r#"{"text":"almost"}"#);
    let last = shown().await;
    assert_eq!(text(&last), r#"{"text":"done"}"#);
    // Whoever comes now is not told of an end that could be taken back.
    let (seen, _) = sessions.find(last.session).unwrap();
    assert_eq!((seen.status, seen.last_seq), (SessionStatus::Running, last.seq));

    intruder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(text(&shown().await), r#"{"text":"result"}"#);
    assert_eq!(text(&shown().await), "completed");
}
