//! Insiders: agents, other ports and programs of this machine, keys that want too much.

use serde_json::{Value, json};

use crate::access::{demo_world, with_key};
use crate::http::{get, request};
use crate::server::Server;

#[tokio::test]
async fn idle_connections_without_a_credential_block_nobody() {
    let world = demo_world().await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "right")]).await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(tokio::net::TcpStream::connect(&server.address).await.unwrap());
    }
    for _ in 0..3 {
        let answer = get(&server.address, "/api/system", &[("x-api-key", "right")]).await;
        assert_eq!(answer.status, 200);
    }
    server.stop().await;
}

#[tokio::test]
async fn unfinished_messages_have_a_budget() {
    let world = demo_world().await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "right")]).await;
    let before = server.peak_memory();
    let mut clients = Vec::new();
    for _ in 0..12 {
        let mut client = with_key(&server, "right").await.unwrap();
        // The server closes the connection when the budget is exceeded.
        client.send_unfinished(31 << 20).await;
        clients.push(client);
    }
    let mut other = with_key(&server, "right").await;
    if let Ok(client) = &mut other {
        client.send("session.list", Value::Null).await;
    }
    let taken = server.peak_memory() - before;
    assert!(taken < 300 << 20, "{} MB", taken >> 20);
    server.stop().await;
}

#[tokio::test]
async fn localhost_is_served_only_if_it_leads_here() {
    let world = demo_world().await;
    let server = world.serve().await;
    let port = server.address.rsplit_once(':').unwrap().1;
    let localhost = format!("localhost:{port}");
    let by_v6 = format!("[::1]:{port}");
    match tokio::net::TcpListener::bind(("::1", 0)).await {
        // A machine without IPv6.
        Err(_) => return server.stop().await,
        Ok(other) => drop(other),
    }
    for host in [&localhost, &by_v6] {
        let answer = get(&by_v6, "/health", &[("host", host)]).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    server.stop().await;

    // Another program has the port there.
    let taken = tokio::net::TcpListener::bind(("::1", 0)).await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = world.command();
    command.args(["serve", "--no-open", "--port", &port]);
    let server = Server::start(command).await;
    for (host, status) in [
        (format!("localhost:{port}"), 403),
        (format!("127.0.0.1:{port}"), 200),
    ] {
        let answer = get(&server.address, "/health", &[("host", &host)]).await;
        assert_eq!(answer.status, status, "{host}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_blocked_log_does_not_block_the_server() {
    let world = demo_world().await;
    let mut command = world.command();
    let (reader, writer) = std::io::pipe().unwrap();
    command
        .args(["serve", "--port", "0", "--no-open", "--backend", "demo"])
        .env("TILLER_API_KEY", "right")
        .stderr(writer);
    let server = Server::start(command).await;
    drop(reader);
    // A wrong key is logged.
    assert_eq!(with_key(&server, "wrong").await.err(), Some(401));
    let headers = [("x-api-key", "right"), ("content-type", "application/json")];
    let task = json!({ "prompt": "hello", "working_dir": world.project() }).to_string();
    let answer = request(&server.address, "POST", "/api/task", &headers, &task).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    server.stop().await;
    crate::server::until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn other_processes_can_not_read_the_servers_key() {
    let world = demo_world().await;
    let server = world
        .serve_with(&[], &[("TILLER_API_KEY", "our-secret-key")])
        .await;
    let environment = std::fs::read(format!("/proc/{}/environ", server.pid())).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&environment).contains("our-secret-key"));
    let answer = get(&server.address, "/api/system", &[("x-api-key", "our-secret-key")]).await;
    assert_eq!(answer.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_agent_gets_no_credential_from_our_commands() {
    let world = demo_world().await;
    let server = world.serve().await;
    for arguments in [
        &["link"][..],
        &["key", "create", "mine"],
        &["key", "list"],
        &["attach", "x"],
    ] {
        let marked = world
            .command()
            .args(arguments)
            .env("CLAUDE_AGENT_RUN", "1")
            .output()
            .await
            .unwrap();
        // From a process of the agent that has removed its mark.
        let program = world.command();
        let line = arguments.join(" ");
        let beneath = tokio::process::Command::new("/bin/sh")
            .args(["-c", &format!("env -u CLAUDE_AGENT_RUN \"$0\" {line}; exit $?")])
            .arg(program.as_std().get_program())
            .envs(
                program
                    .as_std()
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("CLAUDE_AGENT_RUN", "1")
            .output()
            .await
            .unwrap();
        for output in [marked, beneath] {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                !output.status.success() && said.contains("inside an agent"),
                "{arguments:?}: {said}"
            );
            assert!(output.stdout.is_empty());
        }
    }
    server.stop().await;
}
