//! Going back in a conversation, and taking that back.

use super::*;
use crate::session::Kept;

fn rewind(after: u64, at: Option<&str>) -> Input {
    Input::Rewind {
        after,
        kept: Box::new(Kept {
            at: at.map(str::to_owned),
            last_prompt: Some("kept".to_owned()),
            summary: None,
        }),
    }
}

fn undo() -> Input {
    Input::UndoRewind { summary: None }
}

#[test]
fn a_rewound_conversation_goes_on_from_there_under_an_id_of_its_own() {
    let mut story = Story::running();
    assert_eq!(story.refuse(rewind(1, Some("m1"))), Refusal::TurnRuns);
    story.take(success()).tale();
    let last = story.state.record.last_seq;
    story.take(rewind(1, Some("m1")));
    assert_eq!(story.tale(), ["end agent", "record"]);
    let record = &story.state.record;
    assert_eq!(
        (record.fork_of.as_deref(), record.fork_at.as_deref()),
        (Some("c1"), Some("m1"))
    );
    assert_eq!(record.last_prompt.as_deref(), Some("kept"));
    assert!(record.is_kept(1) && !record.is_kept(2) && !record.is_kept(last) && record.is_kept(last + 1));
    // The old agent is still ending: it does not get the prompt.
    story.take(prompt("another way"));
    assert_eq!(story.tale(), ["running", "prompt another way"]);
    story.take(exited("bye"));
    let Some(Effect::Fork(launch, origin)) =
        story.effects.iter().find(|each| matches!(each, Effect::Fork(..)))
    else {
        panic!("{:?}", story.effects)
    };
    assert_eq!(origin.at.as_deref(), Some("m1"));
    assert_ne!(launch.conversation.id(), story.state.record.id.to_string());
    story.tale();
    // Something was said since.
    story.take(init()).take(success());
    assert_eq!(story.refuse(undo()), Refusal::NothingToUndo);
}

#[test]
fn two_rewinds_in_a_row_are_undone_as_one() {
    let mut story = Story::running();
    story.take(success()).take(exited("bye")).tale();
    let before = story.state.record.clone();
    story.take(rewind(3, Some("m2"))).take(rewind(0, None));
    assert_eq!(story.state.record.rewound.len(), 1);
    // Nothing is left to go on from.
    assert!(story.state.record.expired && story.state.record.fork_of.is_none());
    story.tale();
    story.take(undo());
    assert_eq!(story.tale(), ["record"]);
    assert_eq!(story.state.record, before);
    story.take(rewind(0, None)).take(prompt("afresh"));
    assert_eq!(
        story.tale(),
        ["record", "running", "prompt afresh", "launch new", "> afresh"]
    );
}

#[test]
fn an_agent_that_a_crash_left_with_the_old_conversation_gets_no_prompt() {
    let mut story = Story::running();
    story.take(success()).take(rewind(1, Some("m1")));
    // As the next server finds it: the process was not ended.
    story.state.agent = AgentState::Live;
    story.tale();
    story.take(prompt("another way"));
    assert_eq!(story.tale(), ["running", "prompt another way", "end agent"]);
}
