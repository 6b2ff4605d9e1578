//! The history of what the real CLI wrote, compared with what the CLI itself did with it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use support::{Scene, state};
use tiller_history::{
    Branch, Change, Format, HistoryError, Include, Message, Page, Role, SearchQuery, SessionId, UsageQuery,
    Vault,
};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};
use tokio::sync::mpsc::UnboundedReceiver;

const FIRST: &str = "Please build the 登录页面 for me, with all the trimmings that one expects";

/// Everything that makes transcripts interesting: thinking, edits, parallel calls, a large result, a subagent.
fn script(project: &Path) -> Script {
    let file = project.join("hello.txt");
    Script::new()
        .on("subagent, look around", [Reply::tool("Bash", json!({"command": "ls"})), Reply::text("subagent says hi")])
        .on(
            "build the 登录页面",
            [
                Reply::thinking("let me think")
                    .and_text("I will write a file.")
                    .and_tool("Write", json!({"file_path": file, "content": "hello\nworld\n"})),
                Reply::tool("Edit", json!({"file_path": file, "old_string": "world", "new_string": "there"}))
                    .and_tool("Bash", json!({"command": "seq 1 30000", "description": "count"})),
                Reply::tool(
                    "Task",
                    json!({"description": "look", "prompt": "subagent, look around", "subagent_type": "general-purpose",
                        "run_in_background": false}),
                ),
                Reply::text("All 完成 now."),
            ],
        )
        .on(
            "three at once",
            [
                Reply::tool("Bash", json!({"command": "echo a"}))
                    .and_tool("Bash", json!({"command": "echo b"}))
                    .and_tool("Bash", json!({"command": "echo c"})),
                Reply::text("they are a, b and c"),
            ],
        )
        .on("and now", [Reply::text("now it is late")])
        .otherwise(Reply::text("<summary>We built a page.</summary>"))
}

async fn first_session(version: Claude) -> (Scene, SessionId) {
    let scene = Scene::new(version, script).await;
    let result = scene.run(FIRST, &[]).await;
    let id = SessionId::parse(result["session_id"].as_str().unwrap()).unwrap();
    (scene, id)
}

/// Comparable pieces of a conversation: texts, and ids of calls and results. What the CLI adds for the model beside the
/// transcript's messages is left out.
fn pieces(role: &str, content: &Value) -> Vec<String> {
    let blocks = match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    let piece = |block: &Value| match block["type"].as_str()? {
        "text" => {
            let text = block["text"].as_str()?.trim();
            let added = text.is_empty() || text.starts_with('<') || text == "No response requested.";
            (!added).then(|| format!("{role} {text}"))
        }
        "thinking" => Some(format!("{role} thinks {}", block["thinking"].as_str()?)),
        "tool_use" => Some(format!("{role} calls {}", block["id"].as_str()?)),
        "tool_result" => Some(format!("{role} gets {}", block["tool_use_id"].as_str()?)),
        _ => None,
    };
    blocks.iter().filter_map(piece).collect()
}

/// The blocks of a message, as clients get them.
fn content(message: &Message) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn of_messages(messages: &[Message]) -> Vec<String> {
    let role = |message: &Message| {
        if message.role == Role::User {
            "user"
        } else {
            "assistant"
        }
    };
    messages
        .iter()
        .flat_map(|message| pieces(role(message), &content(message)))
        .collect()
}

/// The messages of the last request to the model, without the reminders of the newest prompt.
fn of_last_request(scene: &Scene) -> Vec<String> {
    let requests = scene.model.conversation_requests();
    let messages = requests.last().unwrap().body["messages"]
        .as_array()
        .unwrap()
        .clone();
    let said = messages.iter().filter(|message| message["role"] != "system");
    said.flat_map(|message| pieces(message["role"].as_str().unwrap(), &message["content"]))
        .collect()
}

