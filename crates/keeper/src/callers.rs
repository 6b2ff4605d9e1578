//! Connections to a keeper that have not been authenticated yet.
//!
//! The agent runs as the same user and can reach the keeper's socket unless the shield hides it. So a caller must not
//! descend from the keeper, as the agent and its child processes do, and must show the run's secret. Until then it gets
//! no data, its frames are ignored, and the connected program stays connected.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::waiting::{Ready, Waiting};
use crate::wire::{Frames, Order};

/// How many callers may wait at once, and for how long. A program authenticates with its first frame.
const MOST: usize = 4;
const PATIENCE: Duration = Duration::from_secs(10);

/// More than a proof needs. An unauthenticated caller must not fill the memory.
const LONGEST_PROOF: usize = 4096;

pub(crate) struct Callers {
    /// Empty: the keeper was started by a version without secrets.
    secret: Vec<u8>,
    waiting: Vec<Caller>,
}

struct Caller {
    connection: UnixStream,
    orders: Frames,
    heard: usize,
    since: Instant,
}

enum Proof {
    Given,
    NotYet,
    Wrong,
}

impl Callers {
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self {
            secret,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, connection: UnixStream) {
        if !may_call(&connection) || connection.set_nonblocking(true).is_err() {
            return;
        }
        let now = Instant::now();
        self.waiting.retain(|caller| now < caller.since + PATIENCE);
        if self.waiting.len() >= MOST {
            // A caller that sends nothing must not block the program.
            self.waiting.remove(0);
        }
        self.waiting.push(Caller {
            connection,
            orders: Frames::default(),
            heard: 0,
            since: now,
        });
    }

    pub(crate) fn wait_for<'a>(&'a self, waiting: &mut Waiting<'a>) {
        for caller in &self.waiting {
            waiting.add(&caller.connection, PollFlags::IN, |ready: &mut Ready| {
                &mut ready.callers
            });
        }
    }

    /// The first authenticated caller, with the frames after its proof.
    pub(crate) fn proved(&mut self, buffer: &mut [u8]) -> Option<(UnixStream, Frames)> {
        let mut position = 0;
        while position < self.waiting.len() {
            match self.waiting[position].read(buffer, &self.secret) {
                Proof::Given => {
                    let Caller {
                        connection, orders, ..
                    } = self.waiting.remove(position);
                    return Some((connection, orders));
                }
                Proof::NotYet => position += 1,
                Proof::Wrong => drop(self.waiting.remove(position)),
            }
        }
        None
    }
}

impl Caller {
    fn read(&mut self, buffer: &mut [u8], secret: &[u8]) -> Proof {
        match self.connection.read(buffer) {
            Ok(0) => return Proof::Wrong,
            Ok(count) => {
                self.heard += count;
                self.orders.push(&buffer[..count]);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return Proof::NotYet;
            }
            Err(_) => return Proof::Wrong,
        }
        match self
            .orders
            .next()
            .map(|frame| frame.map(|(kind, body)| Order::decode(kind, body)))
        {
            Ok(None) if self.heard <= LONGEST_PROOF => Proof::NotYet,
            Ok(Some(Ok(Some(Order::Attach { secret: shown })))) if is_same(&shown, secret) => Proof::Given,
            _ => Proof::Wrong,
        }
    }
}

/// Compares in constant time.
fn is_same(shown: &[u8], secret: &[u8]) -> bool {
    secret.is_empty()
        || shown.len() == secret.len()
            && shown
                .iter()
                .zip(secret)
                .fold(0, |differences, (a, b)| differences | (a ^ b))
                == 0
}

/// Whether the caller is a process of the same user that does not descend from this one.
#[cfg(target_os = "linux")]
fn may_call(connection: &UnixStream) -> bool {
    use tiller_process::Stat;

    let Ok(peer) = rustix::net::sockopt::socket_peercred(connection) else {
        return false;
    };
    let own = std::process::id();
    let pid = peer.pid.as_raw_nonzero().get().cast_unsigned();
    // A caller that has already gone, or that this process can't see, is refused.
    let parent = |pid: &u32| Stat::of(*pid)?.parent().filter(|parent| *parent > 0);
    peer.uid == rustix::process::geteuid()
        && Stat::of(pid).is_some()
        && std::iter::successors(Some(pid), parent).all(|ancestor| ancestor != own)
}

/// Other systems don't reveal the process; the secret has to suffice.
#[cfg(not(target_os = "linux"))]
fn may_call(_connection: &UnixStream) -> bool {
    true
}
