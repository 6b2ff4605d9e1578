//! An agent whose part the test plays.

use std::future::ready;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tiller_core::Timestamp;
use tiller_core::backend::{
    AgentChannels, AgentCommand, Attach, Backend, BackendInfo, Driver, Heard, Launch, OptionRules,
};
use tokio::sync::{mpsc, oneshot};

use super::upkeep::{AnyOptions, no_agent};

/// An agent that an earlier server has started, and that says what the test lets it say.
#[derive(Default)]
pub(super) struct Found {
    pub(super) tell: Mutex<Option<mpsc::Sender<Vec<Heard>>>>,
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

    fn driver(
        &self,
        _conversation: String,
        _cwd: PathBuf,
        _since: Timestamp,
    ) -> Pin<Box<dyn Future<Output = Option<Driver>> + Send>> {
        Box::pin(ready(self.rival.clone()))
    }
}
