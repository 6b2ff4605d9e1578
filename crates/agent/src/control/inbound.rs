//! What the CLI asks of us.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Reply, RequestId};
use tiller_message::{Message, PermissionMode};

/// A question of the CLI's, to be answered with [`Link::respond`](crate::link::Link::respond).
#[derive(Debug, Clone)]
pub struct InboundRequest {
    /// The id to answer to.
    pub id: RequestId,
    /// What is asked.
    pub kind: RequestKind,
    /// The whole line as it came.
    pub message: Message,
}

/// What the CLI asks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RequestKind {
    /// May a tool be used? Also how the agent asks the user questions and offers plans.
    CanUseTool(Box<PermissionRequest>),
    /// One of our hooks is due.
    Hook(HookRequest),
    /// A message for an MCP server inside this process.
    Mcp(McpRequest),
    /// An MCP server wants something of the user.
    Elicitation(Box<ElicitationRequest>),
    /// The CLI wants a dialog shown.
    Dialog(DialogRequest),
    /// Something that this version of the crate does not know.
    Other {
        /// The name of the operation.
        subtype: String,
    },
}

/// The agent wants to use a tool.
#[derive(Debug, Clone, Deserialize)]
pub struct PermissionRequest {
    /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
    pub tool_name: String,
    /// The id of the `tool_use` block that this is about.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    /// The tool's input, as the model wrote it.
    pub input: Box<RawValue>,
    /// Changes of the rules that would make this question unnecessary: [`PermissionUpdate`]s as the CLI wrote them,
    /// ready to be sent back.
    #[serde(default)]
    pub permission_suggestions: Option<Box<RawValue>>,
    /// What the tool will do, in words.
    #[serde(default)]
    pub description: Option<String>,
    /// The tool's name for people.
    #[serde(default)]
    pub display_name: Option<String>,
    /// The whole question, in words.
    #[serde(default)]
    pub title: Option<String>,
    /// The path outside the working directories that the tool wants.
    #[serde(default)]
    pub blocked_path: Option<String>,
    /// Why the CLI asks.
    #[serde(default)]
    pub decision_reason: Option<String>,
    /// The subagent that asks.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Whether only a person may answer.
    #[serde(default)]
    pub requires_user_interaction: Option<bool>,
}

impl PermissionRequest {
    /// The suggested changes of the rules, typed. Those that are not understood are left out.
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        let Some(raw) = &self.permission_suggestions else {
            return Vec::new();
        };
        let entries: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        entries
            .into_iter()
            .filter_map(|entry| serde_json::from_str(entry.get()).ok())
            .collect()
    }

    /// The tool's input as a value.
    pub fn input_value(&self) -> Value {
        serde_json::from_str(self.input.get()).unwrap_or_default()
    }
}

/// One of our hooks is due.
#[derive(Debug, Clone, Deserialize)]
pub struct HookRequest {
    /// The id under which the hook was registered.
    pub callback_id: String,
    /// What happened.
    pub input: Box<RawValue>,
    /// The tool call that it is about.
    #[serde(default)]
    pub tool_use_id: Option<String>,
}

/// A message for an MCP server inside this process.
#[derive(Debug, Clone, Deserialize)]
pub struct McpRequest {
    /// The name under which the MCP server is configured.
    pub server_name: String,
    /// A JSON-RPC message.
    pub message: Box<RawValue>,
}

/// An MCP server wants something of the user: a form to be filled in, or a page to be visited.
#[derive(Debug, Clone, Deserialize)]
pub struct ElicitationRequest {
    /// The server that asks.
    #[serde(default)]
    pub mcp_server_name: String,
    /// What the server asks, for the user.
    #[serde(default)]
    pub message: String,
    /// `form` or `url`.
    #[serde(default)]
    pub mode: Option<String>,
    /// The page to visit.
    #[serde(default)]
    pub url: Option<String>,
    /// The server's id of the question.
    #[serde(default)]
    pub elicitation_id: Option<String>,
    /// The JSON schema of the form.
    #[serde(default)]
    pub requested_schema: Option<Box<RawValue>>,
}

/// The CLI wants a dialog shown.
#[derive(Debug, Clone, Deserialize)]
pub struct DialogRequest {
    /// Which one.
    pub dialog_kind: String,
    /// What it shows.
    #[serde(default)]
    pub payload: Option<Box<RawValue>>,
    /// The tool call that it is about.
    #[serde(default)]
    pub tool_use_id: Option<String>,
}

/// The answer to a [`PermissionRequest`].
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "PermissionResult")]
pub enum PermissionReply {
    /// The tool may be used.
    Allow {
        /// The input to use it with; what was asked for if `None`.
        updated_input: Option<Box<RawValue>>,
        /// Changes of the rules, such as those that were suggested.
        updated_permissions: Option<Box<RawValue>>,
    },
    /// The tool may not be used.
    Deny {
        /// Why, for the model.
        message: String,
        /// Whether the turn ends as well.
        interrupt: bool,
    },
}

