//! The description of the API, and whether the server complies with it.

use tiller_testkit::installed;
use tiller_testkit::model::Script;

use crate::http::{get, request};
use crate::server::World;

/// Valid requests may still name a folder or a session that does not exist (400, 404). The history's ids and filters and
/// the ceilings of keys (folders that exist, rules, hosts) have their own tests.
const CONFIGURATION: &str = r#"
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409"]

[[operations]]
include-path-regex = "^/api/(history|keys)"
checks.positive_data_acceptance.enabled = false
"#;

/// Many wrong keys lead to 429, which this check does not expect: [`nothing_answers_without_a_key`] checks that
/// instead.
const NOT_HERE: &str = "ignored_auth";

#[tokio::test]
async fn the_server_does_what_its_description_says() {
    let world = World::with_claude(Script::new(), None).await;
    // A rate limit would hide later results.
    world.configure("titles = \"prompt\"\ntask_starts_per_minute = 1000000");
    let configuration = world.home().join("schemathesis.toml");
    std::fs::write(&configuration, CONFIGURATION).unwrap();
    // An agent that asks nobody: a stream would wait for an answer that nobody gives.
    let script = world.home().join("script.json");
    let steps = serde_json::json!([{ "do": "text", "text": "Done." }]);
    std::fs::write(&script, serde_json::json!({ "turns": [steps] }).to_string()).unwrap();
    let environment = [
        ("TILLER_API_KEY", "key"),
        ("SCRIPTED_CLI", script.to_str().unwrap()),
    ];
    let server = world.serve_with(&["--backend", "demo"], &environment).await;
    let address = format!("http://{}", server.address);
    let python = installed::python().unwrap_or_else(|missing| panic!("{missing}"));
    let output = tokio::process::Command::new(python)
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(&configuration)
        .arg("run")
        .arg(format!("{address}/api/openapi.json"))
        .args([
            "--header",
            "Authorization: Bearer key",
            "--header",
            "Accept-Language: en",
        ])
        // An endless stream.
        .args(["--exclude-path", "/api/history/live"])
        .args(["--exclude-checks", NOT_HERE, "--suppress-health-check", "all"])
        .args([
            "--seed",
            "1",
            "--max-examples",
            "3",
            "--generation-database",
            "none",
            "--no-color",
        ])
        .args(["--request-timeout", "30", "--warnings", "off"])
        .current_dir(world.home())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    server.stop().await;
}

#[tokio::test]
async fn nothing_answers_without_a_key() {
    let world = World::with_claude(Script::new(), None).await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "key")]).await;
    let description = get(&server.address, "/api/openapi.json", &[("x-api-key", "key")])
        .await
        .json();
    let mut tried = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        // Path parameters: any value will do.
        let address = path.replace(['{', '}'], "");
        for (method, operation) in operations.as_object().unwrap() {
            if operation["security"] == serde_json::json!([{}]) {
                continue;
            }
            let method = method.to_uppercase();
            let json = ("content-type", "application/json");
            let refused = request(&server.address, &method, &address, &[json], "{}").await;
            assert_eq!(
                refused.refusal(),
                (401, "unauthorized".to_owned()),
                "{method} {path}"
            );
            let headers = [json, ("x-api-key", "wrong")];
            let refused = request(&server.address, &method, &address, &headers, "{}").await;
            // Many wrong keys in a minute lead to 429.
            let expected = if tried < 20 { 401 } else { 429 };
            assert_eq!(refused.status, expected, "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
    server.stop().await;
}

#[tokio::test]
async fn people_can_read_it() {
    let world = World::with_claude(Script::new(), None).await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "key")]).await;
    let key = ("x-api-key", "key");
    for path in ["/api/docs", "/api/openapi.json", "/api/docs/style.css"] {
        assert_eq!(get(&server.address, path, &[]).await.status, 401, "{path}");
        assert_eq!(get(&server.address, path, &[key]).await.status, 200, "{path}");
    }
    let chinese = get(&server.address, "/api/docs", &[key]).await;
    assert!(chinese.body.contains("执行任务并等待结果"));
    let english = get(&server.address, "/api/docs", &[key, ("accept-language", "en")]).await;
    assert!(english.body.contains("Run a task and wait for its end"));
    assert!(
        get(&server.address, "/api/docs?lang=en", &[key])
            .await
            .body
            .contains("Run a task")
    );
    let policy = english.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("style-src 'self'"));
    let json = get(&server.address, "/api/openapi.json", &[key]).await.json();
    assert!(
        json["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        json["openapi"]
    );
    server.stop().await;
}
