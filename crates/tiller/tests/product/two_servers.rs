//! Two servers of one user, each with its own data folder, and one conversation: it has one driver at a time.

use std::path::PathBuf;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tiller_process::{Stat, is_shield_launcher};
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http;
use crate::server::{Server, SignIn, World, agent_of, until};

/// One of the two servers: with its own data folder, sharing the home folder and the leases.
struct Side<'a> {
    world: &'a World,
    data: PathBuf,
}

impl<'a> Side<'a> {
    fn new(world: &'a World, name: &str) -> Self {
        let data = world.home().with_file_name(name);
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(runtime(world)).unwrap();
        std::fs::copy(world.data().join("config.toml"), data.join("config.toml")).unwrap();
        Self { world, data }
    }

    async fn serve(&self) -> (Server, SignIn, EventClient) {
        let environment = [
            ("TILLER_DATA_DIR", self.data.to_str().unwrap().to_owned()),
            (
                "XDG_RUNTIME_DIR",
                runtime(self.world).to_str().unwrap().to_owned(),
            ),
        ];
        let environment = environment
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let server = self.world.serve_with(&[], &environment).await;
        let cookie = server.sign_in().await;
        let client = EventClient::connect(&server, &cookie).await;
        (server, cookie, client)
    }
}

fn runtime(world: &World) -> PathBuf {
    world.home().with_file_name("runtime")
}

