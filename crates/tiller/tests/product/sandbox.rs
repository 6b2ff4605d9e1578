//! Agents in a sandbox: what they can write to, whom they can reach, and who may open it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use tiller_testkit::installed::scripted_acp;
use tiller_testkit::model::{Reply, Script};

use crate::access::{key, with_key};
use crate::client::EventClient;
use crate::server::{World, until_nothing_is_left};

/// The model runs the script, which is allowed, and then asks for a command that is not.
fn script() -> Script {
    let run = json!({ "command": "./test.sh", "description": "Run the tests" });
    let make = json!({ "command": "echo made > made.txt", "description": "Make it" });
    Script::new().on(
        "go",
        [
            Reply::tool("Bash", run),
            Reply::tool("Bash", make),
            Reply::text("Done."),
        ],
    )
}

fn write_script(world: &World, script: &str) {
    let path = world.project().join("test.sh");
    std::fs::write(&path, format!("#!/bin/bash\nexec > found 2> noise\n{script}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the script found out: a word for each question that it names.
fn found(world: &World) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(world.project().join("found")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(question, answer)| (question.to_owned(), answer.trim().to_owned()))
        .collect()
}

fn assert_found(world: &World, expected: &[(&str, &str)]) {
    let owned = |(question, answer): &(&str, &str)| ((*question).to_owned(), (*answer).to_owned());
    let expected: Vec<_> = expected.iter().map(owned).collect();
    let noise = std::fs::read_to_string(world.project().join("noise")).unwrap_or_default();
    assert_eq!(found(world), expected, "{noise}");
}

/// A server on an address of this machine that nothing forwards to, which passes everything on to the model.
fn relay_to_model(world: &World) -> String {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let model = world.model.base_url().trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&model) else {
                return;
            };
            let (mut from_client, mut to_client) = (client.try_clone().unwrap(), client);
            let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
            std::thread::spawn(move || {
                std::io::copy(&mut from_client, &mut to_server).ok();
                to_server.shutdown(std::net::Shutdown::Write).ok();
            });
            std::thread::spawn(move || {
                std::io::copy(&mut from_server, &mut to_client).ok();
                to_client.shutdown(std::net::Shutdown::Both).ok();
            });
        }
    });
    address
}

/// Answers every connection with a sentence.
fn neighbour(sentence: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = [0; 1024];
            // The request is in one piece, and it does not matter what it is.
            if client.read(&mut head).is_err() {
                continue;
            }
            let length = sentence.len();
            write!(
                client,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{sentence}"
            )
            .ok();
        }
    });
    address
}

async fn listed(client: &mut EventClient) -> Value {
    client.send("session.list", json!({})).await;
    let listed = client.until_type("session.list").await;
    listed["sessions"][0].clone()
}

