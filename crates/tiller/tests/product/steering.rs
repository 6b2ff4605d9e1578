//! Steering a running session: titles, queue, settings, images, inquiries, forks, rewinds.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::client::{EventClient, is_status};
use crate::http;
use crate::server::{World, agent_of};

/// Reads until the session's entry matches.
async fn until_updated(client: &mut EventClient, fits: impl Fn(&Value) -> bool) -> Value {
    let is_updated = |event: &Value| event["type"] == "session.updated" && fits(&event["payload"]["session"]);
    client.until("session.updated", is_updated).await["payload"]["session"].clone()
}

async fn until_error(client: &mut EventClient) -> String {
    let error = client.until_type("runner.error").await;
    error["code"].as_str().expect("a code").to_owned()
}

#[tokio::test]
async fn users_change_titles_and_the_queue() {
    let script = Script::new()
        .on("first", [Reply::text("One. ").gate("end").and_text("End. ")])
        .on("edited", [Reply::text("Heard: {{prompts}}.")])
        .on("kept", [Reply::text("Then: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "first").await;

    client
        .send(
            "session.rename",
            json!({ "sessionId": session, "title": "  My\nname " }),
        )
        .await;
    let entry = until_updated(&mut client, |entry| entry["title"] == "My name").await;
    assert_eq!(entry["archived"], false);
    assert_eq!(entry["settings"]["permissionMode"], "default");
    assert_eq!(entry["pending"], 0);
    client
        .send(
            "session.archive",
            json!({ "sessionId": session, "archived": true }),
        )
        .await;
    until_updated(&mut client, |entry| entry["archived"] == true).await;
    client
        .send("session.rename", json!({ "sessionId": session, "title": " " }))
        .await;
    assert_eq!(until_error(&mut client).await, "invalid_request");

    client.until_streamed("One.").await;
    for prompt in ["second", "third", "kept"] {
        client.prompt(&session, prompt).await;
        client.until_type("session.queue").await;
    }
    let replace = |prompts: Value, expected: Value| json!({ "sessionId": session, "prompts": prompts, "expected": expected });
    client
        .send("session.queue", replace(json!([]), json!(["second"])))
        .await;
    assert_eq!(until_error(&mut client).await, "queue_changed");
    client
        .send(
            "session.queue",
            json!({ "sessionId": session, "prompts": ["second", " "] }),
        )
        .await;
    assert_eq!(until_error(&mut client).await, "prompt_empty");
    let all = json!(["second", "third", "kept"]);
    client
        .send("session.queue", replace(json!(["edited", "kept"]), all))
        .await;
    let waiting = client.until_type("session.queue").await["prompts"].clone();
    assert_eq!(waiting, json!(["edited", "kept"]));

    // A stop keeps the queue; it continues when the user says so.
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    client
        .send("session.flush", json!({ "sessionId": session }))
        .await;
    client.until_status("completed").await;
    client.until_status("completed").await;
    let streamed = client.streamed();
    assert!(streamed.contains("Heard: first | edited."), "{streamed}");
    assert!(streamed.ends_with("Then: first | edited | kept."), "{streamed}");

    client.prompt("nobody", "hello").await;
    assert_eq!(until_error(&mut client).await, "session_not_found");
    client.prompt(&session, "  ").await;
    assert_eq!(until_error(&mut client).await, "prompt_empty");
    server.stop().await;
}

#[tokio::test]
async fn settings_change_while_the_agent_lives() {
    let plan = json!({ "plan": "1. Do it.", "planFilePath": "/tmp/plan.md" });
    let script = Script::new()
        .on("hello", [Reply::text("Hi.")])
        .on("again", [Reply::text("Hi again.")])
        .on(
            "make a plan",
            [Reply::tool("ExitPlanMode", plan), Reply::text("Planned.")],
        )
        .on(
            "just do it",
            [
                Reply::tool("Bash", json!({ "command": "touch done", "description": "d" })),
                Reply::text("Done."),
            ],
        );
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    let agent = agent_of(&session);

    let configure = |change: Value| {
        let mut payload = change;
        payload["sessionId"] = json!(session);
        payload
    };
    client
        .send(
            "session.configure",
            configure(json!({ "model": "no-such-model" })),
        )
        .await;
    assert_eq!(until_error(&mut client).await, "unknown_model");
    client
        .send("session.configure", configure(json!({ "model": "haiku" })))
        .await;
    until_updated(&mut client, |entry| entry["settings"]["model"] == "haiku").await;
    client.prompt(&session, "again").await;
    client.until_status("completed").await;
    let models: Vec<_> = world
        .model
        .conversation_requests()
        .iter()
        .map(|request| request.body["model"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        !models[0].contains("haiku") && models[1].contains("haiku"),
        "{models:?}"
    );
    assert_eq!(agent_of(&session), agent, "the same process went on");

    // The agent leaves the plan mode by itself when its plan is approved.
    client
        .send(
            "session.configure",
            configure(json!({ "permissionMode": "plan", "model": null })),
        )
        .await;
    let entry = until_updated(&mut client, |entry| entry["settings"]["permissionMode"] == "plan").await;
    assert_eq!(entry["settings"]["model"], Value::Null);
    client.prompt(&session, "make a plan").await;
    let request = client.until_type("permission.request").await;
    assert_eq!(request["toolName"], "ExitPlanMode");
    client.answer(&request, json!({ "behavior": "allow" })).await;
    // The entry may arrive before or after the end of the turn.
    client.until_status("completed").await;
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await;
    assert_ne!(listed["sessions"][0]["settings"]["permissionMode"], "plan");

    // This process was not started for it: another one resumes the conversation.
    client
        .send(
            "session.configure",
            configure(json!({ "permissionMode": "bypassPermissions" })),
        )
        .await;
    client.prompt(&session, "just do it").await;
    client.until_status("completed").await;
    assert!(world.project().join("done").exists());
    assert_ne!(agent_of(&session), agent);
    let asked = client.story();
    let asked = asked.iter().filter(|line| line.starts_with("permission.request"));
    assert_eq!(asked.count(), 1, "nothing was asked but the plan");
    server.stop().await;
}

/// About the smallest possible PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

#[tokio::test]
async fn images_and_context_reach_the_model_and_are_shown_again() {
    let script = Script::new().on("what is it", [Reply::text("A dot.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let attachment = |media_type: &str| json!({ "mediaType": media_type, "data": PNG, "name": "dot.png" });
    let start = |media_type: &str| {
        json!({
            "prompt": "what is it", "cwd": world.project(), "attachments": [attachment(media_type)],
            "context": { "mode": "code", "currentView": "diff", "selectedFile": { "path": "a.rs", "startLine": 3 } },
        })
    };
    client.send("session.start", start("image/jpeg")).await;
    assert_eq!(until_error(&mut client).await, "attachment_invalid");
    client.send("session.start", start("image/png")).await;
    let shown = client.until_type("stream.user_prompt").await;
    client.until_status("completed").await;

    let image = &shown["attachments"][0];
    assert_eq!(
        (&image["mediaType"], &image["name"]),
        (&json!("image/png"), &json!("dot.png"))
    );
    assert_eq!(shown["context"]["selectedFile"]["startLine"], 3);
    let asked = world.model.conversation_requests()[0].body.to_string();
    assert!(asked.contains(PNG), "the model sees the image");
    let words = "[Context: code, view: diff, file: a.rs line 3]\\n\\nwhat is it";
    assert!(asked.contains(words), "{asked}");

    let session = shown["sessionId"].as_str().unwrap();
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let history = client.until_type("session.history").await;
    let prompt = &history["messages"][0];
    assert_eq!(
        (&prompt["prompt"], &prompt["attachments"], &prompt["uuid"]),
        (&json!("what is it"), &shown["attachments"], &shown["uuid"])
    );
    let path = format!("/api/sessions/{session}/images/{}", image["id"].as_str().unwrap());
    let found = http::get(&server.address, &path, &cookie.headers()).await;
    assert_eq!(
        (found.status, found.header("content-type")),
        (200, Some("image/png"))
    );
    assert_eq!(
        found.header("content-length"),
        Some(image["size"].to_string().as_str())
    );
    assert_eq!(http::get(&server.address, &path, &[]).await.status, 401);
    // The history has it from the transcript.
    let told = format!("/api/history/sessions/{session}?as=entries");
    let told = http::get(&server.address, &told, &cookie.headers()).await;
    let told: Value = serde_json::from_str(&told.body).unwrap();
    let prompt = &told["entries"][0]["message"];
    assert_eq!(
        (&prompt["type"], &prompt["images"][0]["source"]["data"]),
        (&json!("user_prompt"), &json!(PNG)),
        "{told}"
    );
    let wrong = format!("{path}0");
    assert_eq!(
        http::get(&server.address, &wrong, &cookie.headers()).await.status,
        404
    );
    server.stop().await;
}

async fn inquire(client: &mut EventClient, session: &str, subject: &str) -> Value {
    let payload = json!({ "sessionId": session, "requestId": subject, "subject": subject, "query": "not" });
    client.send("session.inquire", payload).await;
    let answer = client.until_type("session.answer").await;
    assert_eq!(
        (&answer["requestId"], &answer["subject"]),
        (&json!(subject), &json!(subject))
    );
    answer
}

#[tokio::test]
async fn files_are_rewound_and_a_conversation_is_forked() {
    let write = |text: &str| Reply::tool("Write", json!({ "file_path": "notes.txt", "content": text }));
    let script = Script::new()
        .on("write one", [write("one\n"), Reply::text("Written.")])
        .on(
            "write two",
            [
                Reply::tool("Read", json!({ "file_path": "notes.txt" })),
                write("two\n"),
                Reply::text("Written."),
            ],
        )
        .on("in the fork", [Reply::text("Known here: {{prompts}}.")])
        .on("in the source", [Reply::text("Known there: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let start = json!({ "prompt": "write one", "cwd": world.project(), "permissionMode": "acceptEdits" });
    client.send("session.start", start).await;
    let session = client.until_status("running").await["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    client.until_status("completed").await;
    client.prompt(&session, "write two").await;
    let second = client.until_type("stream.user_prompt").await;
    client.until_status("completed").await;
    let notes = || std::fs::read_to_string(world.project().join("notes.txt")).unwrap();
    assert_eq!(notes(), "two\n");

    for subject in [
        "contextUsage",
        "mcpStatus",
        "fileSuggestions",
        "permissionRules",
        "hooks",
        "usage",
        "settings",
    ] {
        let answer = inquire(&mut client, &session, subject).await;
        assert!(answer["data"].is_object(), "{answer}");
    }
    assert!(inquire(&mut client, &session, "contextUsage").await["data"]["totalTokens"].is_u64());
    let models = inquire(&mut client, &session, "models").await;
    assert!(models["data"].to_string().contains("haiku"), "{models}");
    let commands = inquire(&mut client, &session, "commands").await;
    assert!(commands["data"].to_string().contains("compact"), "{commands}");

    let rewind =
        |dry_run: bool| json!({ "sessionId": session, "userMessageId": second["uuid"], "dryRun": dry_run });
    client.send("session.rewind", rewind(true)).await;
    let preview = client.until_type("session.rewound").await;
    assert_eq!(
        (&preview["canRewind"], &preview["dryRun"]),
        (&json!(true), &json!(true)),
        "{preview}"
    );
    assert!(
        preview["filesChanged"][0]
            .as_str()
            .unwrap()
            .ends_with("notes.txt"),
        "{preview}"
    );
    assert_eq!(notes(), "two\n", "a dry run changes nothing");
    client.send("session.rewind", rewind(false)).await;
    let rewound = client.until_type("session.rewound").await;
    assert_eq!(
        rewound,
        json!({ "sessionId": session, "userMessageId": second["uuid"], "dryRun": false, "canRewind": true,
            "filesChanged": preview["filesChanged"], "insertions": preview["insertions"],
            "deletions": preview["deletions"] }),
        "what was announced is what was done"
    );
    assert_eq!(notes(), "one\n");

    client
        .send(
            "session.fork",
            json!({ "sessionId": session, "title": "other way" }),
        )
        .await;
    let fork = client.until_type("session.forked").await["newSessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    client.send("session.history", json!({ "sessionId": fork })).await;
    let history = client.until_type("session.history").await;
    assert_eq!(history["messages"][0]["prompt"], "write one");
    let length = history["messages"].as_array().unwrap().len() as u64;
    assert_eq!(
        history["lastSeq"].as_u64(),
        Some(length),
        "numbered from 1, without a gap"
    );
    // The source continues first: the fork does not get its later messages.
    client.prompt(&session, "in the source").await;
    client.until_status("completed").await;
    client.prompt(&fork, "in the fork").await;
    client.until_status("completed").await;
    let streamed = client.streamed();
    assert!(
        streamed.contains("Known here: write one | write two | in the fork."),
        "{streamed}"
    );
    assert!(
        streamed.contains("Known there: write one | write two | in the source."),
        "{streamed}"
    );
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await;
    for entry in listed["sessions"].as_array().unwrap() {
        assert_eq!(
            entry["id"], entry["claudeSessionId"],
            "each has its own conversation"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_deletion_can_be_cancelled_even_after_a_restart() {
    let script = Script::new()
        .on("take long", [Reply::text("Beginning").gate("never")])
        .on("go on", [Reply::text("Known: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Beginning").await;
    let before = client.heard.len();
    client
        .send(
            "session.delete",
            json!({ "sessionId": session, "afterMs": 600_000 }),
        )
        .await;
    // Its agent is ended at once.
    let gone = |event: &Value| {
        let entry = &event["payload"]["session"];
        entry["deleteAt"].is_i64() && entry["agent"]["state"] == "absent"
    };
    client
        .until_all(before, &[&|event| is_status(event, "idle"), &gone])
        .await;
    server.stop().await;

    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.prompt(&session, "go on").await;
    assert_eq!(until_error(&mut client).await, "session_deleted");
    client
        .send("session.undelete", json!({ "sessionId": session }))
        .await;
    until_updated(&mut client, |entry| entry["deleteAt"].is_null()).await;
    client.prompt(&session, "go on").await;
    client.until_status("completed").await;
    assert!(client.streamed().contains("Known: take long | go on."));

    client
        .send("session.delete", json!({ "sessionId": session, "afterMs": 1 }))
        .await;
    assert_eq!(client.until_type("session.deleted").await["sessionId"], session);
    assert_eq!(world.query("SELECT count(*) FROM messages"), ["0"]);
    server.stop().await;
}

#[tokio::test]
async fn a_title_comes_from_the_model_unless_a_user_set_one() {
    let script = Script::new()
        .on("please have a look", [Reply::text("One. ").gate("end")])
        .otherwise(Reply::text("Fine."));
    let world = World::new(script).await;
    world.configure("titles = \"model\"\n");
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "please have a look").await;
    let entry = until_updated(&mut client, |entry| entry["title"] == "Scripted").await;
    assert_eq!(entry["status"], "running", "beside the turn");
    client
        .send("session.rename", json!({ "sessionId": session, "title": "Mine" }))
        .await;
    until_updated(&mut client, |entry| entry["title"] == "Mine").await;
    let start = json!({ "title": "Given", "prompt": "another", "cwd": world.project() });
    client.send("session.start", start).await;
    client.until_status("completed").await;
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await;
    let titles: Vec<_> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["title"].clone())
        .collect();
    assert_eq!(titles.len(), 2);
    assert!(
        titles.contains(&json!("Given")) && titles.contains(&json!("Mine")),
        "{titles:?}"
    );

    let origin = format!("http://{}", server.address);
    let [cookie, page] = cookie.headers();
    let json = ("Content-Type", "application/json");
    let headers = [cookie, page, json, ("Origin", origin.as_str())];
    let body = json!({ "prompt": "tell me about it" }).to_string();
    let answer = http::request(&server.address, "POST", "/api/session-title", &headers, &body).await;
    assert_eq!(answer.json()["title"], "Scripted", "{}", answer.body);

    // A program's task costs no additional call.
    let body = json!({ "prompt": "a task", "working_dir": world.project() }).to_string();
    let side_calls = || world.model.requests().len() - world.model.conversation_requests().len();
    let before = side_calls();
    let answer = http::request(&server.address, "POST", "/api/task", &headers, &body).await;
    assert_eq!(answer.json()["success"], true, "{}", answer.body);
    assert_eq!(side_calls(), before);
    server.stop().await;
}

#[tokio::test]
async fn a_session_with_a_driver_in_a_terminal_is_not_forked_silently() {
    let script = Script::new()
        .on("remember 42", [Reply::text("I will.")])
        .on("what was it", [Reply::text("Known: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "remember 42").await;
    client.until_status("completed").await;
    server.stop().await;

    let mut elsewhere = world.claude_elsewhere(&session);
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.prompt(&session, "what was it").await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "driven_elsewhere", "{refused}");
    assert_eq!(refused["driver"]["pid"].as_u64(), elsewhere.id().map(u64::from));
    assert!(refused["driver"]["command"].as_str().unwrap().contains(&session));
    assert!(refused["driver"]["since"].as_i64().unwrap() > 0);

    client
        .send("session.takeover", json!({ "sessionId": session }))
        .await;
    until_updated(&mut client, |entry| entry["id"] == session.as_str()).await;
    elsewhere.wait().await.unwrap();
    client.prompt(&session, "what was it").await;
    client.until_status("completed").await;
    assert!(client.streamed().contains("Known: remember 42 | what was it."));
    server.stop().await;
}

#[tokio::test]
async fn an_idle_agent_yields_to_a_terminal_and_resumes_with_its_messages() {
    use tokio::io::AsyncWriteExt as _;

    let world = World::new(Script::new().otherwise(Reply::text("Known: {{prompts}}."))).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "one").await;
    client.until_status("completed").await;
    let agent = crate::server::agent_of(&session);

    // The session's own agent is idle. The other one does not name its conversation on its command line, but uses it.
    let mut elsewhere = world.claude_with(&["--continue"]);
    let note = format!(".claude/sessions/{}.json", elsewhere.id().unwrap());
    crate::server::until("it never begins", || {
        std::fs::read_to_string(world.home().join(&note)).is_ok_and(|note| note.contains(&session))
    })
    .await;
    client.prompt(&session, "not taken").await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "driven_elsewhere", "{refused}");
    assert_eq!(refused["driver"]["pid"].as_u64(), elsewhere.id().map(u64::from));
    crate::server::until("the agent that rests is still there", || {
        rustix::process::test_kill_process(agent).is_err()
    })
    .await;

    let mut keyboard = elsewhere.stdin.take().unwrap();
    let said = json!({ "type": "user", "message": { "role": "user", "content": "two, elsewhere" } });
    keyboard.write_all(format!("{said}\n").as_bytes()).await.unwrap();
    crate::server::until("nothing is said there", || {
        world
            .transcript(&session)
            .contains("Known: one | two, elsewhere.")
    })
    .await;
    drop(keyboard);
    elsewhere.wait().await.unwrap();
    client.prompt(&session, "three").await;
    client.until_status("completed").await;
    let streamed = client.streamed();
    assert!(
        streamed.ends_with("Known: one | two, elsewhere | three."),
        "{streamed}"
    );
    server.stop().await;
}

#[tokio::test]
async fn an_unanswered_hook_call_is_closed_and_the_turn_continues() {
    let script = Script::new().on("hello", [Reply::text("Hi.")]).on(
        "list",
        [
            Reply::tool("Bash", json!({ "command": "echo listed" })),
            Reply::text("It said {{tool_result}}"),
        ],
    );
    let world = World::new(script).await;
    world.configure("titles = \"prompt\"\nhook_timeout_s = 1\n");
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let mut other = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    client
        .send(
            "session.configure",
            json!({ "sessionId": session, "approval": "auto" }),
        )
        .await;
    client
        .send(
            "session.hooks",
            json!({ "sessionId": session, "events": ["PreToolUse"] }),
        )
        .await;
    client.prompt(&session, "list").await;
    let called = client.until_type("hook.callback").await;
    assert_eq!(
        called["input"]["tool_input"]["command"], "echo listed",
        "{called}"
    );
    for client in [&mut client, &mut other] {
        let closed = client.until_type("hook.resolved").await;
        assert_eq!(closed["callbackId"], called["callbackId"]);
        assert_eq!(closed["sessionId"], json!(session));
    }
    client.until_status("completed").await;
    assert!(
        client.streamed().ends_with("It said listed"),
        "{}",
        client.streamed()
    );
    // A late answer is refused.
    client
        .send(
            "hook.response",
            json!({ "sessionId": session, "callbackId": called["callbackId"], "output": { "continue": true } }),
        )
        .await;
    assert_eq!(until_error(&mut client).await, "request_not_found");
    server.stop().await;
}
