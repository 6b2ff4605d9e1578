//! What the task API refuses, and its error messages.

use serde_json::{Value, json};
use tiller_testkit::model::Script;

use crate::http::request;
use crate::server::{Server, World};
use crate::task_client::{KEY, TaskClient, serve};

/// The demo agent answers at once and needs no model.
async fn demo_world() -> World {
    World::with_claude(Script::new(), None).await
}

#[tokio::test]
async fn every_mistake_has_its_code_and_message() {
    let world = demo_world().await;
    std::fs::create_dir_all(world.home().join(".ssh")).unwrap();
    std::os::unix::fs::symlink("/etc", world.project().join("sly")).unwrap();
    let server = serve(&world).await;
    let (english, chinese) = (
        TaskClient::new(&server),
        TaskClient::new(&server).in_language("zh-CN"),
    );
    let id = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10";
    let with = |fields: Value| {
        let mut body = json!({ "prompt": "do it" });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        body
    };
    let (no_dir, no_session) = ("工作目录不存在或无权限访问", "指定的会话不存在");
    let cases = [
        (json!({}), 422, "prompt_empty", "任务描述不能为空"),
        (
            json!({ "prompt": " \n\t " }),
            422,
            "prompt_empty",
            "任务描述不能为空",
        ),
        (
            json!({ "prompt": "字".repeat(10_001) }),
            422,
            "prompt_too_long",
            "任务描述超过最大长度限制",
        ),
        (
            with(json!({ "working_dir": "/no/such/place" })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": "relative" })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": "/etc" })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": "~/.ssh" })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": "~/project/../../.." })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": world.project().join("sly") })),
            400,
            "working_dir_invalid",
            no_dir,
        ),
        (
            with(json!({ "working_dir": "~/project", "continue_conversation": true, "resume": id })),
            422,
            "invalid_request",
            "字段格式不正确：resume",
        ),
        (
            with(json!({ "resume": id })),
            404,
            "session_not_found",
            no_session,
        ),
        (
            with(json!({ "resume": "session_xxx" })),
            422,
            "invalid_request",
            "字段格式不正确：resume",
        ),
        (
            with(json!({ "tools": ["Read", "Reed"] })),
            422,
            "invalid_request",
            "字段格式不正确：tools[1]",
        ),
        (
            with(json!({ "workingdir": "/tmp" })),
            422,
            "invalid_request",
            "未知字段：workingdir",
        ),
        (
            with(json!({ "max_turns": "3" })),
            422,
            "invalid_request",
            "字段格式不正确：max_turns",
        ),
        (
            with(json!({ "model": "--dangerous" })),
            422,
            "invalid_request",
            "字段格式不正确：model",
        ),
        (
            with(json!({ "prompt": "a\0b" })),
            422,
            "invalid_request",
            "字段格式不正确：prompt",
        ),
        (
            with(json!({ "permission_mode": "yolo" })),
            422,
            "invalid_request",
            "字段格式不正确：permission_mode",
        ),
    ];
    for endpoint in ["/api/task", "/api/task/stream"] {
        for (body, status, code, words) in &cases {
            let refused = chinese.post(endpoint, body.clone()).await;
            assert_eq!(refused.refusal(), (*status, (*code).to_owned()), "{body}");
            assert_eq!(refused.json()["error"]["message"], *words, "{body}");
            let refused = english.post(endpoint, body.clone()).await;
            let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.is_ascii() && message.ends_with('.'), "{message}");
        }
    }
    assert_eq!(
        world.query("SELECT count(*) FROM sessions"),
        ["0"],
        "nothing was started"
    );

    let other = [
        (
            "/api/task/answer",
            json!({ "session_id": id, "question_id": "q", "answer": "a" }),
            404,
        ),
        (
            "/api/task/answer",
            json!({ "session_id": "session_xxx", "question_id": "q", "answer": "a" }),
            404,
        ),
        (
            "/api/task/answer",
            json!({ "session_id": id, "question_id": "q" }),
            422,
        ),
        (
            "/api/task/permission",
            json!({ "session_id": id, "request_id": id, "decision": "allow" }),
            404,
        ),
        ("/api/task/permission", json!({ "session_id": id }), 422),
        ("/api/task/stop", json!({ "session_id": id }), 404),
        ("/api/task/stop", json!({}), 422),
    ];
    for (path, body, status) in other {
        assert_eq!(
            english.post(path, body.clone()).await.status,
            status,
            "{path} {body}"
        );
    }
    assert_eq!(
        english.watch_refused(id, "0").await.refusal(),
        (404, "session_not_found".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn invalid_bodies_are_refused() {
    let world = demo_world().await;
    let server = serve(&world).await;
    let json_type = ("content-type", "application/json");
    let key = ("x-api-key", "environment-key");
    let post = async |headers: &[(&str, &str)], body: &str| {
        request(&server.address, "POST", "/api/task", headers, body)
            .await
            .refusal()
    };
    assert_eq!(
        post(&[json_type], r#"{"prompt":"x"}"#).await,
        (401, "unauthorized".to_owned())
    );
    assert_eq!(
        post(&[json_type, ("x-api-key", "wrong")], r#"{"prompt":"x"}"#).await,
        (401, "unauthorized".to_owned())
    );
    assert_eq!(
        post(&[json_type, key], "{not json").await,
        (400, "invalid_request".to_owned())
    );
    assert_eq!(
        post(&[json_type, key], r#"{"prompt":5}"#).await,
        (422, "invalid_request".to_owned())
    );
    assert_eq!(
        post(&[key], r#"{"prompt":"x"}"#).await,
        (415, "invalid_request".to_owned())
    );
    let wrong_method = request(&server.address, "GET", "/api/task", &[key], "").await;
    assert_eq!(wrong_method.refusal(), (405, "invalid_request".to_owned()));
    let unsigned = request(&server.address, "GET", "/api/task/x/stream", &[], "").await;
    assert_eq!(unsigned.refusal(), (401, "unauthorized".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_counted_and_other_headers_are_ignored() {
    let world = demo_world().await;
    let environment = [("TILLER_API_KEY", KEY), ("DEMO_AGENT_SPEED", "inf")];
    let start = async |server: &Server, client: &str| {
        let headers = [
            ("x-api-key", KEY),
            ("content-type", "application/json"),
            ("x-forwarded-for", client),
        ];
        let task = r#"{"prompt":"hello"}"#;
        request(&server.address, "POST", "/api/task", &headers, task)
            .await
            .status
    };
    world.configure("titles = \"prompt\"\ntask_starts_per_minute = 1\ntrusted_proxies = [\"127.0.0.0/8\"]");
    let server = world.serve_with(&[], &environment).await;
    assert_eq!(start(&server, "203.0.113.7").await, 200);
    assert_eq!(start(&server, "203.0.113.8").await, 200);
    assert_eq!(
        start(&server, "1.1.1.1, 203.0.113.7").await,
        429,
        "what it invents does not help"
    );
    server.stop().await;

    world.configure("titles = \"prompt\"\ntask_starts_per_minute = 1\nlanguage = \"en\"");
    let server = world.serve_with(&[], &environment).await;
    assert_eq!(start(&server, "203.0.113.7").await, 200);
    assert_eq!(start(&server, "203.0.113.8").await, 429);
    // The configured language applies to clients without `Accept-Language`.
    let refused = request(&server.address, "GET", "/api/system", &[], "").await;
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("Sign in with the link"), "{message}");
    server.stop().await;
}
