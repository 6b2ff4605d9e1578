//! Commands for existing sessions beside prompts: settings, titles, queue, inquiries, hooks, forks, rewinds, drivers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::abilities::check_hooks;
use super::{CommandError, Sessions, TitlePolicy, allowed, checked_settings};
use crate::backend::{Driver, Drivers, Inquiry, Offers};
use crate::ids::{PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::{Image, PromptRefused};
use crate::redact::redacted;
use crate::rights::Provenance;
use crate::session::{AgentStatus, Input, QueueItem, SessionRecord, SettingsPatch, TitleSource};
use crate::title::{MAX_TITLE, on_one_line, title_from_prompt};

/// How many nested processes one driver may consist of.
const WRAPPED: u32 = 4;

/// How long to wait for a reconnect to an earlier server's agent, which usually takes a few milliseconds.
const FINDING: Duration = Duration::from_secs(5);

impl Sessions {
    /// Changes settings: at once if a running agent can apply them, otherwise with the next turn, for which the agent
    /// is restarted with its conversation.
    ///
    /// The agent may change an option by itself (an approved plan ends the plan mode). Such a change appears in the
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
        self.check_sandbox(&settings, &*backend.options())?;
        // In canonical form: an option with its default value is absent.
        let patch = SettingsPatch {
            options: before.changes_to(&settings.options),
            ..patch
        };
        self.input(session, Input::Configure(Box::new(patch))).await?;
        self.audit_grant(session, Some(&record.settings), &settings, &*backend.options())
            .await;
        Ok(())
    }

    /// What the agents of this session's backend offer, or those of the default backend, as far as an agent has
    /// reported it since the server started.
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

    /// Sets a session's title on behalf of a person.
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

    /// Archives a session or brings it back. Its agent is not affected.
    pub async fn archive(&self, session: SessionId, archived: bool) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Archive(archived)).await.map(drop)
    }

    /// Replaces the queue. Refused if `expected` is given and differs from the queue, or if a named prompt is not in
    /// it. A queued prompt keeps its id and its images, also with a new text; a new prompt gets an id.
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

    /// Sends the first queued prompt if no turn runs: stopping a turn keeps the queue. `afresh`: a session without a
    /// conversation starts one instead of being refused.
    pub async fn flush(&self, session: SessionId, afresh: bool) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        self.viewer
            .check_going_on(&record, &*self.backend_of(&record).options())?;
        self.check_shield()?;
        self.check_driver(session).await?;
        let input = if afresh { Input::FlushAfresh } else { Input::Flush };
        self.input(session, input).await.map(drop)
    }

    /// Asks the session's agent a question about itself. The answer is in the agent's own format.
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
        // A key must not read the person's own settings.
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

    /// Registers hooks for these events, from the next turn on, for which the agent is restarted. A hook call is
    /// published as [`Notice::Hook`](crate::Notice) and answered with [`Self::answer_hook`]; without an answer the
    /// agent continues after [`HOOK_TIME`](crate::backend::HOOK_TIME). Replaces earlier registrations; registrations
    /// end with the server.
    pub async fn register_hooks(&self, session: SessionId, events: Vec<String>) -> Result<(), CommandError> {
        // The answer to a hook call can allow a tool.
        allowed(self.viewer.scopes.approve)?;
        let (record, _) = self.find(session).await?;
        let hooks = self.ability(&record, |abilities| abilities.hooks, "call hooks")?;
        check_hooks(&*hooks, &events)?;
        self.input(session, Input::Hooks(events.clone())).await?;
        self.audit_hooks(session, &events).await;
        Ok(())
    }

    /// Answers a hook call, once, in the agent's own format (`{"continue": true}` and more).
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

    /// The bytes of a prompt's image.
    pub async fn image(&self, session: SessionId, id: &str) -> Result<Option<Image>, CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.image(session, id.to_owned()).await?)
    }

    /// Ends the session's agent and hides the session, which is deleted at that time unless [`Self::undelete`] is
    /// called first. Kept across restarts.
    pub async fn delete_at(&self, session: SessionId, at: Timestamp) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Discard { at }).await?;
        self.shared.tidy.notify_one();
        Ok(())
    }

    /// Cancels a scheduled deletion.
    pub async fn undelete(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.input(session, Input::Restore).await.map(drop)
    }

    /// Refuses if a process outside of Tiller drives the session's conversation: two drivers would fork it. Otherwise
    /// the conversation is reserved for a moment, so that the launch that follows is not refused.
    pub(super) async fn check_driver(&self, session: SessionId) -> Result<(), CommandError> {
        self.wait_until_attached(session).await;
        if let Some(driver) = self.rival(session).await {
            return Err(CommandError::DrivenElsewhere(driver));
        }
        let Some((conversation, record)) = self.without_agent(session).await else {
            return Ok(());
        };
        // The driver is checked again at the launch, when the prompt can no longer be given back.
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

    /// Waits until the reconnect to an earlier server's agent has finished and its missed output is recorded. A prompt
    /// for an agent that turns out to be gone could not be given back. False if the wait timed out.
    pub async fn wait_until_attached(&self, session: SessionId) -> bool {
        // A session of another key is treated like an unknown one: nothing to wait for.
        let Some(actor) = self.actor(session) else {
            return true;
        };
        let mut view = actor.view;
        if !self.viewer.may_see(&Provenance::of(&view.borrow().record)) {
            return true;
        }
        let known = view.wait_for(|view| !view.attaching);
        // A deletion in the meantime, or a keeper that does not answer, is reported elsewhere.
        let found = matches!(tokio::time::timeout(FINDING, known).await, Ok(Ok(_)));
        if !found {
            tracing::debug!(%session, "the reconnect to the agent has not finished in time");
        }
        found
    }

    /// The other driver of a conversation that has an idle agent here. That agent misses what the other driver adds, so
    /// it is ended; the next agent resumes with all of it.
    async fn rival(&self, session: SessionId) -> Option<Driver> {
        let (conversation, own, drivers) = {
            let actor = self.actor(session)?;
            let view = actor.view.borrow();
            let rests = view.record.turn.is_none();
            let conversation = view.record.conversation.clone().filter(|_| rests)?;
            (conversation, view.pid?, self.drivers_of(&view.record)?)
        };
        let mut found = drivers.competing_drivers(vec![(conversation.clone(), own)]).await;
        let driver = found.remove(&conversation)?;
        self.yield_to(session, &driver).await;
        Some(driver)
    }

    /// Ends an idle agent because another process has taken over its conversation.
    pub(super) async fn yield_to(&self, session: SessionId, driver: &Driver) {
        tracing::info!(pid = driver.pid, %session, "another process drives the conversation; the agent that rests is ended");
        // A session that was deleted meanwhile has no agent either.
        self.input(session, Input::Hibernate).await.ok();
    }

    async fn driver(&self, session: SessionId) -> Option<Driver> {
        self.wait_until_attached(session).await;
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

    /// Ends the other process that drives the session's conversation, so that the session can continue here.
    pub async fn take_over(&self, session: SessionId) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        self.find(session).await?;
        // The first process that is found may be a wrapper around the driver.
        for _ in 0..WRAPPED {
            let Some(driver) = self.driver(session).await else {
                return Ok(());
            };
            tracing::info!(pid = driver.pid, %session, "ending a process that drives a conversation from elsewhere");
            self.end(driver).await?;
        }
        self.check_driver(session).await
    }

    /// The processes that drive any of these conversations, given with their folders. `None`: they can't be detected on
    /// this machine.
    pub async fn drivers(&self, conversations: Vec<(String, PathBuf)>) -> Option<HashMap<String, Driver>> {
        self.any_drivers()?.drivers(conversations).await
    }

    /// Ends the process that drives a conversation which is not a session here.
    pub async fn end_driver(&self, driver: Driver) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        tracing::info!(
            pid = driver.pid,
            "ending a process that drives a conversation from elsewhere"
        );
        self.end(driver).await
    }

    /// For conversations that are not sessions here the backend is unknown, so the first one that can find drivers is
    /// used.
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

    /// Asks the session's own agent for a title, beside its first turn. A failure leaves the title unchanged.
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

    /// A title for a session that would begin with this prompt: from a model, if configured and possible.
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
