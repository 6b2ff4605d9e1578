//! What is seen and done while something else has to be waited for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tiller_core::backend::{AgentCommand, AgentEvent, Exit, Heard, Meaning, TurnEnd};
use tiller_core::{
    Answer, CommandError, DecisionRef, Event, EventBody, Notice, PathPolicy, RawJson, SessionId,
    SessionRecord, SessionStatus, Sessions, Store, Titles, TurnRecord,
};
use tokio::sync::mpsc;

use super::agent::Found;
use super::open;
use super::sessions::{append, prompt, record, request};

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

/// A session whose turn runs, with an agent that an earlier server has started and that has asked for something.
struct World {
    folder: tempfile::TempDir,
    sessions: Sessions,
    session: SessionId,
    tell: mpsc::Sender<Vec<Heard>>,
    /// What the agent is told; the end of it ends the agent.
    told: mpsc::Receiver<AgentCommand>,
}

impl World {
    /// It is known what the agent has said so far.
    async fn new() -> Self {
        let world = Self::attaching().await;
        let found = [AgentEvent::Attached { last_input: 1 }, AgentEvent::CaughtUp];
        world.tell.send(found.map(Heard::lost).into()).await.unwrap();
        world
    }

    async fn attaching() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let mut running = SessionRecord {
            backend: None,
            cwd: folder.path().to_string_lossy().into_owned(),
            delete_at: None,
            queue: Vec::new(),
            turn: Some(TurnRecord {
                prompt_seq: 1,
                stopping: false,
                undelivered: false,
                after_stop: 0,
            }),
            ..record("running")
        };
        if let Some(run) = &mut running.run {
            run.options = running.settings.options.clone();
        }
        let asks = request(running.id, 2);
        let events = vec![prompt("p"), EventBody::DecisionRequested(Box::new(asks))];
        append(&store, &mut running, events).await;
        let home = folder.path();
        let paths = PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap();
        let backend = Arc::new(Found::default());
        let sessions = Sessions::open(Arc::new(store), backend.clone(), paths, Titles::Prompt)
            .await
            .unwrap();
        let (tell, told) = (
            backend.tell.lock().unwrap().take().unwrap(),
            backend.told.lock().unwrap().take().unwrap(),
        );
        Self {
            session: running.id,
            folder,
            sessions,
            tell,
            told,
        }
    }

    /// Answers what the agent has asked.
    fn allow(&self) -> impl Future<Output = ()> + use<> {
        let allow = Answer::Allow {
            input: None,
            permissions: None,
        };
        let (sessions, session) = (self.sessions.clone(), self.session);
        async move {
            let decision = DecisionRef::ToolUse("t2".to_owned());
            sessions.answer(session, decision, allow).await.unwrap();
        }
    }

    /// Someone else at the database.
    fn intruder(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("sessions.db")).unwrap()
    }
}