impl PermissionReply {
    /// Allows what was asked for, as it was asked.
    pub fn allow() -> Self {
        Self::Allow {
            updated_input: None,
            updated_permissions: None,
        }
    }

    /// Allows it with another input: anything that serialises to a JSON object.
    ///
    /// ```
    /// use serde_json::json;
    /// use tiller_agent::PermissionReply;
    ///
    /// let reply = PermissionReply::allow_with(json!({ "command": "ls -l" }));
    /// ```
    ///
    /// An input that can't be serialised denies instead, and the model is told why: the tool must not run with what was
    /// not meant.
    #[doc(alias = "updated_input")]
    pub fn allow_with(input: impl Serialize) -> Self {
        match serde_json::value::to_raw_value(&input) {
            Ok(input) => Self::Allow {
                updated_input: Some(input),
                updated_permissions: None,
            },
            Err(error) => Self::deny(format!("The changed input can't be used: {error}")),
        }
    }

    /// Allows it, and changes the permission rules, for example as
    /// [`PermissionRequest::suggestions`] proposes.
    ///
    /// ```
    /// use tiller_agent::{PermissionReply, PermissionRequest};
    ///
    /// fn always(request: &PermissionRequest) -> PermissionReply {
    ///     PermissionReply::allow().with_permissions(request.suggestions())
    /// }
    /// ```
    #[doc(alias = "updated_permissions")]
    pub fn with_permissions(self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        let updates: Vec<PermissionUpdate> = updates.into_iter().collect();
        match self {
            Self::Allow { updated_input, .. } => Self::Allow {
                updated_input,
                // Updates are made of texts and can be serialised.
                updated_permissions: serde_json::value::to_raw_value(&updates).ok(),
            },
            deny @ Self::Deny { .. } => deny,
        }
    }

    /// Denies it; the model is told why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
        }
    }

    /// Denies it and stops the turn.
    pub fn deny_and_interrupt(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: true,
        }
    }

    /// The reply to send. Older versions of the CLI insist on an input, so the one that was asked about is repeated
    /// where there is no other.
    pub fn into_reply(self, asked: &PermissionRequest) -> Reply {
        match self {
            Self::Allow {
                updated_input: None,
                updated_permissions,
            } => Self::Allow {
                updated_input: Some(asked.input.clone()),
                updated_permissions,
            }
            .into(),
            reply => reply.into(),
        }
    }
}

/// As it is. Use [`PermissionReply::into_reply`] where the input may be missing.
impl From<PermissionReply> for Reply {
    fn from(reply: PermissionReply) -> Self {
        #[derive(Serialize)]
        #[serde(tag = "behavior", rename_all = "lowercase")]
        enum Wire<'a> {
            #[serde(rename_all = "camelCase")]
            Allow {
                #[serde(skip_serializing_if = "Option::is_none")]
                updated_input: Option<&'a RawValue>,
                #[serde(skip_serializing_if = "Option::is_none")]
                updated_permissions: Option<&'a RawValue>,
            },
            Deny {
                message: &'a str,
                #[serde(skip_serializing_if = "std::ops::Not::not")]
                interrupt: bool,
            },
        }
        let wire = match &reply {
            PermissionReply::Allow {
                updated_input,
                updated_permissions,
            } => Wire::Allow {
                updated_input: updated_input.as_deref(),
                updated_permissions: updated_permissions.as_deref(),
            },
            PermissionReply::Deny { message, interrupt } => Wire::Deny {
                message,
                interrupt: *interrupt,
            },
        };
        Self::success(&wire).unwrap_or_else(|error| Self::Error(error.to_string()))
    }
}

/// The answer to an [`ElicitationRequest`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitationReply {
    /// The form was filled in, or the page visited.
    Accept {
        /// The form's values.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Map<String, Value>>,
    },
    /// The user said no.
    Decline,
    /// The user closed it.
    Cancel,
}

impl From<ElicitationReply> for Reply {
    fn from(reply: ElicitationReply) -> Self {
        Self::success(&reply).unwrap_or_else(|error| Self::Error(error.to_string()))
    }
}

/// A change of the permission rules.
///
/// ```
/// use tiller_agent::control::{PermissionDestination, PermissionUpdate};
///
/// let update = PermissionUpdate::allow("Bash(git *)", PermissionDestination::Session);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionUpdate {
    /// Adds rules.
    AddRules(RuleChange),
    /// Replaces the rules of this behavior.
    ReplaceRules(RuleChange),
    /// Removes rules.
    RemoveRules(RuleChange),
    /// Switches the mode.
    SetMode {
        /// The permission mode to switch to.
        mode: PermissionMode,
        /// Where it is remembered.
        destination: PermissionDestination,
    },
    /// Adds working directories.
    AddDirectories {
        /// The folders, as absolute paths.
        directories: Vec<String>,
        /// Where they are remembered.
        destination: PermissionDestination,
    },
    /// Removes working directories.
    RemoveDirectories {
        /// The folders, as absolute paths.
        directories: Vec<String>,
        /// Where they were remembered.
        destination: PermissionDestination,
    },
}

