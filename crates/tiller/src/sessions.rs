//! `tiller sessions`: lists the sessions.

use serde_json::{Value, json};
use tiller_core::{ListedSession, SessionQuery, Store, Timestamp};

use crate::cli::ServeArgs;
use crate::client::Client;
use crate::render::plain;

pub(crate) async fn list(args: &ServeArgs, as_json: bool) -> anyhow::Result<()> {
    let data_dir = args.data_dir()?;
    let sessions = if data_dir.running().is_some() {
        let mut client = Client::connect(args).await?;
        client.send("session.list", Value::Null).await?;
        let mut list = client.until("session.list").await?;
        client.close().await;
        list["sessions"].take()
    } else {
        // Without a server nothing changes, so the database has everything.
        let stored = data_dir.open_store()?.list(SessionQuery::default()).await?;
        let sessions = stored.into_iter().map(|session| match session {
            ListedSession::Damaged(session) => json!({
                "id": session.id.to_string(), "title": session.title, "status": "error", "cwd": session.cwd,
                "createdAt": session.created_at.0, "updatedAt": session.updated_at.0,
                "damaged": true, "error": session.reason,
            }),
            ListedSession::Readable { record, pending } => json!({
                "id": record.id.to_string(), "title": record.title, "status": record.status.as_str(),
                "cwd": record.cwd, "claudeSessionId": record.conversation,
                "createdAt": record.created_at.0, "updatedAt": record.updated_at.0,
                "lastPrompt": record.last_prompt, "model": record.settings.options.text("model"),
                "permissionMode": record.settings.options.text("permissionMode").unwrap_or("default"),
                "approval": record.settings.approval.as_str(), "pending": pending, "lastSeq": record.last_seq,
            }),
        });
        Value::Array(sessions.collect())
    };
    if as_json {
        println!("{sessions:#}");
        return Ok(());
    }
    let sessions = sessions.as_array().map(Vec::as_slice).unwrap_or_default();
    if sessions.is_empty() {
        println!("There are no sessions. Start one with `tiller run \"…\"` or on the page.");
        return Ok(());
    }
    let now = Timestamp::now().0;
    println!(
        "{:<36}  {:<9}  {:>5}  {:<40}  FOLDER",
        "ID", "STATUS", "AGE", "TITLE"
    );
    for session in sessions {
        let text = |field: &str| plain(session[field].as_str().unwrap_or_default());
        let title: String = text("title").chars().take(40).collect();
        let waits = if session["pending"].as_u64().unwrap_or(0) > 0 {
            "waiting".to_owned()
        } else {
            text("status")
        };
        let age = age(now - session["updatedAt"].as_i64().unwrap_or(now));
        println!(
            "{:<36}  {waits:<9}  {age:>5}  {title:<40}  {}",
            text("id"),
            text("cwd")
        );
    }
    Ok(())
}

/// The approximate age.
fn age(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_short() {
        let ages = [-5, 59_999, 60_000, 7_200_000, 200_000_000].map(super::age);
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d"]);
    }
}
