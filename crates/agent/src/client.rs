//! An agent as a program wants to use it: ask it things, read what it says, with functions that answer what it asks.

mod builder;
mod dispatch;

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::control::{
    ContextUsage, ControlRequest, GetContextUsage, Initialized, Interrupt, McpStatus, McpStatusAnswer,
    RequestError, RewindFiles, Rewound, SetMaxThinkingTokens, SetModel, SetPermissionMode,
};
use crate::link::{Closed, ConnectError, Exit, Inbound, InboxReceiver, Link};
use crate::user::UserMessage;
use tiller_message::Digest;
use tiller_message::{Message, PermissionMode, TurnResult};

pub use builder::ClientBuilder;

/// Why an agent can't go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It could not be started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The conversation that it should have gone on with does not exist any more. Start a new one.
    #[error("the conversation {} has expired; start a new one", session_id.as_deref().unwrap_or("to be resumed"))]
    SessionExpired {
        /// The conversation.
        session_id: Option<String>,
    },
    /// It ended without being asked to.
    #[error("the agent ended unexpectedly ({}){}", how(.0), last_words(.0))]
    Exited(Exit),
    /// It did not do what it was asked to.
    #[error(transparent)]
    Request(#[from] RequestError),
}

fn how(exit: &Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown cause".to_owned(),
    }
}

fn last_words(exit: &Exit) -> String {
    if exit.stderr_tail.is_empty() {
        String::new()
    } else {
        format!("; its last words: {}", exit.stderr_tail)
    }
}

/// A running agent. Ends when it is dropped, or better with [`Client::close`].
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::AgentError> {
/// use tiller_agent::{Client, Options};
///
/// let mut client = Client::connect(Options::new().model("sonnet")).await?;
/// client.query("Which files are here?").await?;
/// while let Some(message) = client.receive_turn().await? {
///     println!("{message:?}");
/// }
/// client.query("Which of them is the largest?").await?;
/// println!("{}", client.finish_turn().await?.result.unwrap_or_default());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
pub struct Client {
    link: Link,
    messages: InboxReceiver,
    initialized: Initialized,
    resumed: Option<String>,
    session_id: Option<String>,
    /// The last message that [`Client::receive_turn`] gave was the turn's result.
    turn_ended: bool,
    dispatcher: tokio::task::JoinHandle<()>,
}

impl Client {
    /// Starts an agent. Use [`Client::builder`] to give it functions that answer its questions.
    pub async fn connect(options: impl Into<ClientBuilder>) -> Result<Self, AgentError> {
        options.into().connect().await
    }

    /// A way to start an agent with permissions, hooks and tools of the caller's.
    pub fn builder(options: crate::Options) -> ClientBuilder {
        options.into()
    }

    /// Says something to the agent. What it answers is read with [`Client::receive`].
    pub async fn query(&mut self, message: impl Into<UserMessage>) -> Result<(), AgentError> {
        self.turn_ended = false;
        match self.link.send_user(&message.into()).await {
            Ok(()) => Ok(()),
            Err(Closed) => Err(self.ended().await),
        }
    }

    /// The next message of any turn. `None` when the agent was closed.
    pub async fn receive(&mut self) -> Result<Option<Message>, AgentError> {
        loop {
            match self.messages.receive().await {
                Some(Inbound::Message(message)) => {
                    if let Some(id) = message
                        .session_id()
                        .filter(|id| self.session_id.as_deref() != Some(id))
                    {
                        self.session_id = Some(id.to_owned());
                    }
                    return Ok(Some(message));
                }
                Some(Inbound::Exited(exit)) => return self.judge(exit).map(|()| None),
                Some(_) => {}
                None => return self.judge(self.link.exited().await).map(|()| None),
            }
        }
    }

    /// The next message of the turn; `None` after its result. A turn that the CLI starts of its own accord, for example
    /// when a background task has ended, does not count as the end of ours.
    pub async fn receive_turn(&mut self) -> Result<Option<Message>, AgentError> {
        if self.turn_ended {
            return Ok(None);
        }
        let message = self.receive().await?;
        if let Some(result) = message.as_ref().and_then(Message::result) {
            self.turn_ended = result.is_answer();
            // An expired conversation has a result of its own; the end of the process follows.
            if self.resumed.is_some()
                && result
                    .errors
                    .iter()
                    .any(|error| error.contains(crate::link::NOT_FOUND))
            {
                return Err(AgentError::SessionExpired {
                    session_id: self.resumed.clone(),
                });
            }
        }
        Ok(message)
    }

    /// Reads the turn to its end.
    pub async fn finish_turn(&mut self) -> Result<TurnResult, AgentError> {
        loop {
            match self.receive_turn().await? {
                Some(message) => {
                    if let Some(result) = message.result().filter(TurnResult::is_answer) {
                        return Ok(result);
                    }
                }
                None => return Err(AgentError::Exited(self.link.exited().await)),
            }
        }
    }

    /// Says something and waits for the end of the turn.
    pub async fn ask(&mut self, message: impl Into<UserMessage>) -> Result<TurnResult, AgentError> {
        self.query(message).await?;
        self.finish_turn().await
    }

    /// Stops the turn.
    pub async fn interrupt(&self) -> Result<(), RequestError> {
        self.link.request(Interrupt {}).await.map(drop)
    }

    /// Uses another model from now on; `None` is the default one.
    pub async fn set_model(&self, model: Option<&str>) -> Result<(), RequestError> {
        self.link
            .request(SetModel {
                model: model.map(str::to_owned),
            })
            .await
            .map(drop)
    }

    /// Switches the permission mode.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), RequestError> {
        self.link.request(SetPermissionMode { mode }).await.map(drop)
    }

    /// Limits thinking; `None` lifts the limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u32>) -> Result<(), RequestError> {
        self.link
            .request(SetMaxThinkingTokens {
                max_thinking_tokens: tokens,
            })
            .await
            .map(drop)
    }

    /// What fills the model's context.
    pub async fn context_usage(&self) -> Result<ContextUsage, RequestError> {
        self.link.request(GetContextUsage {}).await
    }

    /// The state of the MCP servers.
    pub async fn mcp_status(&self) -> Result<McpStatusAnswer, RequestError> {
        self.link.request(McpStatus {}).await
    }

    /// Restores the files to what they were when a user message was sent.
    pub async fn rewind_files(
        &self,
        user_message_uuid: &str,
        dry_run: bool,
    ) -> Result<Rewound, RequestError> {
        self.link
            .request(RewindFiles {
                user_message_id: user_message_uuid.to_owned(),
                dry_run,
            })
            .await
    }

    /// Any other operation of the control protocol.
    pub async fn request<R: ControlRequest>(&self, request: R) -> Result<R::Answer, RequestError> {
        self.link.request(request).await
    }

    /// What this CLI has to offer: commands, models, subagents.
    pub fn initialized(&self) -> &Initialized {
        &self.initialized
    }

    /// The session, once the agent has said something. With it the conversation can be resumed.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The handle underneath, which can be cloned and used from anywhere.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Ends the agent, and everything that it started.
    pub async fn close(self) -> Exit {
        self.link.close().await
    }

    /// Why nothing more comes.
    async fn ended(&self) -> AgentError {
        let exit = self.link.exited().await;
        match self.judge(exit.clone()) {
            Err(error) => error,
            Ok(()) => AgentError::Exited(exit),
        }
    }

    fn judge(&self, exit: Exit) -> Result<(), AgentError> {
        if exit.expired {
            return Err(AgentError::SessionExpired {
                session_id: self.resumed.clone(),
            });
        }
        if exit.requested {
            Ok(())
        } else {
            Err(AgentError::Exited(exit))
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // With the dispatcher goes the inbox, and with it the agent.
        self.dispatcher.abort();
    }
}

