//! Keepers as real processes, with shell scripts as agents.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(target_os = "linux")]
#[path = "keeper/shielded.rs"]
mod shielded;
#[path = "keeper/waiting.rs"]
mod waiting;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt, sink, stream};
use tiller_keeper::{AttachError, KeeperConfig, KeptAgent, Signs, attach, remove, runs, start};
use tiller_process::{Frame, Launch, Line, Located, Shield, ShieldMode};

// Every test names its run differently: a run's processes are found by its name, wherever they are.

/// Long enough for a busy machine. Nothing takes this long unless something is wrong.
const PATIENCE: Duration = Duration::from_mins(2);

struct Place {
    folder: tempfile::TempDir,
    keeping: KeeperConfig,
}

impl Place {
    fn new(grace: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A name that is too long for a socket's address.
        let runs = folder.path().join("r".repeat(120));
        let keeping = KeeperConfig {
            folder: runs,
            program: env!("CARGO_BIN_EXE_tiller-keeper").into(),
            args: Vec::new(),
            grace,
            decision_grace: Duration::from_mins(10),
            signs: Signs {
                turn_end: br#""type":"result""#.to_vec(),
                ..Signs::default()
            },
            shield: Shield::none(),
        };
        Self { folder, keeping }
    }

    fn run_folder(&self, run: &str) -> PathBuf {
        self.keeping.folder.join(run)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `$HERE` is the test's folder.
    fn script(&self, script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: [
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                ("HERE".into(), self.folder.path().into()),
            ]
            .into(),
            cwd: Some(self.folder.path().into()),
            exact_cwd: false,
            open_files: None,
            sandbox: None,
        }
    }
}

/// One line; further lines of the same batch are next.
async fn next(kept: &mut KeptAgent) -> Option<Located> {
    let incoming = &mut kept.wire.incoming;
    let mut lines = tokio::time::timeout(PATIENCE, incoming.next())
        .await
        .expect("the agent says nothing")?;
    let others = lines.split_off(1);
    if !others.is_empty() {
        let one_by_one = |lines: Vec<Located>| stream::iter(lines.into_iter().map(|line| vec![line]));
        let later = std::mem::replace(incoming, stream::empty().boxed());
        *incoming = one_by_one(others).chain(later.flat_map(one_by_one)).boxed();
    }
    lines.pop()
}

async fn line(kept: &mut KeptAgent) -> (String, u64) {
    match next(kept).await {
        Some(Located {
            frame: Frame::Line(line),
            end,
        }) => (String::from_utf8(line.to_vec()).unwrap(), end),
        other => panic!("{other:?}"),
    }
}

async fn say(kept: &mut KeptAgent, json: &'static str, number: u64) {
    let json = json.into();
    kept.wire.outgoing.send(Line { json, number }).await.unwrap();
}

/// Polls for a state that no event reports.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// The first frame of a program, with the secret of the run.
fn attach_order(secret: &[u8]) -> Vec<u8> {
    let length = u32::try_from(1 + 8 + secret.len()).unwrap();
    let mut order = length.to_le_bytes().to_vec();
    order.push(2);
    order.extend((secret.len() as u64).to_le_bytes());
    order.extend(secret);
    order
}

fn read_secret(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("secret")).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Output between a program's connection and its first frame was once taken for the answer to that frame; no more
/// output was delivered then.
#[tokio::test]
async fn a_program_gets_the_state_first() {
    let mut place = Place::new(PATIENCE);
    place.keeping.folder = place.file("r");
    let script = r#"while ! [ -e "$HERE/go" ]; do sleep 0.01; done; echo '{"n":1}'; cat > /dev/null"#;
    let (keeping, launch) = (place.keeping.clone(), place.script(script));
    in_a_program_that_dies(async move { (start(&keeping, "first-word", &launch).await.unwrap(), 0) });
    let run = place.run_folder("first-word");
    let mut program = UnixStream::connect(run.join("socket")).unwrap();
    std::fs::write(place.file("go"), "").unwrap();
    let output = run.join("out-00000000000000000000");
    until("the agent speaks", || !read(&output).is_empty()).await;
    let running = 1;
    program.write_all(&attach_order(&read_secret(&run))).unwrap();
    let mut news = [0; 5];
    program.read_exact(&mut news).unwrap();
    assert_eq!(news[4], running);
    remove(&place.keeping, "first-word").await;
}

