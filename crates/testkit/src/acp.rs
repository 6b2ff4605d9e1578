//! A scripted agent that speaks the Agent Client Protocol on stdin and stdout.
//!
//! It does what the prompt names, in this order: `plan` sends a plan, `think` thinks aloud, `edit` writes `note.txt`
//! and sends the diff, `ask` asks for permission to run a command that creates `asked.txt`, `hang` runs until it is
//! cancelled. It always ends with a message. In its first mode it would not ask; in that mode it refuses to work,
//! because a client must have chosen another one.

use std::collections::HashMap;
use std::io::{Lines, StdinLock, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

struct Agent {
    input: Lines<StdinLock<'static>>,
    session: String,
    cwd: PathBuf,
    mode: String,
    calls: u64,
}

/// The client has gone.
struct Gone;

fn say(message: &Value) -> Result<(), Gone> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{message}")
        .and_then(|()| output.flush())
        .map_err(|_| Gone)
}

/// Runs the agent as the whole of a process.
pub fn main() -> ExitCode {
    let mut agent = Agent {
        input: std::io::stdin().lines(),
        session: format!("acp-{}", std::process::id()),
        cwd: PathBuf::new(),
        mode: "yolo".to_owned(),
        calls: 0,
    };
    while let Ok(message) = agent.next() {
        if agent.handle(&message).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

impl Agent {
    fn next(&mut self) -> Result<Value, Gone> {
        loop {
            let line = self.input.next().ok_or(Gone)?.map_err(|_| Gone)?;
            if let Ok(message) = serde_json::from_str(&line) {
                return Ok(message);
            }
        }
    }

    fn respond(request: &Value, result: Value) -> Result<(), Gone> {
        say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
    }

    fn update(&self, mut update: Value, kind: &str) -> Result<(), Gone> {
        update["sessionUpdate"] = kind.into();
        let params = json!({ "sessionId": self.session, "update": update });
        say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }

    fn chunk(&self, text: &str, kind: &str) -> Result<(), Gone> {
        self.update(json!({ "content": { "type": "text", "text": text } }), kind)
    }

    fn handle(&mut self, message: &Value) -> Result<(), Gone> {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("initialize") => {
                let capabilities = json!({ "loadSession": true, "promptCapabilities": { "image": true } });
                let info = json!({ "name": "scripted", "version": "1" });
                let result =
                    json!({ "protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info });
                Self::respond(message, result)
            }
            Some("session/new" | "session/load") => {
                self.cwd = params["cwd"].as_str().unwrap_or_default().into();
                if let Some(known) = params["sessionId"].as_str() {
                    known.clone_into(&mut self.session);
                    // Like an agent that replays a loaded conversation.
                    self.chunk("from before", "agent_message_chunk")?;
                }
                let modes = json!({ "currentModeId": self.mode, "availableModes": [{ "id": "yolo" }, { "id": "ask" }] });
                Self::respond(message, json!({ "sessionId": self.session, "modes": modes }))
            }
            Some("session/set_mode") => {
                params["modeId"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut self.mode);
                Self::respond(message, json!({}))
            }
            Some("session/prompt") => {
                let words = params["prompt"][0]["text"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let stop_reason = self.turn(&words)?;
                Self::respond(message, json!({ "stopReason": stop_reason }))
            }
            _ => Ok(()),
        }
    }

    fn turn(&mut self, words: &str) -> Result<&'static str, Gone> {
        if self.mode == "yolo" {
            return Ok("refusal");
        }
        if words.contains("plan") {
            let entry = |content: &str, status: &str| json!({ "content": content, "status": status, "priority": "medium" });
            self.update(
                json!({ "entries": [entry("look", "completed"), entry("act", "pending")] }),
                "plan",
            )?;
        }
        if words.contains("think") {
            self.chunk("Let me see. ", "agent_thought_chunk")?;
        }
        if words.contains("edit") {
            self.edit()?;
        }
        if words.contains("ask") && !self.ask()? {
            return Ok("cancelled");
        }
        if words.contains("hang") {
            self.chunk("Hanging", "agent_message_chunk")?;
            while self.next()?["method"] != "session/cancel" {}
            return Ok("cancelled");
        }
        for piece in ["You said: ", words, "."] {
            self.chunk(piece, "agent_message_chunk")?;
        }
        Ok("end_turn")
    }

    fn call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    fn edit(&mut self) -> Result<(), Gone> {
        let id = self.call();
        let path = self.cwd.join("note.txt");
        let old = std::fs::read_to_string(&path).ok();
        let begun =
            json!({ "toolCallId": id, "title": "edit", "kind": "edit", "status": "pending", "rawInput": {} });
        self.update(begun, "tool_call")?;
        let input = json!({ "filePath": path });
        self.update(
            json!({ "toolCallId": id, "status": "in_progress", "rawInput": input }),
            "tool_call_update",
        )?;
        let new = format!("{}edited\n", old.as_deref().unwrap_or_default());
        let status = match std::fs::write(&path, &new) {
            Ok(()) => "completed",
            Err(_) => "failed",
        };
        let diff = json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
        self.update(
            json!({ "toolCallId": id, "status": status, "content": [diff] }),
            "tool_call_update",
        )
    }

    /// False: the turn was cancelled in the meantime.
    fn ask(&mut self) -> Result<bool, Gone> {
        let id = self.call();
        let input = json!({ "command": "touch asked.txt" });
        let call =
            json!({ "toolCallId": id, "title": "touch asked.txt", "kind": "execute", "rawInput": input });
        let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
        let options = [
            option("once", "allow_once"),
            option("always", "allow_always"),
            option("no", "reject_once"),
        ];
        let params = json!({ "sessionId": self.session, "toolCall": call, "options": options });
        let request = json!({ "jsonrpc": "2.0", "id": self.calls, "method": "session/request_permission", "params": params });
        say(&request)?;
        let answer = loop {
            let message = self.next()?;
            if message["id"] == self.calls && message["method"].is_null() {
                break message;
            }
        };
        let outcome = &answer["result"]["outcome"];
        if outcome["outcome"] == "cancelled" {
            return Ok(false);
        }
        let allowed = HashMap::from([("once", true), ("always", true), ("no", false)]);
        let chosen = outcome["optionId"].as_str().unwrap_or_default();
        let done = allowed.get(chosen).copied().unwrap_or_default()
            && std::fs::write(self.cwd.join("asked.txt"), chosen).is_ok();
        let text = json!({ "type": "content", "content": { "type": "text", "text": if done { "made" } else { "not made" } } });
        let status = if done { "completed" } else { "failed" };
        self.update(
            json!({ "toolCallId": id, "status": status, "content": [text] }),
            "tool_call_update",
        )?;
        Ok(true)
    }
}
