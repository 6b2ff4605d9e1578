//! The queue: its order, the prompts' ids, and edits.

use super::*;

#[test]
fn prompts_wait_for_the_turn_to_end() {
    let mut story = Story::running();
    story.tale();
    story.take(prompt("one")).take(prompt("two"));
    assert_eq!(story.tale(), ["queue", "queue"]);
    story.take(success());
    assert_eq!(
        story.tale(),
        [
            r#"message "result""#,
            "completed",
            "queue",
            "running",
            "prompt one",
            "> one"
        ]
    );
    story.take(Input::Stop).take(success()).tale();
    assert_eq!(
        texts(&story.state.record.queue),
        ["two"],
        "a stop keeps the queue"
    );
}

#[test]
fn a_prompt_after_a_stop_is_sent_next() {
    // Whether the stopped turn ends by itself or with its agent.
    for end in [success(), exited("killed")] {
        let mut story = Story::running();
        story.take(prompt("before")).take(Input::Stop);
        story.take(prompt("after")).take(prompt("and then"));
        assert_eq!(
            texts(&story.state.record.queue),
            ["after", "and then", "before"],
            "what waited keeps its place behind"
        );
        story.take(end);
        let tale = story.tale();
        assert_eq!(tale.iter().filter(|line| *line == "idle").count(), 1, "{tale:?}");
        assert_eq!(tale.last().unwrap(), "> after");
        story.take(success());
        assert_eq!(story.tale().last().unwrap(), "> and then");
        story.take(Input::Stop).take(success()).tale();
        assert_eq!(texts(&story.state.record.queue), ["before"]);
    }
}

#[test]
fn queued_prompts_are_edited_and_keep_their_attachments() {
    let mut story = Story::running();
    let mut picture = Prompt::from("look");
    picture.context = Some(crate::prompt::UiContext::default());
    story
        .take(prompt("one"))
        .take(Input::Prompt(picture.clone()))
        .tale();
    assert_eq!(
        story.refuse(queue(&[], Some(&["one"]))),
        Refusal::QueueChanged,
        "something else waits"
    );
    story.take(queue(&["look", "one", "new"], Some(&["one", "look"])));
    assert_eq!(story.tale(), ["queue"]);
    assert_eq!(texts(&story.state.record.queue), ["look", "one", "new"]);
    assert_eq!(story.state.record.queue[0], picture);
    story
        .take(edit(&[(Some(picture.id), "look closely")], None))
        .tale();
    let waiting = &story.state.record.queue[0];
    assert_eq!(
        (waiting.id, waiting.text.as_str(), &waiting.context),
        (picture.id, "look closely", &picture.context),
        "other words"
    );
    story.take(queue(&[], None));
    assert_eq!(story.tale(), ["queue"]);
    assert!(story.state.record.queue.is_empty());
}

#[test]
fn prompts_with_the_same_text_are_distinguished_by_their_ids() {
    let mut story = Story::running();
    let twins = [Prompt::from("same"), Prompt::from("same"), Prompt::from("same")];
    for prompt in &twins {
        story.take(Input::Prompt(prompt.clone()));
    }
    let ids = |story: &Story| -> Vec<_> { story.state.record.queue.iter().map(|prompt| prompt.id).collect() };
    let [first, second, third] = [twins[0].id, twins[1].id, twins[2].id];
    assert_eq!(ids(&story), [first, second, third]);
    let expected = [
        (Some(first), "same"),
        (Some(second), "same"),
        (Some(third), "same"),
    ];
    story.take(edit(
        &[(Some(third), "same"), (Some(first), "changed")],
        Some(&expected),
    ));
    assert_eq!(ids(&story), [third, first]);
    assert_eq!(texts(&story.state.record.queue), ["same", "changed"]);
    assert_eq!(
        story.refuse(edit(&[(Some(second), "same")], None)),
        Refusal::QueueChanged,
        "what was taken out does not come back"
    );
    assert_eq!(
        story.refuse(edit(
            &[],
            Some(&[(Some(first), "same"), (Some(third), "changed")])
        )),
        Refusal::QueueChanged,
        "the same words, but other prompts"
    );
    assert_eq!(
        story.refuse(edit(&[(Some(first), " "), (None, "")], None)),
        Refusal::EmptyPrompt
    );
    // A prompt that is named by its id is matched before one that is named by its text.
    story.take(edit(&[(None, "same"), (Some(third), "same")], None));
    let after = ids(&story);
    assert_eq!(after[1], third);
    assert!(!twins.iter().any(|twin| twin.id == after[0]), "a new one");
}

#[test]
fn a_prompt_has_its_id_from_acceptance_to_the_agent() {
    let mut story = Story::running();
    let more = Prompt::from("more");
    let effects = step(&mut story.state, Input::Prompt(more.clone()), Timestamp(2)).unwrap();
    assert_eq!(effects, [Effect::Accept(more.id), Effect::QueueChanged]);
    assert_eq!(story.state.record.queue, std::slice::from_ref(&more));
    let effects = step(&mut story.state, success(), Timestamp(2)).unwrap();
    let recorded = effects.iter().find_map(|effect| match effect {
        Effect::Record(event) => match &event.body {
            EventBody::UserPrompt { prompt } => Some(prompt.id),
            _ => None,
        },
        _ => None,
    });
    let delivered = effects.iter().find_map(|effect| match effect {
        Effect::Deliver(delivery) => Some(delivery.prompt.id),
        _ => None,
    });
    assert_eq!((recorded, delivered), (Some(more.id), Some(more.id)));
    let accepts = |effect: &Effect| matches!(effect, Effect::Accept(_));
    assert!(!effects.iter().any(accepts), "it was accepted before");
}

#[test]
fn the_command_that_begins_a_turn_is_named_once() {
    fn causes(effects: &[Effect]) -> Vec<Option<Cause>> {
        let cause = |effect: &Effect| match effect {
            Effect::Record(event) => match &event.body {
                EventBody::Status(change) => Some(change.cause),
                _ => None,
            },
            _ => None,
        };
        effects.iter().filter_map(cause).collect()
    }
    let mut story = Story::new();
    let (start, more) = (Cause::unique(), Cause::unique());
    story.state.cause = Some(start);
    let effects = step(&mut story.state, prompt("hello"), Timestamp(2)).unwrap();
    assert_eq!(causes(&effects), [Some(start)]);
    story.state.cause = Some(more);
    let effects = step(&mut story.state, prompt("more"), Timestamp(2)).unwrap();
    assert_eq!(causes(&effects), [], "it waits");
    story.state.cause = None;
    story.take(init());
    let effects = step(&mut story.state, success(), Timestamp(2)).unwrap();
    assert_eq!(
        causes(&effects),
        [None, Some(more)],
        "the end of a turn has no command"
    );
    let effects = step(&mut story.state, success(), Timestamp(2)).unwrap();
    assert_eq!(causes(&effects), [None]);
    assert!(story.state.causes.is_empty());
}

#[test]
fn a_kept_queue_is_sent_when_asked() {
    let mut story = Story::running();
    story
        .take(prompt("one"))
        .take(prompt("two"))
        .take(Input::Flush)
        .tale();
    assert_eq!(story.state.record.queue.len(), 2, "a turn runs");
    story.take(Input::Stop).take(success()).tale();
    story.take(Input::Flush);
    assert_eq!(story.tale(), ["queue", "running", "prompt one", "> one"]);
    story.take(success());
    assert_eq!(story.tale().last().unwrap(), "> two");
    story.take(success()).take(Input::Flush).tale();
    assert_eq!(story.status(), SessionStatus::Completed, "nothing waits");
}
