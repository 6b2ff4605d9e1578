use super::*;

fn conversation(options: Options, resume: Option<&str>) -> Conversation {
    let opening = Opening {
        agent: "Test".to_owned(),
        cwd: "/project".to_owned(),
        options,
        resume: resume.map(str::to_owned),
    };
    Conversation::new("run".to_owned(), "ours".to_owned(), opening)
}

fn sent(step: &Step) -> Vec<Value> {
    step.send
        .iter()
        .map(|line| serde_json::from_slice(&line.json).unwrap())
        .collect()
}

fn hear(conversation: &mut Conversation, message: Value, position: u64) -> Step {
    conversation.hear(message.to_string().as_bytes(), position)
}

fn answer(conversation: &mut Conversation, id: &str, result: Value) -> Step {
    hear(
        conversation,
        json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        1,
    )
}

fn opened(conversation: &mut Conversation) {
    answer(conversation, INITIALIZE, json!({}));
    answer(conversation, OPEN, json!({ "sessionId": "theirs" }));
}

#[test]
fn a_prompt_waits_until_the_conversation_is_open_and_its_mode_is_set() {
    let mut conversation = conversation(Options::default(), None);
    assert!(conversation.prompt("hello", &[], 2).is_empty());
    let step = answer(&mut conversation, INITIALIZE, json!({ "protocolVersion": 1 }));
    assert_eq!(
        (&sent(&step)[0]["method"], step.send[0].number),
        (&json!("session/new"), OPENING)
    );
    let modes = json!({ "currentModeId": "yolo", "availableModes": [{ "id": "yolo" }, { "id": "ask" }] });
    let step = answer(
        &mut conversation,
        OPEN,
        json!({ "sessionId": "theirs", "modes": modes }),
    );
    assert_eq!(
        sent(&step)[0]["params"],
        json!({ "sessionId": "theirs", "modeId": "ask" })
    );
    assert!(matches!(&step.tell[0], AgentEvent::Message { .. }), "who it is");
    let step = answer(&mut conversation, FIRST_MODE, json!({}));
    let prompt = &sent(&step)[0];
    assert_eq!(
        (&prompt["id"], &prompt["params"]["sessionId"]),
        (&json!("tiller-prompt-2"), &json!("theirs"))
    );
    assert_eq!(step.send[0].number, 2);
}

#[test]
fn a_later_server_can_answer_a_permission_request() {
    let mut first = conversation(Options::default(), None);
    opened(&mut first);
    let options = json!([
        { "optionId": "o", "kind": "allow_once" }, { "optionId": "a", "kind": "allow_always" },
        { "optionId": "r", "kind": "reject_once" },
    ]);
    let params = json!({ "sessionId": "theirs", "toolCall": { "toolCallId": "t", "kind": "execute" }, "options": options });
    let request = json!({ "id": 0, "method": "session/request_permission", "params": params });
    let step = hear(&mut first, request, 5);
    let question = step.tell.into_iter().find_map(|event| match event {
        AgentEvent::Asked(question) => Some(question),
        _ => None,
    });
    let question = question.expect("a question");
    assert_eq!(
        (question.tool_name.as_str(), question.tool_use_id.as_str()),
        ("Bash", "t")
    );

    let allow = |permissions| DecisionAnswer::Allow {
        input: None,
        permissions,
    };
    let rule = RawJson::parse("[]").unwrap();
    let deny = DecisionAnswer::Deny {
        message: None,
        interrupt: false,
    };
    for (answer, option) in [(allow(None), "o"), (allow(Some(rule)), "a"), (deny, "r")] {
        let mut next = conversation(Options::default(), None);
        let lines = next.answer(&question.agent_request, &answer, 9);
        let said: Value = serde_json::from_slice(&lines[0].json).unwrap();
        let outcome = json!({ "outcome": "selected", "optionId": option });
        assert_eq!((&said["id"], &said["result"]["outcome"]), (&json!(0), &outcome));
    }
    let cancelled = first.cancel();
    assert_eq!(cancelled.len(), 2, "the turn, and what it has asked");
}

