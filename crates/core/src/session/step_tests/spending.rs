//! A budget is the session's, and a session without a conversation begins one when it is told to.

use super::*;

fn budget(dollars: f64) -> Input {
    configure(SettingsPatch {
        options: vec![OptionChange::new("budget", dollars)],
        ..SettingsPatch::default()
    })
}

/// The end of a turn after which the conversation has cost so much.
fn result(total_usd: f64) -> Input {
    let raw = format!(r#"{{"type":"result","subtype":"success","total_cost_usd":{total_usd}}}"#);
    Input::Agent(AgentEvent::Message {
        raw: RawJson::parse(&raw).unwrap(),
        uuid: None,
        meaning: Meaning::TurnEnded(TurnEnd::Success),
    })
}

fn spent_by_launch(effects: &[Effect]) -> Vec<f64> {
    let launches = effects.iter().filter_map(|effect| match effect {
        Effect::Launch(launch) => Some(launch.spent_usd),
        _ => None,
    });
    launches.collect()
}

#[test]
fn a_session_spends_no_more_than_its_budget_whatever_became_of_its_agents() {
    let mut story = Story::running();
    story.take(budget(0.5)).take(result(0.25)).tale();
    story.take(prompt("more")).take(exited("bye"));
    assert_eq!(
        spent_by_launch(&story.effects),
        [0.25],
        "the next agent is told what is gone"
    );
    story.take(prompt("waits")).take(result(0.5)).tale();
    assert_eq!(story.state.record.queue.len(), 1, "what waits can't be paid for");
    assert_eq!(story.refuse(prompt("no")), Refusal::BudgetSpent);
    assert_eq!(story.refuse(Input::Flush), Refusal::BudgetSpent);
    assert_eq!(
        story.refuse(Input::PromptAfresh("no".into())),
        Refusal::BudgetSpent
    );

    story.take(budget(1.0)).take(Input::Flush);
    story.take(exited("bye"));
    assert!(story.tale().contains(&"> waits".to_owned()));
}

#[test]
fn the_end_of_a_turn_says_what_it_took() {
    let mut story = Story::running();
    story.take(result(0.25)).take(prompt("more")).take(result(0.75));
    let costs: Vec<_> = story
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Record(event) => match &event.body {
                EventBody::Status(change) => change.turn.map(|turn| turn.cost_usd),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(costs, [0.25, 0.5]);
}

#[test]
fn a_session_whose_first_agent_died_begins_a_conversation_only_when_it_is_told_to() {
    let mut story = Story::new();
    story.take(prompt("hello")).take(exited("bye")).tale();
    assert_eq!(story.refuse(prompt("again")), Refusal::NoResumeId);
    story.take(Input::PromptAfresh("again".into()));
    let fresh = story.effects.iter().find_map(|effect| match effect {
        Effect::Launch(launch) => Some(launch.conversation.clone()),
        _ => None,
    });
    let Some(ConversationStart::New(id)) = fresh else {
        panic!("{:?}", story.effects)
    };
    // The agent refuses an id that it has seen before.
    assert_ne!(id, story.state.record.id.to_string());
}
