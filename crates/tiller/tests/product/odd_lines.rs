//! An agent's output is data: any line is returned unchanged, live, from the log and from the next server.

use serde_json::{Value, json};
use tiller_testkit::model::Script;

use crate::client::EventClient;
use crate::server::{Server, SignIn, World};

const RAW_BYTES: usize = 64 * 1024;

fn nested(levels: usize) -> String {
    format!(
        r#"{{"type":"x","v":{}{}}}"#,
        "[".repeat(levels - 1),
        "]".repeat(levels - 1)
    )
}

/// Unusual lines that are messages.
fn messages() -> Vec<String> {
    let lines = [
        r#"{"type":"brand_new","x":1}"#,
        r#"{"type":null,"x":2}"#,
        r#"{"type":["assistant"],"x":3}"#,
        r#"{"type":7,"x":4}"#,
        r#"{"x":5}"#,
        "{}",
        r#"{"type":"user_prompt","x":6}"#,
        r#"{"type":"user_prompt","prompt":"p","promptId":"4b3c6a3e-7f1e-4f5e-9f43-0c6b3f0f1c11"}"#,
        r#"{"type":"session.status","payload":{"sessionId":"s","status":"completed","seq":1}}"#,
        r#"{"status":"error","error":"not a status"}"#,
        r#"{"type":"system","subtype":"unreadable","reason":"depth","raw":"as an agent says it"}"#,
        r#"{"reason":"depth","line":"as the store writes it"}"#,
    ];
    let mut lines = lines.map(str::to_owned).to_vec();
    lines.push(nested(120));
    lines
}

/// Lines that are not messages, and the reason that clients get.
fn unreadable() -> Vec<(String, &'static str)> {
    let lines = [
        ("null", "not_an_object"),
        (r#"[{"type":"assistant"}]"#, "not_an_object"),
        (r#""user_prompt""#, "not_an_object"),
        ("17", "not_an_object"),
    ];
    let mut lines = lines.map(|(line, reason)| (line.to_owned(), reason)).to_vec();
    lines.push((nested(200), "depth"));
    lines.push((nested(100_000), "depth"));
    lines
}

fn expected() -> Vec<Value> {
    let messages = messages()
        .into_iter()
        .map(|line| serde_json::from_str(&line).unwrap());
    let unreadable = unreadable().into_iter().map(|(line, reason)| {
        let raw = &line[..line.len().min(RAW_BYTES)];
        json!({ "type": "system", "subtype": "unreadable", "reason": reason, "raw": raw })
    });
    let bad_utf8 = json!({ "type": "system", "subtype": "unreadable", "reason": "utf8" });
    messages.chain(unreadable).chain([bad_utf8]).collect()
}

/// The odd lines among messages, without the scripted agent's own. Lines that can't be written as JSON here are left
/// out.
fn odd<'a>(messages: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    const USUAL: &[&str] = &["assistant", "stream_event", "user", "result"];
    let is_odd = |message: &&Value| {
        let is_usual = message["type"].as_str().is_some_and(|kind| USUAL.contains(&kind));
        let is_init = message["type"] == "system" && message["subtype"] != "unreadable";
        let is_prompt = message["type"] == "user_prompt" && message["attachments"].is_array()
            || ["together", "alone"].contains(&message["prompt"].as_str().unwrap_or_default());
        !is_usual && !is_init && !is_prompt
    };
    let without_bytes = |message: &Value| {
        let mut message = message.clone();
        if message["reason"] == "utf8" {
            message.as_object_mut().unwrap().remove("raw");
        }
        message
    };
    messages.filter(is_odd).map(without_bytes).collect()
}

fn heard(client: &EventClient) -> Vec<Value> {
    let messages = client
        .heard
        .iter()
        .filter(|event| event["type"] == "stream.message");
    odd(messages.map(|event| &event["payload"]["message"]))
}

async fn read_again(
    server: &Server,
    cookie: &SignIn,
    session: &str,
    ends: usize,
) -> (EventClient, Vec<Value>) {
    let mut client = EventClient::connect_to(server, "/ws/events?only=subscribed", cookie).await;
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    for _ in 0..ends {
        client.until_status("completed").await;
    }
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let history = client.until_type("session.history").await;
    // An agent's line that looks like a prompt is not one.
    let kinds = history["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), history["messages"].as_array().unwrap().len());
    let prompts = kinds.iter().filter(|kind| *kind == "user_prompt").count();
    assert_eq!(prompts, ends);
    let messages = odd(history["messages"].as_array().unwrap().iter());
    (client, messages)
}

#[tokio::test]
async fn any_line_is_returned_as_it_was_written() {
    let world = World::with_claude(Script::new(), None).await;
    let lines = messages()
        .into_iter()
        .chain(unreadable().into_iter().map(|(line, _)| line));
    let mut odd: Vec<Value> = lines
        .map(|line| json!({ "do": "raw", "text": format!("{line}\n") }))
        .collect();
    odd.push(json!({ "do": "bad_utf8" }));
    // Time for the kill; nothing depends on it.
    let mut alone = vec![
        json!({ "do": "text", "text": "ready" }),
        json!({ "do": "sleep", "ms": 300 }),
    ];
    alone.extend(odd.clone());
    let rules = json!([
        { "contains": "together", "steps": odd },
        { "contains": "alone", "steps": alone },
    ]);
    let script = world.home().join("script.json");
    std::fs::write(&script, json!({ "rules": rules }).to_string()).unwrap();
    let environment = [("SCRIPTED_CLI", script.to_str().unwrap())];
    let serve = || world.serve_with(&["--backend", "demo"], &environment);

    let server = serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "together").await;
    client.until_status("completed").await;
    assert_eq!(heard(&client), expected(), "live");

    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "alone" }),
        )
        .await;
    client.until_streamed("ready").await;
    server.kill().await;
    let twice = [expected(), expected()].concat();
    let server = serve().await;
    let (client, history) = read_again(&server, &cookie, &session, 2).await;
    assert_eq!(heard(&client), twice, "said without a server");
    assert_eq!(history, twice, "in the history");
    let logged = client.logged();

    server.kill().await;
    let server = serve().await;
    let (client, history) = read_again(&server, &cookie, &session, 2).await;
    assert_eq!(history, twice, "after another kill");
    assert_eq!(client.logged(), logged);
    server.stop().await;

    let server = serve().await;
    let (client, history) = read_again(&server, &cookie, &session, 2).await;
    assert_eq!(history, twice, "after a restart");
    assert_eq!(client.logged(), logged);
    let whole = world.query("SELECT max(length(data)) > 200000 FROM messages WHERE kind = 'unreadable'");
    assert_eq!(whole, ["1"], "the line is kept whole");
    server.stop().await;
}
