//! The channels between a session and its agent.

use tokio::sync::{mpsc, oneshot};

use super::{AgentCommand, AgentEvent, Exit, PositionedEvent};

/// How many commands may wait for an agent that does not read them.
const COMMANDS: usize = 64;

/// How many batches of events may wait for a session that does not read them. When the channel is full, the agent
/// waits.
const EVENTS: usize = 4;

/// The session's ends of the channels.
#[derive(Debug)]
pub struct AgentChannels {
    /// Dropping it ends the agent.
    pub commands: mpsc::Sender<AgentCommand>,
    /// The agent's events, in order and in batches.
    pub events: mpsc::Receiver<Vec<PositionedEvent>>,
    /// Sent when the agent's exit is stored and the data of its run is no longer needed. If it is dropped unsent, the
    /// run's data is kept for the next server.
    pub settled: oneshot::Sender<()>,
}

/// The backend's ends of the channels.
#[derive(Debug)]
pub struct AgentEnds {
    pub commands: mpsc::Receiver<AgentCommand>,
    pub events: mpsc::Sender<Vec<PositionedEvent>>,
    settled: oneshot::Receiver<()>,
}

impl AgentChannels {
    /// Channels of an agent that is about to start.
    pub fn open() -> (Self, AgentEnds) {
        let (commands, command_inbox) = mpsc::channel(COMMANDS);
        let (event_outbox, events) = mpsc::channel(EVENTS);
        let (settled, is_settled) = oneshot::channel();
        let channels = Self {
            commands,
            events,
            settled,
        };
        let ends = AgentEnds {
            commands: command_inbox,
            events: event_outbox,
            settled: is_settled,
        };
        (channels, ends)
    }

    /// Channels of an agent that no longer exists.
    pub fn of_ended_agent() -> Self {
        Self::ended(Exit::Ended {
            message:
                "Tiller ended while this turn was running. Send a message to go on from where it stopped."
                    .to_owned(),
        })
    }

    /// Channels of an agent that ended before it began.
    pub fn ended(exit: Exit) -> Self {
        let (channels, ends) = Self::open();
        let exited = vec![PositionedEvent::without_position(AgentEvent::Exited(exit))];
        // The channel is new and has room.
        drop(ends.events.try_send(exited));
        channels
    }
}

impl AgentEnds {
    /// Sends the session an event that can't be read again.
    pub async fn tell(&self, event: AgentEvent) {
        // A session that is gone needs no events; the backend notices when its commands end.
        drop(
            self.events
                .send(vec![PositionedEvent::without_position(event)])
                .await,
        );
    }

    /// Reports the agent's exit, which is always the last event. `remove` removes the data of the run once the exit is
    /// stored; if the session is left to the next server, the data is kept. The session starts no other agent before
    /// this is done.
    pub async fn exited(self, exit: Exit, remove: impl Future<Output = ()>) {
        self.tell(AgentEvent::Exited(exit)).await;
        if self.settled.await.is_ok() {
            remove.await;
        }
        // Only now: the session waits for the end of this channel.
        drop(self.events);
    }
}