#[tokio::test]
async fn a_caller_without_the_secret_gets_nothing_and_replaces_nobody() {
    let mut place = Place::new(PATIENCE);
    place.keeping.folder = place.file("r");
    let script = r#"while read line; do echo "got $line"; done"#;
    let mut kept = start(&place.keeping, "secret", &place.script(script))
        .await
        .unwrap();
    let run = place.run_folder("secret");
    let mode = std::fs::metadata(run.join("secret"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let input = [&[19, 0, 0, 0, 3][..], &[0; 8], &2_u64.to_le_bytes(), b"no"].concat();
    for word in [
        attach_order(b""),
        attach_order(&[7; 32]),
        // Not even in the form of an earlier version.
        vec![1, 0, 0, 0, 2],
        input.clone(),
    ] {
        let mut caller = UnixStream::connect(run.join("socket")).unwrap();
        caller.write_all(&word).unwrap();
        // The keeper may have already closed the connection.
        caller.write_all(&input).ok();
        let mut told = Vec::new();
        // A reset connection is as good as a closed one.
        caller.read_to_end(&mut told).ok();
        assert!(told.is_empty(), "{told:?}");
    }
    // Callers that send nothing don't block others.
    let silent: Vec<_> = (0..10)
        .map(|_| UnixStream::connect(run.join("socket")).unwrap())
        .collect();
    say(&mut kept, "one", 1).await;
    assert_eq!(line(&mut kept).await.0, "got one");
    let mut next_program = attach(&place.keeping, "secret", 0).await.unwrap();
    assert_eq!(line(&mut next_program).await.0, "got one");
    drop(silent);
    remove(&place.keeping, "secret").await;
}

/// A child process of the agent can read the run's folder if nothing hides it. It still can't act as the program.
#[tokio::test]
async fn a_child_of_the_agent_can_not_act_as_the_program() {
    let mut place = Place::new(PATIENCE);
    place.keeping.folder = place.file("r");
    let script = r#"
        "$CALLER" call "$HERE/r/beneath" > "$HERE/said" 2>&1 < /dev/null
        # Nor by way of the agent's own input.
        (echo forged > /proc/$$/fd/0) 2> /dev/null && echo written >> "$HERE/said"
        echo called
        while read line; do echo "got $line"; done"#;
    let mut launch = place.script(script);
    let program = env!("CARGO_BIN_EXE_tiller-keeper");
    launch.env.insert("CALLER".into(), program.into());
    let mut kept = start(&place.keeping, "beneath", &launch).await.unwrap();
    assert_eq!(line(&mut kept).await.0, "called");
    assert_eq!(read(&place.file("said")), "refused\n");
    say(&mut kept, "real", 1).await;
    assert_eq!(line(&mut kept).await.0, "got real");

    // The same frame from a process beside it is accepted.
    let output = std::process::Command::new(program)
        .arg("call")
        .arg(place.run_folder("beneath"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "heard\n");
    remove(&place.keeping, "beneath").await;
}

#[tokio::test]
async fn output_input_and_exit_pass_through_the_keeper() {
    let place = Place::new(PATIENCE);
    let script = r#"echo '{"n":0}'; while read line; do echo "got $line"; done; echo gone >&2; exit 7"#;
    let mut kept = start(&place.keeping, "heard", &place.script(script))
        .await
        .unwrap();
    assert_eq!((kept.last_input, kept.listens), (Some(0), true));
    assert_eq!(line(&mut kept).await, (r#"{"n":0}"#.to_owned(), 8));
    say(&mut kept, "one", 5).await;
    say(&mut kept, "one again", 5).await;
    say(&mut kept, "an older one", 4).await;
    say(&mut kept, "unnumbered", 0).await;
    say(&mut kept, "two", 6).await;
    assert_eq!(line(&mut kept).await.0, "got one");
    assert_eq!(line(&mut kept).await.0, "got unnumbered");
    assert_eq!(line(&mut kept).await.0, "got two");
    let KeptAgent { mut wire, run, .. } = kept;
    drop(wire.outgoing);
    let last = tokio::time::timeout(PATIENCE, wire.incoming.next())
        .await
        .unwrap();
    assert!(last.is_none(), "{last:?}");
    let ended = wire.process.wait().await;
    assert_eq!((ended.code, ended.signal), (Some(7), None));
    assert_eq!(ended.stderr_tail, "gone");
    run.finish().await;
    until("the run's folder stays", || !place.run_folder("heard").exists()).await;
}

#[tokio::test]
async fn a_failed_start_reports_the_reason_and_leaves_nothing() {
    let place = Place::new(PATIENCE);
    let mut launch = place.script("");
    launch.program = place.file("no such program");
    let error = start(&place.keeping, "what-can-not-be", &launch)
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(!place.run_folder("what-can-not-be").exists());
    assert!(matches!(
        attach(&place.keeping, "what-can-not-be", 0).await,
        Err(AttachError::NeverStarted)
    ));
}

/// Runs `work` in a program that then disappears as if it had been killed.
fn in_a_program_that_dies<T: Send + 'static>(
    work: impl Future<Output = (KeptAgent, T)> + Send + 'static,
) -> T {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (kept, result) = runtime.block_on(work);
        // A killed program sends nothing more, and its connections close.
        let KeptAgent { wire, run, .. } = kept;
        std::mem::forget((wire.outgoing, wire.process, run));
        runtime.shutdown_background();
        drop(wire.incoming);
        result
    })
    .join()
    .unwrap()
}

#[tokio::test]
async fn the_next_program_reads_on_where_the_last_one_stopped() {
    let place = Place::new(PATIENCE);
    let script = r#"for i in 1 2 3; do echo "line $i"; done
        read go; for i in $(seq 4 20000); do echo "line $i"; done
        read more; echo "then $more"; read none; echo "and $none""#;
    let (keeping, launch) = (place.keeping.clone(), place.script(script));
    let position = in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "a-program-that-comes", &launch).await.unwrap();
        line(&mut kept).await;
        let (second, position) = line(&mut kept).await;
        assert_eq!(second, "line 2");
        say(&mut kept, "go", 1).await;
        (kept, position)
    });

    let mut kept = attach(&place.keeping, "a-program-that-comes", position)
        .await
        .unwrap();
    // Nobody knows whether the last line left the program, so it is sent again.
    say(&mut kept, "go", 1).await;
    for number in 3..=20_000 {
        assert_eq!(line(&mut kept).await.0, format!("line {number}"));
    }
    say(&mut kept, "words", 2).await;
    assert_eq!(line(&mut kept).await.0, "then words");
    let KeptAgent { mut wire, run, .. } = kept;
    drop(wire.outgoing);
    let rest: Vec<_> = tokio::time::timeout(PATIENCE, wire.incoming.by_ref().collect())
        .await
        .unwrap();
    assert_eq!(rest.len(), 1);
    let ended = wire.process.wait().await;
    assert_eq!(ended.code, Some(0));
    run.finish().await;
    until("the run's folder stays", || {
        !place.run_folder("a-program-that-comes").exists()
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_ended_in_the_meantime_is_read_to_its_end() {
    let place = Place::new(PATIENCE);
    let (keeping, launch) = (
        place.keeping.clone(),
        place.script("echo first; read go; echo second; printf third; echo dead >&2; exit 3"),
    );
    let position = in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "an-agent-that-ended", &launch).await.unwrap();
        let (_, position) = line(&mut kept).await;
        say(&mut kept, "go", 1).await;
        line(&mut kept).await;
        (kept, position)
    });
    let exit = place.run_folder("an-agent-that-ended").join("exit.json");
    until("the keeper leaves no word of the end", || exit.exists()).await;

    let mut kept = attach(&place.keeping, "an-agent-that-ended", position)
        .await
        .unwrap();
    assert_eq!(line(&mut kept).await.0, "second");
    assert_eq!(line(&mut kept).await.0, "third");
    assert_eq!(next(&mut kept).await, None);
    let ended = kept.wire.process.wait().await;
    assert_eq!((ended.code, ended.stderr_tail.as_str()), (Some(3), "dead"));
    kept.run.finish().await;
    until("the run's folder stays", || {
        !place.run_folder("an-agent-that-ended").exists()
    })
    .await;
    assert_eq!(runs(&place.keeping).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn input_for_an_ending_agent_is_not_counted() {
    let mut place = Place::new(PATIENCE);
    place.keeping.folder = place.file("r");
    let script = r#"trap '' TERM; echo ready; while read line; do echo "got $line"; done
        touch $HERE/closed; until [ -e $HERE/go ]; do sleep 0.02; done; echo bye"#;
    let (keeping, launch, closed) = (place.keeping.clone(), place.script(script), place.file("closed"));
    let position = in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "to-end", &launch).await.unwrap();
        line(&mut kept).await;
        say(&mut kept, "one", 1).await;
        let (_, position) = line(&mut kept).await;
        kept.wire.outgoing = Box::pin(sink::drain().sink_map_err(|never| match never {}));
        until("its input stays open", || closed.exists()).await;
        (kept, position)
    });
    // Nobody knows whether the agent got the last line, so it is sent again.
    let attach_order = attach_order(&read_secret(&place.run_folder("to-end")));
    let mut orders = attach_order.clone();
    orders.extend([20, 0, 0, 0, 3]);
    orders.extend([2u64.to_le_bytes(), 3u64.to_le_bytes()].concat());
    orders.extend(b"two");
    orders.extend(attach_order);
    let mut program = UnixStream::connect(place.run_folder("to-end").join("socket")).unwrap();
    program.write_all(&orders).unwrap();
    for _ in 0..2 {
        let mut news = [0; 37];
        program.read_exact(&mut news).unwrap();
        let [_, last_input, _, listens] =
            [5, 13, 21, 29].map(|at| u64::from_le_bytes(*news[at..].first_chunk().unwrap()));
        assert_eq!((news[4], last_input, listens), (1, 1, 0));
    }
    drop(program);
    std::fs::write(place.file("go"), "").unwrap();
    let exit = place.run_folder("to-end").join("exit.json");
    until("it goes on for ever", || exit.exists()).await;
    let kept = attach(&place.keeping, "to-end", position).await.unwrap();
    assert_eq!((kept.last_input, kept.listens), (Some(1), false));
    kept.run.finish().await;
}

