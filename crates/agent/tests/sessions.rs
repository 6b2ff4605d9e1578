//! Conversations on disk, as the real CLI writes and reads them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use serde_json::json;
use support::{PATIENCE, Stage};
use tiller_agent::sessions::{ForkOptions, ListOptions, MemoryStore, Sessions};
use tiller_agent::{Client, Error, query};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .expect("nothing waits for ever")
}

fn script() -> Script {
    let bash = |command: &str| json!({"command": command, "description": "Do it"});
    Script::new()
        .on(
            "tools",
            [
                Reply::text("Looking. ")
                    .and_tool("Bash", bash("echo one"))
                    .and_tool("Bash", bash("echo two")),
                Reply::text("Both."),
            ],
        )
        .otherwise(Reply::text("So far: {{prompts}}"))
}

#[tokio::test]
async fn sessions_are_listed_read_renamed_tagged_forked_and_deleted() {
    for claude in Claude::WITH_TRANSCRIPTS {
        let stage = Stage::new(claude, script()).await;
        let sessions = Sessions::in_home(stage.home().join(".claude"));
        assert_eq!(sessions.list(ListOptions::new()).await.unwrap(), []);

        let options = || stage.options().allowed_tools(["Bash"]);
        let client = within(Client::connect(options())).await.unwrap();
        within(client.ask("first")).await.unwrap();
        let id = within(client.ask("use tools")).await.unwrap().session_id;
        within(client.close()).await;
        let other = within(query("elsewhere", options()).finish()).await.unwrap();

        let listed = sessions.list(ListOptions::new().cwd(stage.cwd())).await.unwrap();
        let ids: Vec<_> = listed.iter().map(|session| Some(session.id.as_str())).collect();
        assert_eq!(
            ids,
            [other.session_id(), Some(id.as_str())],
            "{claude:?}: newest first"
        );
        let page = sessions
            .list(ListOptions::new().offset(1).limit(1))
            .await
            .unwrap();
        assert_eq!(page[0].id, id);
        assert_eq!(page[0].first_prompt.as_deref(), Some("first"));
        let real = stage.cwd().canonicalize().unwrap();
        assert_eq!(page[0].cwd.as_deref(), Some(real.as_path()));
        assert!(page[0].created_at.is_some() && page[0].size > 0);
        assert_eq!(
            sessions.list(ListOptions::new().cwd("/nowhere")).await.unwrap(),
            []
        );

        let messages = sessions.messages(&id).await.unwrap();
        let texts: Vec<String> = messages
            .iter()
            .map(tiller_agent::sessions::SessionMessage::text)
            .filter(|text| !text.is_empty())
            .collect();
        assert_eq!(
            texts,
            ["first", "So far: first", "use tools", "Looking. ", "Both."],
            "{claude:?}"
        );
        let results = messages
            .iter()
            .filter(|message| message.message["content"][0]["type"] == "tool_result");
        assert_eq!(results.count(), 2, "{claude:?}: {messages:#?}");

        sessions.rename(&id, " A better title ").await.unwrap();
        sessions.tag(&id, Some("urgent")).await.unwrap();
        let info = sessions.info(&id).await.unwrap().unwrap();
        assert_eq!(
            (info.title(), info.tag.as_deref()),
            (Some("A better title"), Some("urgent"))
        );
        sessions.tag(&id, None).await.unwrap();
        assert_eq!(sessions.info(&id).await.unwrap().unwrap().tag, None);

        // The CLI goes on with a fork, and with the original as if nothing had happened.
        let answer = messages
            .iter()
            .find(|message| message.text() == "So far: first")
            .unwrap();
        let fork = sessions
            .fork(&id, ForkOptions::new().up_to(&answer.uuid))
            .await
            .unwrap();
        let whole = sessions
            .fork(&id, ForkOptions::new().title("Whole"))
            .await
            .unwrap();
        let asked = within(query("second", options().resume(&fork)).finish())
            .await
            .unwrap();
        assert_eq!(asked.final_text(), Some("So far: first | second"), "{claude:?}");
        let asked = within(query("third", options().resume(&whole)).finish())
            .await
            .unwrap();
        assert_eq!(
            asked.final_text(),
            Some("So far: first | use tools | third"),
            "{claude:?}"
        );
        let asked = within(query("fourth", options().resume(&id)).finish())
            .await
            .unwrap();
        assert_eq!(
            asked.final_text(),
            Some("So far: first | use tools | fourth"),
            "{claude:?}"
        );
        let info = sessions.info(&fork).await.unwrap().unwrap();
        assert_eq!(info.title(), Some("A better title (fork)"));

        sessions.delete(&id).await.unwrap();
        assert_eq!(sessions.info(&id).await.unwrap(), None);
        let gone = within(query("fifth", options().resume(&id)).finish())
            .await
            .unwrap_err();
        assert!(matches!(gone, Error::SessionExpired { .. }), "{claude:?}: {gone}");
        for error in [
            sessions.delete(&id).await.unwrap_err(),
            sessions.rename("../../etc", "x").await.unwrap_err(),
            sessions.rename(&fork, "  ").await.unwrap_err(),
            sessions
                .fork(&fork, ForkOptions::new().up_to("nothing"))
                .await
                .unwrap_err(),
        ] {
            assert!(matches!(error, Error::Session(_)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_conversation_is_resumed_from_a_store_on_another_machine() {
    for claude in Claude::ALL {
        let store = MemoryStore::new();
        let stage = Stage::new(claude, script()).await;
        let options = || stage.options().session_store(store.clone());
        let client = within(Client::connect(options())).await.unwrap();
        let id = within(client.ask("first")).await.unwrap().session_id;
        within(client.close()).await;
        assert_eq!(store.keys().len(), 1, "{claude:?}: {store:?}");
        assert_eq!(store.keys()[0].session_id, id);

        // The same folder, another home.
        let elsewhere = stage.home().join("elsewhere");
        let moved = || options().env("HOME", &elsewhere).resume(&id);
        let asked = within(query("second", moved()).finish()).await.unwrap();
        assert_eq!(asked.final_text(), Some("So far: first | second"), "{claude:?}");
        // And what was said there is in the store as well.
        std::fs::remove_dir_all(&elsewhere).unwrap();
        let asked = within(query("third", moved()).finish()).await.unwrap();
        assert_eq!(
            asked.final_text(),
            Some("So far: first | second | third"),
            "{claude:?}"
        );
    }
}
