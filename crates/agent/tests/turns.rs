//! Each caller gets its own answer: with the real CLI in every version, and, in any order of events, with the scripted one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::json;
use support::{PATIENCE, Stage};
use tiller_agent::message::Kind;
use tiller_agent::{Body, Client, Error, Options, Turn, TurnResult, query_stream};
use tiller_testkit::installed::{self, Claude};
use tiller_testkit::model::{Reply, Script};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("nothing waits for ever")
}

fn said(result: Result<TurnResult, Error>) -> String {
    result.unwrap().result.unwrap_or_default()
}

fn gated() -> Script {
    Script::new()
        .on("slow", [Reply::default().gate("go").and_text("The slow answer.")])
        .otherwise(Reply::text("Answer to {{prompt}}"))
}

#[tokio::test]
async fn an_answer_that_was_given_up_never_reaches_the_next_caller() {
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, gated()).await;
        let client = within(Client::connect(stage.options())).await.unwrap();

        // A timeout, then the next question.
        let gate = stage.model.gate("go");
        let mut slow = Box::pin(client.ask("slow"));
        tokio::select! {
            answer = &mut slow => panic!("{answer:?}"),
            () = gate.reached() => {}
        }
        drop(slow);
        let (second, third) = (
            client.turn("two").await.unwrap(),
            client.turn("three").await.unwrap(),
        );
        stage.model.gate("go").open();
        let [mut second, mut third] = [second, third];
        assert_eq!(
            said(within(third.finish()).await),
            "Answer to three",
            "{claude:?}"
        );
        assert_eq!(said(within(second.finish()).await), "Answer to two", "{claude:?}");
        assert_eq!(
            said(within(client.ask("four")).await),
            "Answer to four",
            "{claude:?}"
        );
        within(client.close()).await;
    }
}

#[tokio::test]
async fn an_interrupt_stops_the_turn_that_runs_and_no_other() {
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, gated()).await;
        let client = within(Client::connect(stage.options())).await.unwrap();
        let interrupter = client.interrupter();
        within(interrupter.interrupt()).await.unwrap();

        let mut slow = client.turn("slow").await.unwrap();
        let mut waiting = client.turn("two").await.unwrap();
        within(stage.model.gate("go").reached()).await;
        within(interrupter.interrupt()).await.unwrap();
        let stopped = within(slow.finish()).await.unwrap();
        assert_eq!(stopped.subtype, "error_during_execution", "{claude:?}");
        assert_eq!(
            said(within(waiting.finish()).await),
            "Answer to two",
            "{claude:?}"
        );

        // Before the CLI has even read the prompt.
        let mut early = client.turn("slow").await.unwrap();
        let (interrupted, mut next) = (interrupter.interrupt(), client.turn("three").await.unwrap());
        within(interrupted).await.unwrap();
        stage.model.gate("go").open();
        let early = within(early.finish()).await.unwrap();
        assert!(
            early.subtype == "error_during_execution" || early.result.as_deref() == Some("The slow answer."),
            "{claude:?}: {early:?}"
        );
        assert_eq!(said(within(next.finish()).await), "Answer to three", "{claude:?}");
        within(client.close()).await;
    }
}

#[tokio::test]
async fn queries_are_answered_one_after_another() {
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, gated()).await;
        let mut client = within(Client::connect(stage.options())).await.unwrap();
        assert!(matches!(within(client.finish_turn()).await, Err(Error::NoTurn)));
        assert!(within(client.receive_turn()).await.is_none());

        client.query("one").await.unwrap();
        client.query("two").await.unwrap();
        client.query("three").await.unwrap();
        let mut results = Vec::new();
        while let Some(message) = within(client.receive_turn()).await {
            results.extend(message.unwrap().result());
        }
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].result.as_deref(), Some("Answer to one"), "{claude:?}");
        // Reading stops at the result, and goes on with the next turn all the same.
        loop {
            let message = within(client.receive()).await.unwrap().unwrap();
            if let Some(result) = message.result() {
                assert_eq!(result.result.as_deref(), Some("Answer to two"), "{claude:?}");
                break;
            }
        }
        assert_eq!(client.open_turns(), 1);
        assert_eq!(
            said(within(client.finish_turn()).await),
            "Answer to three",
            "{claude:?}"
        );
        assert_eq!(
            said(within(client.ask("four")).await),
            "Answer to four",
            "{claude:?}"
        );
        assert!(matches!(within(client.finish_turn()).await, Err(Error::NoTurn)));
        within(client.close()).await;
    }
}

