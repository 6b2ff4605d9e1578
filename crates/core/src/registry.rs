//! All sessions of a server: the methods that front doors call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};

use tiller_message::Summary;

use crate::arrangement::ArrangementRefused;
use crate::backend::{
    Backend, BackendInfo, Backends, Driver, InquiryFailed, OptionInfo, OptionRefused, OptionRules, Options,
    SANDBOX, SandboxView, UnknownBackend,
};
use crate::credentials::Viewer;
use crate::event::{DecisionRequest, Event, Notice};
use crate::hub::{Hub, LiveFeed};
use crate::ids::{Cause, SessionId, Timestamp};
use crate::paths::{PathPolicy, PathRefused};
use crate::prompt::{Image, NewPrompt, PromptRefused};
use crate::rights::Provenance;
use crate::session::{
    Acknowledged, ActorHandle, AgentStatus, Command, CommandFailed, Deletion, Input, Refusal, SessionRecord,
    SessionStatus, Settings, TitleSource,
};
use crate::store::{Decided, HistoryEntry, Store, StoreError, StoredSession};
use crate::title::{MAX_TITLE, title_as_given, title_from_prompt};

/// How long agents get to end when the server stops. The product promises ten seconds for everything.
const CLOSE_TIME: Duration = Duration::from_secs(8);

/// How many titles are requested from a model at once. Each costs a model call; further sessions wait.
const TITLES_AT_ONCE: usize = 2;

mod abilities;
mod accept;
mod arrange;
mod decide;
mod find;
mod grants;
mod hibernate;
mod load;
mod notes;
mod reading;
mod rewind;
mod steer;
mod upkeep;

use abilities::{check_installed, check_start};
pub use accept::Accepted;
pub use find::{Match, Matches};
pub use hibernate::{AgentUsage, HibernationPolicy};
use load::Slot;
pub use load::{Census, KnownConversation, SessionPage};
pub use rewind::{RewindOutcome, RewindScope, UndoOutcome};
pub use upkeep::Retention;

/// The sessions of this server, as one viewer may see and use them. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    shared: Arc<Shared>,
    viewer: Viewer,
    /// The command that is being executed, if its sender wants to be told about its effects.
    cause: Option<Cause>,
}

struct Shared {
    store: Arc<dyn Store>,
    backends: Backends,
    paths: Arc<PathPolicy>,
    hub: Hub,
    /// The sessions in memory. A std mutex: held for map look-ups only, never across an await.
    entries: Mutex<HashMap<SessionId, Slot>>,
    /// Damaged sessions, and why they can't be read.
    damaged: Mutex<HashMap<SessionId, String>>,
    /// The server is stopping: no more sessions are loaded.
    stopping: AtomicBool,
    /// Notifies the upkeep that a deletion is due earlier than it knows.
    tidy: Notify,
    /// What each agent used when it was last measured.
    usage: Mutex<HashMap<SessionId, AgentUsage>>,
    titles: TitlePolicy,
    /// Limits the titles that are requested at once.
    titling: Semaphore,
    starting: accept::Starting,
}

/// Where titles come from for sessions that the user has not named.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TitlePolicy {
    /// From a model, shortly after the session began; until then from the prompt.
    #[default]
    Model,
    /// From the prompt's first line.
    Prompt,
}

/// A request to start a session.
#[derive(Clone, Debug, Default)]
pub struct StartSession {
    /// Empty: created from the prompt.
    pub title: String,
    pub prompt: NewPrompt,
    /// `None`: the default working directory.
    pub cwd: Option<String>,
    /// The backend that runs the agent. `None`: the default one.
    pub backend: Option<String>,
    pub settings: Settings,
    /// The new session's id, for a caller that must know it in advance. `None`: random.
    pub id: Option<SessionId>,
    /// Resumes a conversation that was led outside of Tiller, by the agent's id. Only the person at the machine may.
    pub resume: Option<SessionId>,
    /// The cost of that conversation so far, in dollars. It does not count for the session.
    pub spent_before_usd: f64,
    /// Forks a conversation that was led outside of Tiller: the session begins with a copy, and the original stays with
    /// its driver. Only the person at the machine may.
    pub fork_of: Option<SessionId>,
    /// The events for which hooks are called, from the first turn on; see [`Sessions::register_hooks`].
    pub hooks: Vec<String>,
}

