//! What a client asks of the sessions: each command once, with its place among the others and what answers it, if anything.

use tiller_core::{
    Answer as Decided, CommandError, DecisionRef, QueueItem, RawJson, SessionId, Sessions, Timestamp,
};

use super::translate;
use super::wire::{ClientEvent, ServerEvent, SessionDelete, SessionInfo, SessionStart};
use crate::app::App;
use crate::underway::Order;

/// What is asked, in words of the sessions where those can be wrong: that is said before anything is done.
pub(super) enum Command {
    /// With the id that the session gets if it is a new one.
    Start(Box<SessionStart>, SessionId),
    Answer(SessionId, DecisionRef, Decided),
    AnswerHook {
        session: SessionId,
        callback: String,
        output: RawJson,
    },
    /// Everything else.
    Event(Box<ClientEvent>),
}

/// A command that was not taken, and the session that it was for.
pub(super) struct Failed {
    pub(super) error: CommandError,
    pub(super) session: Option<String>,
}

/// What is told to the one who asked. Success is mostly told by the live feed, to everyone.
pub(super) enum Answer {
    Nothing,
    Event(Box<ServerEvent>),
    /// How the session stands when this is told.
    Entry(SessionId),
    /// It was deleted just now.
    Deleted(String),
}

impl From<ServerEvent> for Answer {
    fn from(event: ServerEvent) -> Self {
        Self::Event(Box::new(event))
    }
}

impl Command {
    /// What it waits for, and what waits for it.
    pub(super) fn order(&self, sessions: &Sessions) -> Order {
        let event = match self {
            Self::Start(start, new) => {
                let resumed = resumed(start).and_then(|id| known(sessions, id).or_else(|| id.parse().ok()));
                return Order::Command(resumed.unwrap_or(*new));
            }
            Self::Answer(session, ..) | Self::AnswerHook { session, .. } => return Order::Command(*session),
            Self::Event(event) => &**event,
        };
        match (event, event.session().and_then(|id| id.parse().ok())) {
            // An agent that hangs is waited for, but not by the next prompt or stop.
            (ClientEvent::SessionInquire(_), Some(session)) => Order::Question(session),
            (ClientEvent::SessionRewind(rewind), Some(session)) if rewind.dry_run => Order::Question(session),
            (_, Some(session)) => Order::Command(session),
            (_, None) => Order::Beside,
        }
    }

    /// The new session that it is to begin, if any.
    pub(super) fn starts(&self) -> Option<SessionId> {
        match self {
            Self::Start(_, new) => Some(*new),
            _ => None,
        }
    }

