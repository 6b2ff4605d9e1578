//! Waiting for the process, and ending it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::options::Grace;
use tiller_process::{Ended, Process};

/// A resumed run that ends so soon may not have found its conversation in a usable state.
const EARLY: Duration = Duration::from_secs(5);
/// How the CLI begins to say that the conversation to be resumed does not exist.
pub const NOT_FOUND: &str = "No conversation found";
/// How often is looked whether the processes that were told to end have done so.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if it was ended by one.
    pub signal: Option<i32>,
    /// The last lines of its stderr.
    pub stderr_tail: String,
    /// How long it lived.
    pub uptime: Duration,
    /// The conversation that it should have resumed does not exist any more: the CLI said so. Start a new one.
    pub expired: bool,
    /// It should have resumed a conversation, and ended by itself before a turn of it had ended well. `expired` tells
    /// whether the conversation is the reason; otherwise the conversation may be as good as ever.
    pub resume_failed: bool,
    /// It ended because we wanted it to.
    pub requested: bool,
}

impl Exit {
    pub(super) fn unknown() -> Self {
        Self {
            code: None,
            signal: None,
            stderr_tail: String::new(),
            uptime: Duration::ZERO,
            expired: false,
            resume_failed: false,
            requested: true,
        }
    }

    /// Whether a conversation was to be resumed and the process ended within five seconds. Without other words of the
    /// CLI's this is a hint that the conversation is damaged, no more: a wrong option looks the same.
    pub fn ended_early(&self) -> bool {
        self.resume_failed && self.uptime < EARLY
    }

    pub(crate) fn how(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown cause".to_owned(),
        }
    }

    pub(crate) fn last_words(&self) -> String {
        if self.stderr_tail.is_empty() {
            String::new()
        } else {
            format!("; the end of its stderr: {}", self.stderr_tail)
        }
    }
}

/// Whether the agent is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    No,
    /// With these graces, counted from when it was first asked for.
    Yes(Grace),
}

impl Closing {
    /// Asks the agent to end. A later request can only shorten the time that it has.
    pub(super) fn ask(closing: &watch::Sender<Self>, grace: Grace) {
        closing.send_if_modified(|current| {
            let wanted = match *current {
                Self::No => grace,
                Self::Yes(earlier) => Grace {
                    after_input: earlier.after_input.min(grace.after_input),
                    after_terminate: earlier.after_terminate.min(grace.after_terminate),
                },
            };
            let changed = *current != Self::Yes(wanted);
            *current = Self::Yes(wanted);
            changed
        });
    }
}

/// What the reader has seen that tells an expired conversation from other failures.
#[derive(Debug)]
pub(super) struct Evidence {
    resumes: bool,
    not_found: AtomicBool,
    /// It closed its output and lived on.
    silent: AtomicBool,
    /// A turn has ended well, so the conversation was there.
    answered: AtomicBool,
}

impl Evidence {
    pub(super) fn new(resumes: bool) -> Self {
        Self {
            resumes,
            not_found: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        }
    }

    pub(super) fn saw_not_found(&self) {
        self.not_found.store(true, Ordering::Release);
    }

    pub(super) fn saw_silence(&self) {
        self.silent.store(true, Ordering::Release);
    }

    pub(super) fn saw_answer(&self) {
        self.answered.store(true, Ordering::Release);
    }

    fn expired(&self, ended: &Ended) -> bool {
        let said_so = self.not_found.load(Ordering::Acquire) || ended.stderr_tail.contains(NOT_FOUND);
        self.resumes && said_so
    }

    fn resume_failed(&self, requested: bool) -> bool {
        self.resumes && !requested && !self.answered.load(Ordering::Acquire)
    }
}

/// Waits for the end of the process or for the wish to end it; leaves nothing of it behind.
pub(super) async fn supervise(
    mut process: Box<dyn Process>,
    grace: Grace,
    mut closing: watch::Receiver<Closing>,
    exit: watch::Sender<Option<Exit>>,
    evidence: Arc<Evidence>,
) {
    let ended = tokio::select! {
        ended = process.wait() => Some(ended),
        _ = closing.wait_for(|closing| matches!(closing, Closing::Yes(_))) => None,
    };
    let (ended, requested) = match ended {
        Some(ended) => (ended, false),
        None => (end(process.as_mut(), &mut closing).await, true),
    };
    sweep(process.as_mut(), grace).await;
    let requested = requested && !evidence.silent.load(Ordering::Acquire);
    let expired = evidence.expired(&ended);
    let resume_failed = evidence.resume_failed(requested);
    let Ended {
        code,
        signal,
        stderr_tail,
        uptime,
    } = ended;
    exit.send_replace(Some(Exit {
        code,
        signal,
        stderr_tail,
        uptime,
        expired,
        resume_failed,
        requested,
    }));
}

/// The stages after the input was closed. A shorter grace that is asked for meanwhile counts at once.
async fn end(process: &mut dyn Process, closing: &mut watch::Receiver<Closing>) -> Ended {
    // Also notes who belongs to the tree while parents and children are still connected.
    process.leftovers().await;
    let started = Instant::now();
    if let Some(ended) = wait(process, closing, started, |grace| grace.after_input).await {
        return ended;
    }
    process.terminate().await;
    let started = Instant::now();
    if let Some(ended) = wait(process, closing, started, |grace| grace.after_terminate).await {
        return ended;
    }
    process.kill().await;
    process.wait().await
}

async fn wait(
    process: &mut dyn Process,
    closing: &mut watch::Receiver<Closing>,
    started: Instant,
    stage: impl Fn(&Grace) -> Duration,
) -> Option<Ended> {
    loop {
        let limit = match &*closing.borrow_and_update() {
            Closing::Yes(grace) => stage(grace),
            Closing::No => Duration::ZERO,
        };
        tokio::select! {
            biased;
            ended = timeout_at(started + limit, process.wait()) => return ended.ok(),
            Ok(()) = closing.changed() => {}
        }
    }
}

/// Ends what the process has left behind.
async fn sweep(process: &mut dyn Process, grace: Grace) {
    if !process.leftovers().await {
        return;
    }
    process.terminate().await;
    let deadline = Instant::now() + grace.after_terminate;
    while Instant::now() < deadline {
        tokio::time::sleep(LOOK_AGAIN).await;
        if !process.leftovers().await {
            return;
        }
    }
    process.kill().await;
    // Killed processes need a moment to be gone; one that the kernel holds on to must not hold us.
    let deadline = Instant::now() + Duration::from_secs(1);
    while Instant::now() < deadline && process.leftovers().await {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
