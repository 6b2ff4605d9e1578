//! An agent that the test plays.

use std::collections::HashMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tiller_core::Timestamp;
use tiller_core::backend::{
    Abilities, AgentChannels, AgentCommand, Attach, Backend, BackendInfo, Driver, Drivers, Launch,
    OptionRules, PositionedEvent,
};
use tiller_store_suite::fixtures::{AnyOptions, no_agent};
use tokio::sync::{mpsc, oneshot};

/// An agent that an earlier server has started, and that says what the test lets it say.
#[derive(Default)]
pub(super) struct Found {
    pub(super) tell: Mutex<Option<mpsc::Sender<Vec<PositionedEvent>>>>,
    pub(super) told: Mutex<Option<mpsc::Receiver<AgentCommand>>>,
    /// Who else has the conversation.
    pub(super) rival: Option<Driver>,
}

impl Backend for Found {
    fn info(&self) -> BackendInfo {
        no_agent()
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::new(AnyOptions)
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            drivers: Some(Arc::new(Known(self.rival.clone()))),
            ..Abilities::default()
        }
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        panic!("{launch:?}")
    }

    fn attach(&self, _attach: Attach) -> AgentChannels {
        let (tell, events) = mpsc::channel(1);
        let (commands, told) = mpsc::channel(8);
        *self.tell.lock().unwrap() = Some(tell);
        *self.told.lock().unwrap() = Some(told);
        AgentChannels {
            commands,
            events,
            settled: oneshot::channel().0,
        }
    }
}

/// What is known of who else has a conversation.
struct Known(Option<Driver>);

impl Drivers for Known {
    fn driver(
        &self,
        _conversation: String,
        _cwd: PathBuf,
        _since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        ready(self.0.clone()).boxed()
    }

    fn claim(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        self.driver(conversation, cwd, since)
    }

    fn drivers(
        &self,
        _conversations: Vec<(String, PathBuf)>,
    ) -> BoxFuture<'static, Option<HashMap<String, Driver>>> {
        ready(None).boxed()
    }

    fn competing_drivers(&self, _agents: Vec<(String, u32)>) -> BoxFuture<'static, HashMap<String, Driver>> {
        ready(HashMap::new()).boxed()
    }

    fn end_driver(&self, _driver: Driver) -> BoxFuture<'static, Result<(), String>> {
        ready(Ok(())).boxed()
    }
}