    /// The session that it is to delete, if any.
    pub(super) fn deletes(&self) -> Option<SessionId> {
        match self {
            Self::Event(event) => match &**event {
                ClientEvent::SessionDelete(delete) => session_id(&delete.session_id).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    fn session(&self) -> Option<String> {
        match self {
            Self::Start(..) => None,
            Self::Answer(session, ..) | Self::AnswerHook { session, .. } => Some(session.to_string()),
            Self::Event(event) => event.session().map(str::to_owned),
        }
    }

    /// Does what a client asks.
    pub(super) async fn run(self, app: &App, sessions: &Sessions) -> Result<Answer, Failed> {
        let session = self.session();
        let done = match self {
            Self::Start(start, new) => started(app, sessions, *start, new).await,
            Self::Answer(session, decision, answer) => sessions
                .answer(session, decision, answer)
                .await
                .map(|()| Answer::Nothing),
            Self::AnswerHook {
                session,
                callback,
                output,
            } => sessions
                .answer_hook(session, &callback, output)
                .await
                .map(|()| Answer::Nothing),
            Self::Event(event) => command(sessions, *event).await,
        };
        done.map_err(|error| Failed { error, session })
    }
}

async fn started(
    app: &App,
    sessions: &Sessions,
    mut start: SessionStart,
    new: SessionId,
) -> Result<Answer, CommandError> {
    let request_id = start.request_id.take();
    let session_id = begin(app, sessions, start, new).await?.to_string();
    Ok(request_id.map_or(Answer::Nothing, |request_id| {
        Answer::from(ServerEvent::SessionStarted {
            session_id,
            request_id,
        })
    }))
}

async fn command(sessions: &Sessions, event: ClientEvent) -> Result<Answer, CommandError> {
    match event {
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
            let items = |texts: Vec<String>| {
                let item = |text| QueueItem { id: None, text };
                texts.into_iter().map(item).collect()
            };
            let expected = queue.expected.map(items);
            sessions.replace_queue(id, items(queue.prompts), expected).await?;
        }
        ClientEvent::SessionFlush(session) => sessions.flush(session_id(&session.session_id)?).await?,
        ClientEvent::SessionFork(fork) => {
            let id = session_id(&fork.session_id)?;
            let new = sessions.fork(id, fork.title.as_deref()).await?;
            return Ok(Answer::from(ServerEvent::SessionForked {
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
            return Ok(Answer::from(rewound.said(
                rewind.session_id,
                message,
                rewind.dry_run,
            )));
        }
        ClientEvent::SessionInquire(inquire) => {
            let id = session_id(&inquire.session_id)?;
            let inquiry = translate::inquiry(inquire.subject, inquire.query);
            let (data, error) = match sessions.inquire(id, inquiry).await {
                Ok(data) => (Some(data), None),
                Err(CommandError::Inquiry(failed)) => (None, Some(failed.to_string())),
                Err(error) => return Err(error),
            };
            return Ok(Answer::from(ServerEvent::SessionAnswer {
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
            return Ok(Answer::Entry(id));
        }
        ClientEvent::SessionHooks(hooks) => {
            let id = session_id(&hooks.session_id)?;
            let events = hooks.events.into_iter().map(translate::hook_name).collect();
            sessions.register_hooks(id, events).await?;
        }
        ClientEvent::SessionDelete(session) => return delete(sessions, session).await,
        // What needs the connection itself is done there.
        ClientEvent::SessionList
        | ClientEvent::SessionStart(_)
        | ClientEvent::SessionHistory(_)
        | ClientEvent::SessionSubscribe(_)
        | ClientEvent::PermissionResponse(_)
        | ClientEvent::HookResponse(_)
        | ClientEvent::StatisticsSubscribe => {}
    }
    Ok(Answer::Nothing)
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
        .find(|record| record.id.to_string() == id || record.claude_session_id.as_deref() == Some(id))
        .map(|record| record.id)
}

/// Starts a session. A conversation of ours that is to be resumed goes on where it is; one from the agent's own
/// history becomes a session in its own folder.
async fn begin(
    app: &App,
    sessions: &Sessions,
    mut start: SessionStart,
    new: SessionId,
) -> Result<SessionId, CommandError> {
    let have = sessions.backend().name;
    if let Some(wanted) = start.backend.take()
        && !["", "auto", have].contains(&wanted.as_str())
    {
        let have = have.to_owned();
        return Err(CommandError::Backend { wanted, have });
    }
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

/// Deletes at once, or later with time to think better of it.
async fn delete(sessions: &Sessions, delete: SessionDelete) -> Result<Answer, CommandError> {
    let found = session_id(&delete.session_id).ok();
    let Some(id) = found.filter(|id| sessions.find(*id).is_some()) else {
        let session_id = delete.session_id;
        return Ok(Answer::from(ServerEvent::SessionDeleted { session_id }));
    };
    match delete.after_ms.filter(|after| *after > 0) {
        None => sessions
            .delete(id)
            .await
            .map(|()| Answer::Deleted(delete.session_id)),
        Some(after) => {
            let at = Timestamp(Timestamp::now().0 + i64::from(after));
            sessions.delete_at(id, at).await.map(|()| Answer::Nothing)
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