#[tokio::test]
async fn a_sandboxed_agent_reaches_its_model_and_listed_hosts_and_nothing_else() {
    let world = World::new(script()).await;
    let server = world.serve().await;
    let (open, closed) = (neighbour("open sesame"), neighbour("never heard"));
    // Not beneath /tmp, of which the agent has one of its own.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let service = elsewhere.path().join("service.sock");
    let _service = UnixListener::bind(&service).unwrap();
    let cache = elsewhere.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    let settings = world.home().join(".claude/settings.json");
    write_script(
        &world,
        &format!(
            r#"tell() {{ echo "$1 $(eval "$2" 2>> noise || echo refused)"; }}
            tell listed 'curl -sf http://{open}/'
            tell tunnel 'curl -sfp http://{open}/'
            tell unlisted 'curl -sf http://{closed}/'
            tell answer 'curl -s -o /dev/null -w "%{{http_code}}" http://{closed}/'
            tell direct 'curl -sf --noproxy "*" http://{open}/'
            tell tiller 'curl -sf --noproxy "*" http://{tiller}/health'
            tell localhost 'curl -sf http://localhost.localdomain:{port}/health'
            tell udp 'echo x > /dev/udp/192.0.2.1/53'
            tell six 'echo x > /dev/tcp/2001:db8::1/443'
            tell names 'getent ahosts example.com > /dev/null && echo resolved'
            tell interfaces 'grep -c : /proc/net/dev'
            tell routes 'tail -n +2 /proc/net/route | wc -l'
            tell abstract 'grep -c @ /proc/net/unix || true'
            tell service 'test -S {service} && echo there'
            tell services 'find /run -type s | wc -l'
            tell raise 'unshare -Urn ip link > /dev/null && curl -sf --noproxy "*" http://{open}/'
            tell enter 'nsenter --net=/proc/1/ns/net true && echo entered'
            tell outside '(echo x > {outside}) && echo written'
            (echo x > $HOME/.bashrc) 2> /dev/null
            tell cache '(echo x > {cache}/x) && echo written'
            tell hooks '(echo x > $HOME/.claude/settings.json) && echo written'
            tell moved 'mv $HOME/.claude/settings.json $HOME/.claude/old && echo moved'
            tell skills '(echo x > $HOME/.claude/skills/x) && echo written'
            # The value that it has: this may be root of the machine that runs the tests.
            tell kernel '(echo "$(cat /proc/sys/kernel/core_pattern)" > /proc/sys/kernel/core_pattern) && echo written'
            tell reopen 'unshare -Urm mount -o remount,bind,rw / && echo reopened'
            tell bare 'unshare -Urm umount /run && echo bared'
            tell private '(echo x > /tmp/mine) && echo private'
            "#,
            tiller = server.address,
            port = server.address.rsplit(':').next().unwrap(),
            service = service.display(),
            outside = elsewhere.path().join("outside").display(),
            cache = cache.display(),
        ),
    );
    let sign_in = server.sign_in().await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let start = json!({
        "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh)",
        "sandbox": "on", "sandboxHosts": [open], "sandboxFolders": [cache],
    });
    client.send("session.start", start).await;
    let asked = client.until_type("permission.request").await;
    assert_found(
        &world,
        &[
            ("listed", "open sesame"),
            ("tunnel", "open sesame"),
            ("unlisted", "refused"),
            ("answer", "403"),
            ("direct", "refused"),
            ("tiller", "refused"),
            ("localhost", "refused"),
            ("udp", "refused"),
            ("six", "refused"),
            ("names", "refused"),
            ("interfaces", "1"),
            ("routes", "0"),
            ("abstract", "0"),
            ("service", "refused"),
            ("services", "0"),
            ("raise", "refused"),
            ("enter", "refused"),
            ("outside", "refused"),
            ("cache", "written"),
            ("hooks", "refused"),
            ("moved", "refused"),
            ("skills", "refused"),
            ("kernel", "refused"),
            ("reopen", "refused"),
            ("bare", "refused"),
            ("private", "private"),
        ],
    );
    // Where the home folder is beneath /tmp, a file appears in the sandbox's own /tmp instead.
    assert!(!world.home().join(".bashrc").exists());
    assert_eq!(std::fs::read_to_string(settings).unwrap(), "{}\n");
    assert!(cache.join("x").exists() && !std::path::Path::new("/tmp/mine").exists());

    let entry = listed(&mut client).await;
    assert_eq!(entry["settings"]["sandbox"], "on");
    let hosts = entry["agent"]["sandbox"]["hosts"].as_array().unwrap();
    let model = world.model.base_url().trim_start_matches("http://").to_owned();
    for host in ["api.anthropic.com", &open, &model] {
        assert!(hosts.contains(&json!(host)), "{host} of {hosts:?}");
    }
    let folders = entry["agent"]["sandbox"]["folders"].as_array().unwrap();
    assert!(
        folders.contains(&json!(world.home().join(".claude"))),
        "{folders:?}"
    );

    // The way out is the agent's, not the server's.
    server.kill().await;
    let server = world.serve().await;
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &sign_in).await;
    let session = entry["id"].clone();
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// Where the model is elsewhere, the CLI has to use the proxy.
#[tokio::test]
async fn the_cli_speaks_to_its_model_through_the_proxy_and_goes_on_later() {
    let script = Script::new()
        .on("hello", [Reply::text("Hello.")])
        .on("again", [Reply::text("Known: {{prompts}}")]);
    let world = World::new(script).await;
    let address = format!("http://{}", relay_to_model(&world));
    let server = world.serve_with(&[], &[("ANTHROPIC_BASE_URL", &address)]).await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let start = json!({ "cwd": world.project(), "prompt": "hello", "sandbox": "on" });
    client.send("session.start", start).await;
    let session = client.until_status("completed").await["sessionId"].clone();
    server.stop().await;
    let server = world.serve_with(&[], &[("ANTHROPIC_BASE_URL", &address)]).await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let proceed = json!({ "sessionId": session, "prompt": "again" });
    client.send("session.continue", proceed).await;
    client.until_streamed("Known: hello | again").await;
    client.until_status("completed").await;
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// An agent of another protocol, which here tries to get out before it does its work.
#[tokio::test]
async fn an_acp_agent_in_a_sandbox_works_in_its_folder_and_reaches_nothing() {
    let world = World::with_claude(Script::new(), None).await;
    let closed = neighbour("never heard");
    let agent = scripted_acp().unwrap_or_else(|missing| panic!("{missing}"));
    let wrapper = world.project().join("agent.sh");
    std::fs::write(
        &wrapper,
        format!(
            r#"#!/bin/bash
            (echo x > $HOME/x) 2> /dev/null
            (echo "direct $(curl -sf --noproxy '*' http://{closed}/ || echo refused)"
            echo "proxy $(curl -sf http://{closed}/ || echo refused)") > found
            exec {}
            "#,
            agent.display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.configure(&format!(
        "titles = \"prompt\"\nacp_agents = [\"scripted={}\"]",
        wrapper.display()
    ));
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let start = json!({ "cwd": world.project(), "prompt": "edit", "backend": "scripted", "sandbox": "on" });
    client.send("session.start", start).await;
    client.until_status("completed").await;
    assert_found(&world, &[("direct", "refused"), ("proxy", "refused")]);
    assert!(!world.home().join("x").exists());
    assert!(world.project().join("note.txt").exists());
    let entry = listed(&mut client).await;
    assert_eq!(entry["agent"]["sandbox"]["hosts"], json!([]));
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn sessions_of_keys_are_sandboxed_by_default_and_opening_that_needs_the_right_to_approve() {
    let world = World::new(Script::new().on("go", [Reply::text("Done.")])).await;
    world
        .configure("titles = \"prompt\"\nkey_sandbox = \"on\"\nsandbox_hosts = [\"packages.example.org\"]\n");
    let runs = key(&world, &["runs", "--scope", "read,run"]).await;
    let approves = key(&world, &["approves", "--scope", "read,run,approve"]).await;
    let limited = [
        "limited",
        "--scope",
        "read,run,approve",
        "--sandbox",
        "--sandbox-host",
        "*.example.com",
    ];
    let limited = key(&world, &limited).await;
    let server = world.serve().await;
    let start = |more: Value| {
        let mut start = json!({ "cwd": world.project(), "prompt": "go" });
        start
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        start
    };
    let mut client = with_key(&server, &runs).await.unwrap();
    client
        .send("session.start", start(json!({ "sandbox": "off" })))
        .await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "forbidden", "{refused}");
    client.send("session.start", start(json!({}))).await;
    let session = client.until_status("completed").await["sessionId"].clone();
    let entry = listed(&mut client).await;
    assert_eq!(entry["settings"]["sandbox"], "on");
    let hosts = &entry["agent"]["sandbox"]["hosts"];
    assert!(
        hosts.as_array().unwrap().contains(&json!("packages.example.org")),
        "{hosts}"
    );
    for opened in [
        json!({ "sandbox": "files" }),
        json!({ "sandboxHosts": ["evil.test"] }),
        json!({ "sandbox": null }),
    ] {
        let mut configure = opened.clone();
        configure["sessionId"] = session.clone();
        client.send("session.configure", configure).await;
        let refused = client.until_type("runner.error").await;
        assert_eq!(refused["code"], "forbidden", "{opened}: {refused}");
    }

    let mut client = with_key(&server, &limited).await.unwrap();
    let beyond = start(json!({ "sandboxHosts": ["example.org"] }));
    client.send("session.start", beyond).await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "forbidden", "{refused}");
    client
        .send(
            "session.start",
            start(json!({ "sandboxHosts": ["a.example.com"] })),
        )
        .await;
    client.until_status("completed").await;

    let mut client = with_key(&server, &approves).await.unwrap();
    client
        .send("session.start", start(json!({ "sandbox": "off" })))
        .await;
    client.until_status("completed").await;
    assert_eq!(listed(&mut client).await["agent"]["sandbox"], Value::Null);
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn what_can_not_be_a_sandbox_is_refused_with_what_to_write() {
    let world = World::new(Script::new().on("go", [Reply::text("Done.")])).await;
    world.configure("titles = \"prompt\"\nshield = \"off\"\n");
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    for (wrong, words) in [
        (
            json!({ "sandboxHosts": ["http://example.com"] }),
            "A host is a name",
        ),
        (json!({ "sandboxFolders": ["here"] }), "an absolute path"),
        (json!({ "sandbox": "strict" }), "sandbox"),
        // The sandbox is made of what the shield is made of.
        (json!({ "sandbox": "on" }), "switched off in config.toml"),
    ] {
        let mut start = wrong.clone();
        start["cwd"] = json!(world.project());
        start["prompt"] = "go".into();
        client.send("session.start", start).await;
        let refused = client.until_type("runner.error").await;
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(words), "{wrong}: {message}");
    }
    server.stop().await;
    until_nothing_is_left(&world).await;
}
