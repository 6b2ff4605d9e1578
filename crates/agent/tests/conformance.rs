//! Every operation of the crate against the real CLI, over every transport that it has. The outcome is the table in
//! the crate's README; run with `TILLER_UPDATE_README=1` after a change that is meant.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use support::{PATIENCE, Stage};
use tiller_agent::control::*;
use tiller_agent::message::*;
use tiller_agent::options::*;
use tiller_agent::*;
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{self, Script};

/// What became of an operation. One that fails fails the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Works,
    Unsupported,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Stdio,
    WebSocket,
}

/// One column of the table: the operations in the order in which they were tried.
struct Column {
    title: String,
    cells: Vec<(&'static str, Outcome)>,
}

impl Column {
    fn works(&mut self, operation: &'static str) {
        self.cells.push((operation, Outcome::Works));
    }

    /// Notes how a request ended. A refusal is a mistake of the test or the crate.
    fn answered<T>(&mut self, operation: &'static str, answer: Result<T, Error>, check: impl FnOnce(T)) {
        match answer {
            Ok(answer) => {
                check(answer);
                self.works(operation);
            }
            Err(Error::Unsupported { .. }) => self.cells.push((operation, Outcome::Unsupported)),
            Err(error) => panic!("{}: {operation}: {error}", self.title),
        }
    }
}

/// A client whose every message is checked: typed and written again, it must be what it was.
struct Checked {
    client: Client,
    assembler: Assembler,
    /// What stream events came to, and what the CLI's own messages say.
    streamed: Vec<Block>,
    whole: Vec<Block>,
}

impl Checked {
    async fn next(&mut self) -> Message {
        let message = tokio::time::timeout(PATIENCE, self.client.receive())
            .await
            .expect("the agent says something");
        let message = message.expect("the agent has not ended").unwrap();
        let body = message.body();
        assert!(
            !matches!(body, Body::Other(_) | Body::System(SystemMessage::Other(_))),
            "unknown: {message:?}"
        );
        let original: Value = serde_json::from_str(message.json()).unwrap();
        support::assert_same(&serde_json::to_value(&body).unwrap(), &original);
        if let Some(Assembled::Block { block, .. }) = self.assembler.push(&message) {
            self.streamed.push(block);
        }
        if let Body::Assistant(assistant) = body
            && assistant.parent_tool_use_id.is_none()
        {
            self.whole.extend(assistant.message.content);
        }
        message
    }

    async fn until(&mut self, wanted: impl Fn(&Message) -> bool) -> Message {
        loop {
            let message = self.next().await;
            if wanted(&message) {
                return message;
            }
        }
    }

    async fn say(&mut self, prompt: impl Into<UserMessage>) {
        let sent = tokio::time::timeout(PATIENCE, self.client.query(prompt)).await;
        sent.expect("the agent reads").unwrap();
    }