#[tokio::test]
async fn a_session_is_listed_with_every_field() {
    for version in Claude::WITH_TRANSCRIPTS {
        let (scene, id) = first_session(version).await;
        let history = scene.history();
        let lines = scene.lines(id.as_str());

        let projects = history.projects().unwrap().projects;
        assert_eq!(projects.len(), 1);
        let project = &projects[0];
        assert_eq!(project.path, scene.project().to_str().unwrap());
        assert_eq!((project.name.as_str(), project.session_count), ("project", 1));

        let page = history.sessions(&project.id, Page::first(50)).unwrap();
        assert_eq!(page.total, 1);
        let session = &page.sessions[0];
        assert_eq!(session.id, id);
        assert_eq!(session.title, FIRST.chars().take(50).collect::<String>());
        assert_eq!(session.project_path, scene.project().to_str().unwrap());
        let is_message = |line: &&Value| line["type"] == "user" || line["type"] == "assistant";
        assert_eq!(
            session.message_count,
            lines.iter().filter(is_message).count() as u64
        );
        let first_user = lines.iter().find(|line| line["type"] == "user").unwrap();
        assert_eq!(session.timestamp, first_user["timestamp"].as_str().unwrap());
        assert_eq!(session.tools_used, ["Write", "Edit", "Bash", "Task"]);
        assert_eq!(session.files_changed, ["hello.txt"]);
        assert_eq!(session.cli_version.as_deref(), Some(version.version()));
        assert_eq!(
            (session.damaged_lines, session.unknown_lines.len()),
            (0, 0),
            "{:?}",
            session.unknown_lines
        );
    }
}

#[tokio::test]
async fn the_chain_is_what_the_model_sees_when_the_session_is_resumed() {
    // Not 2.1.49, which forgets all but one of several parallel calls; current releases that resume its sessions don't.
    for version in Claude::ALL {
        let (scene, id) = first_session(version).await;
        scene.run("three at once", &["--resume", id.as_str()]).await;
        let before = scene
            .history()
            .messages(&id, Page::first(1000), Include::Chain)
            .unwrap();
        scene.run("and now", &["--resume", id.as_str()]).await;

        let mut expected = of_messages(&before.messages);
        expected.push("user and now".to_owned());
        assert_eq!(expected, of_last_request(&scene), "{}", version.version());
        let calls = expected
            .iter()
            .filter(|piece| piece.starts_with("assistant calls"))
            .count();
        assert_eq!(calls, 7);
    }
}

#[tokio::test]
async fn after_a_compaction_the_chain_is_shorter_and_replaced_messages_are_marked() {
    for version in Claude::WITH_TRANSCRIPTS {
        let (scene, id) = first_session(version).await;
        scene.run("three at once", &["--resume", id.as_str()]).await;
        scene.run("/compact", &["--resume", id.as_str()]).await;
        let history = scene.history();
        let before = history.messages(&id, Page::first(1000), Include::Chain).unwrap();
        scene.run("and now", &["--resume", id.as_str()]).await;

        let mut expected = of_messages(&before.messages);
        expected.push("user and now".to_owned());
        assert_eq!(expected, of_last_request(&scene), "{}", version.version());
        let summary = &before.messages[0];
        assert_eq!(
            summary.compaction.as_ref().unwrap().trigger.as_deref(),
            Some("manual")
        );
        assert!(!expected.iter().any(|piece| piece.contains(FIRST)));

        let whole = history
            .messages(&id, Page::first(1000), Include::Conversation)
            .unwrap();
        let first = &content(&whole.messages[0])[0]["text"];
        assert_eq!(
            first,
            FIRST,
            "{}: {:#?}",
            version.version(),
            scene.lines(id.as_str())
        );
        assert_eq!(whole.messages[0].branch, Some(Branch::Compacted));
        let page = history.messages(&id, Page::last(2), Include::Chain).unwrap();
        assert_eq!(
            content(page.messages.last().unwrap())[0]["text"],
            "now it is late"
        );
        assert_eq!(page.offset + 2, page.total);
    }
}

