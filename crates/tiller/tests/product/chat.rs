//! The chat API with the real CLI, by a client that knows only its contract.

use serde_json::{Value, json};
use tiller_testkit::model::{Part, Reply, Script};

use crate::access::key;
use crate::client::EventClient;
use crate::server::{Server, World};
use crate::task_client::{KEY, serve};

pub(crate) struct ChatClient(EventClient);

impl ChatClient {
    /// Connects and reads `session_start`.
    pub(crate) async fn open(server: &Server, query: &str) -> (Self, Value) {
        Self::open_with(server, KEY, query).await
    }

    async fn open_with(server: &Server, key: &str, query: &str) -> (Self, Value) {
        let client = EventClient::connect_with(server, &format!("/ws{query}"), &[("x-api-key", key)]).await;
        let mut client = Self(client.unwrap());
        let start = client.next().await;
        assert_eq!(
            (&start["type"], &start["subtype"]),
            (&json!("system"), &json!("session_start")),
            "{start}"
        );
        (client, start["data"].clone())
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.0.send_text(&message.to_string()).await;
    }

    pub(crate) async fn say(&mut self, session: &str, content: &str) {
        let message = json!({ "content": content });
        self.send(json!({ "type": "user_message", "session_id": session, "message": message }))
            .await;
    }

    pub(crate) async fn until_ping(&mut self) {
        self.0.until_ping().await;
    }

    async fn next(&mut self) -> Value {
        self.0.next().await.expect("the connection is open")
    }

    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        self.0.until(kind, |frame| frame["type"] == kind).await
    }

    async fn until_one_of(&mut self, kinds: &[&str]) -> Value {
        let fits = |frame: &Value| kinds.contains(&frame["type"].as_str().unwrap_or_default());
        self.0.until(&kinds.join(" or "), fits).await
    }

    pub(crate) async fn until_system(&mut self, subtype: &str) -> Value {
        let fits = |frame: &Value| frame["type"] == "system" && frame["subtype"] == subtype;
        self.0.until(subtype, fits).await["data"].clone()
    }

    pub(crate) async fn error(&mut self) -> String {
        let error = self.until("error").await;
        assert!(error["error"].is_string() && error["details"]["message"].is_string());
        error["details"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn into_client(self) -> EventClient {
        self.0
    }

    pub(crate) fn heard(&self) -> &[Value] {
        &self.0.heard
    }

    /// The received frames that the contract's examples show: the type of each frame, with the kinds of blocks.
    fn story(&self) -> Vec<String> {
        let mut story: Vec<String> = Vec::new();
        for frame in &self.0.heard {
            let kind = frame["type"].as_str().unwrap();
            let line = match kind {
                "assistant" => {
                    let blocks = frame["content"].as_array().unwrap().iter();
                    let kinds: Vec<_> = blocks.map(|block| block["type"].as_str().unwrap()).collect();
                    format!("assistant {}", kinds.join("+"))
                }
                "system" if frame["subtype"] != "interrupted" => continue,
                "system" => "interrupted".to_owned(),
                "result" => format!("result {}", frame["subtype"].as_str().unwrap()),
                other => other.to_owned(),
            };
            // Consecutive pieces count as one stream.
            if line != "stream" || story.last().is_none_or(|last| last != "stream") {
                story.push(line);
            }
        }
        story
    }

    fn seqs(&self) -> Vec<u64> {
        self.0
            .heard
            .iter()
            .filter_map(|frame| frame["seq"].as_u64())
            .collect()
    }
}

fn bash(command: &str, description: &str) -> Part {
    Part::ToolUse {
        name: "Bash".to_owned(),
        input: json!({ "command": command, "description": description }),
        id: None,
    }
}

fn text(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
        chunk: Some(8),
        pause_ms: 0,
    }
}

fn reply(parts: impl IntoIterator<Item = Part>) -> Reply {
    Reply {
        parts: parts.into_iter().collect(),
        ..Reply::default()
    }
}

/// The fields that every frame of the contract has.
fn assert_result(result: &Value) {
    assert_eq!(result["session_id"], "demo");
    for field in ["duration_ms", "duration_api_ms", "num_turns"] {
        assert!(result[field].is_u64(), "{field} in {result}");
    }
    assert!(result["total_cost_usd"].is_f64(), "{result}");
    assert!(result["usage"]["input_tokens"].is_u64(), "{result}");
}

