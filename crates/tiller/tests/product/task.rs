//! Tasks with the real CLI: synchronous, streamed, asking, refused, stopped, continued.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::access::key;
use crate::server::{World, bash};
use crate::task_client::{KEY, TaskClient, question, serve};

#[tokio::test]
async fn a_task_returns_its_result_and_cost() {
    // Not the world's own project: the model must know the path before there is a world.
    let folder = tempfile::tempdir().unwrap();
    let garden = folder.path().canonicalize().unwrap();
    let tree = json!({ "file_path": garden.join("tree.txt"), "content": "green\n" });
    let script = Script::new()
        .on("plant", [Reply::tool("Write", tree), Reply::text("Planted.")])
        .on("what was it", [Reply::text("All of it: {{prompts}}")]);
    let world = World::new(script).await;
    let root = ["--root", garden.to_str().unwrap()];
    let server = world.serve_with(&root, &[("TILLER_API_KEY", KEY)]).await;
    let client = TaskClient::new(&server);

    let planted = client
        .run(json!({ "prompt": "  plant a tree ", "working_dir": garden, "tools": ["Write"] }))
        .await;
    assert_eq!(
        (&planted["success"], &planted["message"]),
        (&json!(true), &json!("Planted."))
    );
    assert_eq!(planted["files_changed"], json!(["tree.txt"]));
    assert_eq!(planted["tools_used"], json!(["Write"]));
    assert_eq!(planted["permission_denials"], json!([]));
    assert_eq!(planted["num_turns"], 2);
    assert!(planted["duration_ms"].as_u64().unwrap() > 0);
    assert!(planted["usage"]["output_tokens"].as_u64().unwrap() > 0);
    let cost = planted["cost_usd"].as_f64().unwrap();
    assert!(cost > 0.0);
    assert!(garden.join("tree.txt").exists());

    let session = planted["session_id"].as_str().unwrap();
    let more = client
        .run(json!({ "prompt": "what was it", "resume": session }))
        .await;
    assert_eq!(more["session_id"], session);
    assert_eq!(more["message"], "All of it: plant a tree | what was it");
    assert_eq!(
        (&more["files_changed"], &more["tools_used"]),
        (&json!([]), &json!([]))
    );
    let one_call = more["cost_usd"].as_f64().unwrap();
    assert!(
        (one_call - cost / 2.0).abs() < 1e-9,
        "one call of the model, not all of the conversation's: {one_call} of {cost}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_synchronous_task_denies_requests() {
    let ask = json!({ "questions": [question("Which colour?", false)] });
    let script = Script::new()
        .on(
            "make a file",
            [bash("touch made"), Reply::text("I was told: {{tool_result}}")],
        )
        .on(
            "ask me",
            [
                Reply::tool("AskUserQuestion", ask),
                Reply::text("So: {{tool_result}}"),
            ],
        );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let denied = client.run(json!({ "prompt": "make a file" })).await;
    assert_eq!(denied["success"], true);
    let denial = &denied["permission_denials"][0];
    assert_eq!(
        (&denial["tool_name"], &denial["tool_input"]["command"]),
        (&json!("Bash"), &json!("touch made"))
    );
    assert!(denial["tool_use_id"].is_string());
    assert_eq!(denied["tools_used"], json!([]), "what was denied was not used");
    assert!(
        denied["message"]
            .as_str()
            .unwrap()
            .contains("Nobody can be asked"),
        "{denied}"
    );
    assert!(!world.project().join("made").exists());

    let unasked = client.run(json!({ "prompt": "ask me" })).await;
    assert!(
        unasked["message"]
            .as_str()
            .unwrap()
            .contains("Nobody can be asked"),
        "{unasked}"
    );

    // Listed tools are granted; an empty list grants none.
    let granted = client
        .run(json!({ "prompt": "make a file", "tools": ["Bash"] }))
        .await;
    assert_eq!(granted["permission_denials"], json!([]));
    assert!(world.project().join("made").exists());
    client.run(json!({ "prompt": "make a file", "tools": [] })).await;
    let requests = world.model.requests();
    let last = requests.last().unwrap();
    assert_eq!(
        last.body["tools"].as_array().map_or(0, Vec::len),
        0,
        "{}",
        last.body["tools"]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_stream_reports_events_live() {
    let script = Script::new().on(
        "look around",
        [
            Reply::thinking("I should look. ")
                .and_text("Let me see. ")
                .and_tool("Bash", json!({ "command": "echo here", "description": "look" })),
            Reply::text("It says ").gate("rest").and_text("{{tool_result}}."),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let task = json!({ "prompt": "look around", "tools": ["Bash"] });
    let mut stream = client.stream(task.clone()).await;
    while !stream.joined("text").contains("It says ") {
        stream.next().await.expect("more");
    }
    assert!(
        !stream.joined("text").contains("here"),
        "the model has not said it yet"
    );
    world.model.gate("rest").open();
    let complete = stream.complete().await;
    assert_eq!(
        stream.story(),
        ["thinking", "text", "tool_use", "tool_result", "text", "complete"]
    );
    assert_eq!(stream.joined("thinking"), "I should look. ");
    assert_eq!(stream.joined("text"), "Let me see. It says here.");
    assert!(
        stream.kinds().iter().filter(|kind| **kind == "text").count() > 3,
        "in pieces"
    );
    let of = |kind: &str| {
        stream
            .heard
            .iter()
            .find(|event| event.kind == kind)
            .unwrap()
            .data
            .clone()
    };
    let (call, result) = (of("tool_use"), of("tool_result"));
    assert_eq!(
        (&call["name"], &call["input"]["command"]),
        (&json!("Bash"), &json!("echo here"))
    );
    assert_eq!(
        (&result["tool_use_id"], &result["name"]),
        (&call["tool_use_id"], &json!("Bash"))
    );
    assert_eq!(
        (&result["content"], &result["is_error"]),
        (&json!("here"), &json!(false))
    );
    let blocks: Vec<_> = stream
        .heard
        .iter()
        .filter(|event| ["text", "thinking"].contains(&event.kind.as_str()))
        .map(|event| event.data["block"].as_u64().unwrap())
        .collect();
    let mut distinct = blocks.clone();
    distinct.dedup();
    assert_eq!(
        distinct.len(),
        3,
        "three blocks, each in one piece of the stream: {blocks:?}"
    );
    let ids: Vec<_> = stream
        .heard
        .iter()
        .map(|event| event.id.expect("an id"))
        .collect();
    assert!(ids.is_sorted() && ids[0] > 0, "{ids:?}");
    assert_eq!(complete["success"], true);
    assert_eq!(complete["message"], "It says here.");
    assert_eq!(complete["session_id"], stream.session.as_str());

    // Whole blocks, if requested.
    let mut task = task;
    task["granularity"] = json!("block");
    let mut stream = client.stream(task).await;
    stream.complete().await;
    assert_eq!(
        stream.kinds(),
        ["thinking", "text", "tool_use", "tool_result", "text", "complete"]
    );
    assert_eq!(stream.joined("text"), "Let me see. It says here.");
    server.stop().await;
}

#[tokio::test]
async fn questions_are_answered_one_by_one_in_any_order() {
    let ask = json!({ "questions": [question("Which colour?", false), question("Which ones?", true)] });
    let script = Script::new().on(
        "ask me",
        [
            Reply::tool("AskUserQuestion", ask),
            Reply::text("So: {{tool_result}}"),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server).in_language("zh-CN");
    let mut stream = client.stream(json!({ "prompt": "ask me" })).await;
    let (one, other) = (
        stream.until("ask_user_question").await,
        stream.until("ask_user_question").await,
    );
    assert_eq!(
        (&one["question"], &one["multi_select"]),
        (&json!("Which colour?"), &json!(false))
    );
    assert_eq!(
        (&other["question"], &other["multi_select"]),
        (&json!("Which ones?"), &json!(true))
    );
    assert_eq!(
        one["options"][1],
        json!({ "label": "Blue", "description": "cool" })
    );
    assert_ne!(one["question_id"], other["question_id"]);

    let answer = async |question: &Value, answer: Value| {
        let body =
            json!({ "session_id": stream.session, "question_id": question["question_id"], "answer": answer });
        client.post("/api/task/answer", body).await
    };
    let invalid = (400, "invalid_answer".to_owned());
    for bad in [
        json!(""),
        json!("  "),
        json!([]),
        json!([""]),
        json!(5),
        json!({}),
        json!(["Red", "Blue"]),
    ] {
        assert_eq!(answer(&one, bad.clone()).await.refusal(), invalid, "{bad}");
    }
    let submitted = answer(&other, json!(["Red", "Blue"])).await;
    assert_eq!(
        submitted.json(),
        json!({ "success": true, "message": "答案已提交，任务继续执行" })
    );
    let gone = (404, "question_not_found".to_owned());
    assert_eq!(
        answer(&other, json!("Red")).await.refusal(),
        gone,
        "answered already"
    );
    assert_eq!(
        answer(&json!({ "question_id": "auth_strategy_01" }), json!("Red"))
            .await
            .refusal(),
        gone
    );
    assert_eq!(answer(&one, json!("a green one")).await.status, 200, "free text");
    let session = stream.session.clone();
    let complete = stream.complete().await;
    let message = complete["message"].as_str().unwrap();
    assert!(
        message.contains("a green one") && message.contains("Red, Blue"),
        "{message}"
    );
    let late = json!({ "session_id": session, "question_id": one["question_id"], "answer": "Red" });
    assert_eq!(client.post("/api/task/answer", late).await.refusal(), gone);

    // Cancelled, then stopped.
    let mut stream = client.stream(json!({ "prompt": "ask me" })).await;
    for _ in 0..2 {
        let asked = stream.until("ask_user_question").await;
        let cancel =
            json!({ "session_id": stream.session, "question_id": asked["question_id"], "answer": null });
        assert_eq!(client.post("/api/task/answer", cancel).await.status, 200);
    }
    let complete = stream.complete().await;
    assert!(
        complete["message"]
            .as_str()
            .unwrap()
            .contains("declined to answer"),
        "{complete}"
    );

    let mut stream = client.stream(json!({ "prompt": "ask me" })).await;
    let asked = stream.until("ask_user_question").await;
    let stop = json!({ "session_id": stream.session });
    assert_eq!(client.post("/api/task/stop", stop).await.status, 200);
    assert_eq!(stream.complete().await["success"], false);
    let late = json!({ "session_id": stream.session, "question_id": asked["question_id"], "answer": "Red" });
    let refused = client.post("/api/task/answer", late).await;
    assert_eq!(refused.refusal(), (400, "task_interrupted".to_owned()));
    assert_eq!(refused.json()["error"]["message"], "任务已被中断");
    server.stop().await;
}

#[tokio::test]
async fn a_permission_is_answered_once() {
    let script = Script::new()
        .on("make", [bash("touch made"), Reply::text("Made.")])
        .on(
            "break",
            [bash("rm made"), Reply::text("I was told: {{tool_result}}")],
        );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let mut stream = client.stream(json!({ "prompt": "make" })).await;
    let asked = stream.until("permission_request").await;
    assert_eq!(
        (&asked["tool_name"], &asked["input"]["command"]),
        (&json!("Bash"), &json!("touch made"))
    );
    assert!(!asked["suggestions"].as_array().unwrap().is_empty());
    assert!(
        !world.project().join("made").exists(),
        "nothing runs before the answer"
    );
    let decide = |session: &str, request: &Value, decision: &str| json!({ "session_id": session, "request_id": request, "decision": decision, "message": "keep my file" });
    let (session, request) = (stream.session.clone(), &asked["request_id"]);
    let unknown = json!("00000000-0000-4000-8000-000000000000");
    let refused = client
        .post("/api/task/permission", decide(&session, &unknown, "allow"))
        .await;
    assert_eq!(refused.refusal(), (404, "request_not_found".to_owned()));
    let refused = client
        .post("/api/task/permission", decide(&session, request, "perhaps"))
        .await;
    assert_eq!(refused.refusal(), (422, "invalid_request".to_owned()));
    let decided = client
        .post("/api/task/permission", decide(&session, request, "allow"))
        .await;
    assert_eq!((decided.status, &decided.json()["success"]), (200, &json!(true)));
    assert_eq!(stream.complete().await["message"], "Made.");
    assert!(world.project().join("made").exists());
    let refused = client
        .post("/api/task/permission", decide(&session, request, "deny"))
        .await;
    assert_eq!(refused.refusal(), (409, "already_answered".to_owned()));

    let mut stream = client
        .stream(json!({ "prompt": "break", "resume": session }))
        .await;
    let asked = stream.until("permission_request").await;
    let decided = client
        .post(
            "/api/task/permission",
            decide(&session, &asked["request_id"], "deny"),
        )
        .await;
    assert_eq!(decided.status, 200);
    let complete = stream.complete().await;
    assert!(
        complete["message"].as_str().unwrap().contains("keep my file"),
        "{complete}"
    );
    assert_eq!(complete["permission_denials"][0]["tool_name"], "Bash");
    assert!(world.project().join("made").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_task_ends_when_it_is_stopped_or_times_out() {
    let script = Script::new().on("take long", [Reply::text("Beginning… ").gate("never")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let mut stream = client.stream(json!({ "prompt": "take long" })).await;
    stream.until("text").await;
    let stop = json!({ "session_id": stream.session });
    let stopped = client.post("/api/task/stop", stop.clone()).await;
    assert_eq!((stopped.status, &stopped.json()["success"]), (200, &json!(true)));
    let complete = stream.complete().await;
    assert_eq!(complete["success"], false);
    assert_eq!(stream.story(), ["text", "complete"], "a stop is no error");
    assert_eq!(
        client.post("/api/task/stop", stop).await.status,
        200,
        "stopped is stopped"
    );

    let began = std::time::Instant::now();
    let late = client.run(json!({ "prompt": "take long", "timeout_s": 2 })).await;
    assert_eq!(late["success"], false);
    assert!(late["message"].as_str().unwrap().contains("time limit"), "{late}");
    assert!(began.elapsed().as_secs() >= 2);

    // A client that disconnects does not remove the task's time limit.
    let stream = client
        .stream(json!({ "prompt": "take long", "timeout_s": 2 }))
        .await;
    let session = stream.session.clone();
    drop(stream);
    let mut stream = client.watch(&session, None).await;
    let complete = stream.complete().await;
    assert_eq!(
        (&complete["success"], &complete["message"]),
        (&json!(false), &late["message"])
    );
    assert!(
        stream.story().ends_with(&["error", "complete"]),
        "{:?}",
        stream.story()
    );
    let error = &stream.heard[stream.heard.len() - 2].data;
    assert_eq!(error["code"], "timeout");
    server.stop().await;
}

#[tokio::test]
async fn a_disconnected_client_continues_where_it_was() {
    let script = Script::new()
        .on(
            "tell a story",
            [
                Reply::text("Once upon a time ")
                    .gate("middle")
                    .and_text("there was ")
                    .and_tool("Bash", json!({ "command": "echo a tree", "description": "t" })),
                Reply::text("{{tool_result}}. ").gate("end").and_text("The end."),
            ],
        )
        .on("another", [Reply::text("No more.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let mut first = client
        .stream(json!({ "prompt": "tell a story", "tools": ["Bash"] }))
        .await;
    while !first.joined("text").ends_with("a time ") {
        first.next().await.expect("more");
    }
    let session = first.session.clone();
    let mut heard = first.heard.clone();
    let seen = first.last_id();
    drop(first);
    world.model.gate("middle").open();

    let mut second = client.watch(&session, Some(seen)).await;
    while !second.joined("text").contains("a tree") {
        second.next().await.expect("more");
    }
    heard.extend(second.heard.clone());
    let seen = second.last_id();
    drop(second);
    world.model.gate("end").open();

    let mut third = client.watch(&session, Some(seen)).await;
    third.complete().await;
    heard.extend(third.heard.clone());
    let finished = third.last_id();

    let mut whole = client.watch(&session, None).await;
    whole.complete().await;
    assert_eq!(heard, whole.heard, "each event once, in order");
    assert_eq!(
        whole.joined("text"),
        "Once upon a time there was a tree. The end."
    );

    // It has all events until there are more; also for the next server.
    assert_eq!(
        client.watch_refused(&session, &finished.to_string()).await.status,
        204
    );
    server.stop().await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    assert_eq!(
        client.watch_refused(&session, &finished.to_string()).await.status,
        204
    );
    let mut again = client.watch(&session, Some(seen)).await;
    again.complete().await;
    assert_eq!(again.heard, third.heard, "the same after a restart");
    client
        .run(json!({ "prompt": "another", "resume": session }))
        .await;
    let mut next = client.watch(&session, Some(finished)).await;
    assert_eq!(next.complete().await["message"], "No more.");
    assert!(next.heard[0].id.unwrap() > finished);
    server.stop().await;
}

#[tokio::test]
async fn conversations_are_continued() {
    let script = Script::new()
        .on("first", [Reply::text("One.")])
        .on("in a terminal", [Reply::text("Typed.")])
        .on("and now", [Reply::text("Known: {{prompts}}")])
        .on("take long", [Reply::text("Wait… ").gate("go").and_text("done.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    std::fs::create_dir(world.home().join("other")).unwrap();

    // No session in this folder yet: a new one.
    let first = client
        .run(json!({ "prompt": "first", "continue_conversation": true }))
        .await;
    let session = first["session_id"].as_str().unwrap().to_owned();
    let more = client
        .run(json!({ "prompt": "and now", "continue_conversation": true }))
        .await;
    assert_eq!(
        (&more["session_id"], &more["message"]),
        (&json!(session), &json!("Known: first | and now"))
    );
    let elsewhere = json!({ "prompt": "and now", "continue_conversation": true, "working_dir": "~/other" });
    let elsewhere = client.run(elsewhere).await;
    assert_eq!(elsewhere["message"], "Known: and now");
    assert_ne!(elsewhere["session_id"], session.as_str());

    // A resumed session stays in its folder.
    let moved = json!({ "prompt": "and now", "resume": session, "working_dir": "~/other" });
    assert_eq!(
        client.post("/api/task", moved).await.refusal(),
        (400, "working_dir_locked".to_owned())
    );
    let same = json!({ "prompt": "and now", "resume": session, "working_dir": world.project() });
    assert_eq!(client.run(same).await["session_id"], session.as_str());

    // A conversation that Tiller does not know is found by its transcript.
    let typed = world.claude_in_terminal(&[], "in a terminal").await;
    let known = client.run(json!({ "prompt": "and now", "resume": typed })).await;
    assert_eq!(
        (&known["session_id"], &known["message"]),
        (&json!(typed), &json!("Known: in a terminal | and now"))
    );
    let cost = known["cost_usd"].as_f64().unwrap();
    assert!(
        (cost - first["cost_usd"].as_f64().unwrap()).abs() < 1e-9,
        "one call of the model, not what the terminal had spent before: {cost}"
    );
    let typed = world.claude_in_terminal(&[], "in a terminal, again").await;
    let known = client
        .run(json!({ "prompt": "and now", "continue_conversation": true }))
        .await;
    assert_eq!(known["session_id"], json!(typed));

    // While a turn runs, the next one is queued.
    let mut long = client
        .stream(json!({ "prompt": "take long", "resume": session }))
        .await;
    long.until("text").await;
    let mut queued = client
        .stream(json!({ "prompt": "and now", "resume": session }))
        .await;
    world.model.gate("go").open();
    assert_eq!(long.complete().await["message"], "Wait… done.");
    let complete = queued.complete().await;
    assert!(
        complete["message"]
            .as_str()
            .unwrap()
            .ends_with("take long | and now"),
        "{complete}"
    );
    assert_eq!(
        queued.joined("text"),
        complete["message"].as_str().unwrap(),
        "nothing of the other turn"
    );
    server.stop().await;
}

#[tokio::test]
async fn keys_have_their_scopes_and_their_own_sessions() {
    let script = Script::new()
        .on("mine", [Reply::text("Yours.")])
        .on("make", [bash("touch made"), Reply::text("Made.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let (ci, other) = (key(&world, &["ci"]).await, key(&world, &["other"]).await);
    let reader = key(&world, &["reader", "--scope", "read"]).await;
    let runner = key(&world, &["runner", "--scope", "run,read"]).await;
    let ci = TaskClient::with_key(&server, &ci);
    let mine = ci.run(json!({ "prompt": "mine" })).await;
    let session = mine["session_id"].as_str().unwrap();

    let stranger = TaskClient::with_key(&server, &other);
    let unknown = (404, "session_not_found".to_owned());
    let resumed = json!({ "prompt": "mine", "resume": session });
    assert_eq!(stranger.post("/api/task", resumed).await.refusal(), unknown);
    assert_eq!(stranger.watch_refused(session, "0").await.refusal(), unknown);
    let stop = json!({ "session_id": session });
    assert_eq!(
        stranger.post("/api/task/stop", stop.clone()).await.refusal(),
        unknown
    );
    let answer = json!({ "session_id": session, "question_id": "x", "answer": "y" });
    assert_eq!(
        stranger.post("/api/task/answer", answer.clone()).await.status,
        404
    );
    // The newest conversation of a folder is the newest one that the key may see.
    let fresh = stranger
        .run(json!({ "prompt": "mine", "continue_conversation": true }))
        .await;
    assert_ne!(fresh["session_id"], session);

    let forbidden = (403, "forbidden".to_owned());
    let reader = TaskClient::with_key(&server, &reader);
    for (path, body) in [
        ("/api/task", json!({ "prompt": "mine" })),
        ("/api/task/stream", json!({ "prompt": "mine" })),
        ("/api/task/stop", stop),
        ("/api/task/answer", answer),
    ] {
        assert_eq!(reader.post(path, body).await.refusal(), forbidden, "{path}");
    }
    let runner = TaskClient::with_key(&server, &runner);
    let mut stream = runner.stream(json!({ "prompt": "make" })).await;
    let asked = stream.until("permission_request").await;
    let allow =
        json!({ "session_id": stream.session, "request_id": asked["request_id"], "decision": "allow" });
    assert_eq!(
        runner.post("/api/task/permission", allow.clone()).await.refusal(),
        forbidden
    );
    // The person at the machine sees the same session, and may continue it.
    let person = TaskClient::new(&server);
    assert_eq!(person.post("/api/task/permission", allow).await.status, 200);
    assert_eq!(stream.complete().await["message"], "Made.");
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_key_is_disconnected_and_its_task_is_stopped() {
    let script = Script::new().on(
        "take long",
        [Reply::text("Wait… ").gate("never").and_text("done.")],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let ci = key(&world, &["ci"]).await;
    let mut stream = TaskClient::with_key(&server, &ci)
        .stream(json!({ "prompt": "take long" }))
        .await;
    stream.until("text").await;
    let revoked = world.command().args(["key", "revoke", "ci"]).status().await;
    assert!(revoked.unwrap().success());
    while stream.next().await.is_some() {}
    assert!(
        !stream.kinds().contains(&"complete"),
        "a revoked key gets no result"
    );

    let person = TaskClient::new(&server);
    let mut again = person.watch(&stream.session, Some(stream.last_id())).await;
    assert_eq!(
        again.complete().await["success"],
        false,
        "what the key started is stopped"
    );
    let refused = person.watch_refused(&stream.session, "yesterday").await;
    assert_eq!(refused.refusal(), (422, "invalid_request".to_owned()));
    server.stop().await;
}
