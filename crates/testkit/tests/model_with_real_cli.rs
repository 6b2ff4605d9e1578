//! The scripted model as the model of the real CLI.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value, json};
use support::{Cli, Place};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{AnsweredBy, ModelServer, Part, Reply, Script, Usage};

struct Scene {
    place: Place,
    model: ModelServer,
    version: Claude,
}

impl Scene {
    async fn new(version: Claude, script: Script) -> Self {
        Self {
            place: Place::new(),
            model: ModelServer::start(script).await.unwrap(),
            version,
        }
    }

    fn cli(&self, more_arguments: &[&str]) -> Cli {
        let program = self.version.executable().unwrap_or_else(|e| panic!("{e}"));
        Cli::spawn(&program, &self.place, self.model.env(), more_arguments)
    }

    fn answers(&self) -> Vec<AnsweredBy> {
        let requests = self.model.conversation_requests();
        requests.iter().map(|r| r.answered_by).collect()
    }
}

fn rule(rule: usize, reply: usize) -> AnsweredBy {
    AnsweredBy::Rule { rule, reply }
}

#[tokio::test]
async fn text_and_thinking_stream_in_deltas_and_usage_adds_up() {
    for version in Claude::ALL {
        let script = Script::new().on(
            "say hello",
            [
                Reply::thinking("The user wants a greeting. Which language? English will do.")
                    .and_text("Hello, **world**, this comes in pieces.")
                    .usage(Usage {
                        input_tokens: 321,
                        output_tokens: 45,
                        cache_read_input_tokens: 1000,
                        cache_creation_input_tokens: 0,
                    }),
            ],
        );
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("please say hello").await;
        let result = cli.result().await;

        assert_eq!(result["subtype"], "success", "{version:?}");
        assert_eq!(result["result"], "Hello, **world**, this comes in pieces.");
        assert_eq!(result["usage"]["input_tokens"], 321);
        assert_eq!(result["usage"]["output_tokens"], 45);
        assert_eq!(result["usage"]["cache_read_input_tokens"], 1000);
        assert_eq!(cli.streamed("text"), "Hello, **world**, this comes in pieces.");
        assert!(
            cli.streamed("thinking").starts_with("The user wants a"),
            "{version:?}"
        );
        let deltas = cli
            .lines_of_type("stream_event")
            .iter()
            .filter(|line| line["event"]["delta"]["type"] == "text_delta")
            .count();
        assert!(deltas > 3, "{version:?} streamed {deltas} deltas");
        assert_eq!(scene.answers(), [rule(0, 0)]);
        assert!(cli.finish().await.success());
    }
}

#[tokio::test]
async fn tools_really_run_and_their_results_reach_the_next_reply() {
    for version in Claude::ALL {
        let script = Script::new().on(
            "make two files",
            [
                Reply::text("I'll make them.")
                    .and_tool_with_id(
                        "toolu_one",
                        "Bash",
                        json!({"command": "echo first > one.txt && echo made-one", "description": "Make one"}),
                    )
                    .and_tool_with_id(
                        "toolu_two",
                        "Bash",
                        json!({"command": "echo second > two.txt && echo made-two", "description": "Make two"}),
                    ),
                Reply::text("The tools said: {{tool_result}}"),
            ],
        );
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("make two files").await;

        let mut asked = Vec::new();
        for _ in 0..2 {
            let request = cli.permission_request().await;
            asked.push(request["request"]["tool_use_id"].clone());
            if request["request"]["tool_use_id"] == "toolu_one" {
                cli.allow(&request).await;
            } else {
                cli.answer(&request, json!({"behavior": "deny", "message": "Not that one."}))
                    .await;
            }
        }
        let result = cli.result().await;
        asked.sort_by_key(Value::to_string);
        assert_eq!(asked, ["toolu_one", "toolu_two"]);
        let said = result["result"].as_str().unwrap();
        assert!(said.contains("made-one"), "{version:?}: {said}");
        assert!(said.contains("Not that one."), "{version:?}: {said}");
        assert!(scene.place.cwd().join("one.txt").exists());
        assert!(!scene.place.cwd().join("two.txt").exists());
        assert_eq!(scene.answers(), [rule(0, 0), rule(0, 1)]);
        assert!(cli.finish().await.success());
    }
}

#[tokio::test]
async fn the_cli_retries_after_errors_and_a_cut_stream() {
    // Mostly waiting for the CLI's own pauses, so both versions run at once.
    tokio::join!(retries(Claude::V2_1_325), retries(Claude::V2_1_113));
}

async fn retries(version: Claude) {
    let script = Script::new()
        .on(
            "be busy",
            [
                Reply::rate_limited(1),
                Reply::error(529),
                Reply::error(500),
                Reply::text("Here I am."),
            ],
        )
        .on(
            "break off",
            [Reply::text("Half an ans").cut(), Reply::text("A whole answer.")],
        );
    let scene = Scene::new(version, script).await;
    let mut cli = scene.cli(&[]);
    cli.prompt("be busy").await;
    let result = cli.result().await;
    assert_eq!(result["result"], "Here I am.", "{version:?}");
    assert_eq!(scene.answers(), [rule(0, 0), rule(0, 1), rule(0, 2), rule(0, 3)]);

    cli.prompt("break off").await;
    let result = cli.result().await;
    assert_eq!(scene.answers()[4..], [rule(1, 0), rule(1, 1)]);
    assert_eq!(result["result"], "A whole answer.", "{version:?}");
    assert!(cli.streamed("text").contains("Half an ans"), "{version:?}");
    assert!(cli.finish().await.success());
}

