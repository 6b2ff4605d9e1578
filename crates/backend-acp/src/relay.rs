//! Between a session and a running agent.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{SinkExt as _, StreamExt as _};
use tiller_core::backend::{AgentCommand, AgentEvent, Exit, Heard, InquiryFailed};
use tiller_keeper::Run;
use tiller_process::{Ended, Frame, Line, LineSink, Located, Process};
use tokio::sync::{mpsc, oneshot};

use crate::conversation::{Conversation, Step};

/// How long a cancelled turn may take to end when its agent is to end.
const CANCEL_TIME: Duration = Duration::from_millis(1500);

/// How long an agent whose input has ended may take to end, and then how long one that was asked to.
const AFTER_INPUT: Duration = Duration::from_millis(500);
const AFTER_TERMINATE: Duration = Duration::from_secs(2);

pub(crate) struct Relay {
    pub(crate) conversation: Conversation,
    /// Taken away to end the agent's input.
    pub(crate) outgoing: Option<LineSink>,
    pub(crate) process: Box<dyn Process>,
    pub(crate) events: mpsc::Sender<Vec<Heard>>,
    pub(crate) run: Run,
    /// A turn is running, as far as is known.
    pub(crate) busy: bool,
    /// What the agent said up to here an earlier server has dealt with.
    pub(crate) known: u64,
    /// The first line may have lost its beginning.
    pub(crate) torn: bool,
    /// Where the last turn ended: what was said before it is not needed to understand what follows.
    pub(crate) settled: u64,
    /// Told when everything has been read that was said without us.
    pub(crate) catching_up: Option<oneshot::Receiver<()>>,
}

/// Nobody listens to the agent any more, or it can't be used.
enum Over {
    Unheard,
    Failed(Exit),
}

