//! The history's types of the public contract. Fields are added, never renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_message::Block;
use ts_rs::TS;

use crate::list::names::Names;
use crate::list::shared::Text;
use crate::read::place::{ProjectId, SessionId};

/// A folder in which the CLI was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Project {
    pub id: ProjectId,
    /// The working directory, from the transcripts themselves.
    pub path: String,
    /// The last part of the path.
    pub name: String,
    pub session_count: usize,
    /// The time of the last message.
    pub last_active: String,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts", optional_fields)]
pub struct Session {
    pub id: SessionId,
    /// The name that a person gave it, or the first 50 characters of the first prompt.
    #[ts(as = "String")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub title: Text,
    #[ts(as = "String")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub project_path: Text,
    /// The time of the first message.
    #[ts(as = "String")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub timestamp: Text,
    /// The number of user and assistant lines.
    pub message_count: u64,
    #[ts(as = "Vec<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub tools_used: Names,
    /// Relative to the project if inside it.
    #[ts(as = "Vec<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub files_changed: Names,

    pub project: ProjectId,
    #[ts(as = "String")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub last_active: Text,
    pub size_bytes: u64,
    #[ts(as = "Vec<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub models: Names,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub first_prompt: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub custom_title: Option<Text>,
    /// The CLI's own summary of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub summary: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub git_branch: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub cli_version: Option<Text>,
    /// Lines that could not be read: torn, or spliced into another line.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<u32>", optional)]
    pub damaged_lines: u64,
    /// The number of lines of unknown types, by type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, number>", optional)]
    pub unknown_lines: BTreeMap<String, u64>,
    /// Only in the vault: the CLI has deleted the transcript.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub archived: bool,
    /// A process is using it right now. The caller, which can see processes, sets this; the history does not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub live: bool,
    /// The process, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<SessionDriver>,
}

/// A process that uses a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct SessionDriver {
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
}

impl Session {
    /// The time of the last message, in milliseconds since 1970.
    pub fn last_active_ms(&self) -> Option<i64> {
        crate::read::record::millis(self.last_active.as_bytes())
    }

    /// The shell command that resumes the session: the CLI finds it only from its own folder.
    pub fn resume_command(&self) -> String {
        let folder = self.project_path.replace('\'', "'\\''");
        format!("cd '{folder}' && claude --resume {}", self.id)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "history.ts")]
pub enum Role {
    User,
    Assistant,
}

/// Why the model would not see a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "history.ts")]
pub enum Branch {
    /// A compaction replaced it with a summary.
    Compacted,
    /// The conversation went back to an earlier point and continued from there.
    Left,
}

/// One message. It belongs to a subagent if `sidechain` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts", optional_fields)]
pub struct Message {
    pub role: Role,
    /// Content blocks. A plain string in the file becomes one `text` block; a `tool_result` has the `tool_name` of its
    /// call, and `persisted_output {name, size}` if all of it is in a file beside the transcript.
    #[ts(type = "Array<Record<string, unknown>>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub content: Vec<Block>,
    pub timestamp: String,
    pub uuid: String,
    #[serde(rename = "parentUuid")]
    #[ts(optional = nullable)]
    pub parent_uuid: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Shared by all lines of one model message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Set if the message is not in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub sidechain: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The call that started the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_use_id: Option<String>,
    /// Written by the CLI in the user's name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub is_meta: bool,
    /// Set for the summary of a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub is_api_error: bool,
    /// The change that an edit made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts", optional_fields)]
pub struct Compaction {
    /// `manual` or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_tokens: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Patch {
    pub file_path: String,
    /// Hunks, as the CLI recorded them.
    #[ts(type = "unknown")]
    pub structured_patch: Value,
}

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: Offset,
    pub limit: usize,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    FromStart(usize),
    /// The page ends this many items before the end: 0 is the last page.
    FromEnd(usize),
}

impl Page {
    /// The maximum size of a page.
    pub const MAX: usize = 1000;

    pub fn first(limit: usize) -> Self {
        Self {
            offset: Offset::FromStart(0),
            limit,
        }
    }

