//! The agent's to-do list, whichever tools it keeps it with.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::task::wire::TaskEvent;

#[derive(Default)]
pub(super) struct Todos {
    /// `{content, status, activeForm}`, and an `id` where the tool has one.
    list: Vec<Value>,
    /// `TaskCreate` and `TaskUpdate` calls whose result is not in yet: only then is it known whether, and as what.
    open: HashMap<String, Open>,
}

enum Open {
    Create(Value),
    Update(Value),
}

impl Todos {
    /// True if the list is another.
    pub(super) fn called(&mut self, call: &str, tool: &str, input: &Value) -> bool {
        let open = match tool {
            "TodoWrite" => {
                self.list = input["todos"].as_array().cloned().unwrap_or_default();
                return true;
            }
            "TaskCreate" => Open::Create(input.clone()),
            "TaskUpdate" => Open::Update(input.clone()),
            _ => return false,
        };
        self.open.insert(call.to_owned(), open);
        false
    }

    /// True if the list is another.
    pub(super) fn returned(&mut self, call: &str, failed: bool, result: &Value) -> bool {
        let open = self.open.remove(call).filter(|_| !failed);
        match open {
            None => false,
            Some(Open::Create(input)) => {
                self.list.push(json!({
                    "id": result["task"]["id"], "content": input["subject"], "status": "pending",
                    "activeForm": input["activeForm"],
                }));
                true
            }
            Some(Open::Update(input)) => self.update(&input),
        }
    }

    fn update(&mut self, input: &Value) -> bool {
        let id = &input["taskId"];
        if input["status"] == "deleted" {
            self.list.retain(|todo| !same_id(&todo["id"], id));
            return true;
        }
        let Some(todo) = self.list.iter_mut().find(|todo| same_id(&todo["id"], id)) else {
            return false;
        };
        for (from, to) in [
            ("status", "status"),
            ("subject", "content"),
            ("activeForm", "activeForm"),
        ] {
            if input[from].is_string() {
                todo[to] = input[from].clone();
            }
        }
        true
    }

    pub(super) fn event(&self) -> TaskEvent {
        let completed = self
            .list
            .iter()
            .filter(|todo| todo["status"] == "completed")
            .count();
        TaskEvent {
            kind: "todos",
            data: json!({ "todos": self.list, "completed": completed, "total": self.list.len() }),
        }
    }
}

/// Some releases write numbers, and names of numbers elsewhere.
fn same_id(one: &Value, other: &Value) -> bool {
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    !one.is_null() && text(one) == text(other)
}
