//! What a client asks of the sessions: each command once, with the event that answers it, if any.

use tiller_core::{CommandError, SessionId, Sessions, Timestamp};

use super::translate;
use super::wire::{ClientEvent, ServerEvent, SessionInfo, SessionStart};
use crate::app::App;

/// A command that was not taken, and the session that it was for.
pub(super) struct Failed {
    pub(super) error: CommandError,
    pub(super) session: Option<String>,
}

/// Does what a client asks. Success is mostly told by the live feed; what is for this client alone comes back.
pub(super) async fn run(
    app: &App,
    sessions: &Sessions,
    event: ClientEvent,
) -> Result<Option<ServerEvent>, Failed> {
    let named = event.session().map(str::to_owned);
    command(app, sessions, event).await.map_err(|error| Failed {
        error,
        session: named,
    })
}

async fn command(
    app: &App,
    sessions: &Sessions,
    event: ClientEvent,
) -> Result<Option<ServerEvent>, CommandError> {
    match event {
        ClientEvent::SessionStart(mut start) => {
            let request_id = start.request_id.take();
            let session_id = begin(app, sessions, start).await?.to_string();
            return Ok(request_id.map(|request_id| ServerEvent::SessionStarted {
                session_id,
                request_id,
            }));
        }
        ClientEvent::SessionContinue(more) => {
            let id = session_id(&more.session_id)?;
            // An unknown session is the graver mistake, so it is named first.
            sessions.find(id).ok_or(CommandError::UnknownSession)?;
            let prompt = translate::prompt(more.prompt, more.attachments, more.context)?;
            sessions.prompt(id, prompt).await?;
        }
        ClientEvent::SessionStop(session) => {
            let stopped = match session_id(&session.session_id) {
                Ok(id) => sessions.stop(id).await,
                Err(error) => Err(error),
            };
            match stopped {
                // Nothing to stop is what the client wanted.
                Ok(()) | Err(CommandError::UnknownSession) => {}
                Err(error) => return Err(error),
            }
        }
        ClientEvent::SessionUndelete(session) => sessions.undelete(session_id(&session.session_id)?).await?,
        ClientEvent::SessionConfigure(configure) => {
            let id = session_id(&configure.session_id)?;
            sessions.configure(id, translate::patch(configure)).await?;
        }
        ClientEvent::SessionRename(rename) => {
            sessions
                .rename(session_id(&rename.session_id)?, &rename.title)
                .await?;
        }
        ClientEvent::SessionArchive(archive) => {
            sessions
                .archive(session_id(&archive.session_id)?, archive.archived)
                .await?;
        }
        ClientEvent::SessionQueue(queue) => {
            let id = session_id(&queue.session_id)?;
            sessions.replace_queue(id, queue.prompts, queue.expected).await?;
        }
        ClientEvent::SessionFlush(session) => sessions.flush(session_id(&session.session_id)?).await?,
        ClientEvent::SessionFork(fork) => {
            let id = session_id(&fork.session_id)?;
            let new = sessions.fork(id, fork.title.as_deref()).await?;
            return Ok(Some(ServerEvent::SessionForked {
                session_id: fork.session_id,
                new_session_id: new.to_string(),
            }));
        }
        ClientEvent::SessionRewind(rewind) => {
            let id = session_id(&rewind.session_id)?;
            let message = rewind.user_message_id;
            // The agent tells what changes only when it changes nothing.
            let mut rewound = translate::Rewound::of(&sessions.rewind(id, message.clone(), true).await?);
            if !rewind.dry_run && rewound.can_rewind {
                let done = translate::Rewound::of(&sessions.rewind(id, message.clone(), false).await?);
                (rewound.can_rewind, rewound.error) = (done.can_rewind, done.error);
            }
            return Ok(Some(rewound.said(rewind.session_id, message, rewind.dry_run)));
        }
        ClientEvent::SessionInquire(inquire) => {
            let id = session_id(&inquire.session_id)?;
            let inquiry = translate::inquiry(inquire.subject, inquire.query);
            let (data, error) = match sessions.inquire(id, inquiry).await {
                Ok(data) => (Some(data), None),
                Err(CommandError::Inquiry(failed)) => (None, Some(failed.to_string())),
                Err(error) => return Err(error),
            };
            return Ok(Some(ServerEvent::SessionAnswer {
                session_id: inquire.session_id,
                request_id: inquire.request_id,
                subject: inquire.subject,
                data,
                error,
            }));
        }
        ClientEvent::SessionTakeover(session) => {
            let id = session_id(&session.session_id)?;
            sessions.take_over(id).await?;
            let session = entry(sessions, id).map(Box::new);
            return Ok(session.map(|session| ServerEvent::SessionUpdated { session }));
        }
        ClientEvent::SessionHooks(hooks) => {
            let id = session_id(&hooks.session_id)?;
            let events = hooks.events.into_iter().map(translate::hook_name).collect();
            sessions.register_hooks(id, events).await?;
        }
        // What needs the connection itself is done there.
        ClientEvent::SessionList
        | ClientEvent::SessionDelete(_)
        | ClientEvent::SessionHistory(_)
        | ClientEvent::SessionSubscribe(_)
        | ClientEvent::PermissionResponse(_)
        | ClientEvent::HookResponse(_)
        | ClientEvent::StatisticsSubscribe => {}
    }
    Ok(None)
}

/// Starts a session. A conversation of ours that is to be resumed goes on where it is; one from the agent's own
/// history becomes a session in its own folder.
async fn begin(app: &App, sessions: &Sessions, mut start: SessionStart) -> Result<SessionId, CommandError> {
    let have = sessions.backend().name;
    if let Some(wanted) = start.backend.take()
        && !["", "auto", have].contains(&wanted.as_str())
    {
        let have = have.to_owned();
        return Err(CommandError::Backend { wanted, have });
    }
    let resume = start.resume.take().filter(|id| !id.trim().is_empty());
    let forks = start.fork;
    let mut wanted = translate::start(start)?;
    let Some(resume) = resume else {
        return sessions.start(wanted).await;
    };
    let listed = sessions.list();
    let known = listed
        .iter()
        .map(|(record, _)| record)
        .find(|record| record.id.to_string() == resume || record.claude_session_id.as_ref() == Some(&resume));
    if let Some(record) = known {
        let id = if forks {
            sessions.fork(record.id, Some(&wanted.title)).await?
        } else {
            record.id
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
    sessions.start(wanted).await
}

/// Deletes at once, or later with time to think better of it.
pub(super) async fn delete(
    sessions: &Sessions,
    id: SessionId,
    after_ms: Option<u32>,
) -> Result<(), CommandError> {
    match after_ms {
        None => sessions.delete(id).await,
        Some(after) => {
            let at = Timestamp(Timestamp::now().0 + i64::from(after));
            sessions.delete_at(id, at).await
        }
    }
}

/// A session's entry in the list.
pub(super) fn entry(sessions: &Sessions, id: SessionId) -> Option<SessionInfo> {
    let (record, pending) = sessions.find(id)?;
    Some(translate::session(
        record,
        pending.len(),
        sessions.agent_status(id),
        sessions.usage(id),
    ))
}

/// What is no id of ours names no session.
pub(super) fn session_id(text: &str) -> Result<SessionId, CommandError> {
    text.parse().map_err(|_| CommandError::UnknownSession)
}
