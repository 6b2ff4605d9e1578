//! What is done with a session while it lives, beside talking: settings, names, waiting prompts, inquiries, callbacks,
//! forks, rewinding, who drives it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_message::{Kind, Message};

use super::abilities::check_hooks;
use super::{CommandError, Page, Sessions, TitlePolicy, allowed, checked_settings};
use crate::backend::{Driver, Drivers, Inquiry, Offers, Rewound};
use crate::event::Notice;
use crate::ids::{PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::{Image, PromptRefused};
use crate::redact::redacted;
use crate::session::{
    AgentStatus, Input, QueueItem, Refusal, SessionRecord, SessionStatus, SettingsPatch, TitleSource,
};
use crate::title::{MAX_TITLE, on_one_line, title_as_given, title_from_prompt};

/// How far back the last message of an agent is looked for.
const LAST_MESSAGES: u32 = 500;

/// How many processes one driver may be made of.
const WRAPPED: u32 = 4;

/// How long it may take to find an agent that an earlier server started. Mostly a few milliseconds.
const FINDING: Duration = Duration::from_secs(5);

impl Sessions {
    /// Changes settings: at once where a running agent can be told, else from the
    /// next turn on, for which the agent is started anew and goes on with its conversation.
    ///
    /// The agent may change an option by itself (a plan that was approved ends the plan mode), which shows in the
    /// session's settings and as [`Notice::Updated`](crate::Notice).
    pub async fn configure(&self, session: SessionId, patch: SettingsPatch) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        let before = &record.settings.options;
        let wanted = patch.applied(&record.settings);
        let backend = self.backend_of(&record);
        let settings = checked_settings(&backend, wanted, Some(before))?;
        let settings = self
            .viewer
            .check_grants(settings, Some(&record.settings), &*backend.options())?;
        // In canonical form: what is set to its default is not set.
        let patch = SettingsPatch {
            options: before.changes_to(&settings.options),
            ..patch
        };
        self.input(session, Input::Configure(Box::new(patch)))
            .await
            .map(drop)
    }

    /// What the agents of this session's kind offer, or those of the default one, as far as one has told since the server
    /// started.
    pub async fn offers(&self, session: Option<SessionId>) -> Option<Arc<Offers>> {
        let found = match session {
            Some(session) => self.find(session).await.ok(),
            None => None,
        };
        let backend = match found {
            Some((record, _)) => self.backend_of(&record),
            None => Arc::clone(self.shared.backends.default_one()),
        };
        backend.abilities().catalogue?.offers()
    }

    /// Gives a session the title that a person chose.
    pub async fn rename(&self, session: SessionId, title: &str) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        let title = on_one_line(title);
        self.find(session).await?;
        if title.is_empty() || title.chars().count() > MAX_TITLE {
            return Err(CommandError::Title);
        }
        let source = TitleSource::User;
        self.input(session, Input::Rename { title, source })
            .await
            .map(drop)
    }

    /// Puts a session away, or brings it back. It goes on as before.
    pub async fn archive(&self, session: SessionId, archived: bool) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Archive(archived)).await.map(drop)
    }

    /// Replaces the prompts that wait for the running turn to end. Refused if `expected` is given and is not what
    /// waits, or if a prompt is named that does not wait. A prompt that waits keeps its id and its images, also with
    /// other words; a new one gets an id.
    pub async fn replace_queue(
        &self,
        session: SessionId,
        prompts: Vec<QueueItem>,
        expected: Option<Vec<QueueItem>>,
    ) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        if prompts.iter().any(|prompt| prompt.text.contains('\0')) {
            return Err(PromptRefused::Nul.into());
        }
        let with_id = |item: QueueItem| {
            let text = item.text.trim().to_owned();
            (QueueItem { text, ..item }, PromptId::random())
        };
        let prompts = prompts.into_iter().map(with_id).collect();
        self.input(session, Input::Queue { prompts, expected })
            .await
            .map(drop)
    }

    /// Sends the first prompt that waits, if no turn runs: a stop keeps what waits.
    pub async fn flush(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        self.viewer
            .check_going_on(&record, &*self.backend_of(&record).options())?;
        self.check_driver(session).await?;
        self.input(session, Input::Flush).await.map(drop)
    }

    /// Asks something of the session's agent beside its work. The answer is in the agent's own form.
    pub async fn inquire(&self, session: SessionId, inquiry: Inquiry) -> Result<RawJson, CommandError> {
        let (record, _) = self.find(session).await?;
        allowed(self.viewer.scopes.read || self.viewer.scopes.run)?;
        let agent = self.ability(
            &record,
            |abilities| abilities.inquire,
            "answer questions about itself",
        )?;
        let offers = self.offers(Some(session)).await;
        let last_known = match inquiry {
            Inquiry::Commands => offers.and_then(|offers| offers.commands.clone()),
            Inquiry::Models => offers.and_then(|offers| offers.model_list.clone()),
            _ => None,
        };
        if let Some(known) = last_known {
            return Ok(known);
        }
        // The person's own settings are not the key's to read.
        let is_private = matches!(
            inquiry,
            Inquiry::Settings | Inquiry::Hooks | Inquiry::PermissionRules | Inquiry::McpStatus
        );
        let run = self.running(session).await?;
        let answer = agent.inquire(&run, inquiry).await?;
        Ok(if is_private && self.viewer.key.is_some() {
            redacted(&answer)
        } else {
            answer
        })
    }

    /// Has the agent call back for these events, from the next turn on, for which the agent is started again. A callback
    /// is a [`Notice::Hook`](crate::Notice), to be answered with [`Self::answer_hook`]; without an answer the agent goes
    /// on after [`HOOK_TIME`](crate::backend::HOOK_TIME). Replaces the events registered before; registrations end with
    /// the server.
    pub async fn register_hooks(&self, session: SessionId, events: Vec<String>) -> Result<(), CommandError> {
        // The answer to a callback can allow a tool.
        allowed(self.viewer.scopes.approve)?;
        let (record, _) = self.find(session).await?;
        let hooks = self.ability(&record, |abilities| abilities.hooks, "call hooks")?;
        check_hooks(&*hooks, &events)?;
        self.input(session, Input::Hooks(events)).await.map(drop)
    }

    /// Answers a callback, once, in the agent's own form (`{"continue": true}` and more).
    pub async fn answer_hook(
        &self,
        session: SessionId,
        agent_request: &str,
        output: RawJson,
    ) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.approve)?;
        let agent_request = agent_request.to_owned();
        let input = Input::AnswerHook {
            agent_request,
            output,
        };
        self.input(session, input).await.map(drop)
    }

    /// The bytes of an image that was sent with a prompt.
    pub async fn image(&self, session: SessionId, id: &str) -> Result<Option<Image>, CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.image(session, id.to_owned()).await?)
    }

    /// A new session that begins with everything that was said in this one, and goes its own way from its first
    /// prompt on. Files are shared: both work in the same folder.
    pub async fn fork(&self, session: SessionId, title: Option<&str>) -> Result<SessionId, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (source, _) = self.find(session).await?;
        self.viewer
            .check_going_on(&source, &*self.backend_of(&source).options())?;
        self.ability(&source, |abilities| abilities.fork, "fork a conversation")?;
        let conversation = source.conversation.or(source.fork_of);
        let fork_of = Some(conversation.ok_or(Refusal::NoResumeId)?);
        let fork_at = match source.fork_at {
            None if source.status != SessionStatus::Running => self.last_message(session).await?,
            at => at,
        };
        let now = Timestamp::now();
        let mut record = SessionRecord {
            id: SessionId::random(),
            owner: self.viewer.key.clone(),
            title: title
                .map(title_as_given)
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| title_as_given(&format!("{} ⑂", source.title))),
            title_source: TitleSource::User,
            archived: false,
            conversation: None,
            expired: false,
            fork_of,
            fork_at,
            summary: source.summary.as_ref().map(|summary| Arc::new(summary.forked())),
            delete_at: None,
            status: SessionStatus::Idle,
            created_at: now,
            updated_at: now,
            queue: Vec::new(),
            last_seq: 0,
            runs: 0,
            turn: None,
            run: None,
            ..source
        };
        let id = record.id;
        record.last_seq = self.shared.store.fork(session, record.clone()).await?;
        let owner = record.owner.as_deref().map(Arc::from);
        self.shared.hub.publish(owner.as_ref(), Notice::Updated(id));
        Ok(id)
    }

    /// The agent's id of the last thing that it said itself.
    async fn last_message(&self, session: SessionId) -> Result<Option<String>, CommandError> {
        let page = Page::Last { limit: LAST_MESSAGES };
        let entries = self.shared.store.history(session, page).await?;
        Ok(entries.iter().rev().find_map(|entry| {
            let message = Message::parse_shared(Arc::clone(entry.json.shared())).ok()?;
            // A subagent's messages are not part of the conversation itself.
            let is_own = message.kind() == Kind::Assistant && message.parent_tool_use_id().is_none();
            message.uuid().filter(|_| is_own).map(str::to_owned)
        }))
    }

    /// Restores the files to what they were before the prompt with this id, or only tells what that would change.
    /// An agent is started for it if none runs.
    pub async fn rewind(
        &self,
        session: SessionId,
        prompt: String,
        dry_run: bool,
    ) -> Result<Rewound, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        let files = self.ability(&record, |abilities| abilities.rewind, "restore files")?;
        if !dry_run && record.status == SessionStatus::Running {
            return Err(CommandError::Busy);
        }
        self.check_driver(session).await?;
        self.input(session, Input::Wake).await?;
        let run = self.running(session).await?;
        Ok(files.rewind(&run, prompt, dry_run).await?)
    }

    /// Ends the session's agent and hides it; it is deleted for good at that time, unless [`Self::undelete`] comes
    /// first. Kept across restarts.
    pub async fn delete_at(&self, session: SessionId, at: Timestamp) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Discard { at }).await?;
        self.shared.tidy.notify_one();
        Ok(())
    }

    /// Takes back a deletion whose time has not come.
    pub async fn undelete(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Restore).await.map(drop)
    }

    /// Refuses if a process that nobody here has started drives the session's conversation: two would fork it. Otherwise
    /// nobody else begins to for a moment, so that what was not refused here is not refused later.
    pub(super) async fn check_driver(&self, session: SessionId) -> Result<(), CommandError> {
        self.until_found(session).await;
        if let Some(driver) = self.rival(session).await {
            return Err(CommandError::DrivenElsewhere(driver));
        }
        let Some((conversation, record)) = self.without_agent(session).await else {
            return Ok(());
        };
        // It is checked again when the agent is launched, and then what was said can't be given back.
        self.shared.paths.check_again(record.cwd.as_ref()).await?;
        let Some(drivers) = self.drivers_of(&record) else {
            return Ok(());
        };
        let claimed = drivers.claim(conversation, record.cwd.into(), record.updated_at);
        match claimed.await {
            Some(driver) => Err(CommandError::DrivenElsewhere(driver)),
            None => Ok(()),
        }
    }

    /// Waits until it is known whether an agent that an earlier server started is still there, and what it has said
    /// meanwhile: what is said for one that is gone could not be given back. False if that takes too long.
    pub async fn until_found(&self, session: SessionId) -> bool {
        // Another key's session is like one that there is not: nothing to wait for.
        let Some(actor) = self.actor(session) else {
            return true;
        };
        let mut view = actor.view;
        if !self.viewer.may_see(view.borrow().record.owner.as_deref()) {
            return true;
        }
        let known = view.wait_for(|view| !view.attaching);
        // A session that is deleted meanwhile, or a keeper that does not answer, is for others to tell.
        let found = matches!(tokio::time::timeout(FINDING, known).await, Ok(Ok(_)));
        if !found {
            tracing::debug!(%session, "it is not known whether the agent is still there");
        }
        found
    }

    /// Who drives the conversation beside an agent of ours that rests. That one does not know what is said there, so it is
    /// ended; the next begins with all of it.
    async fn rival(&self, session: SessionId) -> Option<Driver> {
        let (conversation, own, drivers) = {
            let actor = self.actor(session)?;
            let view = actor.view.borrow();
            let rests = view.record.turn.is_none();
            let conversation = view.record.conversation.clone().filter(|_| rests)?;
            (conversation, view.pid?, self.drivers_of(&view.record)?)
        };
        let mut found = drivers.rivals(vec![(conversation.clone(), own)]).await;
        let driver = found.remove(&conversation)?;
        self.yield_to(session, &driver).await;
        Some(driver)
    }

    /// Ends an agent that rests, because someone else has taken its place.
    pub(super) async fn yield_to(&self, session: SessionId, driver: &Driver) {
        tracing::info!(pid = driver.pid, %session, "another process drives the conversation; the agent that rests is ended");
        // A session that was deleted meanwhile has no agent either.
        self.input(session, Input::Hibernate).await.ok();
    }

    async fn driver(&self, session: SessionId) -> Option<Driver> {
        self.until_found(session).await;
        if let Some(rival) = self.rival(session).await {
            return Some(rival);
        }
        let (conversation, record) = self.without_agent(session).await?;
        let drivers = self.drivers_of(&record)?;
        drivers
            .driver(conversation, record.cwd.into(), record.updated_at)
            .await
    }

    /// The conversation of a session that has no agent.
    async fn without_agent(&self, session: SessionId) -> Option<(String, SessionRecord)> {
        let (record, _) = self.find(session).await.ok()?;
        // With an agent of its own a session has its driver.
        let has_agent = !matches!(
            self.agent_status(session),
            AgentStatus::Absent | AgentStatus::Hibernated
        );
        let conversation = record.conversation.clone().filter(|_| !has_agent)?;
        Some((conversation, record))
    }

    /// Ends the process that drives the session's conversation from elsewhere, so that it can go on here.
    pub async fn take_over(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.find(session).await?;
        // The first that is found may be what someone has wrapped around the one that drives.
        for _ in 0..WRAPPED {
            let Some(driver) = self.driver(session).await else {
                return Ok(());
            };
            tracing::info!(pid = driver.pid, %session, "ending a process that drives a conversation from elsewhere");
            self.end(driver).await?;
        }
        self.check_driver(session).await
    }

    /// Who drives any of these conversations, each of which comes with its folder, from elsewhere. `None`: that can't be
    /// told on this machine.
    pub async fn drivers(&self, conversations: Vec<(String, PathBuf)>) -> Option<HashMap<String, Driver>> {
        self.any_drivers()?.drivers(conversations).await
    }

    /// Ends the process that drives a conversation which is no session here.
    pub async fn end_driver(&self, driver: Driver) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        tracing::info!(
            pid = driver.pid,
            "ending a process that drives a conversation from elsewhere"
        );
        self.end(driver).await
    }

    /// Of conversations that are no sessions here, nobody says which kind of agent has them.
    pub(super) fn any_drivers(&self) -> Option<Arc<dyn Drivers>> {
        let mut all = self.shared.backends.iter();
        all.find_map(|backend| backend.abilities().drivers)
    }

    async fn end(&self, driver: Driver) -> Result<(), CommandError> {
        match self.any_drivers() {
            Some(drivers) => drivers.end_driver(driver).await.map_err(CommandError::Takeover),
            None => Ok(()),
        }
    }

    /// Asks the session's own agent, beside its first turn. What goes wrong leaves the title as it is.
    pub(super) async fn improve_title(self, session: SessionId, prompt: String) {
        let Ok(_turn) = self.shared.titling.acquire().await else {
            return;
        };
        let Ok((record, _)) = self.find(session).await else {
            return;
        };
        let (Some(titles), Ok(run)) = (
            self.backend_of(&record).abilities().titles,
            self.running(session).await,
        ) else {
            return;
        };
        if let Some(title) = titles.title_by(&run, prompt).await {
            let source = TitleSource::Model;
            if let Err(error) = self.input(session, Input::Rename { title, source }).await {
                tracing::debug!(%error, %session, "a title came too late");
            }
        }
    }

    /// A title for a session that would begin with this prompt: from a model if that is wanted and possible.
    pub async fn title_for(&self, prompt: &str) -> String {
        if self.shared.titles == TitlePolicy::Model
            && self.viewer.scopes.run
            && let Ok(_turn) = self.shared.titling.acquire().await
        {
            let cwd = self.shared.paths.default_directory().to_owned();
            let abilities = self.shared.backends.default_one().abilities();
            if let Some(titles) = abilities.titles
                && let Some(title) = titles.title(prompt.to_owned(), cwd).await
            {
                return title;
            }
        }
        title_from_prompt(prompt)
    }
}
