//! What runs beside the conversation: subagents and commands in the background.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::{BackgroundTask, SystemMessage, TaskReport};

/// A task that runs beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(
    feature = "ts",
    derive(ts_rs::TS),
    ts(export_to = "messages.ts", optional_fields)
)]
pub struct RunningTask {
    /// The agent's id of it.
    pub id: String,
    /// What it does.
    pub description: String,
    /// What it is: `local_bash`, `local_agent` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// The kind of subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// The tool call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// Whether the conversation goes on without waiting for it.
    #[cfg_attr(feature = "ts", ts(optional, as = "Option<bool>"))]
    pub background: bool,
}

/// The tasks that run beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunningTasks {
    by_id: BTreeMap<String, RunningTask>,
}

impl RunningTasks {
    /// The tasks, by their id.
    pub fn iter(&self) -> impl Iterator<Item = &RunningTask> {
        self.by_id.values()
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The agent has ended, and its tasks with it.
    pub fn clear(&mut self) {
        self.by_id.clear();
    }

    /// Takes the next system message. Returns whether the tasks changed.
    pub fn push(&mut self, message: &SystemMessage) -> bool {
        match message {
            SystemMessage::TaskStarted(report) | SystemMessage::TaskProgress(report) => self.runs(report),
            SystemMessage::TaskUpdated(report) => {
                let patched = report.patch.get("status").and_then(|status| status.as_str());
                if is_over(patched.or(report.status.as_deref())) {
                    return self.by_id.remove(&report.task_id).is_some();
                }
                let patched = report
                    .patch
                    .get("is_backgrounded")
                    .and_then(serde_json::Value::as_bool);
                let Some(task) = self.by_id.get_mut(&report.task_id) else {
                    return false;
                };
                let before = task.background;
                task.background = patched.unwrap_or(before || report.is_backgrounded);
                task.background != before
            }
            SystemMessage::TaskNotification(report) => self.by_id.remove(&report.task_id).is_some(),
            SystemMessage::BackgroundTasksChanged(changed) => self.are(&changed.tasks),
            _ => false,
        }
    }

    fn runs(&mut self, report: &TaskReport) -> bool {
        if report.task_id.is_empty() {
            return false;
        }
        if is_over(report.status.as_deref()) {
            return self.by_id.remove(&report.task_id).is_some();
        }
        let is_new = !self.by_id.contains_key(&report.task_id);
        let task = self.by_id.entry(report.task_id.clone()).or_default();
        let before = task.clone();
        task.id.clone_from(&report.task_id);
        // A progress report describes the step at hand; the task keeps the name that it began with.
        if task.description.is_empty() {
            task.description = report.description.clone().unwrap_or_default();
        }
        for (kept, told) in [
            (&mut task.task_type, &report.task_type),
            (&mut task.subagent_type, &report.subagent_type),
            (&mut task.tool_use_id, &report.tool_use_id),
        ] {
            if told.is_some() {
                kept.clone_from(told);
            }
        }
        task.background |= report.is_backgrounded;
        is_new || *task != before
    }

    /// The agent's whole list of what runs in the background. Tasks in the foreground are not in it, and end with the
    /// turn at the latest.
    fn are(&mut self, tasks: &[BackgroundTask]) -> bool {
        let before = self.by_id.clone();
        self.by_id
            .retain(|id, _| tasks.iter().any(|task| task.task_id == *id));
        for listed in tasks.iter().filter(|task| !task.task_id.is_empty()) {
            let task = self.by_id.entry(listed.task_id.clone()).or_default();
            task.id.clone_from(&listed.task_id);
            task.background = true;
            if task.description.is_empty() {
                task.description.clone_from(&listed.description);
            }
            if !listed.task_type.is_empty() {
                task.task_type = Some(listed.task_type.clone());
            }
        }
        self.by_id != before
    }
}

fn is_over(status: Option<&str>) -> bool {
    matches!(
        status,
        Some("completed" | "failed" | "error" | "stopped" | "killed" | "cancelled")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Message};

    fn running(lines: &[&str]) -> Vec<String> {
        let mut tasks = RunningTasks::default();
        for line in lines {
            let line = format!(r#"{{"type":"system",{line}}}"#);
            let Body::System(message) = Message::parse(line).unwrap().body() else {
                panic!("no system message")
            };
            tasks.push(&message);
        }
        tasks
            .iter()
            .map(|task| format!("{} {}", task.id, task.description))
            .collect()
    }

    #[test]
    fn a_task_runs_until_its_end_is_told() {
        let started = r#""subtype":"task_started","task_id":"a","description":"look""#;
        let progress = r#""subtype":"task_progress","task_id":"a","description":"reading x""#;
        assert_eq!(running(&[started, progress]), ["a look"]);
        let ended = r#""subtype":"task_notification","task_id":"a","status":"completed""#;
        assert_eq!(running(&[started, ended]), [""; 0]);
        let patched = r#""subtype":"task_updated","task_id":"a","patch":{"status":"killed"}"#;
        assert_eq!(running(&[started, patched]), [""; 0]);
        let renamed = r#""subtype":"task_updated","task_id":"a","patch":{"is_backgrounded":true}"#;
        assert_eq!(running(&[started, renamed]), ["a look"]);
    }

    #[test]
    fn a_command_that_the_agent_waits_for_is_not_in_the_background() {
        let is_background = |lines: &[&str]| {
            let mut tasks = RunningTasks::default();
            for line in lines {
                let line = format!(r#"{{"type":"system",{line}}}"#);
                let Body::System(message) = Message::parse(line).unwrap().body() else {
                    panic!("no system message")
                };
                tasks.push(&message);
            }
            tasks.iter().map(|task| task.background).collect::<Vec<_>>()
        };
        let started =
            r#""subtype":"task_started","task_id":"a","task_type":"local_bash","is_backgrounded":false"#;
        assert_eq!(is_background(&[started]), [false]);
        let moved = r#""subtype":"task_updated","task_id":"a","patch":{"is_backgrounded":true}"#;
        assert_eq!(is_background(&[started, moved]), [true]);
        let listed =
            r#""subtype":"background_tasks_changed","tasks":[{"task_id":"b","task_type":"local_bash"}]"#;
        assert_eq!(is_background(&[started, listed]), [true]);
    }

    #[test]
    fn the_whole_list_wins() {
        let started = r#""subtype":"task_started","task_id":"a","description":"look""#;
        let list = r#""subtype":"background_tasks_changed","tasks":[{"task_id":"b","task_type":"local_bash","description":"build"}]"#;
        assert_eq!(running(&[started, list]), ["b build"]);
        let none = r#""subtype":"background_tasks_changed","tasks":[]"#;
        assert_eq!(running(&[started, none]), [""; 0]);
    }
}
