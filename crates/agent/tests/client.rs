//! The client against the real CLI: permissions, hooks, tools, conversations.

mod support;

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::json;
use support::Stage;
use tiller_agent::message::{Cost, SystemMessage};
use tiller_agent::options::{AgentDefinition, SystemPrompt, Thinking};
use tiller_agent::{
    Body, Client, Error, Hook, HookEvent, HookOutput, PermissionMode, PermissionReply, ToolServer, query,
};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

#[tokio::test]
async fn one_question_one_answer() {
    let script = Script::new().on("hello", [Reply::text("Hello to you.")]);
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let digest = query("hello", stage.options()).finish().await.unwrap();
    assert_eq!(digest.final_text(), Some("Hello to you."));
    assert!(digest.session_id().is_some());
    assert!(digest.cost().total_usd > 0.0);
    assert_eq!(digest.cost().turns, 1);
}

#[tokio::test]
async fn permissions_are_decided_by_a_function() {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "Do it"}));
    let script = Script::new().on(
        "both",
        [
            bash("echo yes > allowed.txt"),
            bash("echo no > denied.txt"),
            bash("echo original > changed.txt"),
            Reply::text("Done: {{tool_result}}"),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let client = Client::builder(stage.options()).on_permission(|request| async move {
            let command = request.input_value()["command"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if command.contains("denied") {
                PermissionReply::deny("not this one")
            } else if command.contains("changed") {
                let input = json!({"command": "echo other > changed.txt", "description": "Do it"});
                PermissionReply::allow_with(input)
            } else {
                PermissionReply::allow()
            }
        });
        let digest = query("both", client).finish().await.unwrap();
        let calls = digest.tool_calls();
        assert_eq!(
            calls.iter().map(|call| call.is_error).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert!(
            calls[1]
                .result
                .as_ref()
                .is_some_and(|result| result.text().contains("not this one"))
        );
        assert_eq!(stage.read("allowed.txt"), "yes\n");
        assert_eq!(stage.read("denied.txt"), "");
        assert_eq!(stage.read("changed.txt"), "other\n");
    }
}

#[tokio::test]
async fn a_waiting_permission_holds_up_nothing_else() {
    let script = Script::new().on(
        "two at once",
        [
            Reply::tool("Bash", json!({"command": "touch 1", "description": "One"}))
                .and_tool("Bash", json!({"command": "touch 2", "description": "Two"})),
            Reply::text("Both."),
        ],
    );
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let answers = Arc::new(tokio::sync::Semaphore::new(0));
    let given = Arc::clone(&answers);
    let mut client = Client::builder(stage.options())
        .on_permission(move |request| {
            let given = Arc::clone(&given);
            ask.send(request.tool_use_id).unwrap();
            async move {
                given.acquire_owned().await.unwrap().forget();
                PermissionReply::allow()
            }
        })
        .connect()
        .await
        .unwrap();
    client.query("two at once").await.unwrap();
    let first = tokio::time::timeout(support::PATIENCE, asked.recv())
        .await
        .unwrap()
        .unwrap();
    // While a person thinks, the agent's messages and its answers to other requests keep coming.
    assert!(client.context_usage().await.unwrap().max_tokens > 0);
    loop {
        let message = client
            .receive_turn()
            .await
            .expect("the turn has not ended")
            .unwrap();
        let Body::Assistant(assistant) = message.body() else {
            continue;
        };
        if assistant
            .message
            .content
            .iter()
            .any(|block| block.as_tool_use().map(|call| &call.id) == first.as_ref())
        {
            break;
        }
    }
    answers.add_permits(2);
    assert_eq!(client.finish_turn().await.unwrap().subtype, "success");
}

#[tokio::test]
async fn hooks_see_and_change_what_happens() {
    let script = Script::new().on(
        "use tools",
        [
            Reply::tool("Bash", json!({"command": "echo harmless", "description": "Echo"})),
            Reply::tool(
                "Bash",
                json!({"command": "rm -rf everything", "description": "Remove"}),
            ),
            Reply::text("{{tool_result}}"),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (before, after, prompts) = (Arc::clone(&seen), Arc::clone(&seen), Arc::clone(&seen));
        let builder = Client::builder(stage.options())
            .hook(
                Hook::new(HookEvent::PreToolUse, move |input| {
                    let command = input.tool_input["command"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                    before.lock().unwrap().push(format!("before {command}"));
                    async move {
                        if command.starts_with("rm") {
                            HookOutput::deny_tool("nothing is removed here")
                        } else {
                            HookOutput::allow_tool("it is harmless")
                        }
                    }
                })
                .matching("Bash"),
            )
            .hook(Hook::new(HookEvent::PostToolUse, move |input| {
                after.lock().unwrap().push(format!(
                    "after {}",
                    input.tool_response["stdout"].as_str().unwrap_or("?")
                ));
                async { HookOutput::proceed() }
            }))
            .hook(Hook::new(HookEvent::UserPromptSubmit, move |input| {
                prompts
                    .lock()
                    .unwrap()
                    .push(format!("prompt {}", input.prompt.unwrap_or_default()));
                async { HookOutput::proceed().with_context("The moon is full.") }
            }));
        let digest = query("use tools", builder).finish().await.unwrap();
        assert!(
            digest
                .final_text()
                .is_some_and(|text| text.contains("nothing is removed here")),
            "{digest:?}"
        );
        assert_eq!(
            *seen.lock().unwrap(),
            [
                "prompt use tools",
                "before echo harmless",
                "after harmless",
                "before rm -rf everything"
            ]
        );
        let requests = stage.model.conversation_requests();
        assert!(format!("{:?}", requests[0]).contains("The moon is full."));
    }
}

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::test]
async fn a_function_is_a_tool() {
    let script = Script::new().on(
        "add",
        [
            Reply::tool("mcp__calculator__add", json!({"a": 2, "b": 40})),
            Reply::tool("mcp__calculator__add", json!({"a": "two", "b": 40})),
            Reply::tool("mcp__calculator__divide", json!({"a": 1, "b": 0})),
            Reply::text("ok"),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let schema = json!({
            "type": "object",
            "properties": {"a": {}, "b": {"type": "number"}},
            "required": ["a", "b"],
        });
        let tools = ToolServer::new("calculator")
            .tool_with_schema(
                "add",
                "Adds two numbers",
                schema.clone(),
                |Add { a, b }| async move { format!("{}", a + b) },
            )
            .tool_with_schema(
                "divide",
                "Divides two numbers",
                schema,
                |Add { a, b }| async move {
                    if b == 0.0 {
                        Err("division by zero".to_owned())
                    } else {
                        Ok(format!("{}", a / b))
                    }
                },
            );
        let options = stage
            .options()
            .allowed_tools(["mcp__calculator__add", "mcp__calculator__divide"]);
        let mut client = Client::builder(options).tools(tools).connect().await.unwrap();
        client.query("add").await.unwrap();
        let mut digest = tiller_agent::Digest::new();
        while let Some(message) = client.receive_turn().await {
            let message = message.unwrap();
            if let Body::System(SystemMessage::Init(init)) = message.body() {
                assert!(
                    init.tools.iter().any(|tool| tool == "mcp__calculator__add"),
                    "{:?}",
                    init.tools
                );
            }
            digest.push(&message);
        }
        let results: Vec<String> = digest
            .tool_calls()
            .iter()
            .map(|call| call.result.as_ref().unwrap().text())
            .collect();
        assert_eq!(results[0], "42");
        assert!(results[1].contains("does not fit"), "{results:?}");
        assert!(results[2].contains("division by zero"), "{results:?}");
        let status = client.mcp_status().await.unwrap();
        assert_eq!(
            (
                status.mcp_servers[0].name.as_str(),
                status.mcp_servers[0].status.as_str()
            ),
            ("calculator", "connected")
        );
    }
}

#[tokio::test]
async fn conversations_are_resumed_forked_and_continued() {
    let script = Script::new().otherwise(Reply::text("So far: {{prompts}}"));
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let id = uuid::Uuid::new_v4().to_string();
        let first = query("first", stage.options().session_id(&id))
            .finish()
            .await
            .unwrap();
        assert_eq!(first.session_id(), Some(id.as_str()));

        let second = query("second", stage.options().resume(&id))
            .finish()
            .await
            .unwrap();
        assert_eq!(second.final_text(), Some("So far: first | second"));
        assert_eq!(second.session_id(), Some(id.as_str()));

        let fork = query("fork", stage.options().resume(&id).fork(true))
            .finish()
            .await
            .unwrap();
        assert_eq!(fork.final_text(), Some("So far: first | second | fork"));
        assert_ne!(fork.session_id(), Some(id.as_str()));

        let latest = query("latest", stage.options().continue_latest())
            .finish()
            .await
            .unwrap();
        assert_eq!(
            latest.final_text(),
            Some("So far: first | second | fork | latest")
        );
    }
}

#[tokio::test]
async fn an_expired_conversation_is_a_typed_error() {
    for claude in Claude::ALL {
        let stage = Stage::new(claude, Script::new()).await;
        let id = "00000000-0000-4000-8000-000000000000";
        let error = query("hello?", stage.options().resume(id))
            .finish()
            .await
            .unwrap_err();
        let Error::SessionExpired { session_id } = &error else {
            panic!("{error}")
        };
        assert_eq!(session_id.as_deref(), Some(id));
    }
}

#[tokio::test]
async fn cost_agrees_with_the_cli() {
    let script = Script::new().on(
        "think",
        [
            Reply::thinking("Let me see.")
                .and_tool("Bash", json!({"command": "echo 1", "description": "One"})),
            Reply::text("One."),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let client = Client::connect(stage.options().allowed_tools(["Bash"]))
            .await
            .unwrap();
        let mut cost = Cost::default();
        let mut turns = 0.0;
        for _ in 0..2 {
            let result = client.ask("think").await.unwrap();
            cost.push(&result);
            turns += cost.last_turn_usd;
            // Two calls of the model, each on several lines; counted once.
            assert_eq!(result.usage.input_tokens, 200);
            assert_eq!(result.usage.output_tokens, 40);
            let by_model: f64 = result.model_usage.values().map(|usage| usage.cost_usd).sum();
            assert!((by_model - cost.total_usd).abs() < 1e-9, "{by_model} {cost:?}");
        }
        assert!((turns - cost.total_usd).abs() < 1e-9);
        assert_eq!(cost.turns, 2);
    }
}

#[tokio::test]
async fn a_suggested_rule_spares_the_next_question() {
    let script = Script::new().on(
        "touch it",
        [
            Reply::tool("Bash", json!({"command": "touch it.txt", "description": "Touch"})),
            Reply::text("Touched."),
        ],
    );
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let asked = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&asked);
        let client = Client::builder(stage.options())
            .on_permission(move |request| {
                *counter.lock().unwrap() += 1;
                assert!(!request.suggestions().is_empty(), "{request:?}");
                let suggested = request.suggestions();
                async move { PermissionReply::allow().with_permissions(suggested) }
            })
            .connect()
            .await
            .unwrap();
        for _ in 0..2 {
            assert_eq!(
                client.ask("touch it").await.unwrap().result.as_deref(),
                Some("Touched.")
            );
        }
        assert_eq!(*asked.lock().unwrap(), 1);
    }
}

#[tokio::test]
async fn options_reach_the_cli() {
    let script = Script::new()
        .on(
            "go on for ever",
            [
                Reply::tool("Bash", json!({"command": "echo 1", "description": "One"})),
                Reply::tool("Bash", json!({"command": "echo 2", "description": "Two"})),
                Reply::text("Never said."),
            ],
        )
        .otherwise(Reply::text("Fine."));
    for claude in Claude::ALL {
        let stage = Stage::new(claude, script.clone()).await;
        let extra = stage.home().join("extra");
        std::fs::create_dir_all(&extra).unwrap();
        let id = uuid::Uuid::new_v4().to_string();
        let options = stage
            .options()
            .session_id(&id)
            .title("-a title that begins with a dash")
            .model("haiku")
            .fallback_model("sonnet")
            .effort("low")
            .thinking(Thinking::Tokens(2000))
            .permission_mode(PermissionMode::AcceptEdits)
            .tools(["Bash", "Read"])
            .allowed_tools(["Bash(git *)", "Bash(echo *)"])
            .disallowed_tools(["WebFetch"])
            .add_dir(&extra)
            .system_prompt(SystemPrompt::Replace("You are a lighthouse.".to_owned()))
            .max_turns(2)
            .max_budget_usd(100.0)
            .strict_mcp(true)
            .setting_sources(["user"])
            .settings(r#"{"env": {"FROM_SETTINGS": "1"}}"#)
            .define_agent(
                "keeper",
                AgentDefinition {
                    description: "Keeps the light".to_owned(),
                    prompt: "You keep the light.".to_owned(),
                    ..AgentDefinition::default()
                },
            )
            .partial_messages(true)
            .hook_events(true)
            .extra_arg("disable-slash-commands", None);
        let mut client = Client::connect(options).await.unwrap();
        client.query("go on for ever").await.unwrap();
        let mut init = None;
        let result = loop {
            let message = client
                .receive_turn()
                .await
                .expect("a result comes first")
                .unwrap();
            match message.body() {
                Body::System(SystemMessage::Init(begun)) => init = Some(begun),
                Body::Result(result) => break result,
                _ => {}
            }
        };
        let init = init.expect("a turn begins");
        assert_eq!(init.session_id, id);
        assert!(init.model.contains("haiku"), "{}", init.model);
        assert_eq!(init.permission_mode, PermissionMode::AcceptEdits);
        assert_eq!(init.tools, ["Bash", "Read"]);
        assert!(init.agents.contains(&"keeper".to_owned()), "{:?}", init.agents);
        assert_eq!(result.subtype, "error_max_turns");
        let request = format!("{:?}", stage.model.conversation_requests()[0]);
        assert!(
            request.contains("You are a lighthouse."),
            "the system prompt is ours"
        );
        client.close().await;
    }
}