    async fn turn(&mut self, prompt: impl Into<UserMessage>) -> TurnResult {
        self.say(prompt).await;
        self.until(|message| message.kind() == Kind::Result)
            .await
            .result()
            .unwrap()
    }
}

/// What the agent asked, and what happened.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn script(cwd: &Path) -> Script {
    use model::Reply;
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "Do it"}));
    let question = json!({"questions": [{
        "question": "Tea or coffee?", "header": "Drink", "multiSelect": false,
        "options": [{"label": "Tea", "description": "Hot"}, {"label": "Coffee", "description": "Hot too"}],
    }]});
    Script::new()
        .on("say hello", [Reply::thinking("They greet me.").and_text("Hello, 世界! \"Quoted\" and\nbroken.")])
        .on("make a file", [bash("echo made > made.txt"), Reply::text("Made.")])
        .on("be refused", [bash("echo refused > refused.txt"), Reply::text("{{tool_result}}")])
        .on("ask me", [Reply::tool("AskUserQuestion", question), Reply::text("{{tool_result}}")])
        .on("offer a plan", [
            Reply::tool("ExitPlanMode", json!({"plan": "1. Think\n2. Act"})),
            Reply::text("{{tool_result}}"),
        ])
        .on("be interrupted", [Reply::text("Once upon a time…").gate("interrupted").and_text("The end.")])
        .on("be withdrawn", [bash("echo withdrawn > withdrawn.txt"), Reply::text("Never said.")])
        .on("use the tool", [Reply::tool("mcp__local__double", json!({"number": 21})), Reply::text("{{tool_result}}")])
        .on("be asked by a server", [Reply::tool("mcp__outside__ask", json!({})), Reply::text("{{tool_result}}")])
        .on("write a file", [
            Reply::tool("Write", json!({"file_path": cwd.join("written.txt"), "content": "new\n"})),
            Reply::text("Written."),
        ])
        .on("start in the background", [
            Reply::tool("Bash", json!({"command": "mkfifo pipe; cat pipe", "description": "Wait", "run_in_background": true})),
            Reply::text("Started."),
        ])
        .on("wait in front", [
            Reply::tool("Bash", json!({"command": "mkfifo front; cat front", "description": "Wait"})),
            Reply::text("It waits elsewhere."),
        ])
        .on("keep a list", [
            Reply::tool("TodoWrite", json!({"todos": [
                {"content": "Think", "activeForm": "Thinking", "status": "completed"},
                {"content": "Act", "activeForm": "Acting", "status": "in_progress"},
            ]})),
            Reply::text("Kept."),
        ])
        .on("keep tasks", [
            Reply::tool("TaskCreate", json!({"subject": "Think", "description": "Think hard", "activeForm": "Thinking"})),
            Reply::tool("TaskCreate", json!({"subject": "Act", "description": "Act fast", "activeForm": "Acting"})),
            Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
            Reply::tool("TaskUpdate", json!({"taskId": "2", "status": "in_progress"})),
            Reply::text("Kept."),
        ])
        .otherwise(Reply::text("I heard: {{prompts}}"))
}

async fn run(claude: Claude, over: Over) -> Column {
    let title = format!(
        "{} {}",
        claude.version(),
        if over == Over::Stdio { "stdio" } else { "WebSocket" }
    );
    let mut column = Column {
        title,
        cells: Vec::new(),
    };
    let stage = Stage::with(claude, script).await;
    stage.write("mention-me.txt", "here\n");
    let log = Arc::new(Log::default());
    let (asked, hooked) = (Arc::clone(&log), Arc::clone(&log));
    let tools =
        ToolServer::new("local").tool_with_schema(
            "double",
            "Doubles a number",
            json!({"type": "object", "properties": {"number": {"type": "number"}}, "required": ["number"]}),
            |input: Value| async move {
                format!("doubled: {}", input["number"].as_f64().unwrap_or_default() * 2.0)
            },
        );
    let options = stage
        .options()
        .partial_messages(true)
        .replay_user_messages(true)
        .file_checkpointing(true)
        .allow_bypass_permissions(true)
        .env("IS_SANDBOX", "1")
        .mcp_server("outside", outside())
        .allowed_tools([
            "mcp__local__double",
            "mcp__outside__ask",
            "Write",
            "Bash(mkfifo *)",
            "Bash(cat *)",
        ]);
    let builder = Client::builder(options)
        .tools(tools)
        .hook(Hook::new(HookEvent::UserPromptSubmit, move |input| {
            hooked.add(format!("hook {}", input.prompt.unwrap_or_default()));
            async { HookOutput::proceed() }
        }))
        .on_permission(move |request| {
            let asked = Arc::clone(&asked);
            async move { decide(&request, &asked).await }
        })
        .on_elicitation(|request| async move {
            assert_eq!(
                (request.mcp_server_name.as_str(), request.message.as_str()),
                ("outside", "What is your name?")
            );
            ElicitationReply::Accept {
                content: json!({"name": "Ada"}).as_object().cloned(),
            }
        });
    let (_listener, client) = match over {
        Over::Stdio => (None, within(builder.connect()).await.unwrap()),
        Over::WebSocket => {
            let (listener, sockets) = support::websocket::Listener::start().await;
            let client = within(builder.connect_websocket(&listener.url, sockets))
                .await
                .unwrap();
            (Some(listener), client)
        }
    };
    assert!(!client.initialized().commands.is_empty() && !client.initialized().models.is_empty());
    column.works("initialize");
    let mut agent = Checked {
        client,
        assembler: Assembler::new(),
        streamed: Vec::new(),
        whole: Vec::new(),
    };

    conversation(&mut agent, &mut column, &stage, &log).await;
    settings(&mut agent, &mut column).await;
    files(&mut agent, &mut column, &stage).await;
    background(&mut agent, &mut column).await;
    todos(&stage, &mut column).await;

    assert!(!agent.streamed.is_empty());
    assert_eq!(
        agent.streamed, agent.whole,
        "stream events come to what the CLI's own messages say"
    );
    column.works("stream events put together");
    let id = agent.client.session_id().unwrap();
    let exit = within(agent.client.close()).await;
    assert!(exit.requested && exit.signal.is_none(), "{exit:?}");
    column.works("close");
    conversations(&mut column, &stage, over, &id).await;
    column
}