/// A program that told its agent to end, and dies before the agent does.
#[tokio::test]
async fn an_agent_that_does_not_end_with_its_input_is_ended_by_its_keeper() {
    let place = Place::new(PATIENCE);
    let script = r"echo $$ > $HERE/agent; echo ready; cat > /dev/null; touch $HERE/closed; sleep 600";
    let (keeping, launch, closed) = (place.keeping.clone(), place.script(script), place.file("closed"));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "does-not-end", &launch).await.unwrap();
        line(&mut kept).await;
        kept.wire.outgoing = Box::pin(sink::drain().sink_map_err(|never| match never {}));
        until("its input stays open", || closed.exists()).await;
        (kept, ())
    });
    let exit = place.run_folder("does-not-end").join("exit.json");
    until("it goes on for ever", || exit.exists()).await;
    assert!(!is_alive(&read(&place.file("agent"))));
}

#[tokio::test]
async fn without_a_program_an_idle_agent_and_its_children_end_and_a_busy_one_goes_on() {
    let place = Place::new(Duration::from_millis(300));
    // A child in a session of its own, which no signal to a group reaches.
    let script = r#"setsid sh -c 'echo $$ > $HERE/child; exec sleep 600' &
        echo $$ > $HERE/agent; echo ready
        while read line; do
            touch $HERE/working; until [ -e $HERE/go ]; do sleep 0.02; done
            echo '{"n":1,"type":"result"}'
        done
        echo closed > $HERE/closed"#;
    let (keeping, launch, working) = (place.keeping.clone(), place.script(script), place.file("working"));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "without-a-program-an", &launch).await.unwrap();
        line(&mut kept).await;
        say(&mut kept, "work", 1).await;
        until("it does not work", || working.exists()).await;
        (kept, ())
    });
    // Longer than the grace time: a busy agent is not ended.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(is_alive(&read(&place.file("agent"))));
    std::fs::write(place.file("go"), "").unwrap();
    let exit = place.run_folder("without-a-program-an").join("exit.json");
    until("it goes on for ever", || exit.exists()).await;
    assert_eq!(read(&place.file("closed")), "closed\n");
    until("its child lives on", || !is_alive(&read(&place.file("child")))).await;
}

