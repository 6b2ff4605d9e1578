//! What clients see, and what commands do, while the store or an agent keeps the session waiting.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tiller_core::backend::{AgentCommand, AgentEvent, Exit, Meaning, PositionedEvent, TurnEnd};
use tiller_core::{
    CommandError, DecisionAnswer, DecisionRef, Event, EventBody, Notice, RawJson, SessionId, SessionRecord,
    SessionStatus, Sessions, Store, StoreError, TitlePolicy, TurnRecord,
};
use tiller_store_suite::fixtures::{append, prompt, record, request};
use tiller_store_suite::{HeldWrites, MemoryStore};
use tokio::sync::mpsc;

use super::agent::Found;
use super::paths;

fn says(text: &str, meaning: Meaning, position: u64) -> PositionedEvent {
    PositionedEvent {
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
    /// Holds the session's working directory.
    _folder: tempfile::TempDir,
    store: MemoryStore,
    sessions: Sessions,
    session: SessionId,
    tell: mpsc::Sender<Vec<PositionedEvent>>,
    /// What the agent is told; the end of it ends the agent.
    told: mpsc::Receiver<AgentCommand>,
}

impl World {
    /// It is known what the agent has said so far.
    async fn new() -> Self {
        let world = Self::attaching().await;
        let found = [AgentEvent::Attached { last_input: 1 }, AgentEvent::CaughtUp];
        world
            .tell
            .send(found.map(PositionedEvent::without_position).into())
            .await
            .unwrap();
        world
    }

    async fn attaching() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = MemoryStore::default();
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
        let paths = paths(folder.path());
        let backend = Arc::new(Found::default());
        let sessions = Sessions::open(
            Arc::new(store.clone()),
            backend.clone(),
            paths,
            TitlePolicy::Prompt,
        )
        .await
        .unwrap();
        let (tell, told) = (
            backend.tell.lock().unwrap().take().unwrap(),
            backend.told.lock().unwrap().take().unwrap(),
        );
        Self {
            session: running.id,
            _folder: folder,
            store,
            sessions,
            tell,
            told,
        }
    }

    /// Answers what the agent has asked.
    fn allow(&self) -> impl Future<Output = ()> + use<> {
        let allow = DecisionAnswer::Allow {
            input: None,
            permissions: None,
        };
        let (sessions, session) = (self.sessions.clone(), self.session);
        async move {
            let decision = DecisionRef::ToolUse("t2".to_owned());
            sessions.answer(session, decision, allow).await.unwrap();
        }
    }

    /// Writes wait, as for a slow disk.
    async fn hold_writes(&self) -> HeldWrites {
        self.store.hold_writes().await.unwrap()
    }

    /// Writes fail, as on a full disk.
    fn refuse_writes(&self) {
        self.store.refuse_writes(Some(StoreError::Full));
    }

    fn take_writes(&self) {
        self.store.refuse_writes(None);
    }
}

#[tokio::test]
async fn the_last_messages_of_a_turn_do_not_wait_for_its_end_to_be_written() {
    let world = World::new().await;
    let mut feed = world.sessions.watch();
    let mut shown = async || loop {
        if let Notice::Event(event) = feed.next().await.unwrap().unwrap() {
            return event;
        }
    };
    let held = world.hold_writes().await;
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
    // A client that asks now does not see an end that a crash could take back.
    let (seen, _) = world.sessions.find(world.session).await.unwrap();
    assert_eq!((seen.status, seen.last_seq), (SessionStatus::Running, last.seq));

    drop(held);
    assert_eq!(text(&shown().await), r#"{"text":"result"}"#);
    assert_eq!(text(&shown().await), "completed");
}

#[tokio::test]
async fn an_agent_is_ended_with_the_server_though_nothing_can_be_written() {
    let mut world = World::new().await;
    let held = world.hold_writes().await;
    let sessions = world.sessions.clone();
    let closing = tokio::spawn(async move { sessions.close().await });
    assert_eq!(world.told.recv().await, None, "its input is closed");
    let gone = AgentEvent::Exited(Exit::Ended {
        message: "gone".to_owned(),
    });
    world
        .tell
        .send(vec![PositionedEvent::without_position(gone)])
        .await
        .unwrap();
    drop(held);
    closing.await.unwrap();
}

#[tokio::test]
async fn a_command_fails_while_the_end_of_a_turn_can_not_be_written() {
    let world = World::new().await;
    let mut feed = world.sessions.watch();
    world.refuse_writes();
    let end = says("result", Meaning::TurnEnded(TurnEnd::Success), 10);
    world.tell.send(vec![end]).await.unwrap();
    let stopped = world.sessions.stop(world.session).await;
    assert!(matches!(stopped, Err(CommandError::Store(_))), "{stopped:?}");
    let told = feed.next().await.unwrap().unwrap();
    assert!(
        matches!(told, Notice::HeldUp { .. }),
        "watchers are told, too: {told:?}"
    );
    world.take_writes();
    loop {
        let notice = feed.next().await.unwrap().unwrap();
        if matches!(&notice, Notice::Event(event) if text(event) == "completed") {
            break;
        }
    }
    world.sessions.stop(world.session).await.unwrap();
}

#[tokio::test]
async fn a_turn_is_interrupted_though_the_stop_can_not_be_written() {
    let mut world = World::new().await;
    let mut feed = world.sessions.watch();
    world.refuse_writes();
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
        "watchers are told: {told:?}"
    );

    // Once there is room again, it ends as a turn that the user stopped, and not as one that failed.
    world.take_writes();
    let message = "interrupted".to_owned();
    let failed = Meaning::TurnEnded(TurnEnd::Failure { message });
    world.tell.send(vec![says("result", failed, 20)]).await.unwrap();
    let status = loop {
        if let Notice::Event(event) = feed.next().await.unwrap().unwrap()
            && let EventBody::Status(change) = &event.body
        {
            break change.status;
        }
    };
    assert_eq!(status, SessionStatus::Idle);
}

#[tokio::test]
async fn a_session_that_can_not_be_deleted_keeps_its_agent() {
    let mut world = World::new().await;
    world.refuse_writes();
    assert!(world.sessions.delete(world.session).await.is_err());
    world.take_writes();
    let allow = DecisionAnswer::Allow {
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

    world.sessions.delete(world.session).await.unwrap();
    assert_eq!(world.told.recv().await, None);
}

/// An earlier server may have shown those messages, under the next numbers.
#[tokio::test]
async fn decisions_come_after_messages_that_were_sent_without_a_server() {
    let mut world = World::attaching().await;
    let mut answering = Box::pin(world.allow());
    // Whatever is ready is done; then it waits.
    for _ in 0..100 {
        let waits = poll_fn(|context| Poll::Ready(answering.as_mut().poll(context).is_pending())).await;
        assert!(waits, "more may have been said");
        tokio::task::yield_now().await;
    }
    let attached = PositionedEvent::without_position(AgentEvent::Attached { last_input: 1 });
    world.tell.send(vec![attached]).await.unwrap();
    let meanwhile = says("meanwhile", Meaning::Nothing, 10);
    world.tell.send(vec![meanwhile]).await.unwrap();
    world
        .tell
        .send(vec![PositionedEvent::without_position(AgentEvent::CaughtUp)])
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
async fn a_session_can_be_deleted_by_several_at_once() {
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
    let other = world.store.clone();
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
