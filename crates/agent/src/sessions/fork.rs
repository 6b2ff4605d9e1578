//! A copy of a conversation: every message gets a new id, and knows which one it was.

use std::collections::HashMap;
use std::io;

use serde_json::{Map, Value, json};

use super::transcript::Transcript;

pub(super) struct Fork {
    pub(super) id: String,
    pub(super) lines: Vec<Value>,
}

/// Fields that belong to the original alone.
const NOT_COPIED: [&str; 4] = ["teamName", "agentName", "slug", "sourceToolAssistantUUID"];

pub(super) fn fork(
    transcript: &Transcript,
    original: &str,
    up_to: Option<&str>,
    title: &str,
) -> io::Result<Fork> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let mut entries: Vec<&Map<String, Value>> = transcript
        .entries
        .iter()
        .filter_map(Value::as_object)
        .filter(|entry| {
            let is_message = matches!(
                entry.get("type").and_then(Value::as_str),
                Some("user" | "assistant" | "attachment" | "system")
            );
            is_message
                && text(entry, "uuid").is_some()
                && entry.get("isSidechain") != Some(&Value::Bool(true))
        })
        .collect();
    if let Some(last) = up_to {
        let place = entries.iter().position(|entry| text(entry, "uuid") == Some(last));
        let place =
            place.ok_or_else(|| invalid(format!("there is no message {last} in session {original}")))?;
        entries.truncate(place + 1);
    }
    if entries.is_empty() {
        return Err(invalid(format!("session {original} has no messages")));
    }
    let id = uuid::Uuid::new_v4().to_string();
    let new_ids: HashMap<&str, String> = entries
        .iter()
        .filter_map(|entry| Some((text(entry, "uuid")?, uuid::Uuid::new_v4().to_string())))
        .collect();
    // Lines that are not copied may stand between a message and its parent.
    let parents: HashMap<&str, &str> = transcript
        .entries
        .iter()
        .filter_map(|entry| Some((entry["uuid"].as_str()?, entry["parentUuid"].as_str()?)))
        .collect();
    let parent_of = |uuid: &str| {
        let mut parent = parents.get(uuid);
        // As many steps as there are lines, in case that they form a circle.
        for _ in 0..transcript.entries.len() {
            match parent {
                Some(uuid) if !new_ids.contains_key(uuid) => parent = parents.get(uuid),
                _ => break,
            }
        }
        parent.and_then(|uuid| new_ids.get(uuid))
    };
    let mut lines: Vec<Value> = entries
        .iter()
        .filter_map(|entry| {
            let uuid = text(entry, "uuid")?;
            let mut copy = (*entry).clone();
            copy.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
            copy.insert("uuid".to_owned(), json!(new_ids.get(uuid)));
            copy.insert("parentUuid".to_owned(), json!(parent_of(uuid)));
            if let Some(logical) = text(entry, "logicalParentUuid") {
                copy.insert("logicalParentUuid".to_owned(), json!(new_ids.get(logical)));
            }
            copy.insert("sessionId".to_owned(), json!(id));
            copy.insert(
                "forkedFrom".to_owned(),
                json!({ "sessionId": original, "messageUuid": uuid }),
            );
            Some(Value::Object(copy))
        })
        .collect();
    lines.push(json!({ "type": "custom-title", "customTitle": title.trim(), "sessionId": id }));
    Ok(Fork { id, lines })
}

fn text<'a>(entry: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    entry.get(name)?.as_str()
}