#[tokio::test]
async fn leftovers_end_even_if_the_program_dies_before_it_ends_them() {
    let place = Place::new(PATIENCE);
    let script = r"setsid sh -c 'echo $$ > $HERE/child; exec sleep 600' > /dev/null 2>&1 &
        until [ -s $HERE/child ]; do sleep 0.01; done";
    let (keeping, launch) = (place.keeping.clone(), place.script(script));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "left-behind", &launch).await.unwrap();
        assert_eq!(next(&mut kept).await, None);
        kept.wire.process.wait().await;
        (kept, ())
    });
    until("its child lives on", || !is_alive(&read(&place.file("child")))).await;
}

/// Leaves a daemon that has another parent, group, session and environment.
const DAEMON: &str = r#"env -i setsid -f sh -c 'echo $$ > "$0"; exec sleep 600' "$HERE/daemon" > /dev/null 2>&1
    until [ -s "$HERE/daemon" ]; do sleep 0.01; done; "#;

#[tokio::test]
async fn a_detached_daemon_lives_as_long_as_its_agent() {
    let place = Place::new(Duration::from_millis(300));
    let script = format!("{DAEMON} echo ready; cat > /dev/null");
    let (keeping, launch) = (place.keeping.clone(), place.script(&script));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "daemon-lives", &launch).await.unwrap();
        line(&mut kept).await;
        // Work, so that the agent is not ended as idle.
        say(&mut kept, "work", 1).await;
        (kept, ())
    });
    let daemon = read(&place.file("daemon"));
    let mut kept = attach(&place.keeping, "daemon-lives", 0).await.unwrap();
    line(&mut kept).await;
    assert!(kept.wire.process.leftovers().await);
    assert!(is_alive(&daemon), "it is ended under an agent that is at work");
    remove(&place.keeping, "daemon-lives").await;
    until("the daemon lives on", || !is_alive(&daemon)).await;
}