#[tokio::test]
async fn tasks_share_an_agent() {
    let stage = Stage::new(Claude::V2_1_325, gated()).await;
    let client = within(Client::connect(stage.options())).await.unwrap();
    let asking = (0..6).map(|number| {
        let handle = client.handle();
        tokio::spawn(async move { (number, handle.ask(format!("number {number}")).await) })
    });
    for asked in asking.collect::<Vec<_>>() {
        let (number, answer) = within(asked).await.unwrap();
        assert_eq!(said(answer), format!("Answer to number {number}"));
    }
    // A prompt that waits and is dropped is never sent.
    let mut slow = client.turn("slow").await.unwrap();
    drop(client.turn("never sent").await.unwrap());
    stage.model.gate("go").open();
    within(slow.finish()).await.unwrap();
    assert_eq!(said(within(client.ask("last")).await), "Answer to last");
    let requests = format!("{:?}", stage.model.conversation_requests());
    assert!(!requests.contains("never sent"), "{requests}");

    // Handles and turns end with the client.
    let (handle, mut open) = (client.handle(), client.turn("another").await.unwrap());
    drop(client);
    assert!(matches!(
        within(handle.ask("anyone?")).await,
        Err(Error::Closed | Error::Exited(_))
    ));
    let mut last = None;
    while let Some(message) = within(open.next()).await {
        last = Some(message);
    }
    assert!(last.is_some(), "a turn ends with a result or an error");
}

/// The CLI starts a turn of its own when a background task has ended. Only newer versions say so in its result.
#[tokio::test]
async fn a_turn_of_the_clis_own_answers_nobody() {
    let background = json!({"command": "cat go", "description": "Wait", "run_in_background": true});
    let script = Script::new()
        .on(
            "begin",
            [Reply::tool("Bash", background), Reply::text("It runs.")],
        )
        .on("task-notification", [Reply::text("I see.")])
        .otherwise(Reply::text("Answer to {{prompt}}"));
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, script.clone()).await;
        let fifo = stage.cwd().join("go");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let options = stage.options().allowed_tools(["Bash"]);
        let mut client = within(Client::connect(options)).await.unwrap();
        assert_eq!(said(within(client.ask("begin")).await), "It runs.", "{claude:?}");
        tokio::task::spawn_blocking(move || std::fs::write(fifo, "x"))
            .await
            .unwrap()
            .unwrap();
        loop {
            let message = within(client.receive()).await.unwrap().unwrap();
            if message.subtype() == Some("task_notification") {
                break;
            }
        }
        // Its own turn begins about now.
        for number in 0..5 {
            let answer = said(within(client.ask(format!("question {number}"))).await);
            assert_eq!(answer, format!("Answer to question {number}"), "{claude:?}");
        }
        within(client.close()).await;
    }
}

#[tokio::test]
async fn a_stream_of_prompts_is_answered_in_order() {
    for claude in Claude::ALL {
        let stage = Stage::new(claude, gated()).await;
        let prompts = futures_util::stream::iter(["one", "two", "three"]);
        let answers = query_stream(prompts, stage.options())
            .filter_map(|message| async move { message.unwrap().result().and_then(|result| result.result) });
        let answers: Vec<String> = within(answers.collect()).await;
        assert_eq!(
            answers,
            ["Answer to one", "Answer to two", "Answer to three"],
            "{claude:?}"
        );
    }
}

#[tokio::test]
async fn an_agent_that_dies_fails_every_turn() {
    let folder = tempfile::tempdir().unwrap();
    let script = json!({ "turns": [[{"do": "text", "text": "about to di"}, {"do": "exit", "code": 3}]] });
    let client = within(Client::connect(scripted(folder.path(), &script)))
        .await
        .unwrap();
    let turns = [
        client.turn("one").await.unwrap(),
        client.turn("two").await.unwrap(),
    ];
    for mut turn in turns {
        let error = within(turn.finish()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Exited(exit) if exit.code == Some(3)),
            "{error}"
        );
        assert!(within(turn.next()).await.is_none());
    }
    assert!(matches!(within(client.ask("three")).await, Err(Error::Exited(_))));
    assert!(matches!(within(client.interrupt()).await, Err(Error::Exited(_))));
}

fn scripted(folder: &Path, script: &serde_json::Value) -> Options {
    let path = folder.join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    let executable = installed::scripted_claude().unwrap_or_else(|missing| panic!("{missing}"));
    Options::new()
        .executable(executable)
        .cwd(folder)
        .claude_home(folder.join("home"))
        .request_timeout(PATIENCE)
        .env("SCRIPTED_CLI", path)
}

