//! Starting a session.

use serde::{Deserialize, Serialize};
use tiller_core::{CommandError, SessionId, Sessions};
use ts_rs::TS;
use utoipa::ToSchema;

use super::prompts::NewAttachment;
use super::session_id;
use crate::events::request::{Context, Handled, Purpose, Refused, Reply, Request};
use crate::events::socket::Connection;
use crate::events::translate;
use crate::events::wire::{Approval, PermissionMode, UiContext};
use crate::underway::Order;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionStart {
    /// Empty or absent: a readable one is made from the prompt.
    #[serde(default)]
    pub title: Option<String>,
    pub prompt: String,
    /// Absent: the server's default working directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Comma-separated tools and rules that run without asking, such as `Read,Bash(git *)`.
    #[serde(default)]
    pub allowed_tools: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    #[serde(default)]
    pub approval: Option<Approval>,
    /// How hard the model tries, as the agent lists it with its models.
    #[serde(default)]
    pub effort: Option<String>,
    /// How often the model may be called in one turn.
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub max_budget_usd: Option<f64>,
    /// The agent that runs the session: a backend by its name, or `auto`. An unknown one is refused.
    #[serde(default)]
    pub backend: Option<String>,
    /// The id of a conversation in the agent's own history to go on with; its folder is then the session's.
    #[serde(default)]
    pub resume: Option<String>,
    /// With `resume`: begins with a copy of that conversation and leaves the original alone, also while another process
    /// drives it.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub fork: bool,
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<NewAttachment>>")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default)]
    pub context: Option<UiContext>,
    /// An id of the client's own: `session.started` comes back with it and tells which session this became.
    #[serde(default)]
    pub request_id: Option<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionStarted {
    pub session_id: String,
    pub request_id: String,
}

pub(in crate::events) fn start(
    connection: &mut Connection,
    request: Request,
    start: SessionStart,
) -> Handled {
    let new = SessionId::random();
    // A client that wants to know which session it became is told that before anything else of the session.
    if start.request_id.is_some() {
        connection.hold_back(new);
    }
    let resumed = resumed(&start).and_then(|id| known(&connection.sessions, id).or_else(|| id.parse().ok()));
    let order = Order::Command(resumed.unwrap_or(new));
    let work = carry_out(connection.context(), start, new);
    connection.begin_with(order, request, Purpose::Start(new), work);
    Handled::Underway
}

async fn carry_out(context: Context, mut start: SessionStart, new: SessionId) -> Result<Reply, Refused> {
    let request_id = start.request_id.take();
    let session_id = begin(&context, start, new).await?.to_string();
    Ok(request_id.map_or(Reply::Nothing, |request_id| {
        Reply::from(SessionStarted {
            session_id,
            request_id,
        })
    }))
}

/// The conversation that is to be resumed, if one is.
fn resumed(start: &SessionStart) -> Option<&str> {
    start.resume.as_deref().filter(|id| !id.trim().is_empty())
}

/// The session of ours that has this id, or whose conversation has it.
fn known(sessions: &Sessions, id: &str) -> Option<SessionId> {
    let listed = sessions.list();
    let mut records = listed.iter().map(|(record, _)| record);
    records
        .find(|record| record.id.to_string() == id || record.conversation.as_deref() == Some(id))
        .map(|record| record.id)
}

/// Starts a session. A conversation of ours that is to be resumed goes on where it is; one from the agent's own
/// history becomes a session in its own folder.
async fn begin(
    Context { app, sessions }: &Context,
    start: SessionStart,
    new: SessionId,
) -> Result<SessionId, CommandError> {
    let resume = resumed(&start).map(str::to_owned);
    let forks = start.fork;
    let mut wanted = translate::start(start)?;
    wanted.id = Some(new);
    let Some(resume) = resume else {
        return Ok(sessions.start(wanted).await?.session);
    };
    if let Some(known) = known(sessions, &resume) {
        let id = if forks {
            sessions.fork(known, Some(&wanted.title)).await?
        } else {
            known
        };
        sessions.prompt(id, wanted.prompt).await?;
        return Ok(id);
    }
    let conversation = session_id(&resume)?;
    let found = app.history.conversation(resume).await;
    let cwd = found.ok().flatten().ok_or(CommandError::UnknownSession)?;
    wanted.cwd = Some(cwd);
    if forks {
        wanted.fork_of = Some(conversation);
    } else {
        wanted.resume = Some(conversation);
    }
    Ok(sessions.start(wanted).await?.session)
}