/// The leased conversations, including those of killed processes.
fn leases(world: &World) -> Vec<String> {
    let files = std::fs::read_dir(runtime(world).join("tiller-leases")).unwrap();
    let mut names: Vec<String> = files
        .map(|file| {
            let path = file.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    names.sort();
    names
}

/// The process that drives the conversation, as the client is told.
async fn until_refused(client: &mut EventClient) -> Pid {
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "driven_elsewhere", "{refused}");
    pid_of_driver(&refused)
}

fn pid_of_driver(refused: &Value) -> Pid {
    let pid = refused["driver"]["pid"].as_i64().unwrap();
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn is_there(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended, too.
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Kills an agent and waits until its keeper knows: a prompt that reaches the keeper before is lost with the agent.
async fn kill_agent(agent: Pid) {
    let with_launchers: Vec<Pid> = std::iter::successors(Some(agent), |pid| {
        let parent = Stat::of(u32::try_from(pid.as_raw_pid()).ok()?)?.parent()?;
        let command = std::fs::read_to_string(format!("/proc/{parent}/cmdline")).ok()?;
        let arguments: Vec<String> = command.split('\0').map(str::to_owned).collect();
        let parent = Pid::from_raw(i32::try_from(parent).ok()?)?;
        is_shield_launcher(&arguments).then_some(parent)
    })
    .collect();
    rustix::process::kill_process(agent, Signal::KILL).unwrap();
    until("the agent ends", || {
        !with_launchers.iter().any(|pid| is_there(*pid))
    })
    .await;
}

/// Sends a prompt and returns the answer, which repeats all that the model was told in this conversation.
async fn known(client: &mut EventClient, session: &str, prompt: &str) -> String {
    client.prompt(session, prompt).await;
    client.until_status("completed").await;
    last_answer(client)
}

fn last_answer(client: &EventClient) -> String {
    let results = client.heard.iter().rev();
    let found = results
        .map(|event| &event["payload"]["message"]["result"])
        .find_map(Value::as_str);
    found.expect("a result").to_owned()
}

#[tokio::test]
async fn the_second_server_learns_the_driver_and_may_fork_or_take_over() {
    let world = World::new(Script::new().otherwise(Reply::text("Known: {{prompts}}"))).await;
    let (here, there) = (Side::new(&world, "here"), Side::new(&world, "there"));
    let (first, _, mut at_first) = here.serve().await;
    let (second, cookie, mut at_second) = there.serve().await;
    let session = at_first.start(&world.project(), "one").await;
    at_first.until_status("completed").await;
    let agent = agent_of(&session);

    // The first server's agent is idle, but it drives the conversation.
    let resume = |prompt: &str, fork: bool| json!({ "prompt": prompt, "resume": session, "fork": fork });
    at_second.send("session.start", resume("two", false)).await;
    assert_eq!(until_refused(&mut at_second).await, agent);
    at_second.send("session.list", Value::Null).await;
    assert_eq!(at_second.until_type("session.list").await["sessions"], json!([]));

    at_second.send("session.start", resume("aside", true)).await;
    let fork = at_second.until_status("completed").await["sessionId"].clone();
    assert_ne!(fork, json!(session));
    assert_eq!(last_answer(&at_second), "Known: one | aside");
    assert_eq!(known(&mut at_first, &session, "two").await, "Known: one | two");
    assert_eq!(agent_of(&session), agent, "nobody has touched it");

    let path = format!("/api/history/sessions/{session}/takeover");
    let origin = format!("http://{}", second.address);
    let [cookie, page] = cookie.headers();
    let headers = [cookie, page, ("Origin", origin.as_str())];
    let taken = http::request(&second.address, "POST", &path, &headers, "").await;
    assert_eq!(taken.status, 200, "{}", taken.body);
    assert!(!is_there(agent));
    at_second.send("session.start", resume("three", false)).await;
    at_second.until_status("completed").await;
    assert_eq!(last_answer(&at_second), "Known: one | two | three");

    // Now the first server is refused.
    at_first.prompt(&session, "four").await;
    let agent = until_refused(&mut at_first).await;
    assert!(is_there(agent));
    at_second
        .send("session.delete", json!({ "sessionId": fork }))
        .await;
    at_second.until_type("session.deleted").await;
    until("a lease lasts no longer than its agent", || {
        leases(&world) == [session.as_str()]
    })
    .await;
    first.stop().await;
    second.stop().await;
    assert_eq!(leases(&world), [""; 0]);
}

#[tokio::test]
async fn a_killed_server_blocks_nobody() {
    let world = World::new(Script::new().otherwise(Reply::text("Known: {{prompts}}"))).await;
    let (here, there) = (Side::new(&world, "here"), Side::new(&world, "there"));
    let (first, _, mut at_first) = here.serve().await;
    let session = at_first.start(&world.project(), "one").await;
    at_first.until_status("completed").await;
    let agent = agent_of(&session);
    first.kill().await;

    // Its agent has outlived it and still drives.
    let (second, _, mut at_second) = there.serve().await;
    let resume = json!({ "prompt": "two", "resume": session });
    at_second.send("session.start", resume.clone()).await;
    assert_eq!(until_refused(&mut at_second).await, agent);
    assert!(is_there(agent));
    // Now the agent dies as well. Only a file is left.
    kill_agent(agent).await;
    at_second.send("session.start", resume).await;
    at_second.until_status("completed").await;
    assert_eq!(last_answer(&at_second), "Known: one | two");

    // Both at once, without a driver: one of them continues, the other is told why it can't.
    let agent = agent_of(&session);
    second.kill().await;
    kill_agent(agent).await;
    assert_eq!(leases(&world), [session.as_str()], "what a killed server leaves");
    let ((first, _, mut at_first), (second, _, mut at_second)) = tokio::join!(here.serve(), there.serve());
    until("what was left is swept", || leases(&world).is_empty()).await;
    // Both may still be looking for their earlier agents.
    tokio::join!(
        at_first.prompt(&session, "three"),
        at_second.prompt(&session, "three")
    );
    let (one, other) = tokio::join!(outcome(&mut at_first), outcome(&mut at_second));
    // The refused one gets its prompt back: it is not part of the session, and nothing is left unfinished.
    let (told, told_client) = match (one, other) {
        (Outcome::GoesOn, Outcome::IsTold(driver)) => (driver, &mut at_second),
        (Outcome::IsTold(driver), Outcome::GoesOn) => (driver, &mut at_first),
        outcomes => panic!("{outcomes:?}"),
    };
    assert_eq!(told, agent_of(&session));
    let history = json!({ "sessionId": session });
    told_client.send("session.history", history).await;
    let history = told_client.until_type("session.history").await;
    let prompts = history["messages"].as_array().unwrap().iter();
    let prompts: Vec<_> = prompts.filter_map(|message| message["prompt"].as_str()).collect();
    assert!(!prompts.contains(&"three"), "{prompts:?}");
    assert_eq!(history["status"], "completed");
    // Its agent ends with its server, and has written everything.
    first.stop().await;
    second.stop().await;
    assert_eq!(
        world
            .transcript(&session)
            .matches("Known: one | two | three")
            .count(),
        1
    );
    assert_eq!(leases(&world), [""; 0]);
}

#[derive(Debug)]
enum Outcome {
    GoesOn,
    /// Which server continues.
    IsTold(Pid),
}

/// The outcome of a prompt that was sent to two servers.
async fn outcome(client: &mut EventClient) -> Outcome {
    let ended = |event: &Value| {
        event["type"] == "runner.error"
            || event["type"] == "session.status"
                && matches!(event["payload"]["status"].as_str(), Some("completed" | "error"))
    };
    let end = client.until("the prompt's end", ended).await;
    let payload = &end["payload"];
    if payload["status"] == "completed" {
        return Outcome::GoesOn;
    }
    assert_eq!(
        payload["code"],
        "driven_elsewhere",
        "{end}\n{}",
        client.story().join("\n")
    );
    Outcome::IsTold(pid_of_driver(payload))
}