#[tokio::test]
async fn example_1_a_simple_conversation() {
    let script = Script::new().on(
        "What files are in the current directory?",
        [
            reply([
                text("Let me check the current directory."),
                bash("ls -a", "List files in current directory"),
            ]),
            reply([text("The current directory contains: README.md.")]),
        ],
    );
    let world = World::new(script).await;
    std::fs::write(world.project().join("README.md"), "hello").unwrap();
    let server = serve(&world).await;
    let (mut client, start) = ChatClient::open(&server, "?session_id=demo").await;
    assert_eq!(start["session_id"], "demo");
    assert_eq!(start["permission_mode"], "default");
    assert!(start["model"].is_string());
    assert_eq!(start["last_seq"], 0);
    assert_eq!(start["cwd"], world.project().to_str().unwrap());
    assert!(
        start["available_tools"]
            .as_array()
            .unwrap()
            .contains(&json!("Bash"))
    );

    client
        .say("demo", "What files are in the current directory?")
        .await;
    let result = client.until("result").await;
    assert_eq!(
        client.story(),
        [
            "user_message",
            "stream",
            "assistant text+tool_use",
            "assistant tool_result",
            "stream",
            "assistant text",
            "result success"
        ]
    );
    assert_result(&result);
    assert_eq!(
        (&result["is_error"], &result["num_turns"]),
        (&json!(false), &json!(2))
    );

    let delta = client
        .heard()
        .iter()
        .find(|frame| frame["event"]["type"] == "content_block_delta");
    let delta = delta.unwrap();
    assert_eq!(delta["session_id"], "demo");
    assert!(delta["uuid"].is_string());
    assert_eq!(
        delta["event"]["delta"],
        json!({ "type": "text_delta", "text": "Let me c" })
    );

    let said: Vec<_> = client
        .heard()
        .iter()
        .filter(|frame| frame["type"] == "assistant")
        .collect();
    assert_eq!(
        said[0]["content"][0],
        json!({ "type": "text", "text": "Let me check the current directory." })
    );
    let call = &said[0]["content"][1];
    assert_eq!(
        (&call["name"], &call["input"]),
        (
            &json!("Bash"),
            &json!({ "command": "ls -a", "description": "List files in current directory" })
        )
    );
    assert!(said[0]["model"].as_str().unwrap().starts_with("claude"));
    let returned = &said[1]["content"][0];
    assert_eq!(
        (&returned["tool_use_id"], &returned["is_error"]),
        (&call["id"], &json!(false))
    );
    assert!(returned["content"].as_str().unwrap().contains("README.md"));

    let commands = client
        .heard()
        .iter()
        .find(|frame| frame["subtype"] == "available_commands")
        .unwrap();
    let commands = commands["data"]["commands"].as_array().unwrap();
    assert!(!commands.is_empty());
    assert!(
        commands
            .iter()
            .all(|command| command["name"].as_str().unwrap().starts_with('/'))
    );
    server.stop().await;
}

