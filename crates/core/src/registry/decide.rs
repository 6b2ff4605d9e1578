//! Answers to decisions, and the end of a revoked key's work.

use std::collections::HashSet;
use std::path::Path;

use super::{CommandError, Sessions, allowed};
use crate::ids::{RequestId, SessionId};
use crate::paths::FileText;
use crate::session::{DecisionAnswer, DecisionRef, Input, Refusal, SessionRecord, SessionStatus};

impl Sessions {
    /// Answers a pending decision.
    pub async fn answer(
        &self,
        session: SessionId,
        decision: DecisionRef,
        answer: DecisionAnswer,
    ) -> Result<(), CommandError> {
        self.answer_shown(session, decision, answer, None).await
    }

    /// As [`Self::answer`], with a hash of the input that the caller was shown (SHA-256, in hex, of its JSON). Refused
    /// if the pending input differs.
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

    /// The file that a waiting decision would change, as it is now; `None` if the decision changes no file, or one that may
    /// not be shown.
    pub async fn file_to_change(
        &self,
        session: SessionId,
        decision: RequestId,
    ) -> Result<Option<FileText>, CommandError> {
        allowed(self.viewer.scopes.read)?;
        let (record, pending) = self.find(session).await?;
        let asked = pending
            .iter()
            .find(|asked| asked.id == decision)
            .ok_or(CommandError::Refused(Refusal::RequestNotFound))?;
        let Some(path) = tiller_message::file_to_change(&asked.tool_name, asked.input.as_str()) else {
            return Ok(None);
        };
        // A relative path is seen from the session's folder.
        let path = Path::new(&record.cwd).join(path);
        Ok(self.shared.paths.text_of(path).await.ok())
    }

    /// The keys with running turns or queued prompts.
    pub fn keys_with_work(&self) -> HashSet<String> {
        let at_work = self.loaded_records().into_iter();
        let at_work =
            at_work.filter(|record| record.status == SessionStatus::Running || !record.queue.is_empty());
        at_work.filter_map(|record| record.owner).collect()
    }

    /// Stops the work of a revoked key: running turns and queued prompts.
    pub async fn stop_work_of_key(&self, key: &str) {
        let mut sessions = self.loaded_records();
        sessions.retain(|record| record.owner.as_deref() == Some(key));
        for record in sessions {
            if !record.queue.is_empty()
                && let Err(error) = self.replace_queue(record.id, Vec::new(), None).await
            {
                tracing::warn!(%error, session = %record.id, "the queued prompts of a revoked key could not be removed");
            }
            if record.status == SessionStatus::Running
                && let Err(error) = self.stop(record.id).await
            {
                tracing::warn!(%error, session = %record.id, "a turn of a revoked key could not be stopped");
            }
        }
    }

    /// The records of all sessions in memory, which include all with a turn or an agent.
    fn loaded_records(&self) -> Vec<SessionRecord> {
        let entries = self.entries();
        let actors = entries.values().filter_map(|slot| slot.get());
        actors.map(|actor| actor.view.borrow().record.clone()).collect()
    }
}
