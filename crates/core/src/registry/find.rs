//! Looking for words in the whole log of a session, whatever of it a client has loaded.

use std::sync::Arc;

use tiller_message::{Message, Words, find_in};

use super::{CommandError, Page, Sessions, allowed};
use crate::ids::SessionId;
use crate::store::{HistoryEntry, HistoryKind};

/// How many messages are looked at between two chances for others.
const AT_ONCE: u32 = 500;

/// More than anyone steps through, and little enough to be sent at once.
const MOST_MATCHES: usize = 10_000;

/// An entry of the log in which the words were found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Match {
    pub seq: u64,
    /// In a tool call or its result: the call's id.
    pub tool_use_id: Option<String>,
}

/// Where the words were found, in the order of the log.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Matches {
    pub found: Vec<Match>,
    /// There are more than can be told.
    pub more: bool,
}

impl Sessions {
    /// Finds the prompts, answers and tool calls of a session that have these words in them. What the conversation no
    /// longer has is left out.
    pub async fn find_words(&self, session: SessionId, words: &str) -> Result<Matches, CommandError> {
        allowed(self.viewer.scopes.read)?;
        let (record, _) = self.find(session).await?;
        let mut matches = Matches::default();
        let Some(words) = Words::new(words) else {
            return Ok(matches);
        };
        let mut after = 0;
        loop {
            let page = Page::After {
                seq: after,
                limit: AT_ONCE,
            };
            let page = self.history(session, page).await?;
            let Some(last) = page.entries.last() else { break };
            after = last.seq;
            let found = page.entries.iter().filter(|entry| record.is_kept(entry.seq));
            matches
                .found
                .extend(found.filter_map(|entry| find(entry, &words)));
            if matches.found.len() > MOST_MATCHES {
                matches.found.truncate(MOST_MATCHES);
                matches.more = true;
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(matches)
    }
}

fn find(entry: &HistoryEntry, words: &Words) -> Option<Match> {
    let tool_use_id = match entry.kind {
        HistoryKind::Prompt => words
            .are_in(&super::rewind::prompt_of(entry)?.prompt)
            .then_some(None)?,
        HistoryKind::Message => {
            let message = Message::parse_shared(Arc::clone(entry.json.shared())).ok()?;
            find_in(&message, words)?.tool_use_id
        }
    };
    Some(Match {
        seq: entry.seq,
        tool_use_id,
    })
}
