//! The program's commands, and starts under unusual conditions.

use tiller_testkit::model::Script;

use crate::http::get;
use crate::server::World;

async fn world() -> World {
    World::with_claude(Script::new(), None).await
}

/// The error message of a failing command.
async fn complaint(world: &World, arguments: &[&str]) -> String {
    let output = world.command().args(arguments).output().await.unwrap();
    assert!(!output.status.success(), "{arguments:?} should fail");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn other_machines_need_a_key() {
    let world = world().await;
    let arguments = ["serve", "--host", "0.0.0.0", "--port", "0", "--no-open"];
    let said = complaint(&world, &arguments).await;
    assert!(said.contains("tiller key create NAME"), "{said}");
}

#[tokio::test]
async fn a_server_on_all_addresses_prints_a_link_that_can_be_opened() {
    let world = world().await;
    let server = world
        .serve_with(&["--host", "0.0.0.0"], &[("TILLER_API_KEY", "key")])
        .await;
    let address: std::net::SocketAddr = server.address.parse().unwrap();
    assert!(!address.ip().is_unspecified(), "{}", server.link);
    // As a browser would: with the address of the link as Host.
    server.sign_in().await;
    let link = world.command().arg("link").output().await.unwrap();
    let link = String::from_utf8(link.stdout).unwrap();
    assert!(link.starts_with(&format!("http://{address}/?code=")), "{link}");
    // The server's own commands find it all the same, and other names are still refused.
    let sessions = world.command().arg("sessions").output().await.unwrap();
    assert!(sessions.status.success(), "{sessions:?}");
    let foreign = get(&server.address, "/health", &[("host", "192.0.2.7:80")]).await;
    assert_eq!(foreign.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn a_damaged_database_is_kept_and_the_error_says_what_to_do() {
    let world = world().await;
    let file = world.data().join("sessions.db");
    std::fs::write(&file, "someone's notes").unwrap();
    let said = complaint(&world, &["serve", "--port", "0", "--no-open"]).await;
    assert!(said.contains("is damaged"), "{said}");
    assert!(said.contains("Put a copy of it back, or move it"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "someone's notes");
}

#[tokio::test]
async fn a_server_that_can_not_write_can_be_read_and_is_not_restarted() {
    let world = world().await;
    world.serve().await.stop().await;
    // Acts like a full disk.
    let database = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON login_codes BEGIN SELECT RAISE(ABORT, 'no room'); END";
    database.execute_batch(full).unwrap();

    let server = world.serve_with(&[], &[("TILLER_API_KEY", "key")]).await;
    assert_eq!(server.link, format!("http://{}/", server.address));
    let is_read = async || get(&server.address, "/api/recent-cwds", &[("x-api-key", "key")]).await;
    assert_eq!(is_read().await.status, 200);
    let said = complaint(&world, &["restart"]).await;
    assert!(
        said.contains("not restarted") && said.contains("no room"),
        "{said}"
    );
    assert_eq!(is_read().await.status, 200, "the same server");

    database.execute_batch("DROP TRIGGER full").unwrap();
    world.configure("allowed_host = 1");
    let said = complaint(&world, &["restart"]).await;
    assert!(
        said.contains("not restarted") && said.contains("config.toml is invalid"),
        "{said}"
    );
    let link = world.command().arg("link").output().await.unwrap();
    let link = String::from_utf8(link.stdout).unwrap();
    let opened = get(&server.address, &server.path_of(link.trim()), &[]).await;
    assert_eq!(opened.status, 303, "the same server: {link}");
    server.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let world = world().await;
    let server = world.serve().await;
    let said = complaint(&world, &["serve", "--port", "0", "--no-open"]).await;
    assert!(
        said.contains("already running") && said.contains(&server.address),
        "{said}"
    );
    server.kill().await;
    // The leftovers of a crash don't block the next server.
    world.serve().await.stop().await;
    let said = complaint(&world, &["link"]).await;
    assert!(said.contains("no server is running"), "{said}");
}

#[tokio::test]
async fn a_used_port_is_an_error_only_if_it_was_chosen() {
    let world = world().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = complaint(&world, &["serve", "--port", &port, "--no-open"]).await;
    assert!(said.contains("choose another port"), "{said}");
}

#[tokio::test]
async fn mistakes_are_explained() {
    let world = world().await;
    let said = complaint(&world, &["key", "create", "x", "--scope", "everything"]).await;
    assert!(said.contains("use read, run and approve"), "{said}");
    let said = complaint(&world, &["key", "revoke", "nobody"]).await;
    assert!(said.contains("there is no key 'nobody'"), "{said}");
    let said = complaint(&world, &["serve", "--no-open", "--root", "/does/not/exist"]).await;
    assert!(said.contains("none of the roots exists"), "{said}");
    let said = complaint(&world, &["serve", "--no-open", "--claude-bin", "/does/not/exist"]).await;
    assert!(said.contains("--claude-bin"), "{said}");
    let said = complaint(&world, &["serve", "--no-open", "--backend", "claude"]).await;
    assert!(
        said.contains("npm install -g @anthropic-ai/claude-code"),
        "{said}"
    );
    std::fs::write(world.data().join("config.toml"), "allowed_host = 1").unwrap();
    let said = complaint(&world, &["serve", "--no-open", "--port", "0"]).await;
    assert!(
        said.contains("config.toml") && said.contains("allowed_host"),
        "{said}"
    );
}

#[tokio::test]
async fn keys_are_listed_and_only_their_hashes_are_kept() {
    let world = world().await;
    let run = async |arguments: &[&str]| {
        let output = world.command().args(arguments).output().await.unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let key = run(&["key", "create", "ci", "--scope", "read,run"])
        .await
        .lines()
        .last()
        .unwrap()
        .to_owned();
    assert!(key.starts_with("tiller_"), "{key}");
    let listed = run(&["key", "list"]).await;
    assert!(
        listed.starts_with("ci\tread,run\tkey_") && listed.lines().count() == 1,
        "{listed}"
    );
    for entry in std::fs::read_dir(world.data()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(
            !bytes.windows(key.len()).any(|window| window == key.as_bytes()),
            "the key is on disk"
        );
    }
    run(&["key", "revoke", "ci"]).await;
    assert!(run(&["key", "list"]).await.starts_with("There are no keys."));
}

#[tokio::test]
async fn a_custom_host_name_can_be_allowed() {
    let world = world().await;
    std::fs::write(
        world.data().join("config.toml"),
        "allowed_hosts = [\"tiller.example\"]",
    )
    .unwrap();
    let server = world.serve().await;
    assert_eq!(
        get(&server.address, "/health", &[("host", "tiller.example")])
            .await
            .status,
        200
    );
    assert_eq!(
        get(&server.address, "/health", &[("host", "other.example")])
            .await
            .status,
        403
    );
    server.stop().await;
}