/// Asks an agent one thing. It is started when the answer is first looked at, and ends with it.
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::AgentError> {
/// use tiller_agent::{Options, query};
///
/// let digest = query("What does this project do?", Options::new()).finish().await?;
/// println!("{}", digest.final_text().unwrap_or_default());
/// # Ok(())
/// # }
/// ```
pub fn query(prompt: impl Into<UserMessage>, options: impl Into<ClientBuilder>) -> Query {
    let state = Asking::NotYet(Box::new((prompt.into(), options.into())));
    let stream = futures_util::stream::unfold(state, |state| async move {
        match state.next().await {
            Ok(Some((message, state))) => Some((Ok(message), state)),
            Ok(None) => None,
            Err(error) => Some((Err(error), Asking::Done)),
        }
    });
    Query {
        stream: Box::pin(stream),
    }
}

/// The answer to a [`query`]: a stream of messages.
pub struct Query {
    stream: Pin<Box<dyn Stream<Item = Result<Message, AgentError>> + Send>>,
}

enum Asking {
    NotYet(Box<(UserMessage, ClientBuilder)>),
    Reading(Box<Client>),
    Done,
}

impl Asking {
    async fn next(self) -> Result<Option<(Message, Self)>, AgentError> {
        let mut client = match self {
            Self::NotYet(asked) => {
                let (prompt, builder) = *asked;
                let mut client = builder.connect().await?;
                client.query(prompt).await?;
                Box::new(client)
            }
            Self::Reading(client) => client,
            Self::Done => return Ok(None),
        };
        if let Some(message) = client.receive_turn().await? {
            return Ok(Some((message, Self::Reading(client))));
        }
        client.close().await;
        Ok(None)
    }
}

impl Query {
    /// The next message; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Message, AgentError>> {
        std::future::poll_fn(|context| self.stream.as_mut().poll_next(context)).await
    }

    /// Reads to the end, and tells what it came to.
    pub async fn finish(mut self) -> Result<Digest, AgentError> {
        let mut digest = Digest::new();
        while let Some(message) = self.next().await {
            digest.push(&message?);
        }
        Ok(digest)
    }
}

impl Stream for Query {
    type Item = Result<Message, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}
