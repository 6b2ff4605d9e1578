//! Starts a session.

use serde::{Deserialize, Serialize};
use tiller_core::{Accepted, CommandError, PromptId, SessionId, Sessions};
use ts_rs::TS;
use utoipa::ToSchema;

use super::prompts::NewAttachment;
use super::session_id;
use crate::app::App;
use crate::events::request::{Context, Handled, Purpose, Refused, Reply, Request};
use crate::events::settings::{SandboxLevel, TextList, with_settings};
use crate::events::socket::Connection;
use crate::events::table::ServerEvent;
use crate::events::translate;
use crate::events::wire::{Approval, PermissionMode, UiContext, prompt_id};
use crate::underway::Order;

with_settings! {
    #[derive(Debug, Deserialize, TS, ToSchema)]
    #[serde(rename_all = "camelCase")]
    #[ts(export_to = "events.ts", optional_fields)]
    pub struct SessionStart {
        /// Empty or absent: created from the prompt.
        #[serde(default)]
        pub title: Option<String>,
        pub prompt: String,
        /// The prompt's id, a UUID of the client's choice. A duplicate returns the first session and creates none.
        #[serde(default, deserialize_with = "prompt_id")]
        #[ts(optional, type = "string")]
        #[schema(value_type = Option<String>, format = "uuid")]
        pub prompt_id: Option<PromptId>,
        /// Absent: the server's default working directory.
        #[serde(default)]
        pub cwd: Option<String>,
        /// The session's agent: the name of a backend, or `auto`. An unknown name is refused.
        #[serde(default)]
        pub backend: Option<String>,
        /// The id of a conversation in the agent's own history to resume; the session then works in the conversation's
        /// folder.
        #[serde(default)]
        pub resume: Option<String>,
        /// With `resume`: begins with a copy of that conversation and leaves the original unchanged, even while another
        /// process uses it.
        #[serde(default)]
        #[ts(optional, as = "Option<bool>")]
        pub fork: bool,
        #[serde(default)]
        #[ts(optional, as = "Option<Vec<NewAttachment>>")]
        pub attachments: Vec<NewAttachment>,
        #[serde(default)]
        pub context: Option<UiContext>,
        /// An id of the client's choice: `session.started` returns it with the new session's id.
        #[serde(default)]
        pub request_id: Option<String>,
    }
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
    // A client that asked for it gets `session.started` before any event of the session.
    if start.request_id.is_some() {
        connection.hold_back(new);
    }
    // A session whose conversation has another id is not found here by it. Its commands are ordered all the same: its
    // actor executes one at a time.
    let resumed = resumed(&start).and_then(|id| id.parse().ok());
    let order = Order::Command(resumed.unwrap_or(new));
    let work = execute(connection.context(&request.origin), start, new);
    connection.begin_with(order, request, Purpose::Start(new), work);
    Handled::Underway
}

async fn execute(context: Context, mut start: SessionStart, new: SessionId) -> Result<Reply, Refused> {
    let request_id = start.request_id.take();
    let accepted = begin(&context, start, new).await?;
    let session_id = accepted.session.to_string();
    let started = request_id.map(|request_id| SessionStarted {
        session_id,
        request_id,
    });
    Ok(match (started, accepted.duplicate) {
        (started, true) => Reply::Duplicate(started.map(ServerEvent::from).map(Box::new), accepted.session),
        (Some(started), false) => Reply::from(started),
        (None, false) => Reply::Nothing,
    })
}

/// The id of the conversation to resume, if any.
fn resumed(start: &SessionStart) -> Option<&str> {
    start.resume.as_deref().filter(|id| !id.trim().is_empty())
}

/// Starts a session. A conversation that belongs to a session continues there; one from the agent's own history becomes
/// a session in its own folder.
async fn begin(
    Context { app, sessions }: &Context,
    start: SessionStart,
    new: SessionId,
) -> Result<Accepted, CommandError> {
    let resume = resumed(&start).map(str::to_owned);
    let forks = start.fork;
    // A duplicate prompt id: the answer is the first session.
    if let Some(accepted) = sessions.accepted(start.prompt_id).await? {
        return Ok(accepted);
    }
    let mut wanted = translate::start(start, default_approval(app, sessions))?;
    wanted.id = Some(new);
    let Some(resume) = resume else {
        return sessions.start(wanted).await;
    };
    if let Some(known) = sessions.of_conversation(&resume).await? {
        let known = known.id;
        let id = if forks {
            sessions.fork(known, Some(&wanted.title), None).await?
        } else {
            known
        };
        return sessions.prompt(id, wanted.prompt).await;
    }
    let conversation = session_id(&resume)?;
    if sessions.viewer().key.is_some() {
        // A key must not learn whether such a transcript and its folder exist.
        return Err(CommandError::UnknownSession);
    }
    let found = app.history.conversation(resume.clone()).await;
    let found = found.ok().flatten().ok_or(CommandError::UnknownSession)?;
    wanted.cwd = Some(found.folder);
    if forks {
        wanted.fork_of = Some(conversation);
    } else {
        // It is called what it was called: by its first message, not by how it goes on.
        if wanted.title.trim().is_empty() {
            wanted.title = found.title;
        }
        wanted.resume = Some(conversation);
        wanted.spent_before_usd = spent_before(app, resume).await;
    }
    sessions.start(wanted).await
}

/// The cost of a conversation before it is resumed here. If that can't be determined, all of its cost counts.
async fn spent_before(app: &App, conversation: String) -> f64 {
    match app.history.spent(conversation).await {
        Ok(spent) => spent.unwrap_or(0.0),
        Err(error) => {
            tracing::warn!(?error, "can't determine the earlier cost of a conversation");
            0.0
        }
    }
}

/// The approval mode if the client does not choose one: from its key or the server's configuration. Only a client with
/// the scope `approve` can have everything approved.
fn default_approval(app: &App, sessions: &Sessions) -> tiller_core::Approval {
    let viewer = sessions.viewer();
    if viewer.scopes.approve {
        viewer.approval.unwrap_or(app.access.approval)
    } else {
        tiller_core::Approval::Ask
    }
}