#[tokio::test]
async fn an_error_that_no_retry_cures_ends_the_turn() {
    for version in Claude::ALL {
        // 2.1.325 repeats a refused request once without its newest betas, so the refusal has to last.
        let script = Script::new().otherwise(Reply::error(400));
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("be wrong").await;
        let result = cli.result().await;
        assert_eq!(result["is_error"], true, "{version:?}: {result}");
        let said = result["result"].as_str().unwrap();
        assert!(said.contains("scripted error 400"), "{version:?}: {said}");
    }
}

#[tokio::test]
async fn a_gate_holds_the_stream_in_mid_sentence_until_the_test_opens_it() {
    for version in Claude::ALL {
        let script = Script::new().on(
            "take your time",
            [Reply::text("Thinking about it… ").gate("go").and_text("done.")],
        );
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("take your time").await;
        let mut text = String::new();
        cli.until(|line| {
            text.push_str(line["event"]["delta"]["text"].as_str().unwrap_or_default());
            text == "Thinking about it… "
        })
        .await;
        scene.model.gate("go").reached().await;
        assert!(cli.lines_of_type("assistant").is_empty(), "{version:?}");
        scene.model.gate("go").open();
        let result = cli.result().await;
        assert_eq!(result["result"], "Thinking about it… done.");
    }
}

#[tokio::test]
async fn an_answer_that_never_starts_can_be_interrupted_and_the_next_prompt_has_its_own_script() {
    for version in Claude::ALL {
        let script = Script::new()
            .on("never answer", [Reply::default().gate("never").and_text("x")])
            .then(Reply::text("The queue is still whole. I know: {{prompts}}"));
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("never answer").await;
        scene.model.gate("never").reached().await;
        let answer = cli.control("stop", json!({"subtype": "interrupt"})).await;
        assert_eq!(answer["subtype"], "success");
        // The result may have been written before the answer.
        if cli.lines_of_type("result").is_empty() {
            cli.result().await;
        }
        assert_eq!(
            cli.lines_of_type("result")[0]["subtype"],
            "error_during_execution",
            "{version:?}"
        );

        cli.prompt("something no rule knows").await;
        let result = cli.result().await;
        assert_eq!(
            result["result"],
            "The queue is still whole. I know: never answer | something no rule knows"
        );
        assert_eq!(scene.answers(), [rule(0, 0), AnsweredBy::Queue { reply: 0 }]);
    }
}

#[tokio::test]
async fn a_resumed_session_sends_what_was_said_before() {
    for version in Claude::ALL {
        let script = Script::new()
            .on("my name is Ada", [Reply::text("Noted.")])
            .on("what did I say", [Reply::text("You said: {{prompts}}")]);
        let scene = Scene::new(version, script).await;
        let id = "6b1e3c1a-4b0f-4a53-9d4f-0c7f5d8f0a11";
        let mut cli = scene.cli(&["--session-id", id]);
        cli.prompt("my name is Ada").await;
        cli.result().await;
        assert!(cli.finish().await.success());

        let mut cli = scene.cli(&["--resume", id]);
        cli.prompt("what did I say").await;
        let result = cli.result().await;
        assert_eq!(
            result["result"], "You said: my name is Ada | what did I say",
            "{version:?}"
        );
        assert_eq!(result["session_id"], id);
    }
}

#[tokio::test]
async fn side_requests_use_up_nothing_of_the_script() {
    for version in Claude::ALL {
        let script = Script::new()
            .on("paint the shed", [Reply::text("Painted.")])
            .then(Reply::text("never asked for"));
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        let title = cli
            .control(
                "title",
                json!({"subtype": "generate_session_title", "description": "paint the shed", "persist": false}),
            )
            .await;
        assert_eq!(title["response"]["title"], "Scripted", "{version:?}");
        cli.prompt("paint the shed").await;
        let result = cli.result().await;
        assert_eq!(result["result"], "Painted.");
        assert_eq!(scene.answers(), [rule(0, 0)]);
        let sides = scene.model.requests().len() - scene.model.conversation_requests().len();
        assert!(sides > 0, "{version:?} asked for the title at the model");
    }
}

#[tokio::test]
async fn a_conversation_without_tools_is_scripted_like_any_other() {
    for version in Claude::ALL {
        let script = Script::new().on("no tools", [Reply::text("None needed.")]);
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&["--tools="]);
        cli.prompt("no tools").await;
        assert_eq!(cli.result().await["result"], "None needed.", "{version:?}");
    }
}

#[tokio::test]
async fn an_error_event_in_the_stream_is_retried() {
    for version in Claude::ALL {
        let overloaded = Part::StreamError {
            error_type: "overloaded_error".to_owned(),
            message: "Overloaded".to_owned(),
        };
        let script = Script::new().on(
            "stumble",
            [Reply::default().and(overloaded), Reply::text("Up again.")],
        );
        let scene = Scene::new(version, script).await;
        let mut cli = scene.cli(&[]);
        cli.prompt("stumble").await;
        assert_eq!(cli.result().await["result"], "Up again.", "{version:?}");
        assert_eq!(scene.answers(), [rule(0, 0), rule(0, 1)]);
    }
}
