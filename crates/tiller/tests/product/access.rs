//! Authentication, and what callers may do.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http::{get, request};
use crate::server::{Server, SignIn, World, until};

pub(crate) async fn demo_world() -> World {
    World::with_claude(Script::new(), None).await
}

pub(crate) async fn key(world: &World, arguments: &[&str]) -> String {
    let output = world
        .command()
        .args(["key", "create"])
        .args(arguments)
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .to_owned()
}

pub(crate) async fn with_key(server: &Server, key: &str) -> Result<EventClient, u16> {
    EventClient::connect_with(server, "/ws/events", &[("x-api-key", key)]).await
}

#[tokio::test]
async fn nothing_but_the_page_and_health_is_open() {
    let world = demo_world().await;
    let server = world.serve().await;
    let health = get(&server.address, "/health", &[]).await;
    assert_eq!(
        health.json(),
        json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })
    );
    assert_eq!(get(&server.address, "/", &[]).await.status, 200);
    for path in [
        "/api/system",
        "/api/recent-cwds",
        "/api/directories",
        "/ws/events",
    ] {
        assert_eq!(
            get(&server.address, path, &[]).await.refusal(),
            (401, "unauthorized".to_owned()),
            "{path}"
        );
    }
    assert_eq!(
        EventClient::connect_with(&server, "/ws/events", &[]).await.err(),
        Some(401)
    );
    server.stop().await;
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let world = demo_world().await;
    let server = world.serve().await;
    let path = server.path_of(&server.link);
    // Programs that check links before people open them must not use them up.
    let looked_at = request(&server.address, "HEAD", &path, &[], "").await;
    assert_eq!((looked_at.status, looked_at.header("set-cookie")), (200, None));
    let first = get(&server.address, &path, &[("user-agent", "Some Browser")]).await;
    let sign_in = SignIn::from_response(&first);
    let cookie = first.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    let system = async |headers: &[(&str, &str)]| get(&server.address, "/api/system", headers).await.status;
    assert_eq!(system(&sign_in.headers()).await, 200);
    assert_eq!(
        get(&server.address, &path, &[]).await.header("set-cookie"),
        None,
        "the code is used up"
    );
    // The program prints a second one.
    let output = world.command().arg("link").output().await.unwrap();
    let link = String::from_utf8(output.stdout).unwrap();
    let second = get(&server.address, &server.path_of(link.trim()), &[]).await;
    let second = SignIn::from_response(&second);

    // Each half is useless without the other half, here as on a socket.
    let (cookie, page) = (sign_in.cookie.as_str(), sign_in.page.as_str());
    for headers in [
        vec![("cookie", cookie)],
        vec![("x-tiller-page", page)],
        vec![("cookie", cookie), ("x-tiller-page", second.page.as_str())],
        vec![("cookie", second.cookie.as_str()), ("x-tiller-page", page)],
    ] {
        assert_eq!(system(&headers).await, 401, "{headers:?}");
    }
    let origin = format!("http://{}", server.address);
    let upgrade = async |protocols: Option<&str>, extra: Option<(&'static str, &str)>| {
        let mut headers = vec![("cookie", cookie), ("origin", origin.as_str())];
        headers.extend(protocols.map(|protocols| ("sec-websocket-protocol", protocols)));
        headers.extend(extra);
        EventClient::connect_with(&server, "/ws/events", &headers)
            .await
            .err()
    };
    assert_eq!(upgrade(Some(&sign_in.protocols()), None).await, None);
    assert_eq!(upgrade(None, None).await, Some(401));
    assert_eq!(upgrade(Some(&second.protocols()), None).await, Some(401));
    assert_eq!(upgrade(Some(&format!("page.{page}")), None).await, Some(401));
    assert_eq!(upgrade(None, Some(("x-tiller-page", page))).await, Some(401));

    // A page on another port of the host can set cookies with the same name, which may come first.
    let name = cookie.split_once('=').unwrap().0;
    let shadowed = format!("{name}=x; {name}=y; {cookie}");
    assert_eq!(
        system(&[("cookie", &shadowed), ("x-tiller-page", page)]).await,
        200
    );
    server.stop().await;
}

