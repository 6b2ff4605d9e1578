//! The cost of a conversation by the CLI's own record.

use serde::Deserialize;

use crate::error::Result;
use crate::history::History;
use crate::list::catalogue::with_buffer;
use crate::read::lines::{Line, read_lines};
use crate::read::place::SessionId;

/// The record that the CLI writes when it leaves a conversation, and reads when it resumes it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Account {
    CostState {
        #[serde(rename = "totalCostUSD")]
        total: f64,
    },
}

/// Nearly all lines lack this text, which is checked without parsing.
const MARK: &[u8] = b"\"cost-state\"";

impl History {
    /// The cost, in dollars, from which the CLI continues to count when the conversation is resumed. `None`: it has no
    /// record and begins at zero.
    pub fn spent(&self, id: &SessionId) -> Result<Option<f64>> {
        let transcript = self.projects.session(id)?;
        let (mut file, _) = self.projects.open(&transcript.path)?;
        let mut spent = None;
        with_buffer(|buffer| {
            read_lines(&mut file, 0, buffer, |line| {
                if let Line::Whole { bytes, .. } = line
                    && memchr::memmem::find(bytes, MARK).is_some()
                    && let Ok(Account::CostState { total }) = serde_json::from_slice(bytes)
                {
                    spent = Some(total);
                }
                true
            })
        })?;
        Ok(spent)
    }
}