#[tokio::test]
async fn example_2_a_permission_and_always_allow() {
    let script = Script::new()
        .on(
            "Delete all .log files",
            [
                reply([bash("rm -f *.log", "Delete all .log files")]),
                reply([text("Deleted.")]),
            ],
        )
        .on(
            "make",
            [reply([bash("touch made", "Make a file")]), reply([text("Made.")])],
        )
        .on(
            "another",
            [
                reply([bash("mkdir other", "Make a folder")]),
                reply([text("I was told: {{tool_result}}")]),
            ],
        );
    let world = World::new(script).await;
    let log = world.project().join("a.log");
    std::fs::write(&log, "x").unwrap();
    let server = serve(&world).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;

    client.say("demo", "Delete all .log files").await;
    let request = client.until("permission_request").await;
    assert_eq!(
        (&request["tool_name"], &request["input"]),
        (
            &json!("Bash"),
            &json!({ "command": "rm -f *.log", "description": "Delete all .log files" })
        )
    );
    assert!(request.as_object().unwrap().contains_key("blocked_path"));
    let suggestion = &request["permission_suggestions"][0];
    assert_eq!(
        (
            &suggestion["type"],
            &suggestion["behavior"],
            &suggestion["rules"][0]["toolName"]
        ),
        (&json!("addRules"), &json!("allow"), &json!("Bash"))
    );
    assert!(log.exists(), "nothing happens before the answer");

    // A client that connects later is asked, too.
    let (mut other, start) = ChatClient::open(&server, "?session_id=demo").await;
    assert!(start["last_seq"].as_u64().unwrap() > 0);
    assert_eq!(other.until("permission_request").await, request);

    client
        .send(json!({
            "type": "permission_response", "request_id": request["request_id"], "decision": "allow",
        }))
        .await;
    client.until("result").await;
    // The agent decides where the pieces of the call end.
    let mut story = client.story();
    story.retain(|line| line != "stream");
    // If the agent takes long to ask, the call is not held back until then.
    let call = story
        .iter()
        .position(|line| line == "assistant tool_use")
        .unwrap();
    assert!([1, 2].contains(&call), "{story:?}");
    story.remove(call);
    assert_eq!(
        story,
        [
            "user_message",
            "permission_request",
            "assistant tool_result",
            "assistant text",
            "result success"
        ]
    );
    assert!(!log.exists());
    assert_eq!(
        other.until_system("permission_resolved").await["behavior"],
        "allow"
    );
    other.until("result").await;

    // A second answer is refused.
    client
        .send(
            json!({ "type": "permission_response", "request_id": request["request_id"], "decision": "deny" }),
        )
        .await;
    assert_eq!(client.error().await, "ALREADY_ANSWERED");

    // 'Always allow' sends one of the suggestions back: the same call then needs no permission.
    client.say("demo", "make it").await;
    let request = client.until("permission_request").await;
    client
        .send(json!({
            "type": "permission_response", "request_id": request["request_id"], "decision": "allow",
            "updated_input": request["input"], "updated_permissions": [request["permission_suggestions"][0]],
        }))
        .await;
    client.until("result").await;
    client.say("demo", "make it again").await;
    let next = client.until_one_of(&["permission_request", "result"]).await;
    assert_eq!(next["type"], "result", "{next}");
    assert!(world.project().join("made").exists());

    client.say("demo", "another").await;
    let request = client.until("permission_request").await;
    client
        .send(json!({
            "type": "permission_response", "request_id": request["request_id"], "decision": "deny",
            "message": "不允许", "interrupt": false,
        }))
        .await;
    let result = client.until("result").await;
    assert_eq!(result["subtype"], "success");
    assert!(result["result"].as_str().unwrap().contains("不允许"), "{result}");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    server.stop().await;
}

#[tokio::test]
async fn example_3_an_interrupt() {
    let long = "sleep 100; echo done";
    let script = Script::new()
        .on("very long", [reply([bash(long, "Wait")]), reply([text("never")])])
        .on("more", [reply([text("Here I am.")])]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;
    // No turn is running yet.
    client.send(json!({ "type": "interrupt" })).await;
    assert_eq!(
        client.next().await,
        json!({ "type": "system", "subtype": "interrupted", "data": { "message": "Operation interrupted by user" } })
    );
    client
        .send(json!({ "type": "set_permission_mode", "mode": "bypassPermissions" }))
        .await;
    assert_eq!(
        client.until_system("status").await["permission_mode"],
        "bypassPermissions"
    );
    client.say("demo", "Run a very long operation...").await;
    let call = client.until("assistant").await;
    assert_eq!(call["content"][0]["input"]["command"], long);

    client.send(json!({ "type": "interrupt" })).await;
    client.until_system("interrupted").await;
    let result = client.until("result").await;
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["interrupted"]),
        (&json!("error"), &json!(false), &json!(true))
    );
    assert_result(&result);
    let story = client.story();
    assert_eq!(
        story[story.len() - 2..],
        ["interrupted", "result error"],
        "{story:?}"
    );
    // The conversation continues.
    client.say("demo", "more").await;
    assert_eq!(client.until("result").await["result"], "Here I am.");
    server.stop().await;
}

