//! The requests and responses of the task API, checked as its contract says.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tiller_core::{PromptId, SessionId};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::body::Refusal;
use crate::error::{ApiError, FieldProblem, WrongField};
use crate::options::PermissionMode;

/// The maximum length of a prompt, in characters.
const MAX_PROMPT: usize = 10_000;

/// The longest time limit: a week. More is a mistake.
const MAX_TIMEOUT_S: f64 = 604_800.0;

/// The CLI's own tools, of every known version.
pub(crate) const TOOLS: &[&str] = &[
    "Agent",
    "AgentOutputTool",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListAgents",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// The body of a request that starts a task.
#[derive(Debug, Default, Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "task.ts", optional_fields)]
#[schema(example = json!({ "prompt": "Explain the parser", "working_dir": "~/project", "tools": ["Read", "Grep"] }))]
pub(crate) struct TaskRequest {
    /// 1 to 10,000 characters, without the white space around it.
    #[schema(value_type = String, required = true, max_length = 10_000, min_length = 1, pattern = r"^[^\x00]*\S[^\x00]*$")]
    #[ts(as = "String")]
    prompt: Option<String>,
    /// The prompt's id, chosen by the client. A duplicate is the same task.
    #[schema(format = "uuid")]
    prompt_id: Option<String>,
    /// Absolute, or beginning with `~/`; inside a root.
    #[schema(pattern = r"^[^\x00]*$")]
    working_dir: Option<String>,
    /// The tools that the task may use, which then need no permission. Absent: the agent's default tools; empty: none.
    tools: Option<Vec<String>>,
    /// Continues the newest conversation of the folder. Not together with `resume`.
    continue_conversation: Option<bool>,
    /// Continues this conversation, in its own folder.
    #[schema(format = "uuid")]
    resume: Option<String>,
    #[schema(value_type = Option<PermissionMode>)]
    permission_mode: Option<String>,
    #[schema(
        max_length = 128,
        pattern = r"^([A-Za-z0-9._:/@\[\]][A-Za-z0-9._:/@\[\]-]*)?$"
    )]
    model: Option<String>,
    /// The maximum number of model calls.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 4_294_967_295_u32)]
    max_turns: Option<u32>,
    /// The agent of a new conversation, one of `GET /api/backends`. Default: the server's default agent.
    agent: Option<String>,
    /// The task is stopped after so many seconds.
    #[schema(exclusive_minimum = 0.0, maximum = 604_800.0)]
    timeout_s: Option<f64>,
    granularity: Option<Granularity>,
}

/// How text and thinking are sent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, TS, ToSchema)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "task.ts")]
pub(crate) enum Granularity {
    /// In fragments, as the model writes them.
    #[default]
    Piece,
    /// In whole blocks.
    Block,
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct Task {
    pub(super) prompt: String,
    /// A duplicate is the same task.
    pub(super) prompt_id: Option<PromptId>,
    pub(super) working_dir: Option<String>,
    pub(super) conversation: Conversation,
    pub(super) tools: Option<Vec<String>>,
    pub(super) permission_mode: Option<PermissionMode>,
    pub(super) model: Option<String>,
    pub(super) max_turns: Option<u32>,
    /// The agent of a new conversation.
    pub(super) agent: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) granularity: Granularity,
}

/// The conversation that a task continues.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Conversation {
    New,
    /// The newest one of the folder.
    Newest,
    Resume(SessionId),
}