/// One thing that callers do.
#[derive(Debug, Clone)]
enum Step {
    /// Asks and waits.
    Ask,
    /// Asks and gives up after some milliseconds.
    AskFor(u64),
    /// Asks through the client's own queue, and reads it later.
    Query,
    /// Begins a turn, and reads it later.
    Turn,
    /// Drops the oldest turn that is not read.
    Drop,
    /// Reads the newest turn that is not read.
    FinishNewest,
    /// Reads the oldest query.
    FinishQuery,
    Interrupt,
    /// Interrupts and does not wait for the answer.
    InterruptFor(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Ask),
        4 => (0u64..30).prop_map(Step::AskFor),
        3 => Just(Step::Query),
        3 => Just(Step::Turn),
        2 => Just(Step::Drop),
        2 => Just(Step::FinishNewest),
        2 => Just(Step::FinishQuery),
        2 => Just(Step::Interrupt),
        1 => (0u64..3).prop_map(Step::InterruptFor),
    ]
}

/// The caller's own answer, or the news that it was interrupted.
fn check(number: usize, result: Result<TurnResult, Error>) {
    let result = result.unwrap();
    if result.subtype != "error_during_execution" {
        assert_eq!(
            result.result.as_deref(),
            Some(&*format!("answer to question {number}."))
        );
    }
}

async fn play(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    // Some turns are quick and some take a while; chunks give an interrupt something to hit.
    let slow = json!([{"do": "text", "text": "answer to {{prompt}}", "chunk": 2, "pause_ms": 1}]);
    let quick = json!([{"do": "text", "text": "answer to {{prompt}}"}]);
    let script = json!({ "rules": [
        {"contains": "0.", "steps": quick}, {"contains": "3.", "steps": quick}, {"contains": "question", "steps": slow},
    ]});
    let mut client = Client::connect(scripted(folder.path(), &script)).await.unwrap();
    let mut turns: Vec<(usize, Turn)> = Vec::new();
    let mut queries = std::collections::VecDeque::new();
    for (number, step) in steps.into_iter().enumerate() {
        let prompt = format!("question {number}.");
        match step {
            Step::Ask => check(number, client.ask(prompt).await),
            Step::AskFor(ms) => {
                if let Ok(result) = tokio::time::timeout(Duration::from_millis(ms), client.ask(prompt)).await
                {
                    check(number, result);
                }
            }
            Step::Query => {
                client.query(prompt).await.unwrap();
                queries.push_back(number);
            }
            Step::Turn => turns.push((number, client.turn(prompt).await.unwrap())),
            Step::Drop => drop(turns.drain(..turns.len().min(1))),
            Step::FinishNewest => {
                if let Some((number, mut turn)) = turns.pop() {
                    check(number, turn.finish().await);
                }
            }
            Step::FinishQuery => match queries.pop_front() {
                Some(number) => check(number, client.finish_turn().await),
                None => assert!(matches!(client.finish_turn().await, Err(Error::NoTurn))),
            },
            Step::Interrupt => client.interrupt().await.unwrap(),
            Step::InterruptFor(ms) => {
                drop(tokio::time::timeout(Duration::from_millis(ms), client.interrupt()).await);
            }
        }
    }
    for (number, mut turn) in turns.into_iter().rev() {
        check(number, turn.finish().await);
    }
    for number in queries {
        check(number, client.finish_turn().await);
    }
    check(999, client.ask("question 999.").await);
    client.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_gives_each_caller_its_own_answer(steps in proptest::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(within(play(steps)));
    }
}

/// Messages of one turn only, whose last is its result.
#[tokio::test]
async fn a_turn_is_a_stream_of_its_own_messages() {
    for claude in Claude::ALL {
        let stage = Stage::new(claude, gated()).await;
        let mut client = within(Client::connect(stage.options())).await.unwrap();
        let turns = [
            client.turn("one").await.unwrap(),
            client.turn("two").await.unwrap(),
        ];
        for (turn, name) in turns.into_iter().zip(["one", "two"]) {
            let messages: Vec<_> = within(turn.map(Result::unwrap).collect()).await;
            let texts: Vec<String> = messages
                .iter()
                .filter_map(|message| match message.body() {
                    Body::Assistant(assistant) => Some(assistant.text()),
                    _ => None,
                })
                .collect();
            assert_eq!(texts, [format!("Answer to {name}")]);
            assert_eq!(
                messages.last().map(tiller_agent::Message::kind),
                Some(Kind::Result)
            );
            let kinds = messages.iter().filter(|message| message.kind() == Kind::User);
            assert_eq!(kinds.count(), 0, "prompts come back to those who want them");
        }
        // The client is a stream as well: what it was asked with `query`.
        client.query("three").await.unwrap();
        let result = within(async {
            while let Some(message) = client.next().await {
                if let Some(result) = message.unwrap().result() {
                    return result;
                }
            }
            panic!("no result")
        });
        assert_eq!(result.await.result.as_deref(), Some("Answer to three"));
    }
}
