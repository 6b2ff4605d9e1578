//! Sessions that can't be read, beside others that can.

use std::sync::Arc;

use tiller_core::{
    CommandError, EventBody, ListedSession, Page, PathPolicy, SessionStatus, Sessions, Store, TitlePolicy,
    TurnRecord,
};

use tiller_store_suite::fixtures::{NoAgents, append, message, prompt, put, quiet, record, request, status};

use super::open;

/// One bad row stops neither the server nor another session, whatever it is.
#[tokio::test]
async fn a_damaged_session_is_listed_and_deleted_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut whole = quiet("whole", 20);
    append(&store, &mut whole, vec![message("a")]).await;
    // The kind of damage, and how it is caused.
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
        let mut session = quiet(title, 20);
        if title == "decision" {
            let asked = request(session.id, 1);
            append(
                &store,
                &mut session,
                vec![EventBody::DecisionRequested(Box::new(asked))],
            )
            .await;
        } else if title == "prompt" {
            // The next server would have to send it again.
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
    let sessions = Sessions::open(Arc::new(store), Arc::new(NoAgents), paths, TitlePolicy::Prompt)
        .await
        .unwrap();
    let listed = sessions.list(None, None, None).await.unwrap().sessions;
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
    assert_eq!(sessions.list(None, None, None).await.unwrap().sessions.len(), 1);
}

#[tokio::test]
async fn a_row_that_can_not_be_read_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = record("damaged rows");
    let bodies = || {
        vec![
            status(SessionStatus::Running),
            prompt("p"),
            message("a"),
            message("b"),
            message("c"),
            message("d"),
        ]
    };
    let written = append(&store, &mut session, bodies()).await;
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE events SET data = '{' WHERE seq = 1;
             UPDATE messages SET data = '{\"type\":\"user_prompt\"}' WHERE seq = 2;
             UPDATE messages SET data = 'no JSON' WHERE seq = 3;
             UPDATE messages SET kind = 'unheard-of' WHERE seq = 4;
             UPDATE messages SET data = CAST(x'ff7b7d' AS TEXT) WHERE seq = 5;",
        )
        .unwrap();
    let events = store.replay(session.id, 0, 100).await.unwrap();
    assert_eq!(events.len(), written.len());
    assert_eq!(events[5], written[5]);
    for event in &events[..5] {
        let EventBody::Message { raw, .. } = &event.body else {
            panic!("{event:?}");
        };
        assert!(
            raw.as_str()
                .contains(r#""subtype":"unreadable","reason":"damaged""#),
            "{raw:?}"
        );
    }
    let history = store.history(session.id, Page::All).await.unwrap();
    let readable: Vec<_> = history
        .iter()
        .map(|entry| (entry.seq, !entry.json.as_str().contains("unreadable")))
        .collect();
    assert_eq!(
        readable,
        [(2, true), (3, false), (4, false), (5, false), (6, true)]
    );
}