#[tokio::test]
async fn sign_ins_are_listed_and_ended() {
    let world = demo_world().await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "right")]).await;
    let created = key(&world, &["created"]).await;
    let sign_in = async |browser: &str| {
        let output = world.command().arg("link").output().await.unwrap();
        let link = String::from_utf8(output.stdout).unwrap();
        let path = server.path_of(link.trim());
        SignIn::from_response(&get(&server.address, &path, &[("user-agent", browser)]).await)
    };
    let (desk, phone, lost) = (
        sign_in("Desk").await,
        sign_in("Phone").await,
        sign_in("Lost").await,
    );
    let list = async |headers: &[(&str, &str)]| {
        let answer = get(&server.address, "/api/sign-ins", headers).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let Value::Array(list) = answer.json()["signIns"].take() else {
            panic!("{}", answer.body);
        };
        list
    };
    let found = list(&desk.headers()).await;
    let name = |entry: &Value| entry["userAgent"].as_str().unwrap().to_owned();
    let mut names: Vec<_> = found.iter().map(name).collect();
    names.sort();
    assert_eq!(names, ["Desk", "Lost", "Phone"]);
    let current: Vec<_> = found
        .iter()
        .filter(|entry| entry["current"] == true)
        .map(name)
        .collect();
    assert_eq!(current, ["Desk"]);
    assert!(
        found.iter().all(|entry| entry["address"] == "127.0.0.1"),
        "{found:?}"
    );

    let origin = format!("http://{}", server.address);
    let sign_out = async |headers: &[(&str, &str)], body: &str| {
        let mut all = vec![("origin", origin.as_str()), ("content-type", "application/json")];
        all.extend(headers);
        request(&server.address, "POST", "/api/sign-out", &all, body).await
    };
    // One of the others, whose connection ends with it.
    let mut socket = EventClient::connect(&server, &lost).await;
    let lost_id = found.iter().find(|entry| name(entry) == "Lost").unwrap()["id"].clone();
    let ended = sign_out(&desk.headers(), &json!({ "id": lost_id }).to_string()).await;
    assert_eq!((ended.status, ended.header("set-cookie")), (200, None));
    while socket.next().await.is_some() {}
    let again = sign_out(&desk.headers(), &json!({ "id": lost_id }).to_string()).await;
    assert_eq!(again.refusal(), (404, "invalid_request".to_owned()));

    // This one.
    let ended = sign_out(&phone.headers(), "").await;
    assert_eq!(ended.status, 200);
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(sign_out(&phone.headers(), "").await.status, 401);

    // All of them, with the environment's key, which has the person's rights. A created key does not.
    let created = [("x-api-key", created.as_str())];
    assert_eq!(get(&server.address, "/api/sign-ins", &created).await.status, 403);
    assert_eq!(sign_out(&created, r#"{"all":true}"#).await.status, 403);
    let environment = [("x-api-key", "right")];
    assert_eq!(list(&environment).await.len(), 1);
    assert_eq!(
        sign_out(&environment, "").await.status,
        404,
        "a key is no sign-in"
    );
    assert_eq!(sign_out(&environment, r#"{"all":true}"#).await.status, 200);
    assert_eq!(
        get(&server.address, "/api/sign-ins", &desk.headers())
            .await
            .status,
        401
    );
    server.stop().await;
}

#[tokio::test]
async fn a_cookie_is_limited_to_encrypted_connections_if_there_are_any() {
    let world = demo_world().await;
    world.configure("trusted_proxies = [\"127.0.0.1\"]");
    let server = world.serve().await;
    let path = server.path_of(&server.link);
    let answer = get(&server.address, &path, &[("x-forwarded-proto", "https")]).await;
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    server.stop().await;
}

#[tokio::test]
async fn other_sites_and_other_names_are_refused() {
    let world = demo_world().await;
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let [cookie, page] = sign_in.headers();
    for headers in [
        [cookie, page, ("host", "evil.example")],
        [cookie, page, ("origin", "http://evil.example")],
        [cookie, page, ("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(
            get(&server.address, "/api/system", &headers).await.refusal(),
            (403, "forbidden".to_owned()),
            "{headers:?}"
        );
    }
    let protocols = sign_in.protocols();
    let (cookie, protocols) = (
        ("cookie", sign_in.cookie.as_str()),
        ("sec-websocket-protocol", protocols.as_str()),
    );
    let foreign = [cookie, protocols, ("origin", "http://evil.example")];
    let refused = EventClient::connect_with(&server, "/ws/events", &foreign).await;
    assert_eq!(refused.err(), Some(403));
    // A cookie without an origin is not from our page.
    let refused = EventClient::connect_with(&server, "/ws/events", &[cookie, protocols]).await;
    assert_eq!(refused.err(), Some(403));
    let page = get(&server.address, "/", &[]).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe-eval") && !policy.contains("script-src 'self' 'unsafe-inline'"),
        "{policy}"
    );
    // The page for diagrams may write styles, but nothing else.
    let frame = get(&server.address, "/diagram.html", &[]).await;
    let policy = frame.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("sandbox allow-scripts; default-src 'none'; script-src 'sha256-"),
        "{policy}"
    );
    assert!(
        !policy.contains("connect-src") && !policy.contains("unsafe-eval"),
        "{policy}"
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    server.stop().await;
}

#[tokio::test]
async fn errors_are_in_the_callers_language() {
    let world = demo_world().await;
    let server = world.serve().await;
    let message = async |headers: &[(&str, &str)]| -> Value {
        get(&server.address, "/api/system", headers).await.json()["error"]["message"].clone()
    };
    assert_eq!(message(&[]).await, "API 密钥无效");
    assert_eq!(
        message(&[("accept-language", "zh-CN,zh;q=0.9")]).await,
        "API 密钥无效"
    );
    let english = "Sign in with the link from `tiller link`, or send a valid API key.";
    assert_eq!(message(&[("accept-language", "en-US")]).await, english);
    server.stop().await;
}

#[tokio::test]
async fn a_key_sees_its_own_sessions_and_does_what_its_scopes_allow() {
    let world = demo_world().await;
    let server = world
        .serve_with(
            &["--backend", "demo"],
            &[("TILLER_API_KEY", "from-the-environment")],
        )
        .await;
    let (mine, other) = (key(&world, &["mine"]).await, key(&world, &["other"]).await);
    let reader = key(&world, &["reader", "--scope", "read"]).await;

    let mut client = with_key(&server, &mine).await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;

    let mut stranger = with_key(&server, &other).await.unwrap();
    stranger.send("session.list", Value::Null).await;
    assert_eq!(
        stranger.until_type("session.list").await,
        json!({ "sessions": [] })
    );
    for unknown in [
        session.as_str(),
        "7a3ffb7e-0000-4000-8000-000000000000",
        "no id at all",
    ] {
        for kind in ["session.history", "session.continue", "session.subscribe"] {
            stranger
                .send(kind, json!({ "sessionId": unknown, "prompt": "x" }))
                .await;
            assert_eq!(
                stranger.until_type("runner.error").await["message"],
                "Unknown session",
                "{kind} {unknown}"
            );
        }
    }
    stranger
        .send("session.delete", json!({ "sessionId": session }))
        .await;
    stranger.until_type("session.deleted").await;
    assert_eq!(
        world.query("SELECT count(*) FROM sessions"),
        ["1"],
        "someone else's session is still there"
    );

    let mut reading = with_key(&server, &reader).await.unwrap();
    reading
        .send("session.start", json!({ "prompt": "x", "cwd": world.project() }))
        .await;
    assert_eq!(
        reading.until_type("runner.error").await["message"],
        "Your API key does not allow this."
    );

    let mut all = with_key(&server, "from-the-environment").await.unwrap();
    all.send("session.list", Value::Null).await;
    assert_eq!(all.until_type("session.list").await["sessions"][0]["id"], session);
    assert_eq!(with_key(&server, "tiller_wrong").await.err(), Some(401));

    // Revoking also ends open connections.
    let output = world
        .command()
        .args(["key", "revoke", "mine"])
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
    assert_eq!(
        get(&server.address, "/api/system", &[("x-api-key", &mine)])
            .await
            .status,
        401
    );
    while client.next().await.is_some() {}
    server.stop().await;
}

#[tokio::test]
async fn wrong_keys_are_rate_limited_but_valid_ones_always_work() {
    let world = demo_world().await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "right")]).await;
    let attempt = async |key: &str| {
        get(
            &server.address,
            "/api/system",
            &[("authorization", &format!("Bearer {key}"))],
        )
        .await
    };
    for _ in 0..20 {
        assert_eq!(attempt("wrong").await.status, 401);
    }
    let refused = attempt("wrong").await;
    assert_eq!(refused.refusal(), (429, "rate_limited".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(attempt("right").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn the_agent_gets_no_credential_of_ours() {
    let look = Reply::tool("Bash", json!({ "command": "env > seen" }));
    let world = World::new(Script::new().on("look", [look, Reply::text("done")])).await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "our-secret")]).await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "look").await;
    let asked = client.until_type("permission.request").await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    let seen = std::fs::read_to_string(world.project().join("seen")).unwrap();
    assert!(
        seen.lines().any(|line| line.starts_with("HOME=")),
        "the rest is inherited: {seen}"
    );
    assert!(
        !seen.contains("TILLER_") && !seen.contains("our-secret"),
        "{seen}"
    );
    server.stop().await;
}

