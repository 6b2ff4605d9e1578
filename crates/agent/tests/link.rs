//! The link against the real CLI.

mod support;

use serde_json::json;
use support::{Reader, Stage};
use tiller_agent::control::{Initialize, Interrupt, RequestError, SetModel};
use tiller_agent::link::{Inbound, RespondError, connect};
use tiller_agent::message::Kind;
use tiller_agent::options::Grace;
use tiller_agent::{PermissionReply, UserMessage};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

#[derive(serde::Serialize)]
struct MadeUp {}

impl tiller_agent::control::ControlRequest for MadeUp {
    const SUBTYPE: &'static str = "made_up_operation";
    type Answer = tiller_agent::control::Fields;
}

#[tokio::test]
async fn a_conversation_from_start_to_end() {
    for claude in Claude::ALL {
        let script = Script::new()
            .on(
                "make a file",
                [
                    Reply::tool(
                        "Bash",
                        json!({"command": "echo made > file.txt", "description": "Make a file"}),
                    ),
                    Reply::text("Made."),
                ],
            )
            .on("take long", [Reply::text("Well…").gate("never").and_text("done")]);
        let stage = Stage::new(claude, script).await;
        let (link, inbox) = connect(&stage.options().partial_messages(true)).await.unwrap();
        let mut inbox = Reader(inbox);

        let initialized = link.request(Initialize::default()).await.unwrap();
        assert!(
            initialized
                .commands
                .iter()
                .any(|command| command.name == "compact"),
            "{initialized:?}"
        );
        assert!(!initialized.models.is_empty());
        link.request(SetModel::to("sonnet")).await.unwrap();
        let unsupported = link.request(MadeUp {}).await.unwrap_err();
        assert!(
            matches!(
                unsupported,
                RequestError::Unsupported {
                    subtype: "made_up_operation"
                }
            ),
            "{unsupported}"
        );

        // A question, answered once.
        link.send_user(&UserMessage::text("make a file")).await.unwrap();
        let (request, permission) = inbox.permission().await;
        assert_eq!(permission.tool_name, "Bash");
        assert!(permission.tool_use_id.is_some());
        let reply = PermissionReply::allow().into_reply(&permission);
        link.respond(&request.id, reply.clone()).await.unwrap();
        assert_eq!(link.respond(&request.id, reply).await, Err(RespondError::NotOpen));
        let result = inbox.message(|message| message.kind() == Kind::Result).await;
        assert_eq!(result.subtype(), Some("success"));
        assert_eq!(stage.read("file.txt"), "made\n");

        // A turn that is stopped.
        link.send_user(&UserMessage::text("take long")).await.unwrap();
        stage.model.gate("never").reached().await;
        link.request(Interrupt {}).await.unwrap();
        let result = inbox.message(|message| message.kind() == Kind::Result).await;
        assert_eq!(result.subtype(), Some("error_during_execution"));

        let exit = link.close().await;
        // The CLI's exit code is that of its last turn.
        assert!(exit.code.is_some() && exit.requested && !exit.expired, "{exit:?}");
        assert!(matches!(
            link.request(Interrupt {}).await,
            Err(RequestError::Closed)
        ));
        loop {
            match inbox.next().await {
                Inbound::Exited(last) => break assert_eq!(last, exit),
                Inbound::Message(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert!(inbox.0.next().await.is_none());
    }
}

#[tokio::test]
async fn an_interrupt_withdraws_the_question() {
    let script = Script::new().on(
        "make a file",
        [Reply::tool(
            "Bash",
            json!({"command": "touch x", "description": "Touch"}),
        )],
    );
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let (link, inbox) = connect(&stage.options()).await.unwrap();
    let mut inbox = Reader(inbox);
    link.send_user(&"make a file".into()).await.unwrap();
    let (request, permission) = inbox.permission().await;
    link.request(Interrupt {}).await.unwrap();
    loop {
        match inbox.next().await {
            Inbound::Cancelled(id) => break assert_eq!(id, request.id),
            Inbound::Message(_) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    let late = link
        .respond(&request.id, PermissionReply::allow().into_reply(&permission))
        .await;
    assert_eq!(late, Err(RespondError::NotOpen));
}

#[tokio::test]
async fn an_unknown_conversation_is_expired() {
    for claude in Claude::ALL {
        let stage = Stage::new(claude, Script::new()).await;
        let options = stage.options().resume("00000000-0000-4000-8000-000000000000");
        let (link, inbox) = connect(&options).await.unwrap();
        let mut inbox = Reader(inbox);
        // The CLI may be gone before it has read this.
        link.send_user(&"are you there?".into()).await.ok();
        let exit = link.exited().await;
        assert!(exit.expired && !exit.requested, "{exit:?}");
        assert!(exit.stderr_tail.contains("No conversation found"), "{exit:?}");
        loop {
            if let Inbound::Exited(last) = inbox.next().await {
                break assert!(last.expired);
            }
        }
    }
}

#[tokio::test]
async fn nothing_that_the_agent_started_outlives_it() {
    let marker = format!("left-behind-{}", uuid::Uuid::new_v4());
    // A daemon: its own session, its parent gone, deaf to SIGTERM.
    let command = format!(
        "setsid bash -c 'trap \"\" TERM; echo up > up.txt; while true; do read -t 1 < /dev/zero; done; : {marker}' \
         >/dev/null 2>&1 & while [ ! -f up.txt ]; do :; done"
    );
    let script = Script::new().on(
        "start a daemon",
        [
            Reply::tool(
                "Bash",
                json!({"command": command, "description": "Start a daemon"}),
            ),
            Reply::text("Started."),
        ],
    );
    for drop_instead in [false, true] {
        let stage = Stage::new(Claude::V2_1_325, script.clone()).await;
        let grace = Grace {
            after_input: std::time::Duration::from_secs(3),
            after_terminate: std::time::Duration::from_millis(300),
        };
        let (link, inbox) = connect(&stage.options().allowed_tools(["Bash"]).grace(grace))
            .await
            .unwrap();
        let mut inbox = Reader(inbox);
        link.send_user(&"start a daemon".into()).await.unwrap();
        inbox.message(|message| message.kind() == Kind::Result).await;
        assert!(
            !support::processes_with(&marker).is_empty(),
            "the daemon should run"
        );
        if drop_instead {
            drop((link, inbox));
            tokio::time::timeout(support::PATIENCE, async {
                while !support::processes_with(&marker).is_empty() {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .expect("the daemon ends when the handles are dropped");
        } else {
            link.close().await;
            assert_eq!(support::processes_with(&marker), Vec::<u32>::new());
        }
    }
}
