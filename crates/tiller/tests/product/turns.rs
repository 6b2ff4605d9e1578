//! What a page says of turns is true: what ran, what it took, what a session may spend, and how it goes on after a failure.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script, Usage};

use crate::client::EventClient;
use crate::http;
use crate::server::{World, agent_of};

/// What the scripted model says, at a price that can be told apart from nothing.
fn dear(reply: Reply) -> Reply {
    reply.usage(Usage {
        input_tokens: 1_000,
        output_tokens: 500,
        ..Usage::default()
    })
}

async fn say(client: &mut EventClient, session: &str, prompt: &str) {
    let payload = json!({ "sessionId": session, "prompt": prompt });
    client.send("session.continue", payload).await;
}

async fn history(client: &mut EventClient, session: &str) -> Value {
    let payload = json!({ "sessionId": session, "limit": 1 });
    client.send("session.history", payload).await;
    client.until_type("session.history").await
}

#[tokio::test]
async fn what_ran_in_place_of_what_was_asked_for_is_told_live_later_and_in_the_history() {
    let command = json!({ "command": "echo asked > file", "description": "d" });
    let script = Script::new()
        .on(
            "do it",
            [Reply::tool("Bash", command.clone()), Reply::text("Done.")],
        )
        .on(
            "again",
            [Reply::tool("Bash", command.clone()), Reply::text("Done again.")],
        );
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "do it").await;
    let request = client.until_type("permission.request").await;
    let edited = json!({ "command": "echo edited > file", "description": "d" });
    let allow = |input: &Value| json!({ "behavior": "allow", "updatedInput": input });
    client.answer(&request, allow(&edited)).await;
    let resolved = client.until_type("permission.resolved").await;
    assert_eq!(resolved["editedInput"], edited);
    client.until_status("completed").await;
    let file = std::fs::read_to_string(world.project().join("file")).unwrap();
    assert_eq!(file, "edited\n");

    // What was shown, sent back in another order, is no edit.
    say(&mut client, &session, "again").await;
    let request = client.until_type("permission.request").await;
    let same = json!({ "description": "d", "command": "echo asked > file" });
    client.answer(&request, allow(&same)).await;
    let resolved = client.until_type("permission.resolved").await;
    assert_eq!(resolved["editedInput"], Value::Null);
    client.until_status("completed").await;

    let told = json!([{ "toolUseId": resolved_call(&client), "behavior": "allow", "editedInput": edited }]);
    assert_eq!(history(&mut client, &session).await["decided"], told);
    client.send("session.fork", json!({ "sessionId": session })).await;
    let fork = client.until_type("session.forked").await["newSessionId"].clone();
    assert_eq!(
        history(&mut client, fork.as_str().unwrap()).await["decided"],
        told
    );

    let path = format!("/api/history/sessions/{session}?as=entries");
    let read = http::get(&server.address, &path, &cookie.headers()).await.json();
    assert_eq!(read["decided"], told);
    server.stop().await;
}

/// The first call whose permission was decided.
fn resolved_call(client: &EventClient) -> Value {
    let resolved = client
        .heard
        .iter()
        .find(|event| event["type"] == "permission.resolved");
    resolved.expect("a decision")["payload"]["toolUseId"].clone()
}

#[tokio::test]
async fn a_budget_is_the_sessions_whatever_becomes_of_its_agents() {
    let script = Script::new().otherwise(dear(Reply::text("Done.")));
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "find out the price").await;
    let price = client.until_status("completed").await["turn"]["costUsd"]
        .as_f64()
        .unwrap();
    assert!(price > 0.0);

    // Enough for one turn more, and not for two.
    let configure = |budget: f64| json!({ "sessionId": session, "maxBudgetUsd": budget });
    client.send("session.configure", configure(price * 2.5)).await;
    say(&mut client, &session, "a second").await;
    let second = client.until_status("completed").await;
    assert!(
        (second["turn"]["costUsd"].as_f64().unwrap() - price).abs() < 1e-9,
        "{second}"
    );
    // Another agent knows nothing of what was spent.
    let agent = agent_of(&session);
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    client
        .until("the end of the agent", |event| {
            event["type"] == "session.updated" && event["payload"]["session"]["agent"]["state"] == "absent"
        })
        .await;
    say(&mut client, &session, "a third").await;
    let error = client.until_status("error").await;
    assert!(error["error"].as_str().unwrap().contains("budget"), "{error}");
    say(&mut client, &session, "a fourth").await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "budget_spent");

    client.send("session.configure", configure(price * 10.0)).await;
    say(&mut client, &session, "a fifth").await;
    client.until_status("completed").await;
    server.stop().await;
}

