//! Answers to what agents ask for, and the end of what a revoked key has started.

use std::collections::HashSet;

use super::{CommandError, Sessions, allowed};
use crate::ids::SessionId;
use crate::session::{DecisionAnswer, DecisionRef, Input, Refusal, SessionRecord, SessionStatus};

impl Sessions {
    /// Answers a decision that waits.
    pub async fn answer(
        &self,
        session: SessionId,
        decision: DecisionRef,
        answer: DecisionAnswer,
    ) -> Result<(), CommandError> {
        self.answer_shown(session, decision, answer, None).await
    }

    /// As [`Self::answer`], for someone who says what they were shown: the SHA-256, in hex, of the input's JSON. Refused if
    /// that is not what waits.
    pub async fn answer_shown(
        &self,
        session: SessionId,
        decision: DecisionRef,
        answer: DecisionAnswer,
        shown: Option<&str>,
    ) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.approve)?;
        let (_, pending) = self.find(session).await?;
        let asked = pending
            .iter()
            .find(|asked| decision.names(asked.id, &asked.tool_use_id));
        if let (Some(asked), Some(shown)) = (asked, shown)
            && !asked.was_shown_as(shown)
        {
            return Err(CommandError::Refused(Refusal::NotAsShown));
        }
        let answer = self.viewer.check_answer(asked, answer)?;
        let input = Input::Answer {
            decision,
            answer,
            by: self.viewer.key.clone(),
        };
        self.input(session, input).await.map(drop)
    }

    /// The keys that have turns running or prompts waiting.
    pub fn keys_at_work(&self) -> HashSet<String> {
        let at_work = self.awake().into_iter();
        let at_work =
            at_work.filter(|record| record.status == SessionStatus::Running || !record.queue.is_empty());
        at_work.filter_map(|record| record.owner).collect()
    }

    /// Stops what a key has started that was revoked: running turns, and prompts that wait for them.
    pub async fn end_of_key(&self, key: &str) {
        let mut sessions = self.awake();
        sessions.retain(|record| record.owner.as_deref() == Some(key));
        for record in sessions {
            if !record.queue.is_empty()
                && let Err(error) = self.replace_queue(record.id, Vec::new(), None).await
            {
                tracing::warn!(%error, session = %record.id, "prompts of a revoked key still wait");
            }
            if record.status == SessionStatus::Running
                && let Err(error) = self.stop(record.id).await
            {
                tracing::warn!(%error, session = %record.id, "a turn of a revoked key was not stopped");
            }
        }
    }

    /// The sessions that have an actor, as everything in which something goes on has.
    fn awake(&self) -> Vec<SessionRecord> {
        let entries = self.entries();
        let actors = entries.values().filter_map(|slot| slot.get());
        actors.map(|actor| actor.view.borrow().record.clone()).collect()
    }
}
