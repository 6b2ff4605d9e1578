//! Commands beside turns: settings, title, queue, hooks, deletion.

use std::sync::Arc;

use tiller_message::Summary;

use super::{Effect, Kept, QueueItem, Refusal, Step};
use crate::backend::{AgentCommand, OptionChange};
use crate::ids::{PromptId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Prompt;
use crate::session::settings::SettingsPatch;
use crate::session::state::{AgentState, RewindUndo, RewoundPart, TitleSource};

impl Step<'_> {
    pub(super) fn configure(&mut self, patch: &SettingsPatch) {
        let settings = patch.applied(&self.state.record.settings);
        if self.state.record.settings == settings {
            return;
        }
        self.state.record.settings = settings;
        self.configure_agent();
        self.record_changed();
    }

    /// Sends the agent the changes that it can make while it runs. They are not recorded until the agent confirms them:
    /// after a crash the next server sends them again.
    pub(super) fn configure_agent(&mut self) {
        let (Some(current), Some(run)) = (self.run_options(), &self.state.record.run) else {
            return;
        };
        if self.state.agent != AgentState::Live {
            return;
        }
        let wanted = &self.state.record.settings.options;
        let changes = self.state.rules.live_changes(&run.started, &current, wanted);
        for change in changes {
            self.state.configuring.push(change.clone());
            self.effects.push(Effect::Send(AgentCommand::Configure(change)));
        }
    }

    /// The agent made a change, or refused it; after a refusal the next turn starts a new process.
    pub(super) fn configured(&mut self, change: &OptionChange, done: bool) {
        let configuring = &mut self.state.configuring;
        if let Some(told) = configuring.iter().position(|told| told == change) {
            configuring.remove(told);
        }
        if let Some(run) = self.state.record.run.as_mut().filter(|_| done) {
            run.options.apply(change);
            self.effects.push(Effect::StoreRecord);
        }
    }

    pub(super) fn rename(&mut self, title: String, source: TitleSource) {
        let record = &mut self.state.record;
        if source != TitleSource::User && record.title_source != TitleSource::Prompt {
            return;
        }
        record.title_source = source;
        if record.title != title {
            record.title = title;
        }
        self.record_changed();
    }

    pub(super) fn archive(&mut self, archived: bool) {
        if self.state.record.archived != archived {
            self.state.record.archived = archived;
            self.record_changed();
        }
    }

    /// A queued prompt keeps its id and its attachments, also with a new text.
    pub(super) fn queue(
        &mut self,
        items: Vec<(QueueItem, PromptId)>,
        expected: Option<Vec<QueueItem>>,
    ) -> Result<(), Refusal> {
        let waiting = &self.state.record.queue;
        let as_expected = |expected: Vec<QueueItem>| {
            let describes = |(item, prompt): (&QueueItem, &Prompt)| item.describes(prompt);
            expected.len() == waiting.len() && expected.iter().zip(waiting).all(describes)
        };
        if expected.is_some_and(|expected| !as_expected(expected)) {
            return Err(Refusal::QueueChanged);
        }
        let mut left = waiting.clone();
        let mut take = |is_it: &dyn Fn(&Prompt) -> bool| {
            let position = left.iter().position(is_it)?;
            Some(left.remove(position))
        };
        // Prompts with ids are matched first; a prompt without an id matches one of the others by its text.
        let mut replaced: Vec<Option<Prompt>> = Vec::with_capacity(items.len());
        for (item, _) in &items {
            replaced.push(match item.id {
                // The prompt has begun, was removed from the queue, or was never accepted.
                Some(id) => Some(take(&|prompt| prompt.id == id).ok_or(Refusal::QueueChanged)?),
                None => None,
            });
        }
        let mut queue = Vec::with_capacity(items.len());
        let mut accepted = Vec::new();
        for ((item, new_id), named) in items.into_iter().zip(replaced) {
            let known = named.or_else(|| take(&|prompt| prompt.text == item.text));
            let mut prompt = known.unwrap_or_else(|| {
                accepted.push(Effect::Accept(new_id));
                Prompt::new(new_id, String::new())
            });
            prompt.text = item.text;
            // A prompt with an image needs no text.
            if prompt.text.is_empty() && prompt.attachments.is_empty() {
                return Err(Refusal::EmptyPrompt);
            }
            queue.push(prompt);
        }
        let is_waiting = |id: &PromptId| queue.iter().any(|prompt| prompt.id == *id);
        self.state.causes.retain(|id, _| is_waiting(id));
        self.state.record.queue = queue;
        self.effects.extend(accepted);
        self.effects.push(Effect::QueueChanged);
        Ok(())
    }

    pub(super) fn flush(&mut self, afresh: bool) -> Result<(), Refusal> {
        if self.state.turn.is_some() || self.state.record.queue.is_empty() {
            return Ok(());
        }
        if self.state.record.delete_at.is_some() {
            return Err(Refusal::Deleted);
        }
        self.can_go_on(afresh)?;
        self.allow_new_conversation();
        self.next_in_queue();
        Ok(())
    }

    pub(super) fn answer_hook(&mut self, agent_request: String, output: RawJson) -> Result<(), Refusal> {
        let open = &mut self.state.hooks_open;
        let position = open.iter().position(|open| *open == agent_request);
        open.remove(position.ok_or(Refusal::RequestNotFound)?);
        self.effects.push(Effect::HookClosed(agent_request.clone()));
        self.effects.push(Effect::AnswerHook {
            agent_request,
            output,
        });
        Ok(())
    }

    pub(super) fn discard(&mut self, at: Timestamp) {
        self.state.record.delete_at = Some(at);
        self.withdraw_all();
        if let Some(turn) = &mut self.state.turn {
            if self.state.agent == AgentState::Absent || turn.undelivered.is_some() {
                self.state.turn = None;
                self.set_idle();
            } else {
                turn.stopping = true;
            }
        }
        if self.has_agent() {
            self.end_agent();
        }
        self.record_changed();
    }

    pub(super) fn restore(&mut self) {
        if self.state.record.delete_at.take().is_some() {
            self.record_changed();
        }
    }

    /// The agent's process has the conversation from before, so it is ended; the next one begins with what is kept.
    pub(super) fn rewind(&mut self, after: u64, kept: Kept) -> Result<(), Refusal> {
        if self.state.record.delete_at.is_some() {
            return Err(Refusal::Deleted);
        }
        if self.state.turn.is_some() {
            return Err(Refusal::TurnRuns);
        }
        let record = &mut self.state.record;
        // Nothing was said since the last rewind: both become one, which is undone as a whole.
        let earlier = record.rewound.pop_if(|part| part.undo.is_some());
        let after = earlier.as_ref().map_or(after, |part| part.after.min(after));
        let undo = earlier.and_then(|part| part.undo).unwrap_or_else(|| RewindUndo {
            conversation: record.conversation.clone(),
            expired: record.expired,
            fork_of: record.fork_of.clone(),
            fork_at: record.fork_at.clone(),
            last_prompt: record.last_prompt.clone(),
        });
        let origin = undo.conversation.clone().or_else(|| undo.fork_of.clone());
        record.conversation = None;
        (record.fork_of, record.fork_at) = match (origin, kept.at) {
            (Some(origin), Some(at)) => (Some(origin), Some(at)),
            _ => (None, None),
        };
        // Without anything to go on from, the next message starts afresh.
        record.expired = record.fork_of.is_none();
        record.last_prompt = kept.last_prompt;
        record.rewound.push(RewoundPart {
            after,
            through: record.last_seq,
            undo: Some(undo),
        });
        self.conversation_changed(kept.summary.as_deref());
        Ok(())
    }

    pub(super) fn undo_rewind(&mut self, summary: Option<&Summary>) -> Result<(), Refusal> {
        if self.state.turn.is_some() {
            return Err(Refusal::TurnRuns);
        }
        let record = &mut self.state.record;
        let undone = record.rewound.pop_if(|part| part.undo.is_some());
        let undo = undone.and_then(|part| part.undo).ok_or(Refusal::NothingToUndo)?;
        record.conversation = undo.conversation;
        record.expired = undo.expired;
        record.fork_of = undo.fork_of;
        record.fork_at = undo.fork_at;
        record.last_prompt = undo.last_prompt;
        self.conversation_changed(summary);
        Ok(())
    }

    fn conversation_changed(&mut self, described: Option<&Summary>) {
        if let (Some(summary), Some(described)) = (&mut self.state.record.summary, described) {
            Arc::make_mut(summary).describe_as(described);
        }
        if let Some(run) = &mut self.state.record.run {
            run.stale = true;
        }
        if self.state.agent == AgentState::Live {
            self.end_agent();
        }
        self.record_changed();
    }

    pub(super) fn ensure_agent(&mut self) -> Result<(), Refusal> {
        if self.state.record.delete_at.is_some() {
            return Err(Refusal::Deleted);
        }
        if self.state.agent == AgentState::Absent {
            if self.state.record.conversation.is_none() && self.state.record.fork_of.is_none() {
                return Err(Refusal::NoResumeId);
            }
            self.launch();
        }
        Ok(())
    }
}
