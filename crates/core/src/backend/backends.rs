//! The backends of a server, by name.

use std::sync::Arc;

use tiller_process::Shield;

use super::{
    Abilities, AgentChannels, Attach, Backend, BackendInfo, Exit, Launch, OptionChange, OptionInfo,
    OptionRefused, OptionRules, Options, SandboxLevel, Verdict,
};

/// The backends of a server. A session that does not name a backend gets the default one.
#[derive(Clone)]
pub struct Backends {
    /// The first is the default.
    all: Vec<Arc<dyn Backend>>,
    /// The shield of their agents, if known.
    shield: Option<Shield>,
    /// The sandbox of sessions that are started with a key and don't choose one.
    key_sandbox: SandboxLevel,
}

impl<B: Backend> From<Arc<B>> for Backends {
    fn from(backend: Arc<B>) -> Self {
        Self {
            all: vec![backend],
            shield: None,
            key_sandbox: SandboxLevel::Off,
        }
    }
}

/// This server does not have the requested backend.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("Unknown agent '{}'. Available: {}.", crate::repeated(.wanted), .available.join(", "))]
pub struct UnknownBackend {
    pub wanted: String,
    pub available: Vec<String>,
}

impl Backends {
    pub fn new(default: Arc<dyn Backend>) -> Self {
        Self {
            all: vec![default],
            shield: None,
            key_sandbox: SandboxLevel::Off,
        }
    }

    /// Sets the shield of the agents.
    #[must_use]
    pub fn shielded_by(mut self, shield: Shield) -> Self {
        self.shield = Some(shield);
        self
    }

    /// Says in which sandbox agents run that are started with a key, unless the session says otherwise.
    #[must_use]
    pub fn sandboxing_keys(mut self, level: SandboxLevel) -> Self {
        self.key_sandbox = level;
        self
    }

    pub(crate) fn key_sandbox(&self) -> SandboxLevel {
        self.key_sandbox
    }

    /// Why agents are not shielded and what to do about it, for a person. `None`: they are shielded, or it is unknown.
    pub fn not_shielded(&self) -> Option<String> {
        self.shield.as_ref()?.state().why_not()
    }

    /// Adds a backend, unless its name is taken.
    #[must_use]
    pub fn with(mut self, backend: Arc<dyn Backend>) -> Self {
        let name = backend.name();
        if !self.all.iter().any(|known| known.name() == name) {
            self.all.push(backend);
        }
        self
    }

    pub fn default_one(&self) -> &Arc<dyn Backend> {
        // `new` adds the first backend, and backends are never removed.
        &self.all[0]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.all.iter()
    }

    /// The backend of that name. No name, an empty one and `auto` mean the default backend.
    pub fn find(&self, name: Option<&str>) -> Result<&Arc<dyn Backend>, UnknownBackend> {
        match name {
            None | Some("" | "auto") => Ok(self.default_one()),
            Some(name) => {
                let found = self.all.iter().find(|backend| backend.name() == name);
                found.ok_or_else(|| UnknownBackend {
                    wanted: name.to_owned(),
                    available: self.all.iter().map(|backend| backend.name()).collect(),
                })
            }
        }
    }

    /// The backend of a session. If this server does not have it, the session can be read but its agent can't start.
    pub fn of(&self, name: Option<&str>) -> Arc<dyn Backend> {
        match self.find(name) {
            Ok(found) => Arc::clone(found),
            Err(unknown) => Arc::new(MissingBackend(unknown)),
        }
    }
}

/// Stands in for a backend that an earlier server had and this one does not have.
struct MissingBackend(UnknownBackend);

impl Backend for MissingBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            installed: false,
            reason: self.0.to_string(),
            ..BackendInfo::named(&self.0.wanted)
        }
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::new(FrozenOptions(self.0.clone()))
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn launch(&self, _launch: Launch) -> AgentChannels {
        let message = self.0.to_string();
        AgentChannels::ended(Exit::NotStarted { message })
    }

    fn attach(&self, _attach: Attach) -> AgentChannels {
        AgentChannels::of_ended_agent()
    }
}

/// Options of a missing backend: they can't be checked, so they stay as they are.
#[derive(Debug)]
struct FrozenOptions(UnknownBackend);

impl OptionRules for FrozenOptions {
    fn describe(&self) -> Vec<OptionInfo> {
        Vec::new()
    }

    fn check(&self, options: Options, before: Option<&Options>) -> Result<Options, OptionRefused> {
        let changes = before.unwrap_or(&Options::default()).changes_to(&options);
        match changes.into_iter().next() {
            Some(change) => Err(OptionRefused::new(change.name, self.0.to_string())),
            None => Ok(options),
        }
    }

    fn live_changes(&self, _started: &Options, _current: &Options, _wanted: &Options) -> Vec<OptionChange> {
        Vec::new()
    }

    fn verdict(&self, _options: &Options, _tool: &str) -> Verdict {
        Verdict::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Backend for Named {
        fn info(&self) -> BackendInfo {
            BackendInfo::named(self.0)
        }

        fn options(&self) -> Arc<dyn OptionRules> {
            unreachable!("nobody asks")
        }

        fn abilities(&self) -> Abilities {
            Abilities::default()
        }

        fn launch(&self, launch: Launch) -> AgentChannels {
            unreachable!("{launch:?}")
        }

        fn attach(&self, attach: Attach) -> AgentChannels {
            unreachable!("{attach:?}")
        }
    }

    #[test]
    fn a_backend_is_found_by_its_name() {
        let backends = Backends::new(Arc::new(Named("one"))).with(Arc::new(Named("two")));
        for (name, expected) in [
            (None, "one"),
            (Some(""), "one"),
            (Some("auto"), "one"),
            (Some("two"), "two"),
        ] {
            let found = backends.find(name).map(|backend| backend.info().name);
            assert_eq!(found, Ok(expected.to_owned()));
        }
        let unknown = backends.find(Some("three")).err().map(|error| error.to_string());
        assert_eq!(
            unknown.as_deref(),
            Some("Unknown agent 'three'. Available: one, two.")
        );
        assert!(!backends.of(Some("three")).info().installed);
    }
}