#[tokio::test]
async fn a_detached_daemon_is_ended_by_the_program_or_the_keeper() {
    let place = Place::new(PATIENCE);
    let daemon = place.file("daemon");
    let launch = place.script(DAEMON);

    // The program ends it…
    let mut kept = start(&place.keeping, "daemon-program", &launch).await.unwrap();
    assert_eq!(next(&mut kept).await, None);
    kept.wire.process.wait().await;
    assert!(is_alive(&read(&daemon)));
    assert!(
        kept.wire.process.leftovers().await,
        "the program does not find it"
    );
    kept.wire.process.kill().await;
    until("the daemon lives on", || !is_alive(&read(&daemon))).await;
    kept.run.finish().await;

    // …or only tells the keeper to finish…
    std::fs::remove_file(&daemon).unwrap();
    let mut kept = start(&place.keeping, "daemon-finish", &launch).await.unwrap();
    assert_eq!(next(&mut kept).await, None);
    kept.wire.process.wait().await;
    assert!(is_alive(&read(&daemon)));
    kept.run.finish().await;
    until("the daemon outlives the keeper", || !is_alive(&read(&daemon))).await;

    // …or dies before it can.
    std::fs::remove_file(&daemon).unwrap();
    let keeping = place.keeping.clone();
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "daemon-keeper", &launch).await.unwrap();
        assert_eq!(next(&mut kept).await, None);
        kept.wire.process.wait().await;
        (kept, ())
    });
    until("the daemon is left to nobody", || !is_alive(&read(&daemon))).await;
}