impl PermissionUpdate {
    /// Allows what a rule such as `Read` or `Bash(git *)` covers.
    pub fn allow(rule: impl AsRef<str>, destination: PermissionDestination) -> Self {
        Self::AddRules(RuleChange::new(
            rule.as_ref(),
            PermissionBehavior::Allow,
            destination,
        ))
    }

    /// Denies what a rule covers.
    pub fn deny(rule: impl AsRef<str>, destination: PermissionDestination) -> Self {
        Self::AddRules(RuleChange::new(
            rule.as_ref(),
            PermissionBehavior::Deny,
            destination,
        ))
    }
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionBehavior {
    /// The tool runs without asking.
    Allow,
    /// The tool does not run.
    Deny,
    /// The user is asked.
    Ask,
    /// A behavior that this version of the crate does not know.
    #[serde(untagged)]
    Other(String),
}

/// Where permission rules are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionDestination {
    /// For as long as the session lives.
    Session,
    /// In `.claude/settings.local.json` of the project.
    LocalSettings,
    /// In `.claude/settings.json` of the project.
    ProjectSettings,
    /// In the user's own settings.
    UserSettings,
    /// With what the command line said.
    CliArg,
    /// A place that this version of the crate does not know.
    #[serde(untagged)]
    Other(String),
}

/// Rules, and where they belong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleChange {
    /// The rules that are added, replaced or removed.
    pub rules: Vec<PermissionRule>,
    /// What the rules do.
    pub behavior: PermissionBehavior,
    /// Where they are kept.
    pub destination: PermissionDestination,
}

impl RuleChange {
    fn new(rule: &str, behavior: PermissionBehavior, destination: PermissionDestination) -> Self {
        Self {
            rules: vec![PermissionRule::from(rule)],
            behavior,
            destination,
        }
    }
}

/// A permission rule: a tool, and for some tools a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
    pub tool_name: String,
    /// What the rule covers, such as `git *`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}

/// From a rule as settings have it, such as `Read` or `Bash(git *)`.
impl From<&str> for PermissionRule {
    fn from(rule: &str) -> Self {
        let split = rule
            .split_once('(')
            .and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
        match split {
            Some((tool, content)) => Self {
                tool_name: tool.to_owned(),
                rule_content: Some(content.to_owned()),
            },
            None => Self {
                tool_name: rule.to_owned(),
                rule_content: None,
            },
        }
    }
}

/// The answers to an `AskUserQuestion`, which the CLI puts as a permission request: the input that allows it.
///
/// `answers` maps each question's text to the label that was chosen, or to several labels joined by commas.
pub fn answer_questions(asked: &PermissionRequest, answers: &BTreeMap<String, String>) -> PermissionReply {
    let mut input = asked.input_value();
    if let Value::Object(fields) = &mut input {
        fields.insert("answers".to_owned(), serde_json::json!(answers));
    }
    PermissionReply::Allow {
        updated_input: serde_json::value::to_raw_value(&input).ok(),
        updated_permissions: None,
    }
}

/// Reads a `control_request` line. A known operation whose fields changed becomes `Other`: it is still answered.
pub(crate) fn parse_request(message: &Message) -> Result<InboundRequest, serde_json::Error> {
    #[derive(Deserialize)]
    struct Line {
        request_id: RequestId,
        request: Box<RawValue>,
    }
    #[derive(Deserialize)]
    struct Subtype {
        subtype: String,
    }
    let line: Line = message.decode()?;
    let body = line.request.get();
    let Subtype { subtype } = serde_json::from_str(body)?;
    let kind = match subtype.as_str() {
        "can_use_tool" => serde_json::from_str(body).map(RequestKind::CanUseTool),
        "hook_callback" => serde_json::from_str(body).map(RequestKind::Hook),
        "mcp_message" => serde_json::from_str(body).map(RequestKind::Mcp),
        "elicitation" => serde_json::from_str(body).map(RequestKind::Elicitation),
        "request_user_dialog" => serde_json::from_str(body).map(RequestKind::Dialog),
        _ => Ok(RequestKind::Other {
            subtype: subtype.clone(),
        }),
    };
    let kind = kind.unwrap_or_else(|error| {
        tracing::warn!(%error, subtype, "a request of the agent was not understood");
        RequestKind::Other { subtype }
    });
    Ok(InboundRequest {
        id: line.request_id,
        kind,
        message: message.clone(),
    })
}