/// An MCP server in a process of its own.
fn outside() -> McpServer {
    let python = tiller_testkit::installed::python().unwrap_or_else(|missing| panic!("{missing}"));
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.py");
    McpServer::Stdio {
        command: python.display().to_string(),
        args: vec![server.display().to_string()],
        env: BTreeMap::new(),
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("it does not take for ever")
}

/// The person at the keyboard.
async fn decide(request: &PermissionRequest, log: &Log) -> PermissionReply {
    let input = request.input_value();
    log.add(
        format!(
            "{} {}",
            request.tool_name,
            input["command"].as_str().unwrap_or_default()
        )
        .trim(),
    );
    match request.tool_name.as_str() {
        "AskUserQuestion" => answer_questions(
            request,
            &BTreeMap::from([("Tea or coffee?".to_owned(), "Tea".to_owned())]),
        ),
        "Bash"
            if input["command"]
                .as_str()
                .is_some_and(|command| command.contains("refused")) =>
        {
            PermissionReply::deny("I would rather not.")
        }
        "Bash"
            if input["command"]
                .as_str()
                .is_some_and(|command| command.contains("withdrawn")) =>
        {
            // A person who never answers.
            std::future::pending().await
        }
        _ => PermissionReply::allow(),
    }
}

async fn conversation(agent: &mut Checked, column: &mut Column, stage: &Stage, log: &Log) {
    let uuid = uuid::Uuid::new_v4().to_string();
    agent.say(UserMessage::text("say hello").with_uuid(&uuid)).await;
    let echoed = agent.until(|message| message.kind() == Kind::User).await;
    assert_eq!(echoed.uuid(), Some(uuid.as_str()));
    column.works("user message, acknowledged by its uuid");
    let result = agent
        .until(|message| message.kind() == Kind::Result)
        .await
        .result()
        .unwrap();
    assert_eq!(
        result.result.as_deref(),
        Some("Hello, 世界! \"Quoted\" and\nbroken.")
    );
    assert!(result.total_cost_usd > 0.0);
    column.works("turn with result, usage and cost");
    assert_eq!(log.take(), ["hook say hello"]);
    column.works("hook_callback");

    agent.turn("make a file").await;
    assert_eq!(stage.read("made.txt"), "made\n");
    column.works("can_use_tool: allow");
    let refused = agent.turn("be refused").await;
    assert!(
        refused
            .result
            .is_some_and(|text| text.contains("I would rather not."))
    );
    assert_eq!(refused.permission_denials.len(), 1);
    column.works("can_use_tool: deny");
    let answered = agent.turn("ask me").await.result.unwrap();
    assert!(answered.contains("Tea"), "{answered}");
    column.works("can_use_tool: AskUserQuestion");
    agent
        .client
        .set_permission_mode(PermissionMode::Plan)
        .await
        .unwrap();
    log.take();
    agent.turn("offer a plan").await;
    assert!(log.take().contains(&"ExitPlanMode".to_owned()));
    column.works("can_use_tool: ExitPlanMode");
    agent
        .client
        .set_permission_mode(PermissionMode::Default)
        .await
        .unwrap();
    let doubled = agent.turn("use the tool").await.result.unwrap();
    assert!(doubled.contains("doubled: 42"), "{doubled}");
    column.works("mcp_message: tool inside the process");

    let asked = agent.turn("be asked by a server").await.result.unwrap();
    if asked.contains("nobody can be asked") {
        column.cells.push(("elicitation", Outcome::Unsupported));
    } else {
        assert!(asked.contains("Ada"), "{asked}");
        column.works("elicitation");
    }

    agent.say("be interrupted").await;
    within(stage.model.gate("interrupted").reached()).await;
    agent.client.interrupt().await.unwrap();
    let result = agent
        .until(|message| message.kind() == Kind::Result)
        .await
        .result()
        .unwrap();
    assert_eq!(result.subtype, "error_during_execution");
    column.works("interrupt");
    // What was cut off never becomes a whole message.
    agent.streamed.truncate(agent.whole.len());
    agent.whole.truncate(agent.streamed.len());

    log.take();
    agent.say("be withdrawn").await;
    while !log.take().iter().any(|entry| entry.contains("withdrawn.txt")) {
        tokio::task::yield_now().await;
    }
    agent.client.interrupt().await.unwrap();
    agent.until(|message| message.kind() == Kind::Result).await;
    assert_eq!(stage.read("withdrawn.txt"), "");
    column.works("control_cancel_request");
}

async fn settings(agent: &mut Checked, column: &mut Column) {
    let client = &agent.client;
    column.answered("set_model", client.set_model(Some("sonnet")).await, drop);
    column.answered(
        "set_permission_mode",
        client.set_permission_mode(PermissionMode::AcceptEdits).await,
        drop,
    );
    column.answered(
        "set_permission_mode: bypassPermissions",
        client
            .set_permission_mode(PermissionMode::BypassPermissions)
            .await,
        drop,
    );
    column.answered(
        "set_max_thinking_tokens",
        client.set_max_thinking_tokens(Some(2000)).await,
        drop,
    );
    column.answered("mcp_status", client.mcp_status().await, |status| {
        assert!(
            status
                .mcp_servers
                .iter()
                .any(|server| server.name == "local" && server.status == "connected")
        );
    });
    let arguments = json!({"said": "aloud"}).as_object().cloned().unwrap();
    let call = McpCall {
        tool: "mcp__outside__echo".into(),
        arguments,
    };
    column.answered("mcp_call", client.request(call).await, |answer| {
        assert!(format!("{answer:?}").contains("aloud"), "{answer:?}");
    });
    let toggle = |enabled| McpToggle {
        server_name: "outside".into(),
        enabled,
    };
    column.answered("mcp_toggle", client.request(toggle(false)).await, drop);
    client.request(toggle(true)).await.unwrap();
    column.answered(
        "mcp_reconnect",
        client
            .request(McpReconnect {
                server_name: "outside".into(),
            })
            .await,
        drop,
    );
    column.answered(
        "mcp_set_servers",
        client.request(McpSetServers::default()).await,
        |answer| {
            assert!(answer.errors.is_empty());
        },
    );
    column.answered("get_context_usage", client.context_usage().await, |usage| {
        assert!(
            usage.total_tokens > 0 && usage.max_tokens > usage.total_tokens && !usage.categories.is_empty()
        );
    });
    column.answered(
        "get_usage",
        client
            .request(GetUsage {
                skip_behaviors: false,
            })
            .await,
        |usage| {
            assert!(usage.session.total_cost_usd > 0.0);
        },
    );
    column.answered(
        "get_session_cost",
        client.request(GetSessionCost {}).await,
        |answer| {
            assert!(answer.0.contains_key("text"));
        },
    );
    column.answered("get_settings", client.request(GetSettings {}).await, |answer| {
        assert!(answer.0.contains_key("effective"));
    });
    column.answered(
        "get_binary_version",
        client.request(GetBinaryVersion {}).await,
        |answer| {
            assert!(answer.0.contains_key("version"));
        },
    );
    column.answered("list_models", client.request(ListModels {}).await, |answer| {
        assert!(!answer.models.is_empty());
    });
    column.answered(
        "list_permission_rules",
        client.request(ListPermissionRules {}).await,
        |answer| {
            assert!(answer.0.contains_key("state"));
        },
    );
    column.answered(
        "get_hooks_listing",
        client.request(GetHooksListing {}).await,
        |answer| {
            assert!(!answer.event_catalog.is_empty());
        },
    );
    column.answered("reload_skills", client.request(ReloadSkills {}).await, drop);
    column.answered("reload_plugins", client.request(ReloadPlugins {}).await, drop);
    column.answered(
        "reload_output_styles",
        client.request(ReloadOutputStyles {}).await,
        drop,
    );
    let rename = RenameSession {
        title: "A better title".into(),
    };
    column.answered("rename_session", client.request(rename).await, drop);
    let settings = json!({"effortLevel": "low"}).as_object().cloned().unwrap();
    column.answered(
        "apply_flag_settings",
        client.request(ApplyFlagSettings { settings }).await,
        drop,
    );
    let fields = json!({"source": "localSettings", "settings": {"outputStyle": "default"}});
    let update = UpdateSettings {
        fields: fields.as_object().cloned().unwrap(),
    };
    column.answered("update_settings", client.request(update).await, drop);
    let cancel = CancelAsyncMessage {
        message_uuid: uuid::Uuid::new_v4().to_string(),
    };
    column.answered("cancel_async_message", client.request(cancel).await, drop);
}

async fn files(agent: &mut Checked, column: &mut Column, stage: &Stage) {
    // The CLI makes its index of files in its own time.
    let found = |answer: &FileSuggestionList| {
        answer
            .suggestions
            .iter()
            .any(|file| file.path.contains("mention-me.txt"))
    };
    let suggestions = within(async {
        loop {
            let answer = agent
                .client
                .request(FileSuggestions {
                    query: "mention".into(),
                })
                .await;
            if answer.as_ref().map_or(true, found) {
                break answer;
            }
        }
    });
    column.answered("file_suggestions", suggestions.await, drop);
    let path = stage.cwd().join("mention-me.txt").display().to_string();
    column.answered(
        "read_file",
        agent.client.request(ReadFile { path }).await,
        |answer| {
            assert_eq!(answer.0["contents"], "here\n");
        },
    );
    let uuid = uuid::Uuid::new_v4().to_string();
    agent
        .turn(UserMessage::text("write a file").with_uuid(&uuid))
        .await;
    assert_eq!(stage.read("written.txt"), "new\n");
    column.answered(
        "rewind_files: dry run",
        agent.client.rewind_files(&uuid, true).await,
        |rewound| {
            assert!(
                rewound.can_rewind
                    && rewound
                        .files_changed
                        .iter()
                        .any(|file| file.ends_with("written.txt"))
            );
        },
    );
    assert_eq!(stage.read("written.txt"), "new\n");
    column.answered(
        "rewind_files",
        agent.client.rewind_files(&uuid, false).await,
        |rewound| {
            assert!(rewound.can_rewind);
        },
    );
    assert!(!stage.cwd().join("written.txt").exists());
}

/// The id of the task that a `task_started` message announces.
fn task_id(message: &Message) -> Option<String> {
    match message.body() {
        Body::System(SystemMessage::TaskStarted(task)) => Some(task.task_id),
        _ => None,
    }
}

async fn background(agent: &mut Checked, column: &mut Column) {
    agent.say("start in the background").await;
    let started = agent.until(|message| task_id(message).is_some()).await;
    let task_id = task_id(&started).unwrap();
    agent.until(|message| message.kind() == Kind::Result).await;
    column.works("background task, reported");
    let output = agent
        .client
        .request(GetTaskOutput {
            task_id: task_id.clone(),
        })
        .await;
    column.answered("get_task_output", output, drop);
    column.answered(
        "stop_task",
        agent.client.request(StopTask { task_id }).await,
        drop,
    );

    let probe = agent
        .client
        .request(BackgroundTasks {
            tool_use_id: Some("toolu_none".into()),
        })
        .await;
    if matches!(probe, Err(Error::Unsupported { .. })) {
        column.answered("background_tasks", probe, drop);
        return;
    }
    agent.say("wait in front").await;
    // A command that takes a while becomes a task, still in front.
    let started = agent.until(|message| self::task_id(message).is_some()).await;
    let task_id = self::task_id(&started).unwrap();
    let backgrounded = agent.client.request(BackgroundTasks { tool_use_id: None }).await;
    column.answered("background_tasks", backgrounded, drop);
    let ended = |message: &Message| {
        message
            .result()
            .is_some_and(|result| result.result.as_deref() == Some("It waits elsewhere."))
    };
    agent.until(ended).await;
    agent.client.request(StopTask { task_id }).await.unwrap();
}

/// Which tools there are for it depends on the version; either way it is one list.
async fn todos(stage: &Stage, column: &mut Column) {
    for (name, prompt, tasks) in [
        ("todos from TodoWrite", "keep a list", "0"),
        ("todos from TaskCreate and TaskUpdate", "keep tasks", "1"),
    ] {
        let names = ["TodoWrite", "TaskCreate", "TaskUpdate", "TaskList"];
        let options = stage
            .options()
            .env("CLAUDE_CODE_ENABLE_TASKS", tasks)
            .tools(names)
            .allowed_tools(names);
        let digest = within(query(prompt, options).finish()).await.unwrap();
        let todos = digest.todos();
        if digest.tool_calls().iter().all(|call| call.is_error) {
            column.cells.push((name, Outcome::Unsupported));
            assert_eq!(todos.total(), 0, "what was not taken is not on the list");
            continue;
        }
        assert_eq!((todos.completed(), todos.total()), (1, 2), "{todos:?}");
        assert_eq!(todos.current().map(Todo::label), Some("Acting"));
        column.works(name);
    }
}

async fn conversations(column: &mut Column, stage: &Stage, over: Over, id: &str) {
    let ask = async |prompt: &str, options: Options| {
        let (_listener, client) = match over {
            Over::Stdio => (None, within(Client::connect(options)).await?),
            Over::WebSocket => {
                let (listener, sockets) = support::websocket::Listener::start().await;
                let client =
                    within(Client::builder(options).connect_websocket(&listener.url, sockets)).await?;
                (Some(listener), client)
            }
        };
        let result = within(client.ask(prompt)).await?;
        within(client.close()).await;
        Ok::<_, Error>((result.result.unwrap_or_default(), result.session_id))
    };
    let (said, resumed) = ask("resumed", stage.options().resume(id)).await.unwrap();
    assert!(
        said.contains("say hello") && said.ends_with("resumed") && resumed == id,
        "{said}"
    );
    column.works("resume");
    let (said, forked) = ask("forked", stage.options().resume(id).fork(true))
        .await
        .unwrap();
    assert!(said.contains("resumed") && forked != id, "{said}");
    column.works("fork");
    let (said, latest) = ask("continued", stage.options().continue_latest()).await.unwrap();
    assert!(said.contains("forked") && latest == forked, "{said}");
    column.works("continue");
    let unknown = "00000000-0000-4000-8000-000000000000";
    let expired = ask("anyone?", stage.options().resume(unknown)).await;
    assert!(
        matches!(expired, Err(Error::SessionExpired { .. })),
        "{expired:?}"
    );
    column.works("resume of an expired conversation: SessionExpired");
}

/// The table, in the order of the first column.
fn table(columns: &[Column]) -> String {
    let mut lines = vec![format!(
        "| operation | {} |",
        columns
            .iter()
            .map(|column| column.title.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
    )];
    lines.push(format!("| --- |{}", " --- |".repeat(columns.len())));
    for (operation, _) in &columns[0].cells {
        let cells = columns.iter().map(|column| {
            let outcome = column.cells.iter().find(|(name, _)| name == operation);
            match outcome.map(|(_, outcome)| *outcome) {
                Some(Outcome::Works) => "✓",
                Some(Outcome::Unsupported) => "`Unsupported`",
                None => panic!("{} was not tried with {}", operation, column.title),
            }
        });
        lines.push(format!(
            "| {operation} | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        ));
    }
    lines.join("\n")
}

#[tokio::test]
async fn every_operation_works_or_says_that_it_is_unsupported() {
    let columns: [Column; 3] = tokio::join!(
        run(Claude::V2_1_325, Over::Stdio),
        run(Claude::V2_1_113, Over::Stdio),
        run(Claude::V2_1_113, Over::WebSocket),
    )
    .into();
    let unsupported = columns[0]
        .cells
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Unsupported);
    let unsupported: Vec<_> = unsupported.map(|(operation, _)| *operation).collect();
    assert_eq!(unsupported, [""; 0], "the newest version has everything");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- conformance: begin -->\n", "\n<!-- conformance: end -->");
    let start = readme.find(begin).expect("the README has a place for the table") + begin.len();
    let stop = start + readme[start..].find(end).expect("the table ends");
    let table = table(&columns);
    if std::env::var_os("TILLER_UPDATE_README").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &readme[..start], &readme[stop..])).unwrap();
    } else {
        assert_eq!(
            &readme[start..stop],
            table,
            "the README's table is out of date: run this test with TILLER_UPDATE_README=1"
        );
    }
}
