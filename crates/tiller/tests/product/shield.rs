//! Agents see nothing of Tiller, and leave nothing behind. The machine that runs these tests has to allow the shield:
//! they are never skipped.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::{World, agent_of, processes_in, until, until_nothing_is_left};

/// The findings of an allowed command's script, one line per question.
fn findings(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.project().join("found")).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn write_script(world: &World, script: &str) {
    let path = world.project().join("test.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

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

#[tokio::test]
async fn an_agents_commands_see_nothing_of_tiller_and_can_not_answer_for_the_user() {
    let world = World::new(script()).await;
    let server = world.serve().await;
    let (data, pid) = (world.data(), server.pid());
    let tiller = env!("CARGO_BIN_EXE_tiller");
    write_script(
        &world,
        &format!(
            r#"exec > found 2>&1
            ls -A {data} | wc -l
            [ -e /proc/{pid}/stat ] && echo "sees the server" || echo "no server"
            grep -alE "^tiller-keeper" /proc/[0-9]*/cmdline | wc -l
            cat {data}/runs/*/secret 2> /dev/null | wc -c
            touch {data}/mine 2> /dev/null && echo "wrote" || echo "refused"
            umount {data} 2> /dev/null && echo "bared" || echo "refused"
            env -i HOME=$HOME setsid {tiller} --data-dir {data} link > link.txt 2>&1; wc -c < link.txt > /dev/null
            grep -c http link.txt
            for input in /proc/[0-9]*/fd/0; do (echo '{{}}' > $input) 2> /dev/null; done
            git --version | cut -c1-3
            "#,
            data = data.display(),
        ),
    );
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client
        .send(
            "session.start",
            json!({ "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh)" }),
        )
        .await;
    let asked = client.until_type("permission.request").await;
    assert_eq!(asked["input"]["command"], "echo made > made.txt");
    let found = findings(&world);
    assert_eq!(
        found[..8],
        ["0", "no server", "0", "0", "refused", "refused", "0", "git"],
        "{found:?}"
    );
    assert!(!world.project().join("made.txt").exists(), "nobody has answered");
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());

    client.send("session.list", json!({})).await;
    let listed = client.until_type("session.list").await;
    assert_eq!(listed["sessions"][0]["agent"]["shielded"], true, "{listed}");
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// Drivers are found by a note that the CLI writes under the process id that it knows.
#[tokio::test]
async fn an_agents_own_note_has_its_outer_process_id() {
    let world = World::new(Script::new().on("go", [Reply::text("Done.")])).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "go").await;
    client.until_status("completed").await;
    let agent = agent_of(&session).as_raw_nonzero().get();
    let status = std::fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
    let inside = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .and_then(|numbers| numbers.split_whitespace().last())
        .unwrap()
        .to_owned();
    assert_ne!(inside, agent.to_string(), "in a PID namespace of its own");
    // Outside, the number is that of the namespace's first process: no other note has it.
    let stat = std::fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
    let parent = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(1)
        .unwrap();
    assert_eq!(inside, parent);
    let note = world
        .home()
        .join(".claude/sessions")
        .join(format!("{inside}.json"));
    until("the CLI writes its note", || note.exists()).await;
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// A key that was created with `--sandbox` runs agents that can write only to their folder.
#[tokio::test]
async fn an_agent_in_a_sandbox_writes_to_its_folder_only() {
    let world = World::new(script()).await;
    let scopes = ["boxed", "--scope", "read,run,approve", "--sandbox"];
    let key = crate::access::key(&world, &scopes).await;
    // Not beneath /tmp, of which the agent has a private one.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let outside = elsewhere.path().join("outside");
    let of_others = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    write_script(
        &world,
        &format!(
            r"exec > found 2>&1
            (echo x > {outside}) 2> /dev/null && echo written || echo refused
            (echo x > $HOME/outside) 2> /dev/null
            test -e {of_others} && echo seen || echo hidden
            echo x > /tmp/mine && echo private
            unshare -Urm mount -o remount,bind,rw / 2> /dev/null && echo reopened || echo refused
            ",
            outside = outside.display(),
            of_others = of_others.path().display(),
        ),
    );
    let server = world.serve().await;
    let mut client = crate::access::with_key(&server, &key).await.unwrap();
    client
        .send(
            "session.start",
            json!({ "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh)" }),
        )
        .await;
    let asked = client.until_type("permission.request").await;
    let found = findings(&world);
    assert_eq!(found, ["refused", "hidden", "private", "refused"]);
    assert!(!outside.exists() && !world.home().join("outside").exists());
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// A user's own hook may decide before anyone here does. That is no alarm: the agent withdraws its question first.
#[tokio::test]
async fn a_users_own_hook_may_decide() {
    let world = World::new(script()).await;
    write_script(&world, "true\n");
    let decision =
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#;
    let hook = json!({ "type": "command", "command": format!("echo '{decision}'") });
    let settings = json!({ "hooks": { "PermissionRequest": [{ "matcher": "*", "hooks": [hook] }] } });
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::fs::write(world.home().join(".claude/settings.json"), settings.to_string()).unwrap();
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "go").await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// Clears its environment, leaves its parent, session and group, and ignores signals; then everything that could look
/// for it is killed.
#[tokio::test]
async fn detached_processes_of_an_agent_end_with_its_keeper() {
    let world = World::new(script()).await;
    let server = world.serve().await;
    write_script(
        &world,
        r#"env -i PATH="$PATH" setsid sh -c '
            (trap "" TERM HUP INT; setsid sh -c "while :; do sleep 1; done" > /dev/null 2>&1 &) &' > /dev/null 2>&1
        "#,
    );
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client
        .send(
            "session.start",
            json!({ "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh)" }),
        )
        .await;
    client.until_type("permission.request").await;
    let strays = || {
        let mut found = processes_in(&world.project());
        found.retain(|command| command.starts_with("sh -c while :"));
        found.len()
    };
    until("it escapes", || strays() == 1).await;
    let keepers = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        command.starts_with("tiller-keeper") && command.contains(&*world.data().to_string_lossy())
    });
    let keepers: Vec<i32> = keepers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    assert_eq!(keepers.len(), 1);
    // The server first, so that only the kernel is left to end it.
    server.kill().await;
    let keeper = rustix::process::Pid::from_raw(keepers[0]).unwrap();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    until("the stray lives on", || strays() == 0).await;
}

#[tokio::test]
async fn a_switched_off_shield_is_reported_and_a_required_one_is_enforced() {
    let world = World::new(Script::new().on("go", [Reply::text("Done.")])).await;
    world.configure("titles = \"prompt\"\nshield = \"off\"\n");
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "go").await;
    client.until_status("completed").await;
    client.send("session.list", json!({})).await;
    let listed = client.until_type("session.list").await;
    let agent = &listed["sessions"][0]["agent"];
    assert_eq!(agent["shielded"], false, "{listed}");
    assert!(agent["notShielded"].as_str().unwrap().contains("switched off"));
    server.stop().await;

    world.configure("titles = \"prompt\"\nshield = \"require\"\n");
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "go").await;
    client.until_status("completed").await;
    server.stop().await;
    until_nothing_is_left(&world).await;
}