    pub fn last(limit: usize) -> Self {
        Self {
            offset: Offset::FromEnd(0),
            limit,
        }
    }

    /// The indices of this page in a list of `total` items.
    pub(crate) fn range(self, total: usize) -> std::ops::Range<usize> {
        let limit = self.limit.min(Self::MAX);
        match self.offset {
            Offset::FromStart(offset) => {
                let start = offset.min(total);
                start..start.saturating_add(limit).min(total)
            }
            Offset::FromEnd(offset) => {
                let end = total.saturating_sub(offset);
                end.saturating_sub(limit)..end
            }
        }
    }
}

/// Which messages of a session to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Include {
    /// The messages that the model would see if the session were resumed.
    #[default]
    Chain,
    /// Also the messages that compactions replaced: the conversation from its beginning.
    Conversation,
    /// Everything: subagents after the calls that started them, and abandoned branches.
    All,
}

/// Which sessions to list. All conditions that are set must hold.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub project: Option<ProjectId>,
    /// Words that must all occur in the title, the first prompt or the summary.
    pub text: Option<String>,
    /// A tool that was used.
    pub tool: Option<String>,
    /// A part of a changed file's path.
    pub file: Option<String>,
    /// A part of a model's name.
    pub model: Option<String>,
    /// Milliseconds since 1970: last active at or after this time.
    pub from: Option<i64>,
    /// Started before this time.
    pub to: Option<i64>,
}

impl SessionFilter {
    pub fn admits(&self, session: &Session) -> bool {
        let holds = |wanted: &Option<String>, names: &Names| {
            wanted
                .as_ref()
                .is_none_or(|wanted| names.iter().any(|name| name.contains(wanted.as_str())))
        };
        let at = |time: &str| crate::read::record::millis(time.as_bytes()).unwrap_or(0);
        self.project
            .as_ref()
            .is_none_or(|wanted| *wanted == session.project)
            && self.tool.as_ref().is_none_or(|wanted| {
                session
                    .tools_used
                    .iter()
                    .any(|tool| tool.eq_ignore_ascii_case(wanted))
            })
            && holds(&self.file, &session.files_changed)
            && holds(&self.model, &session.models)
            && self.from.is_none_or(|from| at(&session.last_active) >= from)
            && self.to.is_none_or(|to| at(&session.timestamp) < to)
            && self.text.as_ref().is_none_or(|text| {
                let names = [&session.first_prompt, &session.custom_title, &session.summary];
                let mut all = session.title.to_lowercase();
                for name in names.into_iter().flatten() {
                    all.push('\n');
                    all.push_str(&name.to_lowercase());
                }
                text.to_lowercase()
                    .split_whitespace()
                    .all(|word| all.contains(word))
            })
    }
}

/// The values by which the list of sessions can be filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Facets {
    pub tools: Vec<String>,
    pub models: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct ProjectList {
    pub projects: Vec<Project>,
}

/// A project with all of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSessions {
    pub project: Project,
    pub sessions: Vec<Session>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct SessionPage {
    pub sessions: Vec<Session>,
    pub total: usize,
}

/// One line of a transcript, in the form of a live session's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts", optional_fields)]
pub struct TranscriptEntry {
    pub uuid: String,
    pub timestamp: String,
    /// Set if the entry is not in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    /// The agent's message, or `{type: "user_prompt", prompt, promptId, uuid, images}` with the image blocks that were sent, if
    /// any. Absent if there is nothing to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "Record<string, unknown>")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub message: Option<Value>,
    /// Results of which the message has only the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<WholeResult>>", optional)]
    pub whole_results: Vec<WholeResult>,
}

/// A result that is stored in a file beside the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct WholeResult {
    pub name: String,
    /// In bytes.
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct EntryPage {
    pub session: Session,
    pub entries: Vec<TranscriptEntry>,
    pub total: usize,
    /// The index of the first entry of this page.
    pub offset: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct MessagePage {
    pub session: Session,
    pub messages: Vec<Message>,
    pub total: usize,
    /// The index of the first message of this page.
    pub offset: usize,
}
