//! The demo agent and the real CLI share transcripts: each resumes what the other has written.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{Cli, Place};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{ModelServer, Reply, Script};

const SESSION: &str = "2f1d3b7e-8a0c-4c55-8f0e-6f5a0b9c4d21";

fn demo(place: &Place, session: &[&str]) -> Cli {
    let program = Path::new(env!("CARGO_BIN_EXE_scripted-claude"));
    let mut arguments = vec!["--demo-speed", "inf"];
    arguments.extend(session);
    Cli::spawn(program, place, Vec::new(), &arguments)
}

/// Denies everything that is asked, so that only the conversation matters.
async fn result_without_tools(cli: &mut Cli) -> Value {
    loop {
        let line = cli
            .until(|line| line["type"] == "result" || line["type"] == "control_request")
            .await;
        if line["type"] == "result" {
            return line;
        }
        cli.answer(&line, json!({"behavior": "deny", "message": "No."}))
            .await;
    }
}

#[tokio::test]
async fn the_real_cli_resumes_a_demo_session_and_the_demo_one_of_the_real_cli() {
    for version in Claude::ALL {
        let place = Place::new();
        let script = Script::new()
            .on("what did I say", [Reply::text("You said: {{prompts}}")])
            .then(Reply::text("Noted."));
        let model = ModelServer::start(script).await.unwrap();
        let real = version.executable().unwrap_or_else(|error| panic!("{error}"));

        let mut cli = demo(&place, &["--session-id", SESSION]);
        cli.prompt("My name is Ada").await;
        assert_eq!(result_without_tools(&mut cli).await["subtype"], "success");
        assert!(cli.finish().await.success());

        let mut cli = Cli::spawn(&real, &place, model.env(), &["--resume", SESSION]);
        cli.prompt("what did I say").await;
        let result = cli.result().await;
        assert_eq!(
            result["result"], "You said: My name is Ada | what did I say",
            "{version:?}"
        );
        assert!(cli.finish().await.success());
        // The model also got what the demo said.
        let sent = model.conversation_requests()[0].body["messages"].to_string();
        assert!(sent.contains("demo agent"), "{version:?}: {sent}");

        let mut cli = demo(&place, &["--resume", SESSION]);
        cli.prompt("and now?").await;
        result_without_tools(&mut cli).await;
        let text = cli.streamed("text");
        assert!(text.contains("message 3"), "{version:?}: {text}");
        assert!(text.contains("“My name is Ada”"), "{version:?}: {text}");
    }
}
