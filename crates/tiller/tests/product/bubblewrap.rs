//! Machines whose kernel lets Tiller make no user namespace: bubblewrap makes the shield there, and where it is missing, too,
//! the session says so. Such a machine is made with a user namespace in which no further ones are allowed.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};
use tokio::process::Command;

use crate::client::EventClient;
use crate::server::{Server, World, until_nothing_is_left};

/// The program on such a machine.
fn restricted(world: &World, arguments: &[&str], path: &str) -> Command {
    let command = world.command();
    let mut shell = Command::new("/usr/bin/unshare");
    let script = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@""#;
    shell
        .args(["--user", "--map-root-user", "/bin/sh", "-c", script])
        .arg(command.as_std().get_program())
        .args(arguments)
        .env_clear()
        .envs(
            command
                .as_std()
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", path)
        .current_dir(world.project())
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    shell
}

async fn serve(world: &World, path: &str) -> Server {
    Server::start(restricted(world, &["serve", "--port", "0", "--no-open"], path)).await
}

/// All programs of the machine but bubblewrap.
fn without_bubblewrap(folder: &Path) -> String {
    for program in std::fs::read_dir("/usr/bin").unwrap().flatten() {
        if program.file_name() != "bwrap" {
            symlink(program.path(), folder.join(program.file_name())).unwrap();
        }
    }
    folder.display().to_string()
}

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

fn write_script(world: &World, questions: &str) {
    let path = world.project().join("test.sh");
    let tell = r#"tell() { echo "$1 $(eval "$2" 2> /dev/null || echo refused)"; }"#;
    std::fs::write(&path, format!("#!/bin/bash\nexec > found\n{tell}\n{questions}")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn found(world: &World) -> String {
    std::fs::read_to_string(world.project().join("found")).unwrap_or_default()
}

async fn start(client: &mut EventClient, world: &World, more: Value) -> Value {
    let mut start = json!({ "cwd": world.project(), "prompt": "go", "allowedTools": "Bash(./test.sh)" });
    start
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    client.send("session.start", start).await;
    client.until_type("permission.request").await
}

#[tokio::test]
async fn bubblewrap_makes_the_shield_and_the_sandbox_where_we_can_not() {
    let world = World::new(script()).await;
    let server = serve(&world, "/usr/bin:/bin").await;
    let data = world.data();
    write_script(
        &world,
        &format!(
            "tell data 'ls -A {data} | wc -l'
            tell server 'test -e /proc/{pid}/stat && echo seen'
            tell write '(echo x > {data}/x) && echo written'
            tell bare 'umount {data} && echo bared'
            tell mount 'mount -t tmpfs x /mnt && echo mounted'
            tell git 'git --version > /dev/null && echo works'
            tell home '(echo x > $HOME/x) && echo written'
            tell network 'grep -c : /proc/net/dev | tr -d 0'
            ",
            data = data.display(),
            pid = server.pid(),
        ),
    );
    let sign_in = server.sign_in().await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let asked = start(&mut client, &world, json!({})).await;
    let shielded = found(&world);
    let lines: Vec<&str> = shielded.lines().collect();
    assert_eq!(
        lines[..7],
        [
            "data 0",
            "server refused",
            "write refused",
            "bare refused",
            "mount refused",
            "git works",
            "home written"
        ],
        "{shielded}"
    );
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    client.send("session.list", json!({})).await;
    let listed = client.until_type("session.list").await;
    assert_eq!(listed["sessions"][0]["agent"]["shielded"], true, "{listed}");

    std::fs::remove_file(world.home().join("x")).unwrap();
    let asked = start(&mut client, &world, json!({ "sandbox": "on" })).await;
    let sandboxed = found(&world);
    // Where the home folder is beneath /tmp, a file of this name appears in the sandbox's own /tmp.
    let lines: Vec<&str> = sandboxed
        .lines()
        .filter(|line| !line.starts_with("home "))
        .collect();
    assert!(!world.home().join("x").exists(), "{sandboxed}");
    assert_eq!(
        lines[1..],
        [
            "server refused",
            "write refused",
            "bare refused",
            "mount refused",
            "git works",
            "network 1"
        ],
        "{sandboxed}"
    );
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn where_neither_works_a_session_says_why_and_what_to_install_and_require_starts_nothing() {
    let world = World::new(Script::new().on("go", [Reply::text("Done.")])).await;
    let programs = tempfile::tempdir().unwrap();
    let path = without_bubblewrap(programs.path());
    let server = serve(&world, &path).await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "go").await;
    client.until_status("completed").await;
    client.send("session.list", json!({})).await;
    let listed = client.until_type("session.list").await;
    let agent = &listed["sessions"][0]["agent"];
    assert_eq!(agent["shielded"], false, "{listed}");
    let reason = agent["notShielded"].as_str().unwrap();
    for words in [
        "user namespace",
        "bubblewrap is not installed",
        "apt install bubblewrap",
    ] {
        assert!(reason.contains(words), "{reason}");
    }
    let boxed = json!({ "cwd": world.project(), "prompt": "go", "sandbox": "on" });
    client.send("session.start", boxed).await;
    let refused = client.until_type("runner.error").await;
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("sandbox is not possible here") && message.contains("bubblewrap"),
        "{message}"
    );
    server.stop().await;
    until_nothing_is_left(&world).await;

    let doctor = restricted(&world, &["doctor"], &path).output().await.unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("apt install bubblewrap"), "{text}");

    world.configure("shield = \"require\"\n");
    let arguments = ["serve", "--port", "0", "--no-open"];
    let refused = restricted(&world, &arguments, &path).output().await.unwrap();
    assert!(!refused.status.success());
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        words.contains("require") && words.contains("bubblewrap"),
        "{words}"
    );
}