#[tokio::test]
async fn subagents_follow_their_call_and_large_results_can_be_read_whole() {
    for version in Claude::WITH_TRANSCRIPTS {
        let (scene, id) = first_session(version).await;
        let history = scene.history();
        let all = history
            .messages(&id, Page::first(1000), Include::All)
            .unwrap()
            .messages;

        let call = all
            .iter()
            .position(|message| content(message)[0]["name"] == "Task")
            .unwrap();
        let call_block = content(&all[call]);
        let task = call_block[0]["id"].as_str().unwrap();
        let of_agent: Vec<&Message> = all.iter().filter(|message| message.sidechain).collect();
        assert_eq!(of_agent.len(), 4, "{}", version.version());
        assert!(std::ptr::eq(of_agent[0], &raw const all[call + 1]));
        assert_eq!(content(of_agent[0])[0]["text"], "subagent, look around");
        assert_eq!(content(of_agent[2])[0]["tool_name"], "Bash");
        assert_eq!(content(of_agent[3])[0]["text"], "subagent says hi");
        for message in &of_agent {
            assert_eq!(message.parent_tool_use_id.as_deref(), Some(task));
            assert!(message.agent_id.is_some());
        }

        let results: Vec<Value> = all
            .iter()
            .flat_map(|message| content(message).as_array().unwrap().clone())
            .filter(|block| block["type"] == "tool_result")
            .collect();
        assert!(results.iter().all(|block| block["tool_name"].is_string()));
        let large = results
            .iter()
            .find(|block| block["persisted_output"].is_object())
            .expect("a large result");
        let mut text = String::new();
        let name = large["persisted_output"]["name"].as_str().unwrap();
        history
            .tool_result(&id, name)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text.lines().count(), 30_000);
        assert_eq!(large["persisted_output"]["size"], text.len());
        assert!(matches!(
            history.tool_result(&id, "../../x"),
            Err(HistoryError::Invalid(_))
        ));

        let edit = all.iter().find_map(|message| {
            message
                .patch
                .as_ref()
                .filter(|patch| !patch.structured_patch[0].is_null())
        });
        assert!(edit.unwrap().file_path.ends_with("hello.txt"));
    }
}

#[tokio::test]
async fn words_are_found_in_messages_calls_and_results() {
    for version in Claude::WITH_TRANSCRIPTS {
        let (scene, id) = first_session(version).await;
        let history = scene.history();
        history.update_index().unwrap();
        let find = |query: SearchQuery| history.search(&query, Page::first(50)).unwrap();
        let text = |text: &str| SearchQuery {
            text: text.to_owned(),
            ..SearchQuery::default()
        };

        for (query, role) in [
            ("trimmings", Role::User),
            ("录页", Role::User),
            ("完", Role::Assistant),
            ("let me think", Role::Assistant),
            ("\"subagent says\"", Role::Assistant),
            ("29999", Role::User),
            // In a file beside the transcript, of which the message has only the beginning.
            ("\"29998\n29999\"", Role::User),
        ] {
            let found = find(text(query));
            assert!(found.total >= 1, "{query} {}", version.version());
            let hit = found
                .results
                .iter()
                .find(|result| result.role == role)
                .unwrap_or_else(|| panic!("{query}"));
            assert_eq!(hit.session_id, id);
            assert!(
                hit.fragments.iter().any(|fragment| fragment.is_match),
                "{query}: {hit:?}"
            );
            let everything = history.messages(&id, Page::first(1000), Include::All).unwrap();
            assert!(
                everything.messages.iter().any(|message| message.uuid == hit.uuid),
                "{query}"
            );
        }
        assert_eq!(find(text("neverending")).total, 0);
        assert_eq!(find(text("面登")).total, 0);

        let calls = find(SearchQuery {
            tool: Some("Write".into()),
            ..text("hello")
        });
        assert!(calls.total >= 1);
        assert_eq!(
            find(SearchQuery {
                tool: Some("Glob".into()),
                ..text("hello")
            })
            .total,
            0
        );
        assert_eq!(
            find(SearchQuery {
                file: Some("hello.txt".into()),
                ..text("trimmings")
            })
            .total,
            1
        );
        assert_eq!(
            find(SearchQuery {
                file: Some("other".into()),
                ..text("trimmings")
            })
            .total,
            0
        );
        assert_eq!(
            find(SearchQuery {
                model: Some("claude".into()),
                ..text("trimmings")
            })
            .total,
            1
        );
        assert_eq!(
            find(SearchQuery {
                model: Some("gpt".into()),
                ..text("trimmings")
            })
            .total,
            0
        );
        assert_eq!(
            find(SearchQuery {
                to: Some(0),
                ..text("trimmings")
            })
            .total,
            0
        );
        assert_eq!(
            find(SearchQuery {
                from: Some(0),
                ..text("trimmings")
            })
            .total,
            1
        );
    }
}

