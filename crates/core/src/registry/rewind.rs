//! Going back in a session: forks that begin at a message, and rewinding the conversation and the files to before a prompt.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use tiller_message::{Kind, Message, Summary};

use super::{CommandError, Page, Sessions, allowed};
use crate::backend::Rewound;
use crate::event::Notice;
use crate::ids::{SessionId, Timestamp};
use crate::json::RawJson;
use crate::rights::Provenance;
use crate::saved_files::{self, SavedFile};
use crate::session::{Input, Kept, Refusal, SessionRecord, SessionStatus, TitleSource, totals};
use crate::store::{Extent, HistoryEntry, HistoryKind, StoreError};
use crate::title::title_as_given;

/// How much of a log is read at once.
const AT_ONCE: u32 = 500;

/// Where the files are kept that an undo brings back.
const SAVED: &str = "rewind.files";

/// What a rewind is to restore.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RewindScope {
    Files,
    Conversation,
    Both,
}

/// What a rewind did or, for a dry run, would do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RewindOutcome {
    /// `None`: files were not asked about.
    pub files: Option<Rewound>,
    /// The files among them that an undo would not bring back: too large, outside of the folder, or links.
    pub not_saved: Vec<String>,
    /// How many prompts are put away.
    pub prompts: u32,
}

/// What the undo of a rewind did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UndoOutcome {
    pub restored: Vec<String>,
    /// Files that were changed since, or can't be written: they stay as they are.
    pub left: Vec<String>,
}

