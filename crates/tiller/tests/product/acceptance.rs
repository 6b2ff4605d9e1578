//! The task API against the tables of its requirement: each error with its status and message, each point of the
//! acceptance list, one after the other.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::http::{Response, get, request};
use crate::server::{Server, World};
use crate::task_client::{KEY, TaskClient, serve};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Posts as a client without `Accept-Language`.
async fn post(server: &Server, key: Option<&str>, path: &str, body: &Value) -> Response {
    post_in(server, None, key, path, body).await
}

async fn post_in(
    server: &Server,
    language: Option<&str>,
    key: Option<&str>,
    path: &str,
    body: &Value,
) -> Response {
    let mut headers = vec![JSON];
    headers.extend(key.map(|key| ("x-api-key", key)));
    headers.extend(language.map(|language| ("accept-language", language)));
    request(&server.address, "POST", path, &headers, &body.to_string()).await
}

/// The English text of a Chinese error message.
fn in_english(chinese: &str) -> &'static str {
    match chinese {
        "任务描述不能为空" => "The task description is empty.",
        "任务描述超过最大长度限制" => {
            "The task description is too long. It may have at most 10,000 characters."
        }
        "工作目录不存在或无权限访问" => {
            "The working directory does not exist or may not be used."
        }
        "指定的会话不存在" => "There is no such session.",
        "API 密钥无效" => "Sign in with the link from `tiller link`, or send a valid API key.",
        "请求过于频繁，请稍后再试" => "Too many requests. Try again later.",
        "服务内部错误，请稍后重试" => "Something went wrong in the server. Try again later.",
        other => panic!("{other}"),
    }
}

/// Asserts that an error reveals no real paths, no environment and no source locations.
fn assert_discreet(world: &World, response: &Response) {
    let home = world.home();
    let secrets = [
        home.to_str().unwrap(),
        KEY,
        "sk-test",
        "/etc/",
        "panicked",
        "src/",
        ".rs:",
    ];
    for secret in secrets {
        assert!(!response.body.contains(secret), "{secret} in {}", response.body);
    }
}