#[test]
fn unsupported_requests_of_an_agent_are_refused() {
    let mut conversation = conversation(Options::default(), None);
    let step = hear(
        &mut conversation,
        json!({ "id": 3, "method": "fs/read_text_file", "params": {} }),
        1,
    );
    assert_eq!(sent(&step)[0]["error"]["code"], RpcError::METHOD_NOT_FOUND);
}

#[test]
fn a_conversation_that_the_agent_does_not_know_has_expired() {
    let mut conversation = conversation(Options::default(), Some("theirs"));
    let step = answer(&mut conversation, INITIALIZE, json!({}));
    assert_eq!(step.fail, Some(Exit::Expired), "it can't load any");
    let loads = json!({ "agentCapabilities": { "loadSession": true } });
    let mut conversation = super::tests::conversation(Options::default(), Some("theirs"));
    let step = answer(&mut conversation, INITIALIZE, loads);
    assert_eq!(sent(&step)[0]["method"], "session/load");
    let step = hear(
        &mut conversation,
        json!({ "id": OPEN, "error": { "code": 1, "message": "gone" } }),
        1,
    );
    assert_eq!(step.fail, Some(Exit::Expired));
}

#[test]
fn a_mode_can_be_chosen_if_the_agent_offers_it() {
    let mut conversation = conversation(Options::default(), None);
    answer(&mut conversation, INITIALIZE, json!({}));
    let mode = json!({ "id": "m", "category": "mode", "currentValue": "ask", "options": [{ "value": "ask" }, { "value": "plan" }] });
    answer(
        &mut conversation,
        OPEN,
        json!({ "sessionId": "theirs", "configOptions": [mode] }),
    );
    answer(&mut conversation, FIRST_MODE, json!({}));
    let step = conversation.configure(OptionChange::new(MODE, "plan"));
    assert_eq!(
        (&sent(&step)[0]["method"], &sent(&step)[0]["params"]),
        (
            &json!("session/set_config_option"),
            &json!({ "sessionId": "theirs", "configId": "m", "value": "plan" })
        )
    );
    let id = sent(&step)[0]["id"].as_str().unwrap().to_owned();
    let step = answer(&mut conversation, &id, json!({}));
    assert!(matches!(
        step.tell[..],
        [AgentEvent::Configured { done: true, .. }]
    ));
    for (option, value, reason) in [
        (
            MODE,
            "yolo",
            "Test did not change its mode: there is no mode 'yolo'. Available: ask, plan.",
        ),
        (
            MODEL,
            "big",
            "Test did not change its model: it offers no models.",
        ),
    ] {
        let step = conversation.configure(OptionChange::new(option, value));
        let [
            AgentEvent::Configured { done: false, .. },
            AgentEvent::Message { raw, .. },
        ] = &step.tell[..]
        else {
            panic!("{step:?}")
        };
        assert!(
            step.send.is_empty() && raw.as_str().contains(reason),
            "{}",
            raw.as_str()
        );
    }
}

#[test]
fn a_missing_sign_in_is_reported_with_instructions() {
    let mut conversation = conversation(Options::default(), None);
    let methods = json!([{ "id": "l", "name": "Log in", "description": "Run `test login`." }]);
    answer(&mut conversation, INITIALIZE, json!({ "authMethods": methods }));
    let refusal = json!({ "code": RpcError::AUTHENTICATION_REQUIRED, "message": "Authentication required" });
    let step = hear(&mut conversation, json!({ "id": OPEN, "error": refusal }), 1);
    let message = "Test is not signed in. Run `test login`.".to_owned();
    assert_eq!(step.fail, Some(Exit::NotStarted { message }));
    assert_eq!(step.known.and_then(|known| known.signed_in), Some(false));
}
