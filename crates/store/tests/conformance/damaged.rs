//! Sessions that can't be read, beside others that can.

use std::sync::Arc;

use tiller_core::{
    CommandError, EventBody, ListedSession, PathPolicy, SessionRecord, SessionStatus, Sessions, Titles,
    TurnRecord,
};

use super::open;
use super::sessions::{append, message, prompt, put, record, request, status};
use super::upkeep::NoAgents;

/// One bad row stops neither the server nor another session, whatever it is.
#[tokio::test]
async fn a_damaged_session_is_listed_and_deleted_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let quiet = |title: &str| SessionRecord {
        status: SessionStatus::Completed,
        queue: Vec::new(),
        delete_at: None,
        turn: None,
        run: None,
        ..record(title)
    };
    let mut whole = quiet("whole");
    append(&store, &mut whole, vec![message("a")]).await;
    // What is damaged, and how.
    let damages = [
        ("queue", "UPDATE sessions SET queue = '[1' WHERE id = ?1"),
        ("turn", "UPDATE sessions SET turn = '{}' WHERE id = ?1"),
        ("run", "UPDATE sessions SET run = 'no JSON' WHERE id = ?1"),
        (
            "approval",
            "UPDATE sessions SET approval = 'whatever' WHERE id = ?1",
        ),
        (
            "title",
            "UPDATE sessions SET title = CAST(x'ff41' AS TEXT) WHERE id = ?1",
        ),
        (
            "decision",
            "UPDATE decisions SET input = '{' WHERE session_id = ?1",
        ),
        (
            "prompt",
            "UPDATE messages SET data = '{}' WHERE session_id = ?1 AND kind = 'prompt'",
        ),
    ];
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let mut damaged = Vec::new();
    for (title, sql) in damages {
        let mut session = quiet(title);
        if title == "decision" {
            let asked = request(session.id, 1);
            append(
                &store,
                &mut session,
                vec![EventBody::DecisionRequested(Box::new(asked))],
            )
            .await;
        } else if title == "prompt" {
            // The next server would have to say it again.
            session.status = SessionStatus::Running;
            session.turn = Some(TurnRecord {
                prompt_seq: 2,
                stopping: false,
                undelivered: true,
                after_stop: 0,
            });
            append(
                &store,
                &mut session,
                vec![status(SessionStatus::Running), prompt("p")],
            )
            .await;
        } else {
            put(&store, &session, Vec::new()).await;
        }
        assert_eq!(
            connection.execute(sql, [session.id.to_string()]).unwrap(),
            1,
            "{title}"
        );
        damaged.push(session.id);
    }

    let home = folder.path();
    let paths = PathPolicy::new(home, &[home.to_owned()], home, &home.join("data")).unwrap();
    let sessions = Sessions::open(Arc::new(store), Arc::new(NoAgents), paths, Titles::Prompt)
        .await
        .unwrap();
    let listed = sessions.list(None, None).await.unwrap().sessions;
    assert_eq!(listed.len(), damaged.len() + 1);
    for session in &listed {
        let is_damaged = matches!(session, ListedSession::Damaged(_));
        assert_eq!(is_damaged, session.id() != whole.id, "{session:?}");
    }
    sessions.rename(whole.id, "still used").await.unwrap();
    for (id, (title, _)) in damaged.iter().zip(damages) {
        for refused in [
            sessions.find(*id).await.map(drop),
            sessions.rename(*id, "other").await,
            sessions.prompt(*id, "go on").await.map(drop),
        ] {
            assert!(
                matches!(refused, Err(CommandError::Damaged { .. })),
                "{title}: {refused:?}"
            );
        }
        let kept = "SELECT count(*) FROM sessions WHERE id = ?1";
        let rows = |sql| -> u32 {
            connection
                .query_row(sql, [id.to_string()], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(rows(kept), 1, "{title} is kept as it is");
        sessions.delete(*id).await.unwrap();
        assert_eq!(rows(kept), 0, "{title}");
        assert!(!sessions.exists(*id).await.unwrap());
    }
    assert_eq!(sessions.list(None, None).await.unwrap().sessions.len(), 1);
}
