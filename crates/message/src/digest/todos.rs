//! The agent's to-do list, whichever tools it is kept with: `TodoWrite`, which writes the whole list every time, or
//! `TaskCreate` and `TaskUpdate`, which change it bit by bit.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Body, ToolUseBlock};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// Its id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What to do.
    pub content: String,
    /// The same, as something that is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// How far it is.
    pub status: TodoStatus,
}

impl Todo {
    /// How to show it: as something that is being done while it is.
    pub fn label(&self) -> &str {
        match (&self.status, &self.active_form) {
            (TodoStatus::InProgress, Some(active)) if !active.is_empty() => active,
            _ => &self.content,
        }
    }
}

/// How far a thing to do is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// The main agent's to-do list. Subagents keep lists of their own, which do not count here.
#[derive(Debug, Clone, Default)]
pub struct Todos {
    list: Vec<Todo>,
    /// Calls whose result is not in yet.
    running: HashMap<String, Running>,
}

#[derive(Debug, Clone)]
enum Running {
    /// The list was replaced, and this is what it was before: the call may yet fail.
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

    /// Takes the next message, whatever it is. Tells whether the list has changed.
    pub fn push(&mut self, body: &Body) -> bool {
        let before = self.list.clone();
        match body {
            Body::Assistant(assistant) if assistant.parent_tool_use_id.is_none() => {
                for call in assistant
                    .message
                    .content
                    .iter()
                    .filter_map(|block| block.as_tool_use())
                {
                    self.call(call);
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
                    if let Some(running) = self.running.remove(&result.tool_use_id) {
                        self.finish(running, result.is_error, &user.tool_use_result);
                    }
                }
            }
            _ => {}
        }
        self.list != before
    }

    fn call(&mut self, call: &ToolUseBlock) {
        let running = match call.name.as_str() {
            "TodoWrite" => {
                let todos = call.input.get("todos").and_then(Value::as_array);
                let list = todos.into_iter().flatten().filter_map(written).collect();
                Running::Write(std::mem::replace(&mut self.list, list))
            }
            "TaskCreate" => Running::Create(call.input.clone()),
            "TaskUpdate" => Running::Update(call.input.clone()),
            "TaskList" => Running::List,
            _ => return,
        };
        self.running.insert(call.id.clone(), running);
    }

    fn finish(&mut self, running: Running, failed: bool, result: &Value) {
        match running {
            Running::Write(before) if failed => self.list = before,
            Running::Write(_) => {}
            _ if failed => {}
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
                let Some(todo) = self
                    .list
                    .iter_mut()
                    .find(|todo| todo.id.as_ref() == Some(&wanted))
                else {
                    return;
                };
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
            // The agent looks at its list: a resumed conversation may have tasks that were made before.
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