#[tokio::test]
async fn usage_is_what_the_cli_says_it_was() {
    // Not 2.1.49, which also counts requests to a small model that it never records.
    for version in Claude::ALL {
        let scene = Scene::new(version, script).await;
        let result = scene.run(FIRST, &[]).await;
        let report = scene.history().usage(&UsageQuery::default()).unwrap();
        let sum = |name: &str| -> u64 {
            result["modelUsage"]
                .as_object()
                .unwrap()
                .values()
                .map(|usage| usage[name].as_u64().unwrap())
                .sum()
        };
        assert_eq!(report.total.tokens.input_tokens, sum("inputTokens"), "{result}");
        assert_eq!(report.total.tokens.output_tokens, sum("outputTokens"), "{result}");
        assert_eq!(
            report.total.tokens.cache_read_input_tokens,
            sum("cacheReadInputTokens")
        );
        let cost = result["total_cost_usd"].as_f64().unwrap();
        assert!(
            (report.total.cost_usd - cost).abs() < 1e-9,
            "{} instead of {cost}",
            report.total.cost_usd
        );
        assert_eq!(report.sessions.len(), 1);
        assert_eq!(report.models_without_price, Vec::<String>::new());
    }
}

#[tokio::test]
async fn no_query_writes_to_the_home_of_the_cli() {
    let (scene, id) = first_session(Claude::V2_1_325).await;
    let before = state(&scene.claude_home());
    assert!(before.len() > 5);

    let history = scene.history();
    history.projects().unwrap();
    history.all_sessions(Page::first(50)).unwrap();
    history.messages(&id, Page::last(50), Include::All).unwrap();
    history.update_index().unwrap();
    history
        .search(
            &SearchQuery {
                text: "hello".into(),
                ..SearchQuery::default()
            },
            Page::first(5),
        )
        .unwrap();
    history.usage(&UsageQuery::default()).unwrap();
    history.retention_days();
    for format in [Format::Markdown, Format::Html, Format::Json] {
        history
            .export(&id, format, Include::All, &mut Vec::new())
            .unwrap();
    }
    let vault = tempfile::tempdir().unwrap();
    Vault::open(vault.path()).unwrap().archive(&history).unwrap();
    drop(history.watch(|_| {}).unwrap());

    assert_eq!(state(&scene.claude_home()), before);
}

/// Waits until a change of this session is reported.
async fn heard(changes: &mut UnboundedReceiver<Vec<Change>>, wanted: &SessionId) {
    let is_it = |change: &Change| match change {
        Change::Session { session, .. } => session == wanted,
        Change::Everything => true,
        Change::Gone { .. } => false,
    };
    while !changes.recv().await.unwrap().iter().any(is_it) {}
}

#[tokio::test]
async fn a_session_that_starts_elsewhere_appears_and_grows() {
    let scene = Scene::new(Claude::V2_1_325, script).await;
    let history = scene.history();
    assert_eq!(history.projects().unwrap().projects, []);
    let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
    // Not even the folder of projects exists yet.
    let _watch = history.watch(move |change| sender.send(change).unwrap()).unwrap();

    let result = scene.run(FIRST, &[]).await;
    let id = SessionId::parse(result["session_id"].as_str().unwrap()).unwrap();
    heard(&mut changes, &id).await;
    let first = history.session(&id).unwrap();
    scene.run("three at once", &["--resume", id.as_str()]).await;
    heard(&mut changes, &id).await;
    let grown = history.session(&id).unwrap();
    assert!(grown.message_count > first.message_count);
    assert_eq!(grown.title, first.title);
}