#[tokio::test]
async fn a_killed_keeper_ends_its_agent_and_what_it_kept_is_read() {
    let place = Place::new(PATIENCE);
    let script = r"echo $$ > $HERE/agent; echo $PPID > $HERE/keeper; echo one; sleep 600";
    let mut kept = start(&place.keeping, "a-killed-keeper-ends", &place.script(script))
        .await
        .unwrap();
    let (_, position) = line(&mut kept).await;
    let keeper = read(&place.file("keeper"));
    assert!(
        std::process::Command::new("kill")
            .args(["-9", keeper.trim()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(next(&mut kept).await, None);
    assert_eq!(kept.wire.process.wait().await.code, None);
    until("the agent lives on", || !is_alive(&read(&place.file("agent")))).await;

    let mut kept = attach(&place.keeping, "a-killed-keeper-ends", 0).await.unwrap();
    assert_eq!((kept.last_input, kept.listens), (None, false));
    assert_eq!(line(&mut kept).await, ("one".to_owned(), position));
    assert_eq!(next(&mut kept).await, None);
    kept.run.finish().await;
    assert!(!place.run_folder("a-killed-keeper-ends").exists());
}

/// An agent whose output can't be stored, because its folder is not where the next file would be created. Returns the
/// agent and its keeper's pid.
async fn out_of_room(place: &Place, run: &str) -> (KeptAgent, String) {
    let script = r"echo $PPID > $HERE/keeper; echo ready; read go
        head -c 9000000 /dev/zero | tr '\0' x; sleep 600";
    let mut kept = start(&place.keeping, run, &place.script(script)).await.unwrap();
    line(&mut kept).await;
    let moved = place.file("moved");
    std::fs::rename(place.run_folder(run), &moved).unwrap();
    say(&mut kept, "go", 1).await;
    let first = moved.join("out-00000000000000000000");
    until("its output stays short", || {
        first.metadata().unwrap().len() >= 8 * 1024 * 1024
    })
    .await;
    let keeper = read(&place.file("keeper"));
    assert!(is_alive(&keeper));
    (kept, keeper)
}

#[tokio::test]
async fn a_full_disk_does_not_keep_an_agent_from_ending() {
    let place = Place::new(PATIENCE);
    let (kept, keeper) = out_of_room(&place, "no-room").await;
    let KeptAgent { mut wire, run, .. } = kept;
    drop(wire.outgoing);
    wire.process.kill().await;
    let all: Vec<_> = tokio::time::timeout(PATIENCE, wire.incoming.collect())
        .await
        .expect("its end is not told");
    assert!(!all.is_empty());
    wire.process.wait().await;
    run.finish().await;
    until("the keeper stays", || !is_alive(&keeper)).await;
}

#[tokio::test]
async fn a_keeper_with_a_full_disk_does_not_stay_forever() {
    let place = std::sync::Arc::new(Place::new(PATIENCE));
    let theirs = std::sync::Arc::clone(&place);
    let keeper = in_a_program_that_dies(async move { out_of_room(&theirs, "room-alone").await });
    until("the keeper stays", || !is_alive(&keeper)).await;
}

/// Stops the process whose pid is in that file.
async fn stop(file: &Path) -> String {
    let pid = read(file).trim().to_owned();
    let stopped = std::process::Command::new("kill").args(["-STOP", &pid]).status();
    assert!(stopped.unwrap().success());
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    until("it goes on", || read(&stat).contains(") T ")).await;
    pid
}

const TELLS_ITS_KEEPER: &str = "echo $PPID > $HERE/keeper; echo ready; cat > /dev/null";

#[tokio::test]
async fn a_keeper_that_was_stopped_before_its_agent_is_to_end_does_not_stay() {
    let place = Place::new(PATIENCE);
    let launch = place.script(TELLS_ITS_KEEPER);
    let mut kept = start(&place.keeping, "stopped-before", &launch).await.unwrap();
    line(&mut kept).await;
    let keeper = stop(&place.file("keeper")).await;
    kept.wire.process.kill().await;
    assert_eq!(next(&mut kept).await, None);
    kept.wire.process.wait().await;
    kept.run.finish().await;
    until("the keeper stays", || !is_alive(&keeper)).await;
}

#[tokio::test]
async fn a_keeper_that_was_stopped_after_its_agent_has_ended_does_not_stay() {
    let place = Place::new(PATIENCE);
    let launch = place.script(TELLS_ITS_KEEPER);
    let mut kept = start(&place.keeping, "stopped-after", &launch).await.unwrap();
    line(&mut kept).await;
    kept.wire.process.kill().await;
    assert_eq!(next(&mut kept).await, None);
    kept.wire.process.wait().await;
    let keeper = stop(&place.file("keeper")).await;
    kept.run.finish().await;
    until("the keeper stays", || !is_alive(&keeper)).await;
    assert!(!place.run_folder("stopped-after").exists());
}

#[tokio::test]
async fn a_stopped_keeper_that_nobody_wants_does_not_stay() {
    let place = Place::new(PATIENCE);
    let (keeping, launch) = (place.keeping.clone(), place.script(TELLS_ITS_KEEPER));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "stopped-alone", &launch).await.unwrap();
        line(&mut kept).await;
        (kept, ())
    });
    let keeper = stop(&place.file("keeper")).await;
    remove(&place.keeping, "stopped-alone").await;
    until("the keeper stays", || !is_alive(&keeper)).await;
    assert!(!place.run_folder("stopped-alone").exists());
}

/// Replaces the file with something that can't be opened, for a reason that says nothing about the file.
fn hide(file: &Path) {
    std::fs::rename(file, file.with_extension("hidden")).unwrap();
    std::os::unix::fs::symlink(file, file).unwrap();
}

fn show(file: &Path) {
    std::fs::rename(file.with_extension("hidden"), file).unwrap();
}

