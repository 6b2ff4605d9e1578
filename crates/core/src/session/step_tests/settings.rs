//! Settings that a running agent can change, and those that need a new process.

use super::*;

#[test]
fn changed_settings_start_a_new_process_for_the_next_turn() {
    let mut story = Story::running();
    story
        .take(configure(SettingsPatch::default()))
        .take(success())
        .tale();
    story.take(prompt("as before"));
    assert_eq!(story.tale(), ["running", "prompt as before", "> as before"]);

    story.take(max_turns(3));
    assert_eq!(story.tale(), ["record"]);
    story.take(success()).tale();
    assert_eq!(
        story.state.record.settings.options,
        Options::default().with("turns", 3)
    );
    story.take(asks(1, true)).tale();
    story.take(prompt("as wanted"));
    assert_eq!(story.tale(), ["running", "prompt as wanted", "end agent"]);
    story.take(exited("bye"));
    assert_eq!(story.tale(), ["withdrawn t1", "launch c1", "> as wanted"]);
    story.take(success()).take(prompt("again")).tale();
    assert_eq!(story.state.agent, AgentState::Live);
}

#[test]
fn a_running_agent_gets_the_changes_that_it_can_make() {
    let mut story = Story::running();
    story.tale();
    story.take(model(Some("opus"))).take(mode(Some("plan")));
    assert_eq!(story.tale(), ["> model opus", "record", "> mode plan", "record"]);
    story.take(model(Some("opus")));
    assert!(story.tale().is_empty(), "nothing changed");
    story.take(model(None)).take(success()).take(prompt("more"));
    let tale = story.tale();
    assert_eq!(tale[..2], ["> model default", "record"]);
    assert_eq!(
        tale.last().unwrap(),
        "> more",
        "the same process goes on: {tale:?}"
    );
    // The approval mode does not concern the process.
    story.take(configure(SettingsPatch {
        approval: Some(Approval::Auto),
        ..SettingsPatch::default()
    }));
    story.take(success()).take(prompt("and more"));
    assert_eq!(story.tale().last().unwrap(), "> and more");
}

#[test]
fn bypassing_permissions_can_be_chosen_at_any_time() {
    let mut story = Story::running();
    story.tale();
    story.take(mode(Some("all")));
    assert_eq!(story.tale(), ["record"], "this process was not started for it");
    story.take(asks(1, false)).take(asks(2, true));
    assert_eq!(story.tale(), [r#"> allow r1 {"command":"ls"}"#, "asks t2"]);
    story.take(success()).tale();
    story.take(prompt("next")).take(exited("bye"));
    assert_eq!(story.tale().last().unwrap(), "> next");
    assert_eq!(
        story.state.record.run.as_ref().unwrap().started.text("mode"),
        Some("all")
    );
    story.tale();
    story.take(mode(None)).take(mode(Some("all")));
    assert_eq!(
        story.tale(),
        ["> mode default", "record", "> mode all", "record"],
        "this one was"
    );
}

#[test]
fn a_mode_that_the_agent_chose_becomes_the_sessions() {
    let mut story = Story::running();
    let status = |mode| message("status", None, Meaning::Option(mode_change(mode)));
    story.take(mode(Some("plan"))).tale();
    story.take(status(Some("plan")));
    assert_eq!(
        story.tale(),
        [r#"message "status""#],
        "what we asked for is no news"
    );
    story.take(status(Some("edit")));
    assert_eq!(story.tale(), ["record", r#"message "status""#]);
    assert_eq!(story.state.record.settings.options.text("mode"), Some("edit"));
    story.take(success()).take(prompt("go on"));
    assert_eq!(
        story.tale().last().unwrap(),
        "> go on",
        "no other process is needed"
    );

    story.take(mode(Some("all"))).tale();
    story.take(status(None));
    assert_eq!(
        story.state.record.settings.options.text("mode"),
        Some("all"),
        "what the user chose waits for the next process"
    );
}

#[test]
fn a_refused_change_starts_a_new_process() {
    let configured = |done| {
        let change = mode_change(Some("plan"));
        Input::Agent(AgentEvent::Configured { change, done })
    };
    for done in [true, false] {
        let mut story = Story::running();
        story.take(mode(Some("plan"))).take(configured(done));
        story.take(success()).take(prompt("more"));
        let last = if done { "> more" } else { "end agent" };
        assert_eq!(story.tale().last().unwrap(), last);
    }
    // A second change before the answer to the first.
    let mut story = Story::running();
    story.take(mode(Some("plan"))).take(mode(Some("edit")));
    story.take(configured(true)).take(success()).take(prompt("more"));
    assert_eq!(
        story.tale().last().unwrap(),
        "> more",
        "it is still to be answered"
    );
}