/// A backend that a session can choose.
#[derive(Clone, Debug)]
pub struct BackendChoice {
    pub info: BackendInfo,
    /// The options of its agents.
    pub options: Vec<OptionInfo>,
    /// Whether the user is signed in to the agent's provider. `None`: the agent does not report it.
    pub signed_in: Option<bool>,
}

/// The longest name that a client may give a session, in bytes.
const MAX_NAME: usize = 200;

/// The requested part of a session's history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Page {
    All,
    After { seq: u64, limit: u32 },
    Before { seq: u64, limit: u32 },
    Last { limit: u32 },
}

impl Page {
    /// The maximum number of entries.
    pub fn limit(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::After { limit, .. } | Self::Before { limit, .. } | Self::Last { limit } => Some(limit),
        }
    }
}

/// A page of a session's history, and the session's record when the page was read.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    pub record: SessionRecord,
    pub pending: Vec<DecisionRequest>,
    pub entries: Vec<HistoryEntry>,
    /// The changes of status between the first and the last entry, and right after it.
    pub statuses: Vec<Event>,
    /// How the decisions of the whole session ended that were not simply allowed as they were asked for.
    pub decided: Vec<Decided>,
}

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("Unknown session")]
    UnknownSession,
    #[error(transparent)]
    Prompt(#[from] PromptRefused),
    #[error(transparent)]
    Option(#[from] OptionRefused),
    #[error("A session's name must have 1 to {MAX_NAME} bytes and no control characters.")]
    Name,
    #[error(transparent)]
    Backend(#[from] UnknownBackend),
    #[error("{agent} can't {what}.")]
    Unsupported { agent: String, what: &'static str },
    #[error("{agent} is not installed. {remedy}")]
    NotInstalled { agent: String, remedy: String },
    #[error("A turn is running. Stop it first.")]
    Busy,
    #[error(
        "Another process is using this conversation: {} (process {}). Watch it, take the session over, or fork it.",
        .0.command, .0.pid
    )]
    DrivenElsewhere(Driver),
    #[error("{0}")]
    Takeover(String),
    #[error("A title must have 1 to {MAX_TITLE} characters.")]
    Title,
    #[error(transparent)]
    Arrangement(#[from] ArrangementRefused),
    #[error(transparent)]
    Inquiry(#[from] InquiryFailed),
    #[error(transparent)]
    Path(#[from] PathRefused),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("This session can't be read: {reason}. Its data is kept unchanged. You can delete the session.")]
    Damaged { reason: String },
    #[error("Your API key does not allow this.")]
    Forbidden,
    #[error("Your API key runs agents only in a sandbox, and this agent does not support one.")]
    SandboxUnavailable,
    #[error("The key that you use runs shielded agents only, and agents can't be shielded here.")]
    ShieldUnavailable,
    #[error("The server is stopping.")]
    Stopping,
}

impl From<CommandFailed> for CommandError {
    fn from(failed: CommandFailed) -> Self {
        match failed {
            CommandFailed::Refused(refusal) => Self::Refused(refusal),
            CommandFailed::Store(error) => Self::Store(error),
        }
    }
}

impl Sessions {
    /// Opens the store, and recovers the sessions that the last server left unfinished.
    pub async fn open(
        store: Arc<dyn Store>,
        backends: impl Into<Backends>,
        paths: PathPolicy,
        titles: TitlePolicy,
    ) -> Result<Self, CommandError> {
        let shared = Shared {
            store,
            backends: backends.into(),
            paths: Arc::new(paths),
            hub: Hub::new(),
            entries: Mutex::default(),
            damaged: Mutex::default(),
            stopping: AtomicBool::new(false),
            tidy: Notify::new(),
            usage: Mutex::default(),
            titles,
            titling: Semaphore::new(TITLES_AT_ONCE),
            starting: accept::Starting::default(),
        };
        let sessions = Self {
            shared: Arc::new(shared),
            viewer: Viewer::PERSON,
            cause: None,
        };
        sessions.recover().await?;
        Ok(sessions)
    }

    /// The same sessions with the rights of another viewer.
    pub fn for_viewer(&self, viewer: Viewer) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            viewer,
            cause: self.cause,
        }
    }

    /// The same sessions, for one command: the first change of status that its prompt causes, and a change of the
    /// queue, carry this cause.
    pub fn caused_by(&self, cause: Cause) -> Self {
        Self {
            cause: Some(cause),
            ..self.clone()
        }
    }

    /// The viewer whose rights apply.
    pub fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    /// The default backend.
    pub fn backend(&self) -> BackendInfo {
        self.shared.backends.default_one().info()
    }

    /// Why agents are not shielded and what to do about it, for a person. `None` if they are.
    pub fn not_shielded(&self) -> Option<String> {
        self.shared.backends.not_shielded()
    }

    /// All backends, the default one first.
    pub async fn backends(&self) -> Vec<BackendChoice> {
        let all = self.shared.backends.iter().map(|backend| async {
            let account = backend.abilities().account;
            let signed_in = match account {
                Some(account) => account.signed_in().await,
                None => None,
            };
            BackendChoice {
                info: backend.info(),
                options: backend.options().describe(),
                signed_in,
            }
        });
        futures_util::future::join_all(all).await
    }

    /// The backend of a session.
    fn backend_of(&self, record: &SessionRecord) -> Arc<dyn Backend> {
        self.shared.backends.of(record.backend.as_deref())
    }

    /// The sandbox that a session's agent gets. `None`: it gets none.
    pub fn sandbox_of(&self, record: &SessionRecord) -> Option<SandboxView> {
        // Most sessions have none, and lists are long.
        record.settings.options.get(SANDBOX)?;
        self.backend_of(record)
            .options()
            .sandbox(&record.settings.options)
    }

    /// Refuses a sandbox that the system can't give, before anything is started.
    fn check_sandbox(&self, settings: &Settings, rules: &dyn OptionRules) -> Result<(), CommandError> {
        if rules.sandbox(&settings.options).is_none() {
            return Ok(());
        }
        match self.not_shielded() {
            None => Ok(()),
            Some(reason) => {
                let message = format!("A sandbox is not possible here. {reason}");
                Err(OptionRefused::new(SANDBOX, message).into())
            }
        }
    }

    pub fn paths(&self) -> &PathPolicy {
        &self.shared.paths
    }

    /// Subscribes to the live feed. Subscribe before reading a backlog, never after.
    pub fn watch(&self) -> LiveFeed {
        self.shared.hub.watch(self.viewer.clone())
    }

    /// The session that this viewer knows under `name`, if it exists. A session's id is also a name for it.
    pub async fn named(&self, name: &str) -> Result<Option<SessionId>, CommandError> {
        check_name(name)?;
        if let Ok(id) = name.parse()
            && self.exists(id).await?
        {
            return Ok(Some(id));
        }
        let owner = self.viewer.key.clone();
        let found = self.shared.store.named(owner, name.to_owned()).await?;
        match found {
            Some(id) if self.exists(id).await? => Ok(Some(id)),
            _ => Ok(None),
        }
    }

    /// Sends a prompt to the session that this viewer knows under `name`, and starts the session with `start` if it
    /// does not exist. If several callers do this at once, one starts the session and the others continue it.
    pub async fn start_named(&self, name: &str, start: StartSession) -> Result<Accepted, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let prompt = start.prompt.clone();
        prompt.clone().checked()?;
        let id = if let Some(id) = self.named(name).await? {
            id
        } else {
            let (owner, candidate) = (self.viewer.key.clone(), SessionId::random());
            let store = &self.shared.store;
            store.claim_name(owner, name.to_owned(), candidate).await?
        };
        if !self.exists(id).await? {
            // Otherwise the prompt would be refused after the session was created.
            if self.accepted(prompt.id).await?.is_some() {
                return Err(Refusal::PromptIdUsed.into());
            }
            match self.start_as(id, start).await {
                // Another client created the session first.
                Err(CommandError::UnknownSession) if self.exists(id).await? => {}
                outcome => return outcome,
            }
        }
        self.prompt(id, prompt).await
    }

    /// Creates a session and starts its first turn. If a prompt with this id was accepted before, returns where, and
    /// creates no session.
    pub async fn start(&self, start: StartSession) -> Result<Accepted, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let prompt = start.prompt.id;
        let _alone = match prompt {
            Some(prompt) => Some(self.shared.starting.hold(self.viewer.key.clone(), prompt).await),
            None => None,
        };
        if let Some(accepted) = self.accepted(prompt).await? {
            return Ok(accepted);
        }
        let id = start.resume.or(start.id).unwrap_or_else(SessionId::random);
        match self.start_as(id, start).await {
            // Another server on the same store was first.
            Err(CommandError::Refused(Refusal::PromptIdUsed)) => {
                let accepted = self.accepted(prompt).await?;
                accepted.ok_or(Refusal::PromptIdUsed.into())
            }
            outcome => outcome,
        }
    }

    async fn start_as(&self, id: SessionId, start: StartSession) -> Result<Accepted, CommandError> {
        allowed(self.viewer.scopes.run)?;
        if (start.resume.is_some() || start.fork_of.is_some()) && self.viewer.key.is_some() {
            // Before any check that could reveal which conversations exist.
            return Err(CommandError::UnknownSession);
        }
        if !start.hooks.is_empty() {
            allowed(self.viewer.scopes.approve)?;
        }
        let (prompt, images) = start.prompt.checked()?;
        let prompt_id = prompt.id;
        let backend = Arc::clone(self.shared.backends.find(start.backend.as_deref())?);
        check_installed(&*backend)?;
        check_start(&*backend, start.fork_of.is_some(), &start.hooks)?;
        let settings = checked_settings(&backend, start.settings, None)?;
        let rules = backend.options();
        let default = self.shared.backends.key_sandbox();
        let settings = self.viewer.with_default_sandbox(settings, default, &*rules)?;
        let settings = self.viewer.check_grants(settings, None, &*rules)?;
        self.check_sandbox(&settings, &*rules)?;
        let cwd = self.shared.paths.working_directory(start.cwd.as_deref()).await?;
        self.viewer.check_place(&cwd)?;
        self.check_shield()?;
        let (title, title_source) = match title_as_given(&start.title) {
            empty if empty.is_empty() => (title_from_prompt(&prompt.text), TitleSource::Prompt),
            title => (title, TitleSource::User),
        };
        let words = prompt.text.clone();
        let (granted, hooks) = (settings.clone(), start.hooks.clone());
        let now = Timestamp::now();
        let record = SessionRecord {
            id,
            owner: self.viewer.key.clone(),
            title,
            title_source,
            archived: false,
            conversation: start.resume.map(|id| id.to_string()),
            expired: false,
            fork_of: start.fork_of.map(|id| id.to_string()),
            fork_at: None,
            rewound: Vec::new(),
            summary: Some(Arc::new(Summary::resumed(start.spent_before_usd))),
            delete_at: None,
            status: SessionStatus::Idle,
            cwd: cwd.to_string_lossy().into_owned(),
            backend: Some(backend.info().name),
            settings,
            last_prompt: None,
            created_at: now,
            updated_at: now,
            queue: Vec::new(),
            last_seq: 0,
            runs: 0,
            turn: None,
            run: None,
        };
        // Reserved before anything is written: two sessions that resume one conversation at the same time would fork
        // it.
        let slot = match self.entries().entry(id) {
            Entry::Occupied(_) => return Err(CommandError::UnknownSession),
            Entry::Vacant(place) => Arc::clone(place.insert(Slot::default())),
        };
        let made = slot
            .get_or_try_init(|| self.make(record, &backend))
            .await
            .map(drop);
        if let Err(error) = made {
            self.forget_empty(id, &slot);
            return Err(error);
        }
        drop(slot);
        let begun = async {
            if !start.hooks.is_empty() {
                self.input(id, Input::Hooks(start.hooks)).await?;
            }
            self.input_with(id, Input::Prompt(prompt), images).await
        };
        if let Err(error) = begun.await {
            // A session that never began is removed. If that fails too, it stays idle and can be deleted.
            self.delete(id).await.ok();
            return Err(error);
        }
        self.audit_grant(id, None, &granted, &*backend.options()).await;
        self.audit_hooks(id, &hooks).await;
        if title_source == TitleSource::Prompt
            && self.shared.titles == TitlePolicy::Model
            && !words.is_empty()
        {
            let sessions = self.clone();
            tokio::spawn(async move { sessions.improve_title(id, words).await });
        }
        Ok(Accepted {
            session: id,
            prompt: prompt_id,
            after: 0,
            duplicate: false,
        })
    }

    /// Stores a new session and starts its actor.
    async fn make(
        &self,
        record: SessionRecord,
        backend: &Arc<dyn Backend>,
    ) -> Result<ActorHandle, CommandError> {
        if self.is_stopping() {
            return Err(CommandError::Stopping);
        }
        if let Some(conversation) = &record.conversation
            && let Some(drivers) = backend.abilities().drivers
        {
            let cwd = record.cwd.clone().into();
            // The session was not ours before, so it holds nothing that this server wrote.
            let driver = drivers.claim(conversation.clone(), cwd, Timestamp(0)).await;
            if let Some(driver) = driver {
                return Err(CommandError::DrivenElsewhere(driver));
            }
        }
        match self.shared.store.create(record.clone()).await {
            Ok(epoch) => Ok(self.spawn(epoch, record, Vec::new())),
            // The session exists, but only in the store.
            Err(StoreError::Stale) => Err(CommandError::UnknownSession),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a further prompt to a session. If a prompt with this id was accepted before, it is acknowledged again
    /// without further effect.
    pub async fn prompt(
        &self,
        session: SessionId,
        prompt: impl Into<NewPrompt>,
    ) -> Result<Accepted, CommandError> {
        allowed(self.viewer.scopes.run)?;
        // An unknown session is reported first: it is the more serious mistake.
        let (record, _) = self.find(session).await?;
        let backend = self.backend_of(&record);
        self.viewer.check_going_on(&record, &*backend.options())?;
        self.check_shield()?;
        if matches!(
            self.agent_status(session),
            AgentStatus::Absent | AgentStatus::Hibernated
        ) {
            check_installed(&*backend)?;
        }
        let prompt = prompt.into();
        if let Some(id) = prompt.id
            && let Some(accepted) = self.accepted_in(session, id).await?
        {
            return Ok(accepted);
        }
        let afresh = prompt.afresh;
        let (prompt, images) = prompt.checked()?;
        let id = prompt.id;
        self.check_driver(session).await?;
        let input = if afresh {
            Input::PromptAfresh(prompt)
        } else {
            Input::Prompt(prompt)
        };
        match self.input_with(session, input, images).await? {
            Acknowledged::New(after) => {
                if record.can_undo_rewind() {
                    self.forget_saved(session).await;
                }
                Ok(Accepted {
                    session,
                    prompt: id,
                    after,
                    duplicate: false,
                })
            }
            // Another connection was first.
            Acknowledged::Duplicate => {
                let accepted = self.accepted_in(session, id).await?;
                accepted.ok_or(CommandError::UnknownSession)
            }
        }
    }

    /// The state of the session's agent.
    pub fn agent_status(&self, session: SessionId) -> AgentStatus {
        let actor = self.actor(session);
        actor.map_or(AgentStatus::Absent, |actor| actor.view.borrow().agent)
    }

    pub async fn stop(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Stop).await.map(drop)
    }

    /// Deletes a session, its events and its agent. Not an error if the session does not exist.
    pub async fn delete(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.delete_if(session, Deletion::Now).await.map(drop)
    }

    /// False if the session exists and is kept.
    async fn delete_if(&self, session: SessionId, deletion: Deletion) -> Result<bool, CommandError> {
        let actor = match self.loaded_actor(session).await {
            Ok(actor) => actor,
            Err(CommandError::UnknownSession) => return Ok(true),
            Err(CommandError::Damaged { .. }) if matches!(deletion, Deletion::Now | Deletion::Due(_)) => {
                return self.delete_damaged(session).await;
            }
            Err(error) => return Err(error),
        };
        let (reply, outcome) = oneshot::channel();
        // An actor that has ended does not accept or answer commands.
        let outcome = match actor.commands.send(Command::Delete(deletion, reply)).await {
            Ok(()) => outcome.await.ok(),
            Err(_) => None,
        };
        let deleted = match outcome {
            Some(outcome) => outcome?,
            // Another caller was first.
            None if actor.view.borrow().deleted => true,
            None => return Err(CommandError::Stopping),
        };
        if deleted {
            self.entries().remove(&session);
        }
        Ok(deleted)
    }

    /// Deletes a damaged session, which has no actor. Its agent, if it had one, was ended when the server started.
    async fn delete_damaged(&self, session: SessionId) -> Result<bool, CommandError> {
        let from = match self.shared.store.load(session).await? {
            None => return Ok(true),
            Some(StoredSession::Damaged(damaged)) => Provenance::of_damaged(&damaged),
            Some(StoredSession::Readable { record, .. }) => Provenance::of(&record),
        };
        self.shared.store.delete(session).await?;
        self.damaged().remove(&session);
        self.shared.hub.publish(&Arc::new(from), Notice::Deleted(session));
        Ok(true)
    }

    /// Stores everything and leaves the agents to the next server. Sessions can't be used afterwards, and the process
    /// must exit without dropping the sessions: an agent whose channels are dropped ends.
    pub async fn leave(&self) {
        let all = self.take_actors().into_iter().map(|actor| async move {
            let (done, left) = oneshot::channel();
            if actor.commands.send(Command::Leave(done)).await.is_ok() {
                drop(left.await);
            }
            // Dropping the handle would end the actor.
            std::mem::forget(actor);
        });
        if tokio::time::timeout(CLOSE_TIME, futures_util::future::join_all(all))
            .await
            .is_err()
        {
            tracing::warn!(
                "not all events could be stored in time; the next server reads them again from the keepers"
            );
        }
    }

    fn take_actors(&self) -> Vec<ActorHandle> {
        // Set first: a session that is loaded from now on would be left behind.
        self.shared.stopping.store(true, Ordering::Release);
        let actors = self.actors();
        self.entries().clear();
        actors.into_iter().map(|(_, actor)| actor).collect()
    }

    /// Whether the server is about to end: no session is loaded any more.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    /// Ends every agent. Sessions can't be used afterwards.
    pub async fn close(&self) {
        let all = self.take_actors().into_iter().map(|actor| async move {
            let (done, closed) = oneshot::channel();
            let reason = "Tiller was stopped while this turn was running.";
            if actor.commands.send(Command::Close { reason, done }).await.is_ok() {
                // An error means that the actor has ended, which is the goal.
                drop(closed.await);
            }
        });
        if tokio::time::timeout(CLOSE_TIME, futures_util::future::join_all(all))
            .await
            .is_err()
        {
            tracing::warn!("some agents did not end in time");
        }
    }

    async fn input(&self, session: SessionId, input: Input) -> Result<Acknowledged, CommandError> {
        self.input_with(session, input, Vec::new()).await
    }

    async fn input_with(
        &self,
        session: SessionId,
        input: Input,
        images: Vec<Image>,
    ) -> Result<Acknowledged, CommandError> {
        let actor = self.loaded_actor(session).await?;
        let (reply, outcome) = oneshot::channel();
        actor
            .commands
            .send(Command::Input {
                input: Box::new(input),
                images,
                cause: self.cause,
                reply,
            })
            .await
            .map_err(|_| self.actor_ended())?;
        outcome
            .await
            .map_err(|_| self.actor_ended())?
            .map_err(CommandError::from)
    }

    /// Why an actor takes no more commands: the server stops, or the session was deleted.
    fn actor_ended(&self) -> CommandError {
        if self.is_stopping() {
            CommandError::Stopping
        } else {
            CommandError::UnknownSession
        }
    }
}

fn allowed(scope: bool) -> Result<(), CommandError> {
    if scope {
        Ok(())
    } else {
        Err(CommandError::Forbidden)
    }
}

/// The settings with their options in canonical form.
fn checked_settings(
    backend: &Arc<dyn Backend>,
    settings: Settings,
    before: Option<&Options>,
) -> Result<Settings, CommandError> {
    let options = backend.options().check(settings.options, before)?;
    Ok(Settings { options, ..settings })
}

fn check_name(name: &str) -> Result<(), CommandError> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(CommandError::Name);
    }
    Ok(())
}
