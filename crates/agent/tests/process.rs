//! Framing, limits and ends, against small scripts that misbehave in ways which the real CLI can't be made to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use support::PATIENCE;
use tempfile::TempDir;
use tiller_agent::cli::{Finder, LaunchError, Version};
use tiller_agent::control::{Interrupt, RequestError};
use tiller_agent::link::{ConnectError, Inbound, connect, connect_websocket};
use tiller_agent::message::Kind;
use tiller_agent::options::Grace;
use tiller_agent::process::{Socket, sockets};
use tiller_agent::{Client, Error, Options};

/// An executable shell script in a folder of its own.
fn script(body: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = executable(&folder.path().join("claude"), body);
    (folder, path)
}

fn executable(path: &Path, body: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Written by another process: what we write ourselves is inherited, still open, by whatever another test is just
    // starting, and a file that is open for writing can't be executed.
    let mut writer = std::process::Command::new("/bin/sh")
        .args(["-c", r#"cat > "$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    write!(input, "#!/bin/sh\n{body}\n").unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success());
    path.to_owned()
}

async fn all(options: &Options) -> Vec<Inbound> {
    let (_link, mut inbox) = connect(options).await.unwrap();
    let mut all = Vec::new();
    while let Some(inbound) = tokio::time::timeout(PATIENCE, inbox.next()).await.unwrap() {
        all.push(inbound);
    }
    all
}

#[tokio::test]
async fn odd_lines_are_reported_and_survived() {
    // A torn line, bad UTF-8, no JSON, a line of 17 MiB, and a last one without a line ending.
    let (_folder, path) = script(
        r#"printf '{"type":"sys'; printf 'tem","subtype":"status"}\n'
printf '\377\376\n'
echo 'Warning: something'
head -c 17825792 /dev/zero | tr '\0' 'x'; echo
echo '{"type":"keep_alive"}'
printf '{"type":"result","subtype":"success"}'"#,
    );
    let seen = all(&Options::new().executable(path)).await;
    let [
        Inbound::Message(first),
        Inbound::Malformed { line, .. },
        Inbound::Malformed { .. },
        Inbound::Oversized { length: 17_825_792 },
        Inbound::Message(last),
        Inbound::Exited(exit),
    ] = &seen[..]
    else {
        panic!("{} items", seen.len())
    };
    assert_eq!(first.subtype(), Some("status"));
    assert_eq!(&line[..], b"\xff\xfe");
    assert_eq!(last.kind(), Kind::Result);
    assert_eq!((exit.code, exit.requested), (Some(0), false));
}

#[tokio::test]
async fn the_last_words_are_in_the_error() {
    let (_folder, path) =
        script("i=0; while [ $i -lt 100 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 3");
    let lines = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&lines);
    let options = Options::new().executable(path).on_stderr(move |_| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    let error = Client::connect(options).await.expect_err("it has ended");
    let Error::Exited(exit) = &error else {
        panic!("{error}")
    };
    assert_eq!(exit.code, Some(3));
    assert!(
        exit.stderr_tail.starts_with("line 60\n") && exit.stderr_tail.ends_with("line 99"),
        "{exit:?}"
    );
    assert!(
        error.to_string().contains("exit code 3") && error.to_string().contains("line 99"),
        "{error}"
    );
    assert_eq!(lines.load(std::sync::atomic::Ordering::Relaxed), 100);
}

#[tokio::test]
async fn an_exit_soon_after_a_resume_is_a_hint_and_no_more() {
    let (_folder, path) = script("exit 1");
    let resumed = all(&Options::new().executable(&path).resume("5f0c")).await;
    let Some(Inbound::Exited(exit)) = resumed.last() else {
        panic!("{resumed:?}")
    };
    assert!(
        !exit.expired && exit.resume_failed && exit.ended_early(),
        "{exit:?}"
    );
    let fresh = all(&Options::new().executable(&path)).await;
    assert!(matches!(fresh.last(), Some(Inbound::Exited(exit)) if !exit.expired && !exit.resume_failed));
}

#[tokio::test]
async fn a_deaf_agent_is_killed() {
    let (_folder, path) =
        script("trap '' TERM; echo '{\"type\":\"system\"}'; while true; do read x || true; done");
    let grace = Grace {
        after_input: Duration::from_millis(50),
        after_terminate: Duration::from_millis(50),
    };
    let (link, mut inbox) = connect(&Options::new().executable(path).grace(grace))
        .await
        .unwrap();
    assert!(matches!(inbox.next().await, Some(Inbound::Message(_))));
    let exit = tokio::time::timeout(PATIENCE, link.close()).await.unwrap();
    assert_eq!(exit.signal, Some(9));
    let pid = link.pid().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "no zombie is left");
}

#[tokio::test]
async fn a_flood_that_nobody_reads_waits_at_the_limit() {
    // 64 MiB of messages, and a counter of how many were written.
    let (folder, path) = script(
        r#"line=$(head -c 65000 /dev/zero | tr '\0' 'x')
i=0; while [ $i -lt 1000 ]; do printf '{"type":"user","x":"%s"}\n' "$line"; i=$((i+1)); echo $i > written; done"#,
    );
    let options = Options::new()
        .executable(path)
        .cwd(folder.path())
        .inbox_bytes(1 << 20);
    let (link, mut inbox) = connect(&options).await.unwrap();
    let written = || -> u32 {
        std::fs::read_to_string(folder.path().join("written"))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    };
    // Far enough to be over the limit if there were none; then it must stand still.
    tokio::time::timeout(PATIENCE, async {
        while written() < 16 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let refused = link
        .request_within(Interrupt {}, Duration::from_millis(500))
        .await;
    assert!(
        matches!(refused, Err(RequestError::TimedOut { .. })),
        "{refused:?}"
    );
    assert!(
        written() < 100,
        "{} lines were taken although nobody reads",
        written()
    );
    let mut messages = 0;
    while let Some(inbound) = inbox.next().await {
        messages += u32::from(matches!(inbound, Inbound::Message(_)));
    }
    assert_eq!(messages, 1000);
}

#[tokio::test]
async fn what_cannot_be_started_is_said_in_words() {
    let missing = connect(&Options::new().executable("/no/such/claude"))
        .await
        .err()
        .unwrap();
    assert!(matches!(missing, ConnectError::Launch(LaunchError::NotFound(_))));
    assert!(missing.to_string().contains("/no/such/claude"), "{missing}");
    let (_folder, path) = script("exit 0");
    let nowhere = connect(&Options::new().executable(path).cwd("/no/such/folder"))
        .await
        .err()
        .unwrap();
    assert!(nowhere.to_string().contains("/no/such/folder"), "{nowhere}");
}

#[tokio::test]
async fn the_executable_is_found_where_people_install_it() {
    for place in [
        ".claude/local/claude",
        ".local/bin/claude",
        ".nvm/versions/node/v20.11.1/bin/claude",
        ".fnm/aliases/default/bin/claude",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin/claude",
        ".volta/bin/claude",
        ".bun/bin/claude",
        ".npm-global/bin/claude",
        ".local/share/pnpm/claude",
        ".asdf/shims/claude",
        ".local/share/mise/shims/claude",
        "node_modules/.bin/claude",
    ] {
        let home = tempfile::tempdir().unwrap();
        let path = executable(&home.path().join(place), "echo '2.1.325 (Claude Code)'");
        let found = Finder::new(home.path(), "").find().unwrap();
        assert_eq!(found.path, path);
        assert_eq!(found.version().await.unwrap(), Version::new(2, 1, 325));
    }
}

#[tokio::test]
async fn the_newest_node_and_the_search_path_come_first() {
    let home = tempfile::tempdir().unwrap();
    executable(&home.path().join(".nvm/versions/node/v9.0.0/bin/claude"), "");
    let newest = executable(&home.path().join(".nvm/versions/node/v20.0.0/bin/claude"), "");
    let finder = Finder::new(home.path(), "");
    assert_eq!(finder.find().unwrap().path, newest);
    let on_path = executable(&home.path().join("tools/claude"), "");
    let finder = Finder::new(home.path(), home.path().join("tools"));
    assert_eq!(finder.find().unwrap().path, on_path);
    // A script is run by the newest node.
    let node = executable(&home.path().join(".nvm/versions/node/v20.0.0/bin/node"), "");
    let cli = home.path().join("cli.js");
    std::fs::write(&cli, "").unwrap();
    let found = finder.resolve(&cli).unwrap();
    assert_eq!(
        (found.program(), found.leading_args()),
        (node.as_path(), vec![cli.into_os_string()])
    );
}

#[tokio::test]
async fn a_new_version_is_noticed() {
    let (_folder, path) = script("echo '2.1.113 (Claude Code)'");
    let found = Finder::from_env().resolve(&path).unwrap();
    assert_eq!(found.version().await.unwrap(), Version::new(2, 1, 113));
    executable(&path, "echo '2.1.3250 (Claude Code)'");
    assert_eq!(found.version().await.unwrap(), Version::new(2, 1, 3250));
    executable(&path, "echo 'no version here, sorry'");
    let error = found.version().await.unwrap_err();
    assert!(error.to_string().contains("no version here"), "{error}");
}

/// A WebSocket connection without a network: what the CLI sends, and what it gets.
fn socket() -> (
    tokio::sync::mpsc::Sender<bytes::Bytes>,
    tokio::sync::mpsc::Receiver<String>,
    Socket,
) {
    let (from_cli, incoming) = tokio::sync::mpsc::channel::<bytes::Bytes>(8);
    let (outgoing, to_cli) = tokio::sync::mpsc::channel::<String>(8);
    let incoming = futures_util::stream::unfold(incoming, |mut incoming| async {
        Some((incoming.recv().await?, incoming))
    });
    let outgoing = futures_util::sink::unfold(outgoing, |outgoing, text| async move {
        outgoing
            .send(text)
            .await
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe))?;
        Ok::<_, std::io::Error>(outgoing)
    });
    (from_cli, to_cli, Socket::new(incoming, outgoing))
}

#[tokio::test]
async fn a_cli_that_connects_again_misses_nothing() {
    // What it prints is read as well: a CLI that can't resume says so only there.
    let (_folder, path) = script("echo '{\"type\":\"system\",\"subtype\":\"printed\"}'; read x");
    let (sender, sockets) = sockets();
    let options = Options::new().executable(path);
    let (link, mut inbox) = connect_websocket(&options, "ws://127.0.0.1:1/ws", sockets)
        .await
        .unwrap();
    let mut next = async || match tokio::time::timeout(PATIENCE, inbox.next()).await.unwrap() {
        Some(Inbound::Message(message)) => message.subtype().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(next().await, "printed");

    let (from_cli, mut to_cli, first) = socket();
    sender.attach(first).await.ok().unwrap();
    // Two lines in one text, and one without a line ending.
    from_cli
        .send("{\"type\":\"system\",\"subtype\":\"a\"}\n{\"type\":\"system\",\"subtype\":\"b\"}".into())
        .await
        .unwrap();
    assert_eq!((next().await, next().await), ("a".to_owned(), "b".to_owned()));
    link.send_user(&"one".into()).await.unwrap();
    assert!(to_cli.recv().await.unwrap().contains("\"one\""));

    // The connection breaks; what is said meanwhile goes out over the next one.
    drop((from_cli, to_cli));
    link.send_user(&"two".into()).await.unwrap();
    let (from_cli, mut to_cli, second) = socket();
    sender.attach(second).await.ok().unwrap();
    assert!(to_cli.recv().await.unwrap().contains("\"two\""));
    from_cli
        .send("{\"type\":\"system\",\"subtype\":\"c\"}\n".into())
        .await
        .unwrap();
    assert_eq!(next().await, "c");
    let exit = tokio::time::timeout(PATIENCE, link.close()).await.unwrap();
    assert!(exit.requested, "{exit:?}");
}
