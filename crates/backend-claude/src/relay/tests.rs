use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{sink, stream};
use serde_json::Value;
use tiller_agent::Options;
use tiller_agent::link::LinkSettings;
use tiller_process::{Ended, Frame, Line, Located, Process, Wire};

use super::*;
use tiller_core::backend::Hooks as _;

use crate::inquiry::{LastOffers, initialize};
use crate::running::{RunPlace, Running};

/// Lives as long as the test.
struct Immortal;

impl Process for Immortal {
    fn wait(&mut self) -> BoxFuture<'_, Ended> {
        Box::pin(std::future::pending())
    }
    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn kill(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn leftovers(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// A relay to an agent that the test plays.
struct Played {
    says: mpsc::Sender<Vec<Located>>,
    hears: mpsc::Receiver<Line>,
    events: mpsc::Receiver<Vec<PositionedEvent>>,
    commands: mpsc::Sender<AgentCommand>,
    running: Running,
    _place: RunPlace,
}

impl Played {
    fn start(hook_time: Duration) -> Self {
        Self::start_with(hook_time, |_| None)
    }

    fn start_with(hook_time: Duration, greet: impl FnOnce(&Link) -> Option<Exchange>) -> Self {
        let (says, said) = mpsc::channel::<Vec<Located>>(8);
        let (told, hears) = mpsc::channel(8);
        let wire = Wire {
            incoming: Box::pin(stream::unfold(said, async |mut said| {
                let frames = said.recv().await?;
                Some((frames, said))
            })),
            outgoing: Box::pin(sink::unfold(told, async |told: mpsc::Sender<Line>, line| {
                told.send(line).await.map_err(std::io::Error::other)?;
                Ok(told)
            })),
            process: Box::new(Immortal),
        };
        let (link, inbox) = tiller_agent::link::connect_over(wire, LinkSettings::from(&Options::new()));
        let running = Running::default();
        let place = running.expect("run");
        place.connected(&link);
        let (outbox, events) = mpsc::channel(8);
        let (commands, mut inputs) = mpsc::channel(8);
        let relay = Relay {
            greeting: greet(&link),
            link,
            attached: false,
            catching_up: None,
            events: outbox,
            heard: Vec::new(),
            busy: true,
            run: None,
            position: None,
            hook_time,
            malformed: 0,
        };
        tokio::spawn(async move { relay.run(inbox, &mut inputs).await });
        Self {
            says,
            hears,
            events,
            commands,
            running,
            _place: place,
        }
    }

    fn answer_hook(&self, id: &str, output: &Value) {
        self.running
            .answer("run", id.to_owned(), RawJson::of(output).unwrap());
    }

    async fn say(&self, line: Value) {
        let frame = Frame::Line(Bytes::from(line.to_string()));
        self.says.send(vec![Located { frame, end: 0 }]).await.unwrap();
    }

    async fn call_back(&self, id: &str) {
        let input = json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash" });
        let request = json!({ "subtype": "hook_callback", "callback_id": "PreToolUse", "input": input });
        self.say(json!({ "type": "control_request", "request_id": id, "request": request }))
            .await;
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_slice(&self.hears.recv().await.expect("a line").json).unwrap()
    }

    async fn event(&mut self) -> AgentEvent {
        let mut heard = self.events.recv().await.expect("an event");
        assert_eq!(heard.len(), 1, "one at a time");
        heard.remove(0).event
    }
}

#[tokio::test]
async fn an_unanswered_hook_call_does_not_stop_the_agent() {
    let mut agent = Played::start(Duration::from_millis(20));
    agent.call_back("h1").await;
    let AgentEvent::Hook(call) = agent.event().await else {
        panic!("a callback")
    };
    assert_eq!(
        (call.agent_request.as_str(), call.event.as_str()),
        ("h1", "PreToolUse")
    );
    let answer = agent.hear().await;
    assert_eq!(
        (&answer["response"]["request_id"], &answer["response"]["response"]),
        (&json!("h1"), &json!({ "continue": true })),
        "it goes on without a decision"
    );
    let AgentEvent::Withdrew { agent_request } = agent.event().await else {
        panic!("everyone is told that it is over")
    };
    assert_eq!(agent_request, "h1");
    agent.say(json!({ "type": "system", "subtype": "status" })).await;
    assert!(matches!(agent.event().await, AgentEvent::Message { .. }));

    // A late answer is not passed on: the next line is the answer to the next call.
    agent.answer_hook("h1", &json!({ "continue": false }));
    agent.call_back("h2").await;
    assert!(matches!(agent.event().await, AgentEvent::Hook(_)));
    assert_eq!(agent.hear().await["response"]["request_id"], "h2");
}

fn prompt(words: &str) -> AgentCommand {
    AgentCommand::Prompt {
        uuid: words.to_owned(),
        words: words.to_owned(),
        images: Vec::new(),
        parent_tool_use_id: None,
        number: 1,
    }
}

#[tokio::test]
async fn the_agent_gets_everything_in_order() {
    let mut agent = Played::start(Duration::from_mins(1));
    for command in [
        AgentCommand::Configure(OptionChange::new(MODEL, "haiku")),
        AgentCommand::Configure(OptionChange::new(PERMISSION_MODE, "plan")),
        prompt("one"),
        AgentCommand::Interrupt,
        prompt("two"),
    ] {
        agent.commands.send(command).await.unwrap();
    }
    for expected in ["set_model", "set_permission_mode", "user", "interrupt", "user"] {
        let line = agent.hear().await;
        let heard = line["request"]["subtype"].as_str().or(line["type"].as_str());
        assert_eq!(heard, Some(expected), "{line}");
    }
}

#[tokio::test]
async fn the_session_learns_whether_the_agent_made_a_change() {
    let mut agent = Played::start(Duration::from_mins(1));
    for (subtype, done) in [("success", true), ("error", false)] {
        let change = OptionChange::new(PERMISSION_MODE, "plan");
        agent
            .commands
            .send(AgentCommand::Configure(change.clone()))
            .await
            .unwrap();
        let asked = agent.hear().await;
        let response =
            json!({ "subtype": subtype, "request_id": asked["request_id"], "error": "no", "response": {} });
        agent
            .say(json!({ "type": "control_response", "response": response }))
            .await;
        let heard = agent.events.recv().await.expect("an event");
        let AgentEvent::Configured {
            change: told,
            done: is_done,
        } = &heard[0].event
        else {
            panic!("{heard:?}")
        };
        assert_eq!((told, *is_done), (&change, done));
        assert_eq!(
            heard.len(),
            1 + usize::from(!done),
            "people are told why it is not"
        );
    }
}

#[tokio::test]
async fn the_agents_offers_are_known_before_its_init() {
    let offers = LastOffers::default();
    let mut agent = Played::start_with(Duration::from_mins(1), |link| {
        initialize(link, &[], Duration::ZERO, offers.clone(), None)
    });
    let asked = agent.hear().await;
    let models = json!({ "models": [{ "value": "haiku" }], "commands": [] });
    let response = json!({ "subtype": "success", "request_id": asked["request_id"], "response": models });
    // In one go, as a busy CLI writes.
    let lines = [
        json!({ "type": "control_response", "response": response }),
        json!({ "type": "system", "subtype": "init" }),
    ];
    let frames = lines.map(|line| Located {
        frame: Frame::Line(Bytes::from(line.to_string())),
        end: 0,
    });
    agent.says.send(frames.into()).await.unwrap();
    assert!(matches!(agent.event().await, AgentEvent::Message { .. }));
    assert_eq!(offers.get().expect("known").models, ["haiku"]);
}

#[tokio::test]
async fn an_answered_hook_call_is_not_answered_again() {
    // Enough to be in time on a busy machine.
    let mut agent = Played::start(Duration::from_secs(3));
    agent.call_back("h1").await;
    assert!(matches!(agent.event().await, AgentEvent::Hook(_)));
    let output = json!({ "decision": "block" });
    agent.answer_hook("h1", &output);
    assert_eq!(agent.hear().await["response"]["response"], output);
    // The second one times out after the first one.
    agent.call_back("h2").await;
    assert!(matches!(agent.event().await, AgentEvent::Hook(_)));
    assert_eq!(agent.hear().await["response"]["request_id"], "h2");
    let AgentEvent::Withdrew { agent_request } = agent.event().await else {
        panic!("the end of the second")
    };
    assert_eq!(agent_request, "h2");
}