#[tokio::test]
async fn the_end_of_a_turn_says_what_that_turn_took_live_and_in_pages() {
    let script = Script::new().otherwise(dear(Reply::text("Done.")));
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "one").await;
    let first = client.until_status("completed").await["turn"].clone();
    say(&mut client, &session, "two").await;
    let second = client.until_status("completed").await["turn"].clone();
    assert_eq!(second["tokensIn"], first["tokensIn"], "not those of both");
    assert_eq!(second["costUsd"], first["costUsd"]);
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let page = client.until_type("session.history").await;
    let turns: Vec<_> = page["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|status| status.get("turn"))
        .collect();
    assert_eq!(turns, [&first, &second]);
    server.stop().await;
}

#[tokio::test]
async fn a_session_whose_first_agent_died_goes_on_where_the_client_lets_it() {
    let script = Script::new().otherwise(Reply::text("Here I am."));
    let world = World::new(script).await;
    // An agent that dies without a word, as long as the file is there.
    let dead = world.home().join("dead");
    std::fs::write(&dead, "").unwrap();
    let wrapper = world.home().join("claude");
    let claude = world.claude().display().to_string();
    let program = format!(
        "#!/bin/sh\n[ -e '{}' ] && exit 3\nexec '{claude}' \"$@\"\n",
        dead.display()
    );
    std::fs::write(&wrapper, program).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, mode).unwrap();
    let server = world
        .serve_with(&[&format!("--claude-bin={}", wrapper.display())], &[])
        .await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("error").await;
    std::fs::remove_file(&dead).unwrap();
    say(&mut client, &session, "are you there?").await;
    assert_eq!(client.until_type("runner.error").await["code"], "no_resume_id");
    let payload = json!({ "sessionId": session, "prompt": "are you there?", "afresh": true });
    client.send("session.continue", payload).await;
    client.until_status("completed").await;
    assert!(client.streamed().contains("Here I am."));
    server.stop().await;
}

#[tokio::test]
async fn a_session_may_let_a_model_decide_what_is_asked() {
    let script = Script::new().otherwise(Reply::text("Done."));
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let start = json!({ "title": "", "prompt": "hello", "cwd": world.project(), "permissionMode": "auto" });
    client.send("session.start", start).await;
    let init = client
        .until("an init", |event| {
            event["payload"]["message"]["subtype"] == "init"
        })
        .await;
    assert_eq!(init["payload"]["message"]["permissionMode"], "auto");
    client.until_status("completed").await;
    server.stop().await;
}

#[tokio::test]
async fn the_history_has_the_name_that_a_person_gave() {
    let script = Script::new().otherwise(Reply::text("Done."));
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "hello there").await;
    client.until_status("completed").await;
    let rename = json!({ "sessionId": session, "title": "My name" });
    client.send("session.rename", rename).await;
    client
        .until("the name", |event| {
            event["type"] == "session.updated" && event["payload"]["session"]["title"] == "My name"
        })
        .await;
    let mut titles = Vec::new();
    for path in [
        "/api/history/sessions".to_owned(),
        format!("/api/history/sessions/{session}"),
    ] {
        let read = http::get(&server.address, &path, &cookie.headers()).await.json();
        let title = read.get("session").unwrap_or(&read["sessions"][0])["title"].clone();
        titles.push(title);
    }
    assert_eq!(titles, ["My name", "My name"]);
    server.stop().await;
}
