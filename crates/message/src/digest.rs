//! A whole conversation in one value: the session, the final text, the tool calls with their results, the to-do list
//! and the cost.

use serde_json::Value;

use crate::cost::Cost;
use crate::message::{Body, Content, Kind, Message, SystemMessage, TurnResult};
use crate::todos::Todos;
use crate::tools::ToolStatus;

/// A whole conversation in one value. Push every message; read it at any time.
///
/// ```
/// use tiller_message::{Digest, Message};
///
/// let mut digest = Digest::new();
/// for line in [
///     r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#,
///     r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}"#,
///     r#"{"type":"result","subtype":"success","result":"One file.","total_cost_usd":0.01,"session_id":"5f0c"}"#,
/// ] {
///     digest.push(&Message::parse(line)?);
/// }
/// assert_eq!(digest.tool_calls()[0].result.as_ref().map(|result| result.text()), Some("a.txt".to_owned()));
/// assert_eq!(digest.final_text(), Some("One file."));
/// assert_eq!(digest.session_id(), Some("5f0c"));
/// # Ok::<(), tiller_message::ParseError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Digest {
    session_id: Option<String>,
    model: Option<String>,
    tool_calls: Vec<ToolCall>,
    todos: Todos,
    cost: Cost,
    last_result: Option<TurnResult>,
}

/// A tool call and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id of the `tool_use` block, which the result repeats.
    pub id: String,
    /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
    pub name: String,
    /// What the tool was called with; its form differs from tool to tool.
    pub input: Value,
    /// Set on calls of a subagent: the tool call that started it.
    pub parent_tool_use_id: Option<String>,
    /// Its result; `None` while it runs.
    pub result: Option<Content>,
    /// Its result in the tool's own structure.
    pub structured_result: Value,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether it was not allowed.
    pub is_denied: bool,
}

impl ToolCall {
    /// How far the call has come.
    pub fn status(&self) -> ToolStatus {
        match &self.result {
            _ if self.is_denied => ToolStatus::Denied,
            None => ToolStatus::Running,
            Some(_) if self.is_error => ToolStatus::Failed,
            Some(_) => ToolStatus::Succeeded,
        }
    }
}

impl Digest {
    /// An empty digest.
    pub fn new() -> Self {
        Self::default()
    }

    /// The digest of a conversation that goes on: the CLI may go on counting its cost, see [`Cost::resumed`].
    ///
    /// ```
    /// use tiller_message::{Cost, Digest, Message};
    ///
    /// let mut digest = Digest::resumed(Cost::resumed(0.5));
    /// digest.push(&Message::parse(r#"{"type":"result","subtype":"success","total_cost_usd":0.75}"#)?);
    /// assert_eq!(digest.cost().last_turn_usd, 0.25);
    /// # Ok::<(), tiller_message::ParseError>(())
    /// ```
    pub fn resumed(cost: Cost) -> Self {
        Self {
            cost,
            ..Self::default()
        }
    }

    /// The same, with the to-do list of before: see [`Digest::todos`].
    pub fn with_todos(mut self, todos: Todos) -> Self {
        self.todos = todos;
        self
    }

    /// Takes the next message of any kind.
    pub fn push(&mut self, message: &Message) {
        if let Some(id) = message
            .session_id()
            .filter(|id| self.session_id.as_deref() != Some(id))
        {
            self.session_id = Some(id.to_owned());
        }
        match message.kind() {
            Kind::Assistant | Kind::User | Kind::Result | Kind::System => {}
            // Most messages are pieces of others.
            _ => return,
        }
        let body = message.body();
        self.todos.push(&body);
        match body {
            Body::Assistant(assistant) => {
                for call in assistant
                    .message
                    .content
                    .iter()
                    .filter_map(|block| block.as_tool_use())
                {
                    if self.tool_calls.iter().all(|known| known.id != call.id) {
                        self.tool_calls.push(ToolCall {
                            id: call.id.clone(),
                            name: call.name.clone(),
                            input: call.input.clone(),
                            parent_tool_use_id: assistant.parent_tool_use_id.clone(),
                            result: None,
                            structured_result: Value::Null,
                            is_error: false,
                            is_denied: false,
                        });
                    }
                }
            }
            Body::User(user) => {
                for result in user
                    .message
                    .content
                    .blocks()
                    .iter()
                    .filter_map(|block| block.as_tool_result())
                {
                    let call = self
                        .tool_calls
                        .iter_mut()
                        .rev()
                        .find(|call| call.id == result.tool_use_id);
                    if let Some(call) = call {
                        call.result = Some(result.content.clone());
                        call.is_error = result.is_error;
                        call.structured_result = user.tool_use_result.0.clone();
                    }
                }
            }
            Body::Result(result) => {
                self.cost.push(&result);
                for call in &mut self.tool_calls {
                    let mut denials = result.permission_denials.iter();
                    call.is_denied |= denials.any(|denial| denial.tool_use_id == call.id);
                }
                self.last_result = Some(result);
            }
            Body::System(SystemMessage::Init(init)) => self.model = Some(init.model),
            _ => {}
        }
    }

    /// The session, to resume it later.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The model that the session uses, as the last turn began with it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The final text of the last turn.
    pub fn final_text(&self) -> Option<&str> {
        self.last_result.as_ref()?.result.as_deref()
    }

    /// How the last turn ended.
    pub fn last_result(&self) -> Option<&TurnResult> {
        self.last_result.as_ref()
    }

    /// All tool calls, in order.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    /// A tool call by its id.
    pub fn tool_call(&self, id: &str) -> Option<&ToolCall> {
        self.tool_calls.iter().find(|call| call.id == id)
    }

    /// The to-do list.
    pub fn todos(&self) -> &Todos {
        &self.todos
    }

    /// What it has cost.
    pub fn cost(&self) -> &Cost {
        &self.cost
    }
}
