//! Hibernation: measures what agents use and ends idle ones. An agent takes about 200 MB; the next prompt starts it
//! again with its conversation.

use std::collections::HashMap;
use std::time::Duration;

use tiller_process::{Processes, Sample};
use tokio::time::Instant;

use super::Sessions;
use crate::ids::{SessionId, Timestamp};
use crate::session::{AgentStatus, Input};

/// How often agents, and other drivers of their conversations, are checked.
const INTERVAL: Duration = Duration::from_secs(5);

const SHORTEST: Duration = Duration::from_millis(500);

/// When idle agents are ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HibernationPolicy {
    /// After this time without work. `None`: never.
    pub after: Option<Duration>,
    /// When all agents together use more memory than this, those that have been idle longest. `None`: never.
    pub budget_bytes: Option<u64>,
}

/// What an agent and its child processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentUsage {
    pub memory_bytes: u64,
    /// The share of one processor: 1 is all of it.
    pub cpu: f32,
}

struct Watched {
    id: SessionId,
    pid: u32,
    idle: bool,
    last_seq: u64,
    conversation: Option<String>,
}

impl Sessions {
    /// What the session's agent used when it was last measured. `None` if it has no agent or was not measured yet.
    pub fn usage(&self, session: SessionId) -> Option<AgentUsage> {
        // The last measurement of an agent that has ended does not count.
        if matches!(
            self.agent_status(session),
            AgentStatus::Absent | AgentStatus::Hibernated
        ) {
            return None;
        }
        let usage = self.shared.usage.lock();
        usage
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .get(&session)
            .copied()
    }

    /// Measures and hibernates agents. Never returns.
    pub async fn hibernate_idle(&self, policy: HibernationPolicy) {
        let mut last: HashMap<SessionId, (Sample, Instant)> = HashMap::new();
        // Since when each agent has been idle, and the number of its last event then.
        let mut idle_since: HashMap<SessionId, (Instant, u64)> = HashMap::new();
        // The interval is short enough that no agent stays much longer than configured.
        let interval = policy
            .after
            .map_or(INTERVAL, |after| after.clamp(SHORTEST, INTERVAL));
        loop {
            tokio::time::sleep(interval).await;
            self.release_idle(Timestamp::now());
            let agents = self.agents();
            if agents.is_empty() {
                last.clear();
                idle_since.clear();
                self.set_usage(HashMap::new());
                continue;
            }
            let pids = agents.iter().map(|agent| agent.pid).collect::<Vec<_>>();
            // Reads the process table, which takes milliseconds.
            let Ok(samples) = tokio::task::spawn_blocking(move || Processes::read().trees(&pids)).await
            else {
                continue;
            };
            let now = Instant::now();
            let mut usage = HashMap::new();
            for (agent, sample) in agents.iter().zip(samples) {
                let before = last.insert(agent.id, (sample, now));
                let cpu = before.map_or(0.0, |(before, at)| sample.cpu_since(&before, now - at));
                usage.insert(
                    agent.id,
                    AgentUsage {
                        memory_bytes: sample.memory_bytes,
                        cpu,
                    },
                );
                let same = idle_since
                    .get(&agent.id)
                    .is_some_and(|(_, seq)| *seq == agent.last_seq);
                if !agent.idle {
                    idle_since.remove(&agent.id);
                } else if !same {
                    idle_since.insert(agent.id, (now, agent.last_seq));
                }
            }
            last.retain(|id, _| usage.contains_key(id));
            idle_since.retain(|id, _| usage.contains_key(id));
            for id in agents_to_hibernate(policy, &usage, &idle_since, now) {
                tracing::info!(session = %id, "an idle agent hibernates");
                // If the session was deleted in the meantime, it has no agent either.
                self.input(id, Input::Hibernate).await.ok();
            }
            self.set_usage(usage);
            self.yield_to_other_drivers(&agents).await;
        }
    }

    /// Ends an idle agent if a process outside of Tiller continues its conversation.
    async fn yield_to_other_drivers(&self, agents: &[Watched]) {
        let idle = agents.iter().filter(|agent| agent.idle);
        let resting: HashMap<_, _> = idle
            .filter_map(|agent| Some((agent.conversation.clone()?, (agent.pid, agent.id))))
            .collect();
        if resting.is_empty() {
            return;
        }
        let Some(drivers) = self.any_drivers() else { return };
        let asked = resting.iter().map(|(name, (pid, _))| (name.clone(), *pid));
        let rivals = drivers.competing_drivers(asked.collect()).await;
        for (conversation, driver) in rivals {
            if let Some((_, session)) = resting.get(&conversation) {
                self.yield_to(*session, &driver).await;
            }
        }
    }

    fn agents(&self) -> Vec<Watched> {
        let actors = self.actors().into_iter();
        actors
            .filter_map(|(id, actor)| {
                let view = actor.view.borrow();
                Some(Watched {
                    id,
                    pid: view.pid?,
                    idle: view.may_hibernate,
                    last_seq: view.record.last_seq,
                    conversation: view.record.conversation.clone(),
                })
            })
            .collect()
    }

    fn set_usage(&self, usage: HashMap<SessionId, AgentUsage>) {
        *self
            .shared
            .usage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = usage;
    }
}

/// Which agents to hibernate: those that were idle for long enough, then the longest idle ones until the others fit
/// into the budget.
fn agents_to_hibernate(
    policy: HibernationPolicy,
    usage: &HashMap<SessionId, AgentUsage>,
    idle_since: &HashMap<SessionId, (Instant, u64)>,
    now: Instant,
) -> Vec<SessionId> {
    let mut idle: Vec<_> = idle_since.iter().map(|(id, (since, _))| (*since, *id)).collect();
    idle.sort_unstable();
    let mut used: u64 = usage.values().map(|usage| usage.memory_bytes).sum();
    idle.into_iter()
        .filter(|(since, id)| {
            let long = policy.after.is_some_and(|after| now - *since >= after);
            let sleeps = long || policy.budget_bytes.is_some_and(|budget| used > budget);
            if sleeps {
                used -= usage.get(id).map_or(0, |usage| usage.memory_bytes);
            }
            sleeps
        })
        .map(|(_, id)| id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_agents_hibernate_first_and_only_as_many_as_needed() {
        let now = Instant::now() + Duration::from_hours(1);
        let ids: Vec<_> = (0..4).map(|_| SessionId::random()).collect();
        let usage: HashMap<_, _> = ids
            .iter()
            .map(|id| {
                (
                    *id,
                    AgentUsage {
                        memory_bytes: 100,
                        cpu: 0.0,
                    },
                )
            })
            .collect();
        // The last one works.
        let idle: HashMap<_, _> = [30, 10, 20]
            .into_iter()
            .zip(&ids)
            .map(|(minutes, id)| (*id, (now - Duration::from_mins(minutes), 1)))
            .collect();
        let who = |after: Option<u64>, budget_bytes| {
            let after = after.map(Duration::from_mins);
            agents_to_hibernate(HibernationPolicy { after, budget_bytes }, &usage, &idle, now)
        };
        assert_eq!(who(None, None), []);
        assert_eq!(who(Some(20), None), [ids[0], ids[2]]);
        assert_eq!(who(None, Some(400)), []);
        assert_eq!(who(None, Some(399)), [ids[0]]);
        assert_eq!(
            who(None, Some(0)),
            [ids[0], ids[2], ids[1]],
            "an agent that works is left alone"
        );
        assert_eq!(who(Some(25), Some(250)), [ids[0], ids[2]]);
    }
}
