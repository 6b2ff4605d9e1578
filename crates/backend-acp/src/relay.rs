//! Carries commands to a running agent and its events to the session.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{SinkExt as _, StreamExt as _};
use tiller_core::backend::{AgentCommand, AgentEvent, Exit, PositionedEvent};
use tiller_keeper::KeeperHandle;
use tiller_process::{Ended, Frame, Line, LineSink, Located, Process};
use tokio::sync::{mpsc, oneshot};

use crate::conversation::{Conversation, Step};
use crate::known::LastKnown;

/// How long a cancelled turn may take to end before its agent is ended.
const CANCEL_TIME: Duration = Duration::from_millis(1500);

/// How long an agent may take to end after its input has ended, and then after a request to end.
const AFTER_INPUT: Duration = Duration::from_millis(500);
const AFTER_TERMINATE: Duration = Duration::from_secs(2);

pub(crate) struct Relay {
    pub(crate) conversation: Conversation,
    /// Taken to end the agent's input.
    pub(crate) outgoing: Option<LineSink>,
    pub(crate) process: Box<dyn Process>,
    pub(crate) events: mpsc::Sender<Vec<PositionedEvent>>,
    pub(crate) run: KeeperHandle,
    /// Whether a turn is running, as far as known.
    pub(crate) busy: bool,
    /// An earlier server has handled the agent's output up to here.
    pub(crate) known_until: u64,
    /// The first line may have lost its beginning.
    pub(crate) torn: bool,
    /// Where the last turn ended: earlier output is not needed to understand what follows.
    pub(crate) settled: u64,
    /// Sent when everything was read that the agent wrote without a server.
    pub(crate) catching_up: Option<oneshot::Receiver<()>>,
    pub(crate) last_known: LastKnown,
}

/// The session no longer listens to the agent, or the agent can't be used.
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
    /// Sends the first request to an agent that was just started.
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
                // The output comes first: catching up ends when all of it was read.
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
                    if self.tell(vec![PositionedEvent::without_position(AgentEvent::CaughtUp)]).await.is_err() {
                        return self.end(incoming, Over::Unheard).await;
                    }
                }
                command = commands.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return self.shut_down(incoming).await,
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
            AgentCommand::Configure(change) => {
                let Step { tell, send, .. } = self.conversation.configure(change);
                let heard = tell.into_iter().map(PositionedEvent::without_position).collect();
                // A session that no longer listens closes its commands, too.
                drop(self.tell(heard).await);
                send
            }
            AgentCommand::Forget { before } => {
                self.run.forget(before.min(self.settled));
                return;
            }
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
                known,
            } = self.conversation.hear(&line, end);
            if turn_over {
                self.busy = false;
                self.settled = end;
            }
            if let Some(known) = known {
                self.last_known.put(known);
            }
            if end <= self.known_until {
                continue;
            }
            self.send(send).await;
            heard.extend(tell.into_iter().map(|event| PositionedEvent {
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

    /// An agent that no longer reads is about to exit, which is reported.
    async fn send(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            if let Some(outgoing) = &mut self.outgoing
                && let Err(error) = outgoing.send(line).await
            {
                tracing::debug!(%error, "the agent no longer reads its input");
            }
        }
    }

    async fn tell(&mut self, heard: Vec<PositionedEvent>) -> Result<(), Over> {
        if heard.is_empty() {
            return Ok(());
        }
        self.events.send(heard).await.map_err(|_| Over::Unheard)
    }

    /// Ends the agent. Its output until then is still recorded.
    async fn shut_down(mut self, mut incoming: BoxStream<'static, Vec<Located>>) -> Exit {
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

    /// Closes the agent's input and waits for its end, with shorter and shorter patience.
    async fn finish(mut self, mut incoming: BoxStream<'static, Vec<Located>>) -> Exit {
        self.outgoing = None;
        if !self.ends_within(AFTER_INPUT, &mut incoming).await {
            self.process.terminate().await;
            if !self.ends_within(AFTER_TERMINATE, &mut incoming).await {
                self.process.kill().await;
            }
        }
        // The exit is reported only after all output was read.
        while incoming.next().await.is_some() {}
        let ended = self.process.wait().await;
        // Including the processes that it started and left behind.
        self.process.kill().await;
        describe(&ended)
    }

    /// Reads the agent's output to its end, so that the agent does not wait for a reader.
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