#[tokio::test]
async fn the_last_words_of_a_turn_do_not_wait_for_its_end_to_be_written() {
    let world = World::new().await;
    let mut feed = world.sessions.watch();
    let mut shown = async || loop {
        if let Notice::Event(event) = feed.next().await.unwrap().unwrap() {
            return event;
        }
    };
    let intruder = world.intruder();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let end = Meaning::TurnEnded(TurnEnd::Success);
    let together = vec![
        says("almost", Meaning::Nothing, 10),
        says("done", Meaning::Nothing, 20),
        says("result", end, 30),
    ];
    world.tell.send(together).await.unwrap();
    assert_eq!(text(&shown().await), r#"{"text":"almost"}"#);
    let last = shown().await;
    assert_eq!(text(&last), r#"{"text":"done"}"#);
    // Whoever comes now is not told of an end that could be taken back.
    let (seen, _) = world.sessions.find(world.session).await.unwrap();
    assert_eq!((seen.status, seen.last_seq), (SessionStatus::Running, last.seq));

    intruder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(text(&shown().await), r#"{"text":"result"}"#);
    assert_eq!(text(&shown().await), "completed");
}

#[tokio::test]
async fn an_agent_is_ended_with_the_server_though_nothing_can_be_written() {
    let mut world = World::new().await;
    let intruder = world.intruder();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let sessions = world.sessions.clone();
    let closing = tokio::spawn(async move { sessions.close().await });
    assert_eq!(world.told.recv().await, None, "nobody speaks to it any more");
    let gone = AgentEvent::Exited(Exit::Ended {
        message: "gone".to_owned(),
    });
    world.tell.send(vec![Heard::lost(gone)]).await.unwrap();
    intruder.execute_batch("ROLLBACK").unwrap();
    closing.await.unwrap();
}

#[tokio::test]
async fn whoever_asks_while_a_turns_end_can_not_be_written_is_told_so() {
    let world = World::new().await;
    let mut feed = world.sessions.watch();
    let intruder = world.intruder();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let end = says("result", Meaning::TurnEnded(TurnEnd::Success), 10);
    world.tell.send(vec![end]).await.unwrap();
    let stopped = world.sessions.stop(world.session).await;
    assert!(matches!(stopped, Err(CommandError::Store(_))), "{stopped:?}");
    let told = feed.next().await.unwrap().unwrap();
    assert!(
        matches!(told, Notice::HeldUp { .. }),
        "so is who watches: {told:?}"
    );
    intruder.execute_batch("ROLLBACK").unwrap();
    loop {
        let notice = feed.next().await.unwrap().unwrap();
        if matches!(&notice, Notice::Event(event) if text(event) == "completed") {
            break;
        }
    }
    world.sessions.stop(world.session).await.unwrap();
}

#[tokio::test]
async fn a_turn_is_interrupted_though_the_wish_can_not_be_written() {
    let mut world = World::new().await;
    let mut feed = world.sessions.watch();
    let intruder = world.intruder();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // It fills the disk, say.
    let words = says("more and more", Meaning::Nothing, 10);
    world.tell.send(vec![words]).await.unwrap();
    assert_eq!(
        text(match &feed.next().await.unwrap().unwrap() {
            Notice::Event(event) => event,
            other => panic!("{other:?}"),
        }),
        r#"{"text":"more and more"}"#
    );
    let stopped = world.sessions.stop(world.session).await;
    assert!(matches!(stopped, Err(CommandError::Store(_))), "{stopped:?}");
    assert_eq!(world.told.recv().await, Some(AgentCommand::Interrupt));
    let told = feed.next().await.unwrap().unwrap();
    assert!(
        matches!(told, Notice::HeldUp { .. }),
        "who watches is told: {told:?}"
    );
}

#[tokio::test]
async fn a_session_that_can_not_be_deleted_keeps_its_agent() {
    let mut world = World::new().await;
    let intruder = world.intruder();
    intruder
        .execute_batch("CREATE TRIGGER kept BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'kept'); END")
        .unwrap();
    assert!(world.sessions.delete(world.session).await.is_err());
    let allow = Answer::Allow {
        input: None,
        permissions: None,
    };
    let decision = DecisionRef::ToolUse("t2".to_owned());
    world
        .sessions
        .answer(world.session, decision, allow)
        .await
        .unwrap();
    let heard = world.told.recv().await;
    assert!(matches!(heard, Some(AgentCommand::Answer { .. })), "{heard:?}");

    intruder.execute_batch("DROP TRIGGER kept").unwrap();
    world.sessions.delete(world.session).await.unwrap();
    assert_eq!(world.told.recv().await, None);
}

/// An earlier server may have shown it, under the numbers that come next.
#[tokio::test]
async fn what_people_decide_comes_after_what_was_said_without_a_server() {
    let mut world = World::attaching().await;
    let mut answering = Box::pin(world.allow());
    // Whatever is ready is done; then it waits.
    for _ in 0..100 {
        let waits = poll_fn(|context| Poll::Ready(answering.as_mut().poll(context).is_pending())).await;
        assert!(waits, "more may have been said");
        tokio::task::yield_now().await;
    }
    let attached = Heard::lost(AgentEvent::Attached { last_input: 1 });
    world.tell.send(vec![attached]).await.unwrap();
    let meanwhile = says("meanwhile", Meaning::Nothing, 10);
    world.tell.send(vec![meanwhile]).await.unwrap();
    world
        .tell
        .send(vec![Heard::lost(AgentEvent::CaughtUp)])
        .await
        .unwrap();
    answering.await;
    let events = world.sessions.replay(world.session, 2, 10).await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [3, 4]);
    assert!(matches!(events[0].body, EventBody::Message { .. }), "{events:?}");
    let told = world.told.recv().await;
    assert!(
        matches!(told, Some(AgentCommand::Answer { number: 4, .. })),
        "{told:?}"
    );
}

#[tokio::test]
async fn however_many_delete_a_session_it_is_deleted() {
    let world = World::new().await;
    let mut deleting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let sessions = world.sessions.clone();
        deleting.spawn(async move { sessions.delete(world.session).await });
    }
    while let Some(outcome) = deleting.join_next().await {
        outcome.unwrap().unwrap();
    }
}

/// As another node would: it takes the session over while this one believes that it owns it.
#[tokio::test]
async fn an_owner_that_was_overtaken_ends_its_agent_and_says_so() {
    let mut world = World::new().await;
    let mut feed = world.sessions.watch();
    let other = open(world.folder.path());
    let (_, stored) = other.acquire(world.session).await.unwrap().unwrap();
    let end = says("result", Meaning::TurnEnded(TurnEnd::Success), 10);
    world.tell.send(vec![end]).await.unwrap();
    let told = feed.next().await.unwrap().unwrap();
    assert!(
        matches!(&told, Notice::HeldUp { reason, .. } if reason.contains("taken over")),
        "{told:?}"
    );
    assert_eq!(world.told.recv().await, None, "its agent is let go of");
    let unchanged = other.load(world.session).await.unwrap().unwrap();
    assert_eq!(unchanged, stored, "it has written nothing");
}