impl TaskRequest {
    pub(super) fn check(self) -> Result<Task, Refusal> {
        let texts = [
            ("prompt", &self.prompt),
            ("working_dir", &self.working_dir),
            ("resume", &self.resume),
            ("permission_mode", &self.permission_mode),
            ("model", &self.model),
        ];
        for (name, text) in texts {
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                return Err(wrong(name).into());
            }
        }
        let prompt = self.prompt.as_deref().unwrap_or_default().trim().to_owned();
        if prompt.is_empty() {
            return Err(ApiError::PromptEmpty.into());
        }
        if prompt.chars().count() > MAX_PROMPT {
            return Err(ApiError::PromptTooLong.into());
        }
        let conversation = match (self.continue_conversation.unwrap_or(false), self.resume) {
            (true, Some(_)) => return Err(wrong("resume").into()),
            (true, None) => Conversation::Newest,
            (false, Some(id)) => Conversation::Resume(uuid(&id, "resume")?),
            (false, None) => Conversation::New,
        };
        if let Some(at) = self.tools.iter().flatten().position(|tool| !is_tool(tool)) {
            return Err(wrong(format!("tools[{at}]")).into());
        }
        if self.max_turns == Some(0) {
            return Err(wrong("max_turns").into());
        }
        // The agent decides which models exist; a text that can't be a name is refused here.
        if self.model.as_deref().is_some_and(|model| !may_be_model(model)) {
            return Err(wrong("model").into());
        }
        let permission_mode = match self.permission_mode.as_deref() {
            None => None,
            Some(name) => Some(PermissionMode::parse(name).ok_or_else(|| wrong("permission_mode"))?),
        };
        let timeout = match self.timeout_s {
            None => None,
            Some(seconds) if seconds > 0.0 && seconds <= MAX_TIMEOUT_S => {
                Some(Duration::from_secs_f64(seconds))
            }
            Some(_) => return Err(wrong("timeout_s").into()),
        };
        let prompt_id = self.prompt_id.as_deref().map(|id| uuid(id, "prompt_id"));
        Ok(Task {
            prompt,
            prompt_id: prompt_id.transpose()?,
            working_dir: self.working_dir,
            conversation,
            tools: self.tools,
            permission_mode,
            model: self.model.filter(|model| !model.trim().is_empty()),
            max_turns: self.max_turns,
            agent: self.agent,
            timeout,
            granularity: self.granularity.unwrap_or_default(),
        })
    }
}

/// Only the usual form with hyphens: other forms would parse as ids, too, but match no transcript.
fn uuid<Id: std::str::FromStr>(text: &str, field: &str) -> Result<Id, WrongField> {
    if text.len() != 36 {
        return Err(wrong(field));
    }
    text.parse().map_err(|_| wrong(field))
}

fn wrong(field: impl Into<String>) -> WrongField {
    WrongField::new(field, FieldProblem::WrongForm)
}

fn is_tool(name: &str) -> bool {
    let is_mcp = name.strip_prefix("mcp__").is_some_and(|rest| {
        let in_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        !rest.is_empty() && rest.len() <= 200 && rest.chars().all(in_name)
    });
    is_mcp || TOOLS.contains(&name)
}

/// The outcome of a task.
#[derive(Debug, PartialEq, Serialize, TS, ToSchema)]
#[ts(export_to = "task.ts")]
pub(crate) struct TaskResponse {
    pub(super) success: bool,
    /// The answer, or the error.
    pub(super) message: String,
    pub(super) session_id: String,
    pub(super) cost_usd: Option<f64>,
    pub(super) duration_ms: Option<u64>,
    /// Relative to the working directory if inside it.
    pub(super) files_changed: Vec<String>,
    pub(super) tools_used: Vec<String>,
    pub(super) num_turns: Option<u64>,
    #[schema(value_type = Option<Object>)]
    #[ts(type = "Record<string, unknown> | null")]
    pub(super) usage: Option<Value>,
    /// `tool_name`, `tool_use_id` and `tool_input` of each.
    #[schema(value_type = Vec<Object>)]
    #[ts(type = "Array<{ tool_name: string, tool_use_id: string, tool_input: Record<string, unknown> }>")]
    pub(super) permission_denials: Vec<Value>,
}