/// What a log has before an event.
struct Before {
    /// That event's number.
    seq: u64,
    kept: Kept,
    prompts_since: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredPrompt {
    prompt_id: Option<String>,
    #[serde(default)]
    pub(super) prompt: String,
}

pub(super) fn prompt_of(entry: &HistoryEntry) -> Option<StoredPrompt> {
    let is_prompt = entry.kind == HistoryKind::Prompt;
    is_prompt
        .then(|| serde_json::from_str(entry.json.as_str()).ok())
        .flatten()
}

/// The agent's id of a message that it said itself: a subagent's messages are not part of the conversation.
fn own_message(entry: &HistoryEntry) -> Option<String> {
    if entry.kind != HistoryKind::Message {
        return None;
    }
    let message = Message::parse_shared(Arc::clone(entry.json.shared())).ok()?;
    let is_own = message.kind() == Kind::Assistant && message.parent_tool_use_id().is_none();
    message.uuid().filter(|_| is_own).map(str::to_owned)
}

impl Sessions {
    /// A new session that begins with what was said in this one, up to the event `through` or to its end, and goes its
    /// own way from its first prompt on. Files are shared: both work in the same folder.
    pub async fn fork(
        &self,
        session: SessionId,
        title: Option<&str>,
        through: Option<u64>,
    ) -> Result<SessionId, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (source, _) = self.find(session).await?;
        self.viewer
            .check_going_on(&source, &*self.backend_of(&source).options())?;
        self.ability(&source, |abilities| abilities.fork, "fork a conversation")?;
        let conversation = source.conversation.clone().or_else(|| source.fork_of.clone());
        let conversation = conversation.ok_or(Refusal::NoResumeId)?;
        let mut summary = source.summary.as_ref().map(|summary| Arc::new(summary.forked()));
        let mut last_prompt = source.last_prompt.clone();
        let (fork_of, fork_at) = match through {
            Some(through) => {
                let kept = self.kept(&source, through).await?;
                summary = kept.summary.map(|summary| Arc::new(summary.forked()));
                last_prompt = kept.last_prompt;
                // Before the first answer there is nothing to go on from.
                (kept.at.is_some().then_some(conversation), kept.at)
            }
            None if source.fork_at.is_none() && source.status != SessionStatus::Running => {
                let kept = self.last_said(&source, source.last_seq).await?;
                (Some(conversation), kept.at)
            }
            None => (Some(conversation), source.fork_at.clone()),
        };
        let now = Timestamp::now();
        let extent = Extent {
            through,
            without: source.rewound.clone(),
        };
        let mut record = SessionRecord {
            id: SessionId::random(),
            owner: self.viewer.key.clone(),
            title: title
                .map(title_as_given)
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| title_as_given(&format!("{} ⑂", source.title))),
            title_source: TitleSource::User,
            archived: false,
            conversation: None,
            // A fork that begins with prompts alone starts afresh.
            expired: fork_of.is_none(),
            fork_of,
            fork_at,
            rewound: Vec::new(),
            summary,
            delete_at: None,
            status: SessionStatus::Idle,
            last_prompt,
            created_at: now,
            updated_at: now,
            queue: Vec::new(),
            last_seq: 0,
            runs: 0,
            turn: None,
            run: None,
            ..source
        };
        let id = record.id;
        record.last_seq = self.shared.store.fork(session, record.clone(), extent).await?;
        let from = Arc::new(Provenance::of(&record));
        self.shared.hub.publish(&from, Notice::Updated(id));
        Ok(id)
    }

    /// Restores the conversation, the files or both to what they were before the prompt with this id, or only tells what
    /// that would change. For files an agent is started if none runs. With the conversation, all of it can be undone until
    /// the next prompt.
    pub async fn rewind(
        &self,
        session: SessionId,
        prompt: String,
        scope: RewindScope,
        dry_run: bool,
    ) -> Result<RewindOutcome, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        if record.status == SessionStatus::Running && (!dry_run || scope != RewindScope::Files) {
            return Err(CommandError::Busy);
        }
        let mut outcome = RewindOutcome::default();
        let mut saved = Vec::new();
        let before = match scope {
            RewindScope::Files => None,
            RewindScope::Conversation | RewindScope::Both => {
                self.ability(&record, |abilities| abilities.fork, "go back in a conversation")?;
                Some(self.before_prompt(&record, &prompt).await?)
            }
        };
        if scope != RewindScope::Conversation {
            let files = self.rewind_files(&record, prompt.clone(), true).await?;
            if scope == RewindScope::Both && files.possible {
                let (cwd, paths) = (PathBuf::from(&record.cwd), files.files_changed.clone());
                (saved, outcome.not_saved) = aside(move || saved_files::save(&cwd, &paths)).await?;
            }
            outcome.files = Some(files);
        }
        outcome.prompts = before.as_ref().map_or(0, |before| before.prompts_since);
        let possible = outcome.files.as_ref().is_some_and(|files| files.possible);
        if dry_run || (scope == RewindScope::Files && !possible) {
            return Ok(outcome);
        }
        if possible {
            // The agent tells what changes only when it changes nothing.
            let done = self.rewind_files(&record, prompt, false).await?;
            if let Some(files) = &mut outcome.files {
                (files.possible, files.error) = (done.possible, done.error);
            }
        }
        let Some(before) = before else {
            return Ok(outcome);
        };
        let cwd = PathBuf::from(&record.cwd);
        let rewound = self
            .rewind_conversation(session, before, cwd.clone(), saved.clone())
            .await;
        if let Err(error) = rewound {
            // All or nothing: the files are put back to what they were.
            aside(move || saved_files::restore(&cwd, &saved, saved_files::Check::No)).await?;
            return Err(error);
        }
        Ok(outcome)
    }

    async fn rewind_conversation(
        &self,
        session: SessionId,
        before: Before,
        cwd: PathBuf,
        mut saved: Vec<SavedFile>,
    ) -> Result<(), CommandError> {
        // A rewind that was not followed by a prompt is undone together with this one.
        let earlier = self.saved_files(session).await?;
        saved.retain(|file| !earlier.iter().any(|known| known.path == file.path));
        saved.extend(earlier);
        let saved = aside(move || saved_files::note_state(&cwd, saved)).await?;
        let note = RawJson::of(&saved).map_err(|error| StoreError::Damaged(error.to_string()))?;
        self.shared.store.note(session, SAVED.to_owned(), note).await?;
        let input = Input::Rewind {
            after: before.seq.saturating_sub(1),
            kept: Box::new(before.kept),
        };
        self.input(session, input).await.map(drop)
    }

    /// Undoes the last rewind of the conversation, files included, if nothing was said since.
    pub async fn undo_rewind(&self, session: SessionId) -> Result<UndoOutcome, CommandError> {
        allowed(self.viewer.scopes.run)?;
        let (record, _) = self.find(session).await?;
        let saved = self.saved_files(session).await?;
        let mut whole = record.clone();
        whole.rewound.pop_if(|part| part.undo.is_some());
        let summary = self.counted(&whole, whole.last_seq).await?;
        self.input(session, Input::UndoRewind { summary }).await?;
        let cwd = PathBuf::from(record.cwd);
        let (restored, left) =
            aside(move || saved_files::restore(&cwd, &saved, saved_files::Check::Unchanged)).await?;
        self.forget_saved(session).await;
        Ok(UndoOutcome { restored, left })
    }

    /// What an undo would bring back is of no use once something has been said.
    pub(super) async fn forget_saved(&self, session: SessionId) {
        let erased = self.shared.store.erase_notes(session, SAVED.to_owned()).await;
        if let Err(error) = erased {
            tracing::debug!(%error, %session, "files of an earlier rewind still take room");
        }
    }

    async fn saved_files(&self, session: SessionId) -> Result<Vec<SavedFile>, CommandError> {
        let (record, _) = self.find(session).await?;
        if !record.can_undo_rewind() {
            return Ok(Vec::new());
        }
        let note = self.shared.store.note_of(session, SAVED.to_owned()).await?;
        let files = note.and_then(|note| serde_json::from_str(note.as_str()).ok());
        Ok(files.unwrap_or_default())
    }

    async fn rewind_files(
        &self,
        record: &SessionRecord,
        prompt: String,
        dry_run: bool,
    ) -> Result<Rewound, CommandError> {
        let files = self.ability(record, |abilities| abilities.rewind, "restore files")?;
        self.check_driver(record.id).await?;
        self.input(record.id, Input::EnsureAgent).await?;
        let run = self.running(record.id).await?;
        Ok(files.rewind(&run, prompt, dry_run).await?)
    }

    /// What is left if the conversation goes back to before this prompt.
    async fn before_prompt(&self, record: &SessionRecord, prompt: &str) -> Result<Before, CommandError> {
        let mut prompts_since = 0;
        let mut before = u64::MAX;
        loop {
            let entries = self.page_before(record.id, before).await?;
            let Some(first) = entries.first() else {
                return Err(Refusal::RequestNotFound.into());
            };
            before = first.seq;
            for entry in entries.iter().rev().filter(|entry| record.is_kept(entry.seq)) {
                let Some(found) = prompt_of(entry) else { continue };
                prompts_since += 1;
                if found.prompt_id.as_deref() == Some(prompt) {
                    let through = entry.seq.saturating_sub(1);
                    return Ok(Before {
                        seq: entry.seq,
                        kept: self.kept(record, through).await?,
                        prompts_since,
                    });
                }
            }
        }
    }

    /// What the conversation has up to the event `through`.
    async fn kept(&self, record: &SessionRecord, through: u64) -> Result<Kept, CommandError> {
        let mut kept = self.last_said(record, through).await?;
        kept.summary = self.counted(record, through).await?;
        Ok(kept)
    }

    /// The last answer and the last prompt up to there.
    async fn last_said(&self, record: &SessionRecord, through: u64) -> Result<Kept, CommandError> {
        let mut kept = Kept::default();
        let mut before = through.saturating_add(1);
        while kept.at.is_none() || kept.last_prompt.is_none() {
            let entries = self.page_before(record.id, before).await?;
            let Some(first) = entries.first() else { break };
            before = first.seq;
            for entry in entries.iter().rev().filter(|entry| record.is_kept(entry.seq)) {
                if kept.at.is_none() {
                    kept.at = own_message(entry);
                }
                if kept.last_prompt.is_none() {
                    kept.last_prompt = prompt_of(entry).map(|prompt| prompt.prompt);
                }
            }
        }
        Ok(kept)
    }

    async fn page_before(&self, session: SessionId, seq: u64) -> Result<Vec<HistoryEntry>, StoreError> {
        let page = Page::Before { seq, limit: AT_ONCE };
        self.shared.store.history(session, page).await
    }

    /// The totals of what the conversation has up to the event `through`.
    async fn counted(
        &self,
        record: &SessionRecord,
        through: u64,
    ) -> Result<Option<Arc<Summary>>, StoreError> {
        let mut summary = Arc::default();
        let mut after = 0;
        loop {
            let events = self.shared.store.replay(record.id, after, AT_ONCE).await?;
            let Some(last) = events.last().map(|event| event.seq) else {
                break;
            };
            for event in &events {
                if event.seq <= through && record.is_kept(event.seq) {
                    totals::add(&mut summary, event);
                }
            }
            if last >= through {
                break;
            }
            after = last;
        }
        Ok(Some(summary))
    }
}

/// Files may be on a disk that is slow.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CommandError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| CommandError::Stopping)
}
