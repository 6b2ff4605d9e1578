//! One question, or a stream of them, and the end of the agent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};

use super::{Client, ClientBuilder};
use crate::error::Error;
use crate::user::UserMessage;
use tiller_message::{Cost, Digest, Message};

/// Prompts that are taken from a stream before the first of them is answered.
const AHEAD: usize = 16;

/// Asks an agent one thing. The agent is started when the answer is first read, and ends with it.
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::Error> {
/// use tiller_agent::{Options, query};
///
/// let digest = query("What does this project do?", Options::new()).finish().await?;
/// println!("{}", digest.final_text().unwrap_or_default());
/// # Ok(())
/// # }
/// ```
pub fn query(prompt: impl Into<UserMessage>, options: impl Into<ClientBuilder>) -> Query {
    let prompt = prompt.into();
    query_stream(futures_util::stream::once(std::future::ready(prompt)), options)
}

/// Asks an agent everything that a stream yields, one turn for each prompt. Prompts are taken from the stream as they
/// come; the agent ends when the stream has ended and everything is answered.
///
/// ```no_run
/// # async fn example(lines: impl futures_util::Stream<Item = String> + Send + 'static) -> Result<(), tiller_agent::Error> {
/// use tiller_agent::{Options, query_stream};
///
/// let mut messages = query_stream(lines, Options::new());
/// while let Some(message) = messages.next().await {
///     println!("{:?}", message?);
/// }
/// # Ok(())
/// # }
/// ```
pub fn query_stream<S>(prompts: S, options: impl Into<ClientBuilder>) -> Query
where
    S: Stream + Send + 'static,
    S::Item: Into<UserMessage>,
{
    let state = Asking::NotYet(Box::new((prompts.map(Into::into).boxed(), options.into())));
    let stream = futures_util::stream::unfold((state, 0.0), |(state, cost)| async move {
        match state.next(cost).await {
            Ok(Some((message, state, cost))) => Some((Ok((message, cost)), (state, cost))),
            Ok(None) => None,
            Err(error) => Some((Err(error), (Asking::Done, cost))),
        }
    });
    Query {
        stream: stream.boxed(),
        cost_before: None,
    }
}

/// The answer to a [`query`]: a stream of messages.
pub struct Query {
    stream: BoxStream<'static, Result<(Message, f64), Error>>,
    cost_before: Option<f64>,
}

enum Asking {
    NotYet(Box<(BoxStream<'static, UserMessage>, ClientBuilder)>),
    Reading(Box<(Option<BoxStream<'static, UserMessage>>, Client)>),
    Done,
}

impl Asking {
    /// The next message, and what the session had cost before the first turn.
    async fn next(self, cost: f64) -> Result<Option<(Message, Self, f64)>, Error> {
        let (mut reading, cost) = match self {
            Self::NotYet(asked) => {
                let (prompts, builder) = *asked;
                let client = builder.connect().await?;
                let cost = client.known.total_usd();
                (Box::new((Some(prompts), client)), cost)
            }
            Self::Reading(reading) => (reading, cost),
            Self::Done => return Ok(None),
        };
        let (prompts, client) = &mut *reading;
        loop {
            if prompts.is_none() && client.open_turns() == 0 {
                break;
            }
            let room = client.open_turns() < AHEAD;
            let next_prompt = async {
                match prompts.as_mut().filter(|_| room) {
                    Some(prompts) => prompts.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                prompt = next_prompt => match prompt {
                    Some(prompt) => client.query(prompt).await?,
                    None => *prompts = None,
                },
                message = client.receive() => match message {
                    Some(message) => return Ok(Some((message?, Self::Reading(reading), cost))),
                    None => break,
                },
            }
        }
        let (_, client) = *reading;
        client.close().await;
        Ok(None)
    }
}

impl Query {
    /// The next message; `None` after the last one, or after an error.
    ///
    /// Cancel safe: if the future is dropped, no message is lost.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|context| self.poll_message(context)).await
    }

    /// Reads to the end, and tells what it came to: text, tool calls, to-dos, cost.
    ///
    /// If the future is dropped, the agent ends.
    pub async fn finish(mut self) -> Result<Digest, Error> {
        let mut digest: Option<Digest> = None;
        while let Some(message) = self.next().await {
            let message = message?;
            let before = self.cost_before.unwrap_or_default();
            digest
                .get_or_insert_with(|| Digest::resumed(Cost::resumed(before)))
                .push(&message);
        }
        Ok(digest.unwrap_or_default())
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        self.stream.as_mut().poll_next(context).map(|message| {
            message.map(|message| {
                message.map(|(message, cost)| {
                    self.cost_before = Some(cost);
                    message
                })
            })
        })
    }
}

impl Stream for Query {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(context)
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}