#[tokio::test]
async fn bad_requests_get_a_reason_and_have_no_effect() {
    let world = demo_world().await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "key")]).await;
    let post = async |body: &str| {
        let headers = [("x-api-key", "key"), ("content-type", "application/json")];
        request(&server.address, "POST", "/api/session-title", &headers, body).await
    };
    assert_eq!(post("{").await.refusal(), (400, "invalid_request".to_owned()));
    assert_eq!(post("{}").await.refusal(), (422, "invalid_request".to_owned()));
    assert_eq!(
        post(r#"{"prompt":" "}"#).await.refusal(),
        (422, "prompt_empty".to_owned())
    );
    assert_eq!(
        post(r##"{"prompt":"# Fix it"}"##).await.json(),
        json!({ "title": "Fix it" })
    );
    let headers = [("x-api-key", "key")];
    let untyped = request(&server.address, "POST", "/api/session-title", &headers, "{}").await;
    assert_eq!(untyped.refusal(), (415, "invalid_request".to_owned()));
    for (path, status) in [
        ("/api/directories?path=/etc", 400),
        ("/api/recent-cwds?limit=many", 422),
        ("/api/nothing", 404),
        ("/ws/events", 400),
        ("/api/session-title", 405),
    ] {
        assert_eq!(
            get(&server.address, path, &headers).await.refusal().0,
            status,
            "{path}"
        );
    }
    let path = "/api/recent-cwds?limit=99999999999999999999";
    assert_eq!(get(&server.address, path, &headers).await.status, 200);
    let folders = get(&server.address, "/api/directories?path=~", &headers)
        .await
        .json();
    assert_eq!(folders["entries"][0]["name"], "project");

    let mut client = with_key(&server, "key").await.unwrap();
    for (frame, reason) in [
        ("nonsense", "The frame is not JSON"),
        (r#"{"type":"session.fly"}"#, "Unknown event type 'session.fly'."),
        (
            r#"{"type":"session.start","payload":{"prompt":"  "}}"#,
            "The prompt is empty",
        ),
        (
            r#"{"type":"session.start","payload":{"prompt":"x","cwd":"/etc"}}"#,
            "The working directory does not exist",
        ),
        (
            r#"{"type":"session.start","payload":{"prompt":"x","model":"--dangerous"}}"#,
            "Unknown model '--dangerous': the agent does not offer it.",
        ),
        (
            r#"{"type":"permission.response","payload":{"sessionId":"x","result":{"behavior":"deny"}}}"#,
            "Name the request",
        ),
    ] {
        client.send_text(frame).await;
        let message = client.until_type("runner.error").await["message"].clone();
        assert!(
            message.as_str().unwrap().starts_with(reason),
            "{frame}: {message}"
        );
    }
    assert_eq!(world.query("SELECT count(*) FROM sessions"), ["0"]);
    server.stop().await;
}

/// The files and folders below a folder that other users may read.
fn open_to_others(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        // Some are created and deleted meanwhile.
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(path.clone());
        }
        open_to_others(&path, found);
    }
}

