//! The messages of a session.

use serde::Deserialize;
use serde_json::Value;

/// The names of the protocol's methods.
pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const NEW: &str = "session/new";
    pub const LOAD: &str = "session/load";
    pub const PROMPT: &str = "session/prompt";
    pub const CANCEL: &str = "session/cancel";
    pub const SET_MODE: &str = "session/set_mode";
    pub const SET_MODEL: &str = "session/set_model";
    pub const SET_CONFIG_OPTION: &str = "session/set_config_option";
    pub const UPDATE: &str = "session/update";
    pub const REQUEST_PERMISSION: &str = "session/request_permission";
}

/// The answer to `initialize`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Initialized {
    pub agent_capabilities: AgentCapabilities,
    pub agent_info: Option<AgentInfo>,
    pub auth_methods: Vec<AuthMethod>,
}

/// A way to sign in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthMethod {
    pub id: String,
    pub name: String,
    /// What the user has to do, in the agent's words.
    pub description: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentCapabilities {
    pub load_session: bool,
    pub prompt_capabilities: PromptCapabilities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PromptCapabilities {
    pub image: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AgentInfo {
    pub name: String,
    pub version: String,
}

/// The answer to `session/new`, and to `session/load`, which does not repeat the id.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionOpened {
    pub session_id: Option<String>,
    pub modes: Option<Modes>,
    pub models: Option<Models>,
    /// The newer form of modes and models, which some agents send in addition and some instead.
    pub config_options: Vec<ConfigOption>,
}

impl SessionOpened {
    /// The modes, in either form.
    pub fn modes(&self) -> Option<Choices> {
        let listed = || {
            let modes = self.modes.as_ref()?;
            Some(Choices {
                current: modes.current_mode_id.clone(),
                available: modes.available_modes.iter().map(|mode| mode.id.clone()).collect(),
                config_id: None,
            })
        };
        ConfigOption::choices(&self.config_options, ConfigOption::MODE).or_else(listed)
    }

    /// The models, in either form.
    pub fn models(&self) -> Option<Choices> {
        let listed = || {
            let models = self.models.as_ref()?;
            Some(Choices {
                current: models.current_model_id.clone(),
                available: models
                    .available_models
                    .iter()
                    .map(|model| model.model_id.clone())
                    .collect(),
                config_id: None,
            })
        };
        ConfigOption::choices(&self.config_options, ConfigOption::MODEL).or_else(listed)
    }
}

/// The available choices and the current one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Choices {
    /// Empty if the agent does not report it.
    pub current: String,
    pub available: Vec<String>,
    /// The id of the configuration option behind it, which is set with [`method::SET_CONFIG_OPTION`].
    pub config_id: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConfigOption {
    pub id: String,
    pub category: Option<String>,
    pub current_value: Value,
    pub options: Vec<ConfigChoice>,
}

impl ConfigOption {
    /// The categories of the modes and of the models.
    pub const MODE: &str = "mode";
    pub const MODEL: &str = "model";

    /// The choices of the option of this category.
    pub fn choices(options: &[Self], category: &str) -> Option<Choices> {
        let fits = |option: &&Self| match option.category.as_deref() {
            Some(named) => named == category,
            None => option.id == category,
        };
        let option = options.iter().find(fits)?;
        Some(Choices {
            current: option.current_value.as_str().unwrap_or_default().to_owned(),
            available: option.options.iter().map(|choice| choice.value.clone()).collect(),
            config_id: Some(option.id.clone()),
        })
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigChoice {
    pub value: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Modes {
    pub current_mode_id: String,
    pub available_modes: Vec<Mode>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Mode {
    pub id: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Models {
    pub current_model_id: String,
    pub available_models: Vec<Model>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Model {
    pub model_id: String,
}

/// The answer to `session/prompt`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Prompted {
    pub stop_reason: String,
    pub usage: Option<Value>,
}

/// An update of a session.
#[derive(Clone, Debug)]
pub enum Update {
    Text(String),
    Thought(String),
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCall),
    Plan(Vec<PlanEntry>),
    Mode(String),
    /// The agent's configuration options, all of them.
    Config(Vec<ConfigOption>),
    /// Anything else.
    Other,
}

impl Update {
    /// Reads the parameters of `session/update`.
    pub fn parse(params: &Value) -> Self {
        let update = &params["update"];
        let text = || {
            let text = &update["content"]["text"];
            text.as_str().unwrap_or_default().to_owned()
        };
        let read = || serde_json::from_value(update.clone()).unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => Self::Text(text()),
            "agent_thought_chunk" => Self::Thought(text()),
            "tool_call" => Self::ToolCall(read()),
            "tool_call_update" => Self::ToolCallUpdate(read()),
            "plan" => Self::Plan(serde_json::from_value(update["entries"].clone()).unwrap_or_default()),
            "current_mode_update" => {
                Self::Mode(update["currentModeId"].as_str().unwrap_or_default().to_owned())
            }
            "config_option_update" => {
                Self::Config(serde_json::from_value(update["configOptions"].clone()).unwrap_or_default())
            }
            _ => Self::Other,
        }
    }
}

/// A tool call, or an update of one. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: String,
    pub title: Option<String>,
    pub kind: Option<String>,
    pub status: Option<String>,
    pub content: Option<Vec<Value>>,
    pub raw_input: Option<Value>,
    pub raw_output: Option<Value>,
}

impl ToolCall {
    /// Applies an update. A diff is kept: some agents send it with the permission request and never again.
    pub fn merge(&mut self, update: Self) {
        fn take<T>(field: &mut Option<T>, update: Option<T>) {
            if update.is_some() {
                *field = update;
            }
        }
        take(&mut self.title, update.title);
        take(&mut self.kind, update.kind);
        take(&mut self.status, update.status);
        take(&mut self.raw_output, update.raw_output);
        if let Some(mut content) = update.content {
            let is_diff = |content: &Value| matches!(ToolContent::parse(content), ToolContent::Diff(_));
            if !content.iter().any(is_diff) {
                content.extend(self.content.take().into_iter().flatten().filter(is_diff));
            }
            self.content = Some(content);
        }
        // Some agents announce a call with an empty input, repeat it empty, or send it in parts.
        match (&mut self.raw_input, update.raw_input) {
            (Some(Value::Object(known)), Some(Value::Object(more))) => known.extend(more),
            (_, None | Some(Value::Null)) => {}
            (known, more) => *known = more,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }

    pub fn failed(&self) -> bool {
        self.status.as_deref() == Some("failed")
    }

    pub fn contents(&self) -> impl Iterator<Item = ToolContent> {
        self.content.iter().flatten().map(ToolContent::parse)
    }
}

/// The output of a tool call.
#[derive(Clone, Debug)]
pub enum ToolContent {
    Text(String),
    Diff(Diff),
    Other,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Diff {
    pub path: String,
    /// `None`: a new file.
    pub old_text: Option<String>,
    pub new_text: String,
}

impl ToolContent {
    fn parse(content: &Value) -> Self {
        match content["type"].as_str() {
            Some("content") => match content["content"]["text"].as_str() {
                Some(text) => Self::Text(text.to_owned()),
                None => Self::Other,
            },
            Some("diff") => Self::Diff(serde_json::from_value(content.clone()).unwrap_or_default()),
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PlanEntry {
    pub content: String,
    pub status: String,
}

/// The parameters of `session/request_permission`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionRequest {
    pub tool_call: ToolCall,
    pub options: Vec<PermissionOption>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    pub name: String,
    pub kind: PermissionOptionKind,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    #[default]
    #[serde(other)]
    Unknown,
}

impl PermissionRequest {
    /// The first option of one of these kinds, the earlier kinds first.
    pub fn option(&self, kinds: &[PermissionOptionKind]) -> Option<&str> {
        let of_kind = |kind: &PermissionOptionKind| self.options.iter().find(|option| option.kind == *kind);
        kinds
            .iter()
            .find_map(of_kind)
            .map(|option| option.option_id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_messages_never_fail() {
        for params in [
            json!(null),
            json!({}),
            json!({ "update": { "sessionUpdate": "new thing" } }),
        ] {
            assert!(matches!(Update::parse(&params), Update::Other));
        }
        // A number in place of a text costs the call its details, not the session.
        let update = json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": 7 } });
        assert!(matches!(Update::parse(&update), Update::ToolCall(_)));
        let request: PermissionRequest =
            serde_json::from_value(json!({ "options": [{ "optionId": "x", "kind": "newest" }] })).unwrap();
        assert_eq!(request.options[0].kind, PermissionOptionKind::Unknown);
    }

    #[test]
    fn a_call_keeps_fields_that_an_update_does_not_name() {
        let call = |json: Value| serde_json::from_value::<ToolCall>(json).unwrap();
        let mut first =
            call(json!({ "toolCallId": "t", "title": "edit", "kind": "edit", "rawInput": { "a": 1 } }));
        first.merge(call(
            json!({ "toolCallId": "t", "status": "completed", "rawInput": {} }),
        ));
        assert_eq!(first.title.as_deref(), Some("edit"));
        assert_eq!(first.raw_input, Some(json!({ "a": 1 })));
        assert!(first.is_over() && !first.failed());
    }

    #[test]
    fn a_diff_that_came_with_the_permission_request_stays() {
        let call = |json: Value| serde_json::from_value::<ToolCall>(json).unwrap();
        let diff = json!({ "type": "diff", "path": "/a", "oldText": "", "newText": "x" });
        let mut asked = call(json!({ "toolCallId": "t", "rawInput": { "a": 1 }, "content": [diff] }));
        let text = json!({ "type": "content", "content": { "type": "text", "text": "done" } });
        asked.merge(call(
            json!({ "toolCallId": "t", "rawInput": { "b": 2 }, "content": [text] }),
        ));
        assert_eq!(asked.contents().count(), 2);
        assert_eq!(asked.raw_input, Some(json!({ "a": 1, "b": 2 })));
    }

    #[test]
    fn modes_are_found_in_either_form() {
        let opened = |json: Value| serde_json::from_value::<SessionOpened>(json).unwrap();
        let old =
            json!({ "modes": { "currentModeId": "a", "availableModes": [{ "id": "a", "name": "A" }] } });
        let option = json!({ "id": "m", "category": "mode", "currentValue": "a", "options": [{ "value": "a", "name": "A" }] });
        for (opened, config_id) in [
            (opened(old), None),
            (opened(json!({ "configOptions": [option] })), Some("m".to_owned())),
        ] {
            let expected = Choices {
                current: "a".to_owned(),
                available: vec!["a".to_owned()],
                config_id,
            };
            assert_eq!(opened.modes(), Some(expected));
            assert_eq!(opened.models(), None);
        }
    }
}