/// One server-sent event. `type` and `session_id` are added to `data` when it is sent.
#[derive(Debug, PartialEq)]
pub(super) struct TaskEvent {
    pub(super) kind: &'static str,
    pub(super) data: Value,
}

/// A whole number in any notation: in JSON schemas `3.0` is one.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if number.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&number) {
        return Err(D::Error::custom("not a whole number of a size that makes sense"));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    Ok(Some(number as u32))
}

/// Whether a text may be the name of a model, as the description of `model` says.
fn may_be_model(name: &str) -> bool {
    let in_name = |character: char| character.is_ascii_alphanumeric() || "._:/@[]-".contains(character);
    name.len() <= 128 && !name.starts_with('-') && name.chars().all(in_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: Value) -> Result<Task, Refusal> {
        let request: TaskRequest = serde_json::from_value(body).map_err(|_| wrong("body"))?;
        request.check()
    }

    #[test]
    fn a_prompt_is_trimmed_and_counted_in_characters() {
        assert_eq!(check(json!({ "prompt": "  做 it \n" })).unwrap().prompt, "做 it");
        assert_eq!(check(json!({})), Err(ApiError::PromptEmpty.into()));
        assert_eq!(
            check(json!({ "prompt": " \n\t\u{3000}" })),
            Err(ApiError::PromptEmpty.into())
        );
        assert!(check(json!({ "prompt": format!(" {} ", "字".repeat(10_000)) })).is_ok());
        let long = "字".repeat(10_001);
        assert_eq!(
            check(json!({ "prompt": long })),
            Err(ApiError::PromptTooLong.into())
        );
    }

    #[test]
    fn invalid_requests_are_refused() {
        let id = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10";
        for fields in [
            json!({ "prompt": 5 }),
            json!({ "prompt": "a\0b" }),
            json!({ "working_dir": "/a\0b" }),
            json!({ "tools": "Read" }),
            json!({ "tools": ["Read", "Reed"] }),
            json!({ "tools": ["Bash(git *)"] }),
            json!({ "tools": ["mcp__"] }),
            json!({ "tools": ["mcp__a,Bash"] }),
            json!({ "continue_conversation": "yes" }),
            json!({ "continue_conversation": true, "resume": id }),
            json!({ "resume": "session_1" }),
            json!({ "prompt_id": "task_1" }),
            json!({ "prompt_id": 1 }),
            json!({ "resume": "7b3f9d1c52a54c3b9d0a1d6d1f0f3a10" }),
            json!({ "permission_mode": "yolo" }),
            json!({ "max_turns": 0 }),
            json!({ "max_turns": -1 }),
            json!({ "timeout_s": 0 }),
            json!({ "timeout_s": 1e300 }),
            json!({ "granularity": "word" }),
            json!({ "workingdir": "/x" }),
        ] {
            let mut body = json!({ "prompt": "do it" });
            body.as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            assert!(matches!(check(body), Err(Refusal::Field(_))), "{fields}");
        }
    }

    #[test]
    fn all_valid_fields_are_accepted() {
        let task = check(json!({
            "prompt": "do it", "working_dir": "~/x", "tools": ["Read", "mcp__db__query"], "continue_conversation": false,
            "resume": "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10", "prompt_id": "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a11",
            "permission_mode": "acceptEdits", "model": "opus",
            "max_turns": 3, "timeout_s": 1.5, "granularity": "block",
        }))
        .unwrap();
        assert_eq!(task.permission_mode, Some(PermissionMode::AcceptEdits));
        assert_eq!(task.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(task.granularity, Granularity::Block);
        assert!(matches!(task.conversation, Conversation::Resume(_)));
        assert!(task.prompt_id.is_some());
        assert_eq!(
            check(json!({ "prompt": "x", "tools": [] })).unwrap().tools,
            Some(Vec::new())
        );
        assert_eq!(
            check(json!({ "prompt": "x", "tools": null, "resume": null }))
                .unwrap()
                .tools,
            None
        );
    }
}
