//! The optional abilities of sessions' backends, and the refusals if a backend lacks one.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{CommandError, Sessions};
use crate::backend::{Abilities, Backend, Connections, Drivers, Hooks, InquiryFailed, OptionRefused};
use crate::ids::SessionId;
use crate::session::{Command, SessionRecord};

impl Sessions {
    /// Finds other drivers of the session's conversation, if its backend can.
    pub(super) fn drivers_of(&self, record: &SessionRecord) -> Option<Arc<dyn Drivers>> {
        self.backend_of(record).abilities().drivers
    }

    /// An ability of the session's backend; an error if the backend does not have it.
    pub(super) fn ability<A: ?Sized>(
        &self,
        record: &SessionRecord,
        ability: impl FnOnce(Abilities) -> Option<Arc<A>>,
        what: &'static str,
    ) -> Result<Arc<A>, CommandError> {
        ability_of(&*self.backend_of(record), ability, what)
    }

    /// Accepts the connections of agents that connect to the server. `None`: no backend of this server needs it.
    pub fn connections(&self) -> Option<Arc<dyn Connections>> {
        let mut all = self.shared.backends.iter();
        all.find_map(|backend| backend.abilities().connections)
    }

    /// The name of the run of the session's agent. An error if no agent is running.
    pub(super) async fn running(&self, session: SessionId) -> Result<String, CommandError> {
        let actor = self.loaded_actor(session).await?;
        let (reply, run) = oneshot::channel();
        actor
            .commands
            .send(Command::FindRun(reply))
            .await
            .map_err(|_| self.actor_ended())?;
        // The sender was dropped unanswered: the session's actor has ended.
        let run = run.await.ok().flatten();
        run.ok_or(InquiryFailed::NoAgent.into())
    }
}

fn ability_of<A: ?Sized>(
    backend: &dyn Backend,
    ability: impl FnOnce(Abilities) -> Option<Arc<A>>,
    what: &'static str,
) -> Result<Arc<A>, CommandError> {
    ability(backend.abilities()).ok_or_else(|| CommandError::Unsupported {
        agent: backend.info().title,
        what,
    })
}

/// Refuses before anything is stored, so that the user learns what to install and keeps the prompt.
pub(super) fn check_installed(backend: &dyn Backend) -> Result<(), CommandError> {
    let info = backend.info();
    if info.installed {
        return Ok(());
    }
    Err(CommandError::NotInstalled {
        agent: info.title,
        remedy: info.how_to_install.unwrap_or(info.reason),
    })
}

/// Refuses a new session that needs an ability which its backend does not have.
pub(super) fn check_start(backend: &dyn Backend, forks: bool, events: &[String]) -> Result<(), CommandError> {
    if forks {
        ability_of(backend, |abilities| abilities.fork, "fork a conversation")?;
    }
    if !events.is_empty() {
        let hooks = ability_of(backend, |abilities| abilities.hooks, "call hooks")?;
        check_hooks(&*hooks, events)?;
    }
    Ok(())
}

/// Refuses events that the backend does not have.
pub(super) fn check_hooks(hooks: &dyn Hooks, events: &[String]) -> Result<(), OptionRefused> {
    let known = hooks.events();
    match events.iter().find(|event| !known.contains(&event.as_str())) {
        Some(unknown) => {
            let message = format!(
                "The agent has no hook event '{}'. Known events: {}.",
                crate::repeated(unknown),
                known.join(", ")
            );
            Err(OptionRefused::new("hooks", message))
        }
        None => Ok(()),
    }
}
