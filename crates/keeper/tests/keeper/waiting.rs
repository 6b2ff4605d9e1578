//! An agent that waits for an answer while nobody is there who could give one.

use std::time::Duration;

use tiller_keeper::{Signs, attach, remove, start};
use tiller_process::Frame;

use crate::{PATIENCE, Place, in_a_program_that_dies, is_alive, line, next, read, say, until};

fn place() -> Place {
    let mut place = Place::new(Duration::from_millis(200));
    place.keeping.decision_grace = Duration::from_millis(200);
    place.keeping.signs = Signs {
        turn_end: b"END".to_vec(),
        asks: b"ASK".to_vec(),
        withdraws: b"NEVERMIND".to_vec(),
        answers: b"ANSWER".to_vec(),
    };
    place
}

#[tokio::test]
async fn an_agent_whose_question_nobody_can_answer_is_ended_with_the_reason() {
    let place = place();
    let script = "echo $$ > $HERE/agent; read line; echo ASK; read line; echo END";
    let (keeping, launch) = (place.keeping.clone(), place.script(script));
    in_a_program_that_dies(async move {
        let mut kept = start(&keeping, "question", &launch).await.unwrap();
        say(&mut kept, "work", 1).await;
        line(&mut kept).await;
        (kept, ())
    });
    let exit = place.run_folder("question").join("exit.json");
    until("it waits for ever", || exit.exists()).await;
    let mut kept = attach(&place.keeping, "question", 0).await.unwrap();
    line(&mut kept).await;
    let ended = kept.wire.process.wait().await;
    assert!(
        ended.stderr_tail.contains("no Tiller was running") && ended.stderr_tail.contains("ask again"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn an_agent_that_got_its_answer_or_took_its_question_back_goes_on() {
    for (run, script, answers) in [
        ("answered", "read line; echo ASK; read line", vec!["ANSWER"]),
        ("withdrawn", "read line; echo ASK; echo NEVERMIND", vec![]),
    ] {
        let place = place();
        let rest = "; touch $HERE/working; until [ -e $HERE/go ]; do sleep 0.02; done";
        let script = format!("echo $$ > $HERE/agent; {script}{rest}");
        let (keeping, launch, working) = (
            place.keeping.clone(),
            place.script(&script),
            place.file("working"),
        );
        in_a_program_that_dies(async move {
            let mut kept = start(&keeping, run, &launch).await.unwrap();
            say(&mut kept, "work", 1).await;
            line(&mut kept).await;
            for answer in answers {
                say(&mut kept, answer, 2).await;
            }
            until("it does not work", || working.exists()).await;
            (kept, ())
        });
        // Longer than both limits: as long as it works, nobody ends it.
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(is_alive(&read(&place.file("agent"))), "{run}");
        std::fs::write(place.file("go"), "").unwrap();
        let exit = place.run_folder(run).join("exit.json");
        until("it goes on for ever", || exit.exists()).await;
    }
}

/// More than a keeper keeps for a program that does not read. Nobody reads such a line, so the agent must not wait for that.
#[tokio::test]
async fn a_line_without_end_stops_no_agent_and_fills_no_disk() {
    let place = Place::new(PATIENCE);
    let script = "head -c 600000000 /dev/zero | tr '\\0' x; echo; echo after; cat > /dev/null";
    let mut kept = start(&place.keeping, "endless", &place.script(script))
        .await
        .unwrap();
    let frame = next(&mut kept).await.unwrap().frame;
    assert!(matches!(frame, Frame::Oversized { .. }), "{frame:?}");
    assert_eq!(line(&mut kept).await.0, "after");
    let files = std::fs::read_dir(place.run_folder("endless")).unwrap().flatten();
    let size: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!(size < 100_000_000, "{size} bytes are kept");
    remove(&place.keeping, "endless").await;
}