#[tokio::test]
async fn a_reconnecting_client_gets_the_rest_once() {
    let script = Script::new()
        .on("first", [reply([text("one two three four five six")])])
        .on(
            "second",
            [
                reply([bash("touch made", "Make it")]),
                reply([text("seven eight nine")]),
            ],
        );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=我的").await;
    client
        .send(json!({ "type": "user_message", "message": { "content": " first " }, "uuid": "msg-1" }))
        .await;
    client.until("result").await;
    let echo = client
        .heard()
        .iter()
        .find(|frame| frame["type"] == "user_message")
        .unwrap();
    assert_eq!(
        (&echo["message"]["content"], &echo["uuid"], &echo["session_id"]),
        (&json!("first"), &json!("msg-1"), &json!("我的"))
    );
    client.say("我的", "second").await;
    let request = client.until("permission_request").await;
    client
        .send(json!({ "type": "permission_response", "request_id": request["request_id"], "decision": "allow" }))
        .await;
    client.until("result").await;
    assert!(client.seqs().is_sorted());
    let frames: Vec<Value> = client
        .heard()
        .iter()
        .filter(|frame| frame["seq"].is_u64())
        .cloned()
        .collect();
    let last = client.seqs().into_iter().max().unwrap();
    server.stop().await;

    // Across a restart, and from any position.
    let server = serve(&world).await;
    let without_id = |mut frame: Value| {
        if frame["type"] == "user_message" {
            frame.as_object_mut().unwrap().remove("uuid");
        }
        frame
    };
    let is_told_once = |frame: &Value| frame["subtype"] != "available_commands";
    let mut seen: Vec<u64> = client.seqs();
    seen.dedup();
    for after in seen.into_iter().filter(|seq| *seq < last).step_by(5).chain([0]) {
        let query = format!("?session_id=%E6%88%91%E7%9A%84&after_seq={after}");
        let (mut again, start) = ChatClient::open(&server, &query).await;
        assert_eq!(start["last_seq"], last);
        while again.seqs().last() != Some(&last) {
            again.next().await;
        }
        let expected = frames
            .iter()
            .filter(|frame| frame["seq"].as_u64() > Some(after))
            .cloned();
        let expected: Vec<_> = expected.map(without_id).filter(is_told_once).collect();
        let found = again.heard()[1..].iter().cloned();
        let found: Vec<_> = found.map(without_id).filter(is_told_once).collect();
        assert_eq!(
            without_place_of_calls(found),
            without_place_of_calls(expected),
            "after {after}"
        );
    }
    server.stop().await;
}

/// All frames except tool calls, in order, and those calls: a later reader gets the permission request before the call;
/// a live reader may have got the call before the agent asked.
fn without_place_of_calls(frames: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let is_call = |frame: &Value| frame["content"][0]["type"] == "tool_use";
    let (mut calls, others): (Vec<_>, Vec<_>) = frames.into_iter().partition(is_call);
    for call in &mut calls {
        call.as_object_mut().unwrap().remove("seq");
    }
    (others, calls)
}