#[tokio::test]
async fn every_error_has_its_status_and_message() {
    // The demo agent answers at once and needs no model.
    let world = World::with_claude(Script::new(), None).await;
    let project = world.project();
    std::fs::create_dir_all(world.home().join(".ssh")).unwrap();
    std::fs::write(project.join("file"), "").unwrap();
    std::os::unix::fs::symlink("/etc", project.join("sly")).unwrap();
    let environment = [("TILLER_API_KEY", KEY), ("DEMO_AGENT_SPEED", "inf")];
    let server = world.serve_with(&[], &environment).await;
    let task = |fields: Value| {
        let mut task = json!({ "prompt": "do it" });
        task.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        task
    };
    let folder = |folder: &str| task(json!({ "working_dir": folder }));
    let (empty, long) = ("任务描述不能为空", "任务描述超过最大长度限制");
    let (no_folder, no_session) = ("工作目录不存在或无权限访问", "指定的会话不存在");
    let (too_often, failed) = ("请求过于频繁，请稍后再试", "服务内部错误，请稍后重试");
    let unknown = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10";
    let rows = [
        ("no prompt", Some(KEY), json!({}), 422, "prompt_empty", empty),
        (
            "null prompt",
            Some(KEY),
            json!({ "prompt": null }),
            422,
            "prompt_empty",
            empty,
        ),
        (
            "empty prompt",
            Some(KEY),
            json!({ "prompt": "" }),
            422,
            "prompt_empty",
            empty,
        ),
        (
            "blank prompt",
            Some(KEY),
            json!({ "prompt": " \n\u{3000}" }),
            422,
            "prompt_empty",
            empty,
        ),
        (
            "long prompt",
            Some(KEY),
            json!({ "prompt": "字".repeat(10_001) }),
            422,
            "prompt_too_long",
            long,
        ),
        (
            "no such folder",
            Some(KEY),
            folder("/no/such/place"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "a file",
            Some(KEY),
            folder("~/project/file"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "traversal",
            Some(KEY),
            folder("~/project/../../.."),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "a link out",
            Some(KEY),
            folder("~/project/sly"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "/etc",
            Some(KEY),
            folder("/etc"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "/root",
            Some(KEY),
            folder("/root"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "~/.ssh",
            Some(KEY),
            folder("~/.ssh"),
            400,
            "working_dir_invalid",
            no_folder,
        ),
        (
            "unknown session",
            Some(KEY),
            task(json!({ "resume": unknown })),
            404,
            "session_not_found",
            no_session,
        ),
        (
            "no key",
            None,
            task(json!({})),
            401,
            "unauthorized",
            "API 密钥无效",
        ),
        (
            "wrong key",
            Some("wrong"),
            task(json!({})),
            401,
            "unauthorized",
            "API 密钥无效",
        ),
    ];
    for path in ["/api/task", "/api/task/stream"] {
        for (name, key, body, status, code, words) in &rows {
            let refused = post(&server, *key, path, body).await;
            assert_eq!(
                refused.refusal(),
                (*status, (*code).to_owned()),
                "{name} at {path}"
            );
            assert_eq!(refused.json()["error"]["message"], *words, "{name} at {path}");
            assert_discreet(&world, &refused);
            let refused = post_in(&server, Some("en-GB,en;q=0.9"), *key, path, body).await;
            assert_eq!(
                refused.json()["error"]["message"],
                in_english(words),
                "{name} at {path}"
            );
        }
    }
    assert_eq!(
        world.query("SELECT count(*) FROM sessions"),
        ["0"],
        "nothing was started"
    );

    // The table of the answer endpoint.
    let answer = |session: &str| json!({ "session_id": session, "question_id": "auth_strategy_01", "answer": "oauth2" });
    let refused = post(&server, Some(KEY), "/api/task/answer", &answer("session_xxx")).await;
    assert_eq!(refused.refusal(), (404, "session_not_found".to_owned()));
    assert_eq!(refused.json()["error"]["message"], no_session);
    let done = post(&server, Some(KEY), "/api/task", &task(json!({})))
        .await
        .json();
    let refused = post(
        &server,
        Some(KEY),
        "/api/task/answer",
        &answer(done["session_id"].as_str().unwrap()),
    )
    .await;
    assert_eq!(refused.refusal(), (404, "question_not_found".to_owned()));
    assert_eq!(refused.json()["error"]["message"], "问题不存在（已超时或已回答）");

    // Rate limits: ten starts a minute at each endpoint, one of which was used at one of them.
    let more = task(json!({ "timeout_s": 1 }));
    for (path, left) in [("/api/task", 9), ("/api/task/stream", 10)] {
        let started = (0..left).map(|_| post(&server, Some(KEY), path, &more));
        for started in futures_util::future::join_all(started).await {
            assert_eq!(started.status, 200, "{}", started.body);
        }
        for (language, in_its_words) in [(None, too_often), (Some("en"), in_english(too_often))] {
            let refused = post_in(&server, language, Some(KEY), path, &more).await;
            assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
            assert_eq!(refused.json()["error"]["message"], in_its_words);
            let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
    }
    server.stop().await;

    // Internal errors: nothing can be written while another process locks the database.
    let server = world.serve_with(&[], &environment).await;
    let intruder = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
    intruder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let attempts = [
        ("/api/task", None, failed),
        ("/api/task", Some("en"), in_english(failed)),
        ("/api/task/stream", None, failed),
        ("/api/task/stream", Some("en"), in_english(failed)),
    ];
    // All at once: each waits as long as a lock may reasonably be held.
    let attempts = attempts.map(async |(path, language, words)| {
        let refused = post_in(&server, language, Some(KEY), path, &more).await;
        assert_eq!(refused.refusal(), (500, "internal".to_owned()), "{path}");
        assert_eq!(refused.json()["error"]["message"], words, "{path}");
        assert_discreet(&world, &refused);
    });
    futures_util::future::join_all(attempts).await;
    intruder.execute_batch("ROLLBACK").unwrap();
    drop(intruder);
    server.stop().await;
}

#[tokio::test]
async fn every_point_of_the_acceptance_list_holds() {
    let script = Script::new()
        .on("你好", [Reply::text("你好！有什么可以帮忙？")])
        .on(
            "count",
            [Reply::text("one ").gate("middle").and_text("two three")],
        )
        .on("what was", [Reply::text("Known: {{prompts}}")])
        .on("endless", [Reply::text("Beginning… ").gate("never")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);

    // 同步模式正确返回任务执行结果
    let whole = client.run(json!({ "prompt": "你好" })).await;
    assert_eq!(
        (&whole["success"], &whole["message"]),
        (&json!(true), &json!("你好！有什么可以帮忙？"))
    );
    for field in [
        "session_id",
        "cost_usd",
        "duration_ms",
        "files_changed",
        "tools_used",
    ] {
        assert!(!whole[field].is_null(), "{field} in {whole}");
    }
    let first = whole["session_id"].as_str().unwrap();

    // 流式模式实时推送执行过程
    let mut stream = client.stream(json!({ "prompt": "count" })).await;
    while stream.joined("text") != "one " {
        stream
            .next()
            .await
            .expect("the beginning, before there is an end");
    }
    world.model.gate("middle").open();
    assert_eq!(stream.complete().await["message"], "one two three");

    // 会话恢复功能正常工作, 会话延续功能正常工作
    let resumed = client
        .run(json!({ "prompt": "what was it", "resume": first }))
        .await;
    assert_eq!(resumed["message"], "Known: 你好 | what was it");
    let continued = client
        .run(json!({ "prompt": "what was it", "continue_conversation": true }))
        .await;
    assert_eq!(
        (&continued["session_id"], &continued["message"]),
        (&json!(first), &json!("Known: 你好 | what was it | what was it"))
    );

    // 任务停止功能正常工作
    let mut stream = client.stream(json!({ "prompt": "endless" })).await;
    stream.until("text").await;
    let stop = json!({ "session_id": stream.session });
    assert_eq!(client.post("/api/task/stop", stop).await.status, 200);
    assert_eq!(stream.complete().await["success"], false);

    // 历史会话消息解析正确, 第一条用户消息正常显示
    let path = format!("/api/history/sessions/{first}");
    let history = get(&server.address, &path, &[("x-api-key", KEY)]).await.json();
    assert_eq!(history["session"]["title"], "你好");
    let text = |message: &Value| message["content"][0]["text"].clone();
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(
        (&messages[0]["role"], text(&messages[0])),
        (&json!("user"), json!("你好"))
    );
    assert_eq!(text(&messages[1]), "你好！有什么可以帮忙？");
    server.stop().await;
}
