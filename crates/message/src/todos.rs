//! The agent's to-do list, whichever tools it is kept with: `TodoWrite`, which writes the whole list every time, or
//! `TaskCreate` and `TaskUpdate`, which change it bit by bit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Body, StructuredResult, ToolResultBlock, ToolUseBlock};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "ts",
    derive(ts_rs::TS),
    ts(export_to = "messages.ts", optional_fields)
)]
pub struct Todo {
    /// Its id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What to do.
    pub content: String,
    /// The text to show while it is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// Its status.
    pub status: TodoStatus,
}

impl Todo {
    /// The text to show: the active form while it is being done.
    pub fn label(&self) -> &str {
        match (&self.status, &self.active_form) {
            (TodoStatus::InProgress, Some(active)) if !active.is_empty() => active,
            _ => &self.content,
        }
    }
}

/// The status of a thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(export_to = "messages.ts"))]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    fn of(value: Option<&Value>) -> Option<Self> {
        match value?.as_str()? {
            "pending" => Some(Self::Pending),
            "in_progress" => Some(Self::InProgress),
            "completed" => Some(Self::Completed),
            _ => None,
        }
    }
}

/// The to-do list of the main agent. The lists of subagents are not part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Todos {
    list: Vec<Todo>,
    /// Calls without a result.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    running: BTreeMap<String, Running>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Running {
    /// The list was replaced, and this is the list before: the call may yet fail.
    Write(Vec<Todo>),
    /// The id of a new task is known only from the result.
    Create(Value),
    Update(Value),
    List,
}

impl Todos {
    /// The list.
    pub fn items(&self) -> &[Todo] {
        &self.list
    }

    /// How many things are done.
    pub fn completed(&self) -> usize {
        self.list
            .iter()
            .filter(|todo| todo.status == TodoStatus::Completed)
            .count()
    }

    /// How many things there are.
    pub fn total(&self) -> usize {
        self.list.len()
    }

    /// What is being done.
    pub fn current(&self) -> Option<&Todo> {
        self.list
            .iter()
            .find(|todo| todo.status == TodoStatus::InProgress)
    }

    /// Takes the next message of any kind. Returns whether it wrote the list.
    pub fn push(&mut self, body: &Body) -> bool {
        let mut written = false;
        match body {
            Body::Assistant(assistant) if assistant.parent_tool_use_id.is_none() => {
                for call in assistant
                    .message
                    .content
                    .iter()
                    .filter_map(|block| block.as_tool_use())
                {
                    written |= self.called(call);
                }
            }
            Body::User(user) if user.parent_tool_use_id.is_none() => {
                for result in user
                    .message
                    .content
                    .blocks()
                    .iter()
                    .filter_map(|block| block.as_tool_result())
                {
                    written |= self.returned(result, &user.tool_use_result);
                }
            }
            _ => {}
        }
        written
    }

    /// Takes a tool call of the main agent. Returns whether it wrote the list.
    pub fn called(&mut self, call: &ToolUseBlock) -> bool {
        let running = match call.name.as_str() {
            "TodoWrite" => {
                // The same line may be read twice.
                if self.running.contains_key(&call.id) {
                    return false;
                }
                let todos = call.input.get("todos").and_then(Value::as_array);
                let list = todos.into_iter().flatten().filter_map(written).collect();
                Running::Write(std::mem::replace(&mut self.list, list))
            }
            "TaskCreate" => Running::Create(call.input.clone()),
            "TaskUpdate" => Running::Update(call.input.clone()),
            "TaskList" => Running::List,
            _ => return false,
        };
        let is_written = matches!(running, Running::Write(_));
        self.running.insert(call.id.clone(), running);
        is_written
    }

    /// Takes the result of a tool call of the main agent. Returns whether it wrote the list.
    pub fn returned(&mut self, result: &ToolResultBlock, structured: &StructuredResult) -> bool {
        match self.running.remove(&result.tool_use_id) {
            None => false,
            Some(Running::Write(before)) => {
                if result.is_error {
                    self.list = before;
                }
                result.is_error
            }
            Some(_) if result.is_error => false,
            Some(running) => {
                let before = self.list.clone();
                self.finish(running, structured);
                self.list != before
            }
        }
    }

    fn finish(&mut self, running: Running, result: &Value) {
        match running {
            // Written with the call.
            Running::Write(_) => {}
            Running::Create(input) => {
                let content = text(&input, "subject")
                    .or_else(|| text(&input, "description"))
                    .unwrap_or_default();
                let id = result.pointer("/task/id").and_then(id);
                self.list.push(Todo {
                    id,
                    content,
                    active_form: text(&input, "activeForm"),
                    status: TodoStatus::Pending,
                });
            }
            Running::Update(input) => {
                let Some(wanted) = input.get("taskId").and_then(id) else {
                    return;
                };
                if input.get("status").and_then(Value::as_str) == Some("deleted") {
                    self.list.retain(|todo| todo.id.as_ref() != Some(&wanted));
                    return;
                }
                let known = self
                    .list
                    .iter()
                    .position(|todo| todo.id.as_ref() == Some(&wanted));
                // A resumed conversation may have tasks that were created before.
                let at = known.unwrap_or_else(|| {
                    self.list.push(Todo {
                        content: text(&input, "activeForm").unwrap_or_else(|| format!("#{wanted}")),
                        id: Some(wanted),
                        active_form: None,
                        status: TodoStatus::Pending,
                    });
                    self.list.len() - 1
                });
                let todo = &mut self.list[at];
                if let Some(status) = TodoStatus::of(input.get("status")) {
                    todo.status = status;
                }
                if let Some(subject) = text(&input, "subject") {
                    todo.content = subject;
                }
                if let Some(active_form) = text(&input, "activeForm") {
                    todo.active_form = Some(active_form);
                }
            }
            // The agent reads its list: a resumed conversation may have tasks that were created before.
            Running::List => {
                let Some(tasks) = result.get("tasks").and_then(Value::as_array) else {
                    return;
                };
                self.list = tasks.iter().filter_map(|task| self.listed(task)).collect();
            }
        }
    }

    fn listed(&self, task: &Value) -> Option<Todo> {
        let id = task.get("id").and_then(id);
        let known = self.list.iter().find(|todo| todo.id.is_some() && todo.id == id);
        Some(Todo {
            content: text(task, "subject")?,
            active_form: known.and_then(|todo| todo.active_form.clone()),
            status: TodoStatus::of(task.get("status")).unwrap_or(TodoStatus::Pending),
            id,
        })
    }
}

/// An entry of `TodoWrite`.
fn written(entry: &Value) -> Option<Todo> {
    Some(Todo {
        id: entry.get("id").and_then(id),
        content: text(entry, "content")?,
        active_form: text(entry, "activeForm"),
        status: TodoStatus::of(entry.get("status")).unwrap_or(TodoStatus::Pending),
    })
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

/// Ids are texts, but some versions write numbers.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
