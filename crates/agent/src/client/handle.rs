//! What may be done with a running agent from anywhere.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::conductor::{InterruptWaiter, Known, Prompt};
use super::turn::{Judge, Turn};
use crate::control::{
    ContextUsage, ControlRequest, GetContextUsage, McpReconnect, McpStatus, McpStatusAnswer, McpToggle,
    RewindFiles, Rewound, SetMaxThinkingTokens, SetModel, SetPermissionMode, StopTask,
};
use crate::error::Error;
use crate::link::{self, Link};
use crate::user::UserMessage;
use tiller_message::{PermissionMode, TurnResult};

/// A handle of a [`Client`](crate::Client): everything but reading messages that belong to no turn. Cheap to clone; every
/// clone may be used from any task, at the same time.
///
/// Handles do not keep the agent alive: when the client is closed or dropped, they answer [`Error::Closed`].
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::Error> {
/// use tiller_agent::{Client, Options};
///
/// let client = Client::connect(Options::new()).await?;
/// let handle = client.handle();
/// let asking = tokio::spawn(async move { handle.ask("Write a long story.").await });
/// client.set_permission_mode(tiller_agent::PermissionMode::Plan).await?;
/// client.interrupt().await?;
/// println!("{:?}", asking.await.map(|result| result.map(|result| result.subtype)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientHandle {
    pub(super) link: Link,
    pub(super) prompts: mpsc::Sender<Prompt>,
    pub(super) interrupts: mpsc::Sender<InterruptWaiter>,
    pub(super) judge: Arc<Judge>,
    pub(super) known: Arc<Known>,
    pub(super) inbox_bytes: usize,
}

impl ClientHandle {
    /// Sends a prompt; the answer is the turn that is returned. If a turn runs, the prompt waits for its end.
    ///
    /// Cancel safe: if the future is dropped, the prompt is not sent.
    pub async fn turn(&self, prompt: impl Into<UserMessage>) -> Result<Turn, Error> {
        let mut message = prompt.into();
        let id = message.identify();
        let (turn, messages) = link::inbox_channel(self.inbox_bytes);
        let (cost_before, cost) = oneshot::channel();
        let prompt = Prompt {
            id: id.clone(),
            message,
            turn,
            cost_before,
        };
        if self.prompts.send(prompt).await.is_err() {
            return Err(self.ended().await);
        }
        let (judge, link) = (Arc::clone(&self.judge), self.link.clone());
        Ok(Turn::new(id, messages, cost, judge, link))
    }

    /// Sends a prompt and waits for the result of its turn. Several at once run one after another, each with its own
    /// answer.
    ///
    /// If the future is dropped, for example by a timeout, the answer is given up, and no other caller gets it. A prompt
    /// that was waiting is not sent; a turn that runs goes on until it ends or is interrupted.
    pub async fn ask(&self, prompt: impl Into<UserMessage>) -> Result<TurnResult, Error> {
        self.turn(prompt).await?.finish().await
    }

    /// Stops the turn that runs. It ends with a result whose subtype is `error_during_execution`. Prompts that wait are
    /// kept; the next of them begins. Does nothing if no turn runs.
    ///
    /// Cancel safe: if the future is dropped, the interrupt may still happen, and never hits a later turn.
    pub async fn interrupt(&self) -> Result<(), Error> {
        let (waiter, answer) = oneshot::channel();
        if self.interrupts.send(waiter).await.is_err() {
            return Err(self.ended().await);
        }
        match answer.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(self.ended().await),
        }
    }

    /// Uses another model from now on; `None` is the default one.
    pub async fn set_model(&self, model: Option<&str>) -> Result<(), Error> {
        let model = model.map(str::to_owned);
        self.request(SetModel { model }).await.map(drop)
    }

    /// Switches the permission mode.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.request(SetPermissionMode { mode }).await.map(drop)
    }

    /// Limits how many tokens the model thinks; `None` lifts the limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u32>) -> Result<(), Error> {
        let max_thinking_tokens = tokens;
        self.request(SetMaxThinkingTokens { max_thinking_tokens })
            .await
            .map(drop)
    }

    /// How full the model's context is, and with what.
    #[doc(alias = "get_context_usage")]
    pub async fn context_usage(&self) -> Result<ContextUsage, Error> {
        self.request(GetContextUsage {}).await
    }

    /// Which MCP servers are connected, and what tools they have.
    #[doc(alias = "get_mcp_status")]
    pub async fn mcp_status(&self) -> Result<McpStatusAnswer, Error> {
        self.request(McpStatus {}).await
    }

    /// Connects to an MCP server again.
    #[doc(alias = "reconnect_mcp_server")]
    pub async fn mcp_reconnect(&self, server: &str) -> Result<(), Error> {
        let server_name = server.to_owned();
        self.request(McpReconnect { server_name }).await.map(drop)
    }

    /// Switches an MCP server on or off.
    #[doc(alias = "toggle_mcp_server")]
    pub async fn mcp_toggle(&self, server: &str, enabled: bool) -> Result<(), Error> {
        let server_name = server.to_owned();
        self.request(McpToggle { server_name, enabled }).await.map(drop)
    }

    /// Ends a background task, by the id that `task_started` messages carry.
    pub async fn stop_task(&self, task_id: &str) -> Result<(), Error> {
        let task_id = task_id.to_owned();
        self.request(StopTask { task_id }).await.map(drop)
    }

    /// Restores the files to what they were when a prompt was sent, by the prompt's uuid ([`Turn::id`]). With `dry_run`
    /// nothing changes; the answer lists what would. Needs
    /// [`Options::file_checkpointing`](crate::Options::file_checkpointing).
    pub async fn rewind_files(&self, prompt_uuid: &str, dry_run: bool) -> Result<Rewound, Error> {
        let user_message_id = prompt_uuid.to_owned();
        self.request(RewindFiles {
            user_message_id,
            dry_run,
        })
        .await
    }

    /// Any other operation of the control protocol: see [`control`](crate::control).
    ///
    /// Cancel safe: if the future is dropped, the answer is discarded.
    pub async fn request<R: ControlRequest>(&self, request: R) -> Result<R::Answer, Error> {
        match self.link.request(request).await {
            Err(crate::control::RequestError::Closed) => Err(self.ended().await),
            answer => Ok(answer?),
        }
    }

    /// The session's id, once the agent has said something. With it the conversation can be resumed.
    pub fn session_id(&self) -> Option<String> {
        self.known.session_id()
    }

    /// Only the power to stop the turn that runs, for example for a Ctrl-C handler.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.clone())
    }

    /// Why nothing more comes.
    pub(super) async fn ended(&self) -> Error {
        self.judge.error(self.link.exited().await)
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandle")
            .field("session_id", &self.session_id())
            .field("pid", &self.link.pid())
            .finish_non_exhaustive()
    }
}

/// The power to stop the turn that runs, and no other. See [`Client::interrupter`](crate::Client::interrupter).
#[derive(Debug, Clone)]
pub struct Interrupter(ClientHandle);

impl Interrupter {
    /// Stops the turn that runs: see [`ClientHandle::interrupt`].
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.0.interrupt().await
    }
}
