//! Agents in their own namespaces. The machine has to allow it: a test that proves the shield is never skipped.

use super::*;

fn place() -> Place {
    let mut place = Place::new(PATIENCE);
    let program = env!("CARGO_BIN_EXE_tiller-keeper").into();
    place.keeping.folder = place.file("r");
    place.keeping.shield =
        Shield::new(ShieldMode::Require, program, vec!["shield".into()]).hiding(vec![place.file("r")]);
    place
}

#[tokio::test]
async fn an_agent_sees_nothing_of_its_keeper_and_ends_as_it_would_without_a_shield() {
    let place = place();
    let script = r#"ls -A "$HERE/r" | wc -l; ls "$HERE" | tr '\n' ' '; echo
        touch "$HERE/r/mine" 2> /dev/null && echo written
        mkdir "$HERE/r/mine" 2> /dev/null && echo made
        grep -alE '^tiller-keeper' /proc/[0-9]*/cmdline | wc -l
        umount "$HERE/r" 2> /dev/null && echo bared
        umount /proc 2> /dev/null && echo bared
        pwd
        while read line; do echo "got $line"; done; echo gone >&2; exit 7"#;
    let mut kept = start(&place.keeping, "shielded", &place.script(script))
        .await
        .unwrap();
    assert_eq!(line(&mut kept).await.0.trim(), "0", "of the runs");
    assert_eq!(line(&mut kept).await.0, "r ");
    assert_eq!(line(&mut kept).await.0.trim(), "0", "of the keepers");
    let here = place.folder.path().canonicalize().unwrap();
    assert_eq!(line(&mut kept).await.0, here.display().to_string());
    say(&mut kept, "one", 1).await;
    assert_eq!(line(&mut kept).await.0, "got one");
    let KeptAgent { mut wire, run, .. } = kept;
    drop(wire.outgoing);
    let ended = tokio::time::timeout(PATIENCE, async {
        while wire.incoming.next().await.is_some() {}
        wire.process.wait().await
    });
    let ended = ended.await.unwrap();
    assert_eq!(
        (ended.code, ended.signal, ended.stderr_tail.as_str()),
        (Some(7), None, "gone")
    );
    run.finish().await;
}

#[tokio::test]
async fn an_agent_is_asked_to_end_and_its_signal_is_told() {
    let place = place();
    let script = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.02; done";
    let mut kept = start(&place.keeping, "asked", &place.script(script))
        .await
        .unwrap();
    assert_eq!(line(&mut kept).await.0, "ready");
    kept.wire.process.terminate().await;
    assert_eq!(line(&mut kept).await.0, "asked");
    assert_eq!(next(&mut kept).await, None);
    assert_eq!(kept.wire.process.wait().await.code, Some(3));
    kept.run.finish().await;

    let mut kept = start(&place.keeping, "signalled", &place.script("kill -USR1 $$"))
        .await
        .unwrap();
    assert_eq!(next(&mut kept).await, None);
    assert_eq!(kept.wire.process.wait().await.signal, Some(10));
    kept.run.finish().await;
}

/// Clears its environment, leaves its parent, session and group, and ignores requests to end.
const ESCAPE: &str = r#"env -i PATH="$PATH" setsid sh -c 'trap "" TERM HUP INT
    (setsid sh -c "trap \"\" TERM HUP INT; while :; do date +%s%N > $0/alive; sleep 0.02; done" > /dev/null 2>&1 &) &' \
    "$HERE" > /dev/null 2>&1 &
    while ! [ -s "$HERE/alive" ]; do sleep 0.01; done; "#;

/// Waits until nothing writes to the file any more.
async fn is_dead(place: &Place) {
    let alive = place.file("alive");
    let lives = || {
        let before = read(&alive);
        // Several times as long as the escaped process pauses.
        std::thread::sleep(Duration::from_millis(200));
        read(&alive) != before
    };
    until("the escaped process lives", || !lives()).await;
}

#[tokio::test]
async fn a_detached_process_ends_with_the_agent() {
    let place = place();
    let script = format!("{ESCAPE} echo ready; read line");
    let mut kept = start(&place.keeping, "left", &place.script(&script))
        .await
        .unwrap();
    assert_eq!(line(&mut kept).await.0, "ready");
    say(&mut kept, "go", 1).await;
    assert_eq!(next(&mut kept).await, None);
    is_dead(&place).await;
    kept.run.finish().await;
}

#[tokio::test]
async fn a_detached_process_ends_with_the_keeper() {
    let place = place();
    let script = format!("{ESCAPE} echo ready; while read line; do :; done");
    let mut kept = start(&place.keeping, "killed", &place.script(&script))
        .await
        .unwrap();
    assert_eq!(line(&mut kept).await.0, "ready");
    let launcher = kept.wire.process.pid().unwrap();
    let keeper = tiller_process::Stat::of(launcher).unwrap().parent().unwrap();
    let keeper = rustix::process::Pid::from_raw(keeper.cast_signed()).unwrap();
    // The program must not be the one that ends stray processes.
    let program = std::mem::ManuallyDrop::new(kept);
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    is_dead(&place).await;
    drop(std::mem::ManuallyDrop::into_inner(program));
    remove(&place.keeping, "killed").await;
}