async fn reached(catching_up: &mut Option<oneshot::Receiver<()>>) {
    if let Some(caught_up) = catching_up {
        let told = caught_up.await;
        *catching_up = None;
        if told.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

impl Relay {
    /// The first words to an agent that was just started.
    pub(crate) async fn begin(&mut self) {
        let request = self.conversation.request();
        self.send(request).await;
    }

    pub(crate) async fn run(
        mut self,
        mut incoming: BoxStream<'static, Vec<Located>>,
        commands: &mut mpsc::Receiver<AgentCommand>,
    ) -> Exit {
        loop {
            tokio::select! {
                // What the agent said comes before the news that it is all of it.
                biased;
                frames = incoming.next() => match frames {
                    Some(frames) => {
                        if let Err(over) = self.hear(frames).await {
                            return self.end(incoming, over).await;
                        }
                    }
                    None => return describe(&self.process.wait().await),
                },
                () = reached(&mut self.catching_up) => {
                    if let Some(request) = self.conversation.request() {
                        self.send([request]).await;
                    }
                    if self.tell(vec![Heard::lost(AgentEvent::CaughtUp)]).await.is_err() {
                        return self.end(incoming, Over::Unheard).await;
                    }
                }
                command = commands.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return self.last_words(incoming).await,
                },
            }
        }
    }

    async fn command(&mut self, command: AgentCommand) {
        let lines = match command {
            AgentCommand::Prompt {
                words,
                images,
                number,
                ..
            } => {
                self.busy = true;
                self.conversation.prompt(&words, &images, number)
            }
            AgentCommand::Answer {
                agent_request,
                answer,
                number,
            } => self.conversation.answer(&agent_request, &answer, number),
            AgentCommand::Interrupt => self.conversation.cancel(),
            AgentCommand::Configure(change) => self.conversation.configure(&change).into_iter().collect(),
            AgentCommand::Forget { before } => {
                self.run.forget(before.min(self.settled));
                return;
            }
            AgentCommand::Inquire(_, reply) => {
                reply.send(Err(InquiryFailed::Unsupported));
                return;
            }
            // Agents of this kind call back for nothing.
            AgentCommand::AnswerHook { .. } => return,
        };
        self.send(lines).await;
    }

    async fn hear(&mut self, frames: Vec<Located>) -> Result<(), Over> {
        let mut heard = Vec::new();
        let mut fail = None;
        for Located { frame, end } in frames {
            let line = match frame {
                Frame::Line(line) if !std::mem::take(&mut self.torn) => line,
                Frame::Line(_) => continue,
                Frame::Oversized { length } => {
                    tracing::warn!(length, "a line of the agent's was too long and is skipped");
                    continue;
                }
            };
            let Step {
                tell,
                send,
                fail: failed,
                turn_over,
            } = self.conversation.hear(&line, end);
            if turn_over {
                self.busy = false;
                self.settled = end;
            }
            if end <= self.known {
                continue;
            }
            self.send(send).await;
            heard.extend(tell.into_iter().map(|event| Heard {
                event,
                position: Some(end),
            }));
            if failed.is_some() {
                fail = failed;
                break;
            }
        }
        self.tell(heard).await?;
        fail.map_or(Ok(()), |exit| Err(Over::Failed(exit)))
    }

    /// An agent that does not listen any more is about to end, and its end says so.
    async fn send(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            if let Some(outgoing) = &mut self.outgoing
                && let Err(error) = outgoing.send(line).await
            {
                tracing::debug!(%error, "the agent does not listen any more");
            }
        }
    }

    async fn tell(&mut self, heard: Vec<Heard>) -> Result<(), Over> {
        if heard.is_empty() {
            return Ok(());
        }
        self.events.send(heard).await.map_err(|_| Over::Unheard)
    }

    /// Ends the agent. What it says until then belongs to the session.
    async fn last_words(mut self, mut incoming: BoxStream<'static, Vec<Located>>) -> Exit {
        if self.busy {
            let lines = self.conversation.cancel();
            self.send(lines).await;
            let deadline = tokio::time::Instant::now() + CANCEL_TIME;
            while self.busy {
                match tokio::time::timeout_at(deadline, incoming.next()).await {
                    Ok(Some(frames)) => {
                        if let Err(over) = self.hear(frames).await {
                            return self.end(incoming, over).await;
                        }
                    }
                    Ok(None) => return describe(&self.process.wait().await),
                    Err(_) => break,
                }
            }
        }
        self.finish(incoming).await
    }

    /// Closes the agent's input and waits for its end, less and less patiently.
    async fn finish(mut self, mut incoming: BoxStream<'static, Vec<Located>>) -> Exit {
        self.outgoing = None;
        if !self.ends_within(AFTER_INPUT, &mut incoming).await {
            self.process.terminate().await;
            if !self.ends_within(AFTER_TERMINATE, &mut incoming).await {
                self.process.kill().await;
            }
        }
        // The end is told to those who read.
        while incoming.next().await.is_some() {}
        let ended = self.process.wait().await;
        // Also what it has started and left behind.
        self.process.kill().await;
        describe(&ended)
    }

    /// Reads the agent's output to its end, so that it does not wait for a reader.
    async fn ends_within(
        &mut self,
        patience: Duration,
        incoming: &mut BoxStream<'static, Vec<Located>>,
    ) -> bool {
        let reading = async {
            while let Some(frames) = incoming.next().await {
                if self.hear(frames).await.is_err() {
                    break;
                }
            }
        };
        tokio::time::timeout(patience, reading).await.is_ok()
    }

    async fn end(mut self, mut incoming: BoxStream<'static, Vec<Located>>, over: Over) -> Exit {
        self.outgoing = None;
        self.process.kill().await;
        while incoming.next().await.is_some() {}
        let ended = self.process.wait().await;
        match over {
            Over::Unheard => describe(&ended),
            Over::Failed(Exit::NotStarted { message }) => Exit::NotStarted {
                message: with_tail(message, &ended),
            },
            Over::Failed(exit) => exit,
        }
    }
}

fn describe(ended: &Ended) -> Exit {
    let how = match (ended.code, ended.signal) {
        (Some(code), _) => format!("The agent ended unexpectedly with exit code {code}."),
        (None, Some(signal)) => format!("The agent was ended by signal {signal}."),
        (None, None) => "The agent ended unexpectedly.".to_owned(),
    };
    Exit::Ended {
        message: with_tail(how, ended),
    }
}

fn with_tail(message: String, ended: &Ended) -> String {
    let tail = ended.stderr_tail.trim();
    if tail.is_empty() {
        message
    } else {
        format!("{message}\n{tail}")
    }
}