#[tokio::test]
async fn denied_and_failed_tools_are_reported() {
    let script = Script::new().on(
        "look",
        [
            reply([bash("ls /nonexistent", "Look there")]),
            reply([text("Nothing there.")]),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;
    client
        .send(json!({ "type": "user_message", "message": { "content": "look", "parent_tool_use_id": "toolu_0" } }))
        .await;
    let echo = client.until("user_message").await;
    assert_eq!(
        echo["message"],
        json!({ "content": "look", "parent_tool_use_id": "toolu_0" })
    );
    let request = client.until("permission_request").await;
    assert_eq!(request["blocked_path"], "/nonexistent");
    // A change during a turn is answered as such, whatever the agent reports about its own state.
    client
        .send(json!({ "type": "set_permission_mode", "mode": "acceptEdits" }))
        .await;
    assert_eq!(
        client.until_system("status").await["permission_mode"],
        "acceptEdits"
    );
    client
        .send(json!({ "type": "permission_response", "request_id": request["request_id"], "decision": "allow" }))
        .await;
    let error = client.until("error").await;
    assert_eq!(
        (
            &error["error"],
            &error["details"]["code"],
            &error["details"]["tool"]
        ),
        (
            &json!("Tool execution failed"),
            &json!("TOOL_ERROR"),
            &json!("Bash")
        )
    );
    assert!(
        error["details"]["message"]
            .as_str()
            .unwrap()
            .contains("No such file"),
        "{error}"
    );
    assert_eq!(
        client.until("result").await["subtype"],
        "success",
        "the agent goes on"
    );
    let statuses = client.heard().iter().filter(|frame| frame["subtype"] == "status");
    assert!(statuses.clone().count() > 0);
    for status in statuses {
        assert!(status["data"]["model"].is_string(), "{status}");
    }

    // A position that was never sent leads to a reset.
    let (mut lost, start) = ChatClient::open(&server, "?session_id=demo&after_seq=100000").await;
    assert_eq!(lost.until_system("reset").await["last_seq"], start["last_seq"]);
    let watch = format!(
        "/api/task/{}/stream",
        world.query("SELECT id FROM sessions").remove(0)
    );
    let headers = [("x-api-key", KEY), ("last-event-id", "100000")];
    let reset = crate::http::get(&server.address, &watch, &headers).await;
    assert!(reset.body.starts_with("event: reset\nid: 0\n"), "{}", reset.body);
    server.stop().await;
}

#[tokio::test]
async fn a_name_belongs_to_its_key_and_messages_are_checked() {
    let script = Script::new().on("hello", [reply([text("Hi.")])]).on(
        "slow",
        [reply([
            Part::Gate {
                name: "slow".to_owned(),
            },
            text("Done."),
        ])],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (one, two) = (
        key(&world, &["one"]).await,
        key(&world, &["two", "--scope", "read"]).await,
    );

    let (mut mine, _) = ChatClient::open_with(&server, &one, "").await;
    // A second connection with the same name receives the session from its start.
    let (mut also_mine, _) = ChatClient::open_with(&server, &one, "?session_id=default").await;
    mine.say("default", "hello").await;
    mine.until("result").await;
    assert_eq!(
        also_mine.until("user_message").await["message"]["content"],
        "hello"
    );
    also_mine.until("result").await;

    // Another key's 'default' is another session; and this key may only read.
    let (mut theirs, start) = ChatClient::open_with(&server, &two, "?session_id=default").await;
    assert_eq!(start["last_seq"], 0);
    theirs.say("default", "hello").await;
    assert_eq!(theirs.error().await, "FORBIDDEN");

    for (message, code) in [
        (
            json!({ "type": "user_message", "session_id": "other", "message": { "content": "x" } }),
            "INVALID_SESSION",
        ),
        (
            json!({ "type": "user_message", "message": { "content": "  " } }),
            "EMPTY_MESSAGE",
        ),
        (json!({ "type": "user_message", "message": {} }), "PARSE_ERROR"),
        (json!({ "no": "type" }), "PARSE_ERROR"),
        (json!({ "type": "set_model", "model": "gpt-4" }), "INVALID_MODEL"),
        (
            json!({ "type": "set_permission_mode", "mode": "yolo" }),
            "INVALID_PERMISSION_MODE",
        ),
        (
            json!({ "type": "permission_response", "request_id": "r", "decision": "allow" }),
            "REQUEST_NOT_FOUND",
        ),
    ] {
        mine.send(message.clone()).await;
        assert_eq!(mine.error().await, code, "{message}");
    }

    // A message during a turn is queued, and the client is told so.
    mine.say("default", "slow").await;
    mine.until("user_message").await;
    mine.say("default", "hello again").await;
    assert_eq!(
        mine.until_system("queued").await["prompts"],
        json!(["hello again"])
    );
    world.model.gate("slow").open();
    mine.until("result").await;
    assert_eq!(mine.until("result").await["result"], "Hi.");

    // 60 messages in a minute; this connection has sent 10 above, perhaps longer ago on a slow machine.
    let before = mine.heard().len();
    for _ in 0..61 {
        mine.send(json!({ "type": "interrupt" })).await;
    }
    assert_eq!(mine.error().await, "RATE_LIMITED");
    let taken = mine.heard()[before..].iter();
    let taken = taken.filter(|frame| frame["subtype"] == "interrupted").count();
    assert!((50..=60).contains(&taken), "{taken}");
    // This connection and the other one stay open.
    also_mine.send(json!({ "type": "interrupt" })).await;
    also_mine.until_system("interrupted").await;

    let refused = EventClient::connect_with(&server, "/ws?cwd=/etc", &[("x-api-key", &one)]).await;
    // The name exists, so the folder is ignored; a new name needs a valid folder.
    assert!(refused.is_ok());
    let refused =
        EventClient::connect_with(&server, "/ws?session_id=new&cwd=/etc", &[("x-api-key", &one)]).await;
    assert_eq!(refused.err(), Some(400));
    let refused = EventClient::connect_with(&server, "/ws?after_seq=x", &[("x-api-key", &one)]).await;
    assert_eq!(refused.err(), Some(422));
    server.stop().await;
}

#[tokio::test]
async fn settings_hooks_images_and_context() {
    let script = Script::new().on("hello", [reply([text("Hi.")])]).on(
        "list",
        [
            reply([bash("echo from-a-hook", "List")]),
            reply([text("Told: {{tool_result}}")]),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;
    client
        .send(json!({ "type": "register_hooks", "events": ["PreToolUse"] }))
        .await;
    assert_eq!(
        client.until_system("hooks_registered").await["events"],
        json!(["PreToolUse"])
    );
    client
        .send(json!({ "type": "set_model", "model": "haiku" }))
        .await;
    assert_eq!(
        client.until_system("status").await,
        json!({ "model": "haiku", "permission_mode": "default" })
    );

    // An image of one pixel, and the context of the user.
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let element = json!({ "tagName": "h1", "selector": ".title", "textContent": "Welcome" });
    client
        .send(json!({ "type": "user_message", "message": {
            "content": "hello", "images": [{ "media_type": "image/png", "data": pixel }],
            "context": { "mode": "slide", "currentView": "page 2", "selectedElement": element },
        } }))
        .await;
    client.until("result").await;
    let requests = world.model.conversation_requests();
    let sent = requests[0].body["messages"].to_string();
    assert!(requests[0].body["model"].as_str().unwrap().contains("haiku"));
    assert!(sent.contains(pixel), "the picture reaches the model");
    assert!(
        sent.contains(r#"[Context: slide, view: page 2, selected: h1.title \"Welcome\"]"#),
        "{sent}"
    );
    let commands = client
        .heard()
        .iter()
        .find(|frame| frame["subtype"] == "available_commands")
        .unwrap();
    let described = commands["data"]["commands"].as_array().unwrap().iter();
    assert!(described.clone().any(|command| command["description"] != ""));

    // The agent asks the client before it uses a tool, and the client denies it.
    client.say("demo", "list").await;
    let callback = client.until("hook_callback").await;
    assert_eq!(
        (
            &callback["hook_event"],
            &callback["input"]["session_id"],
            &callback["input"]["tool_name"]
        ),
        (&json!("PreToolUse"), &json!("demo"), &json!("Bash"))
    );
    assert!(callback["tool_use_id"].is_string());
    client
        .send(json!({
            "type": "hook_callback_response", "callback_id": callback["callback_id"],
            "output": { "continue": true, "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not today",
            } },
        }))
        .await;
    let result = client.until("result").await;
    assert!(
        result["result"].as_str().unwrap().contains("not today"),
        "{result}"
    );

    // A change by another client is reported.
    let (mut other, start) = ChatClient::open(&server, "?session_id=demo").await;
    assert_eq!(start["model"], "haiku");
    other
        .send(json!({ "type": "set_permission_mode", "mode": "plan" }))
        .await;
    let changed = json!({ "model": "haiku", "permission_mode": "plan" });
    assert_eq!(other.until_system("status").await, changed);
    assert_eq!(client.until_system("status").await, changed);
    let no_picture = json!({ "content": "x", "images": [{ "media_type": "image/png", "data": "AAAA" }] });
    client
        .send(json!({ "type": "user_message", "message": no_picture }))
        .await;
    assert_eq!(client.error().await, "INVALID_IMAGE");
    server.stop().await;
}