/// What people use beside the agent works as without a shield: hooks, servers of the Model Context Protocol, git, a server
/// that is being developed, the client of Docker, and going on with a conversation.
#[tokio::test]
async fn what_people_use_with_an_agent_works_under_the_shield() {
    let world = World::new(
        Script::new()
            .on(
                "go",
                [
                    Reply::tool("Bash", json!({ "command": "./test.sh", "description": "Run it" })),
                    Reply::tool("mcp__kit__note", json!({ "text": "from the model" })),
                    Reply::text("Done."),
                ],
            )
            .on("again", [Reply::text("Known: {{prompts}}")]),
    )
    .await;
    // As `docker` of the machine would: a program that speaks to a daemon through its socket.
    let daemon = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let socket = daemon.path().join("docker.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut client in listener.incoming().flatten() {
            let mut request = [0; 1024];
            if client.read(&mut request).is_err() {
                continue;
            }
            client
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")
                .ok();
        }
    });
    let hook = |name: &str| {
        let command = format!("echo {name} >> {}", world.project().join("hooks").display());
        json!([{ "matcher": "", "hooks": [{ "type": "command", "command": command }] }])
    };
    let hooks = json!({ "hooks": { "PreToolUse": hook("before"), "Stop": hook("stop") } });
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::fs::write(world.home().join(".claude/settings.json"), hooks.to_string()).unwrap();
    let server = world.project().join("server.sh");
    std::fs::write(&server, MCP_SERVER).unwrap();
    let servers = json!({ "mcpServers": { "kit": { "command": "bash", "args": [server] } } });
    std::fs::write(world.project().join(".mcp.json"), servers.to_string()).unwrap();
    let local = json!({ "enableAllProjectMcpServers": true });
    std::fs::create_dir_all(world.project().join(".claude")).unwrap();
    std::fs::write(
        world.project().join(".claude/settings.local.json"),
        local.to_string(),
    )
    .unwrap();
    write_script(
        &world,
        &format!(
            r#"exec > found 2>&1
            git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
            git log --format=%s; cd ..
            curl -s --unix-socket {socket} http://docker/_ping; echo
            setsid perl -MIO::Socket::INET -e '
                $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:0");
                open F, ">port.new"; print F $server->sockport; close F; rename "port.new", "port";
                while ($client = $server->accept) {{ print $client "developed"; close $client }}' < /dev/null > /dev/null 2>&1 &
            "#,
            socket = socket.display(),
        ),
    );
    let running = world.serve().await;
    let mut client = EventClient::connect(&running, &running.sign_in().await).await;
    let start = json!({
        "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh),mcp__kit__note",
    });
    client.send("session.start", start).await;
    let session = client.until_status("completed").await["sessionId"].clone();
    let found = findings(&world);
    assert_eq!(found[..2], ["first", "OK"], "{found:?}");
    let port = world.project().join("port");
    until("the server that is being developed listens", || port.exists()).await;
    let port: u16 = std::fs::read_to_string(port).unwrap().parse().unwrap();
    let mut page = String::new();
    let mut visitor = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    std::io::Read::read_to_string(&mut visitor, &mut page).unwrap();
    assert_eq!(page, "developed");
    let noted = std::fs::read_to_string(world.project().join("noted")).unwrap_or_default();
    assert!(noted.contains("from the model"), "{noted}");
    let hooks = || std::fs::read_to_string(world.project().join("hooks")).unwrap_or_default();
    until("the hooks run", || hooks().contains("stop")).await;
    assert!(hooks().contains("before"), "{}", hooks());
    running.stop().await;

    let running = world.serve().await;
    let mut client = EventClient::connect(&running, &running.sign_in().await).await;
    let proceed = json!({ "sessionId": session, "prompt": "again" });
    client.send("session.continue", proceed).await;
    client.until_streamed("Known: go | again").await;
    client.until_status("completed").await;
    running.stop().await;
    until_nothing_is_left(&world).await;
}

/// A server of the Model Context Protocol with one tool, which writes down what it is called with.
const MCP_SERVER: &str = r#"
while read -r line; do
    id=$(sed -nE 's/.*"id":([0-9]+).*/\1/p' <<< "$line")
    case $line in
        *'"method":"initialize"'*)
            version=$(sed -nE 's/.*"protocolVersion":"([^"]+)".*/\1/p' <<< "$line")
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"kit","version":"1"}}}' ;;
        *'"method":"tools/list"'*)
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"note","description":"Notes","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}' ;;
        *'"method":"tools/call"'*)
            echo "$line" >> noted
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"noted"}]}}' ;;
        *'"id":'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
    esac
done
"#;