#[tokio::test]
async fn other_users_of_the_machine_can_not_read_stored_data() {
    let world = demo_world().await;
    let data = world.data();
    // As a user or an earlier version has created it.
    std::fs::create_dir(data.join("history")).unwrap();
    for (name, mode) in [("", 0o755), ("history", 0o755)] {
        std::fs::set_permissions(data.join(name), Permissions::from_mode(mode)).unwrap();
    }
    for name in ["sessions.db", "history/history.db", "history/search.db"] {
        std::fs::write(data.join(name), "").unwrap();
        std::fs::set_permissions(data.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "key")])
        .await;
    let mut client = with_key(&server, "key").await.unwrap();
    client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    let headers = [("x-api-key", "key"), ("content-type", "application/json")];
    let vault = request(
        &server.address,
        "PUT",
        "/api/history/vault",
        &headers,
        r#"{"enabled":true}"#,
    );
    assert_eq!(vault.await.status, 200);
    let is_archived = || {
        let projects = std::fs::read_dir(data.join("vault")).into_iter().flatten();
        projects.flatten().any(|entry| entry.path().is_dir())
    };
    until("nothing is archived", is_archived).await;
    assert!(data.join("runs").exists() && data.join("server.json").exists());

    let mut found = Vec::new();
    open_to_others(&data, &mut found);
    // The first is the user's own; access to a folder covers its content.
    found.retain(|path| *path != data.join("config.toml") && *path != data.join("vault/on"));
    found.retain(|path| {
        path.parent()
            .is_some_and(|folder| !folder.starts_with(data.join("runs")))
    });
    assert_eq!(found, Vec::<PathBuf>::new());
    server.stop().await;
}