#[tokio::test]
async fn an_agent_that_is_briefly_unreachable_continues() {
    let place = Place::new(PATIENCE);
    let script = r#"echo one; while read line; do echo "got $line"; done"#;
    for file in ["socket", "pid"] {
        let run = format!("reached-{file}");
        let (keeping, launch, name) = (place.keeping.clone(), place.script(script), run.clone());
        let position = in_a_program_that_dies(async move {
            let mut kept = start(&keeping, &name, &launch).await.unwrap();
            let (_, position) = line(&mut kept).await;
            (kept, position)
        });
        let file = place.run_folder(&run).join(file);
        hide(&file);
        // The first attempt has failed before the file is back.
        let again = async { show(&file) };
        let (kept, ()) = tokio::join!(attach(&place.keeping, &run, position), again);
        let mut kept = kept.unwrap();
        assert_eq!((kept.last_input, kept.listens), (Some(0), true));
        say(&mut kept, "two", 1).await;
        assert_eq!(line(&mut kept).await.0, "got two");
        remove(&place.keeping, &run).await;
        assert!(!place.run_folder(&run).exists());
    }
}

#[tokio::test]
async fn an_unreadable_run_does_not_count_as_never_started() {
    let place = Place::new(PATIENCE);
    let script = r"echo $$ > $HERE/agent; echo $PPID > $HERE/keeper; echo one; sleep 600";
    let mut kept = start(&place.keeping, "not-told", &place.script(script))
        .await
        .unwrap();
    line(&mut kept).await;
    let pid = place.run_folder("not-told").join("pid");
    hide(&pid);
    drop(kept);
    let keeper = read(&place.file("keeper"));
    let killed = std::process::Command::new("kill")
        .args(["-9", keeper.trim()])
        .status();
    assert!(killed.unwrap().success());
    let lost = attach(&place.keeping, "not-told", 0).await.err().unwrap();
    assert!(matches!(lost, AttachError::Unknown(_)), "{lost}");
    remove(&place.keeping, "not-told").await;
    assert!(pid.symlink_metadata().is_ok(), "what can't be told stays");
    assert!(
        is_alive(&read(&place.file("agent"))),
        "it is not known to be the one"
    );
    show(&pid);
    remove(&place.keeping, "not-told").await;
    until("the agent lives on", || !is_alive(&read(&place.file("agent")))).await;
    assert!(!place.run_folder("not-told").exists());
}

#[tokio::test]
async fn a_run_that_nobody_wants_is_removed_with_its_processes() {
    let place = Place::new(PATIENCE);
    let (keeping, launch) = (
        place.keeping.clone(),
        place.script("echo $$ > $HERE/agent; echo one; sleep 600"),
    );
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "a-run-that-nobody", &launch).await.unwrap();
        line(&mut kept).await;
        (kept, ())
    });
    assert_eq!(runs(&place.keeping).unwrap(), ["a-run-that-nobody"]);
    remove(&place.keeping, "a-run-that-nobody").await;
    until("the agent lives on", || !is_alive(&read(&place.file("agent")))).await;
    assert_eq!(runs(&place.keeping).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn output_is_kept_on_disk_only_as_long_as_it_is_needed() {
    let place = Place::new(PATIENCE);
    let script =
        r"echo $PPID > $HERE/keeper; yes $(head -c 999 /dev/zero | tr '\0' x) | head -c 30000000; read end";
    let mut kept = start(&place.keeping, "an-agent-in-full", &place.script(script))
        .await
        .unwrap();
    let mut position = 0;
    while position < 30_000_000 {
        position = line(&mut kept).await.1;
        if position % 1_000_000 == 0 {
            kept.run.forget(position);
        }
    }
    kept.run.forget(position);
    let size = || {
        let files = std::fs::read_dir(place.run_folder("an-agent-in-full")).unwrap();
        files
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .sum::<u64>()
    };
    until("the disk fills up", || size() < 10_000_000).await;
    // Counted, not estimated as in `status`, where every processor may be off by some pages.
    let usage = read(Path::new(&format!(
        "/proc/{}/smaps_rollup",
        read(&place.file("keeper")).trim()
    )));
    let resident = usage.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 4096, "the keeper takes {kilobytes} kB");
    drop(kept.wire.outgoing);
    assert!(kept.wire.incoming.next().await.is_none());
    kept.wire.process.wait().await;
    kept.run.finish().await;
}
