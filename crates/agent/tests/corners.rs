//! What goes wrong in applications: panics, conversations that can't be resumed, versions that can't do something.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use serde_json::json;
use support::{PATIENCE, Stage};
use tiller_agent::cli::Version;
use tiller_agent::message::{SystemMessage, Todo};
use tiller_agent::{
    Body, Client, Error, Hook, HookEvent, Options, PermissionMode, PermissionReply, ToolServer, query,
};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("nothing waits for ever")
}

#[tokio::test]
async fn a_panicking_function_is_answered_for() {
    let bash = Reply::tool("Bash", json!({"command": "touch it", "description": "Touch"}));
    let script = Script::new().on(
        "go",
        [
            bash,
            Reply::tool("mcp__local__fail", json!({})),
            Reply::tool("mcp__local__fail_at_once", json!({})),
            Reply::text("Done."),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let tools = ToolServer::new("local")
            .tool("fail", "Fails", |(): ()| async {
                if true { panic!("no tool") } else { "" }
            })
            .tool("fail_at_once", "Fails", |(): ()| {
                assert!(std::hint::black_box(false), "not even a future");
                std::future::ready("")
            });
        let options = stage
            .options()
            .allowed_tools(["mcp__local__fail", "mcp__local__fail_at_once"]);
        let builder = Client::builder(options)
            .tools(tools)
            .hook(Hook::new(HookEvent::UserPromptSubmit, |_| async {
                panic!("no hook")
            }))
            .on_permission(|_| async {
                assert!(std::hint::black_box(false), "no decision");
                PermissionReply::allow()
            });
        let digest = within(query("go", builder).finish()).await.unwrap();
        assert_eq!(digest.final_text(), Some("Done."), "{claude:?}");
        let calls = digest.tool_calls();
        let results: Vec<String> = calls
            .iter()
            .map(|call| call.result.as_ref().unwrap().text())
            .collect();
        assert!(calls.iter().all(|call| call.is_error), "{claude:?}: {results:?}");
        for (result, reason) in results
            .iter()
            .zip(["no decision", "no tool", "not even a future"])
        {
            assert!(result.contains(reason), "{claude:?}: {results:?}");
        }
        assert!(!stage.cwd().join("it").exists());
    }
}

#[tokio::test]
async fn a_healthy_conversation_that_can_not_be_resumed_is_not_expired() {
    let script = Script::new().otherwise(Reply::text("So far: {{prompts}}"));
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, script.clone()).await;
        let first = within(query("first", stage.options()).finish()).await.unwrap();
        let id = first.session_id().unwrap();
        let resumed = || stage.options().resume(id);
        let mut bad = vec![
            (resumed().extra_arg("no-such-flag", None), "no-such-flag"),
            (resumed().settings("/no/such/settings.json"), "settings"),
        ];
        if rustix::process::geteuid().is_root() {
            let bypass = resumed()
                .permission_mode(PermissionMode::BypassPermissions)
                .env_remove("IS_SANDBOX");
            bad.push((bypass, "root"));
        }
        for (options, word) in bad {
            let error = within(query("second", options).finish()).await.unwrap_err();
            let Error::ResumeFailed { session_id, exit } = &error else {
                panic!("{claude:?}: {error:?}")
            };
            assert_eq!(session_id.as_deref(), Some(id));
            assert!(exit.stderr_tail.contains(word), "{claude:?}: {exit:?}");
            assert!(error.to_string().contains(word), "{error}");
            assert_eq!(
                error.to_string().contains("5 seconds"),
                exit.ended_early(),
                "{error}"
            );
        }
        // It is as good as ever.
        let second = within(query("second", resumed()).finish()).await.unwrap();
        assert_eq!(second.final_text(), Some("So far: first | second"), "{claude:?}");
        let gone = Options::resume(stage.options(), "00000000-0000-4000-8000-000000000000");
        let error = within(query("third", gone).finish()).await.unwrap_err();
        assert!(
            matches!(error, Error::SessionExpired { .. }),
            "{claude:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_resumed_turn_costs_what_it_costs() {
    let script = Script::new().otherwise(Reply::text("Fine."));
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, script.clone()).await;
        let first = within(query("one", stage.options()).finish()).await.unwrap();
        let one = first.cost().total_usd;
        assert!(one > 0.0);
        let client = within(Client::connect(stage.options())).await.unwrap();
        drop(client);
        for options in [
            stage.options().resume(first.session_id().unwrap()),
            stage.options().continue_latest(),
        ] {
            let digest = within(query("two", options.clone()).finish()).await.unwrap();
            let cost = digest.cost();
            assert!(
                (cost.last_turn_usd - one).abs() < 1e-9,
                "{claude:?}: {cost:?}, {one}"
            );
            assert!((cost.spent_usd - one).abs() < 1e-9, "{claude:?}: {cost:?}, {one}");

            let client = within(Client::connect(options)).await.unwrap();
            for _ in 0..2 {
                let mut turn = client.turn("three").await.unwrap();
                let digest = within(turn.digest()).await.unwrap();
                let cost = digest.cost();
                assert!(
                    (cost.last_turn_usd - one).abs() < 1e-9,
                    "{claude:?}: {cost:?}, {one}"
                );
            }
            within(client.close()).await;
        }
    }
}

#[tokio::test]
async fn every_version_has_a_to_do_list() {
    let todos = |first: &str, second: &str| {
        Reply::tool(
            "TodoWrite",
            json!({"todos": [
                {"content": "Look", "activeForm": "Looking", "status": first},
                {"content": "Act", "activeForm": "Acting", "status": second},
            ]}),
        )
    };
    let script = Script::new().on(
        "plan",
        [
            todos("in_progress", "pending"),
            todos("completed", "in_progress"),
            Reply::text("Planned."),
        ],
    );
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, script.clone()).await;
        let client = within(Client::connect(stage.options())).await.unwrap();
        let mut turn = client.turn("plan").await.unwrap();
        let mut digest = tiller_agent::Digest::new();
        while let Some(message) = within(turn.next()).await {
            let message = message.unwrap();
            if let Body::System(SystemMessage::Init(init)) = message.body() {
                assert!(
                    init.tools.iter().any(|tool| tool == "TodoWrite"),
                    "{claude:?}: {:?}",
                    init.tools
                );
            }
            digest.push(&message);
        }
        let todos = digest.todos();
        assert_eq!((todos.completed(), todos.total()), (1, 2), "{claude:?}");
        assert_eq!(todos.current().map(Todo::label), Some("Acting"));
    }
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let without = within(query("plan", stage.options().todos(false)).finish())
        .await
        .unwrap();
    assert_eq!(
        without.todos().total(),
        0,
        "the newest version offers none by itself"
    );
}

#[tokio::test]
async fn a_version_that_takes_no_websocket_is_found_out_before_it_is_started() {
    let stage = Stage::new(Claude::V2_1_325, Script::new()).await;
    let (listener, sockets) = support::websocket::Listener::start().await;
    let connecting = Client::builder(stage.options()).connect_websocket(&listener.url, sockets);
    let error = within(connecting).await.unwrap_err();
    assert!(
        matches!(&error, Error::WebSocketUnsupported { version } if *version == Version::new(2, 1, 325)),
        "{error:?}"
    );
    assert!(error.to_string().contains("standard input"), "{error}");
    let capabilities = Version::new(2, 1, 325).capabilities();
    assert!(
        capabilities.streaming && capabilities.permissions && capabilities.resume && capabilities.subagents
    );
}
