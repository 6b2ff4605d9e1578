//! The tokens that a transcript records, one entry per model message.
//!
//! A model message has several lines with the same id in a transcript, each with its own `usage`; only the last one is
//! right. Adding up the lines would count tokens two to four times.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::bytes::{Input, push_text};
use crate::read::follow::{Part, Saved};
use crate::read::json::Raw;
use crate::read::outline::message_hash;
use crate::read::record::{Kind, Record, millis};

/// Tokens by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Tokens {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Written to the cache, for five minutes or for an hour.
    pub cache_creation_input_tokens: u64,
    /// The part that was written for an hour, which costs more.
    pub cache_creation_1h_input_tokens: u64,
    pub cache_read_input_tokens: u64,
}

impl Tokens {
    pub fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_creation_1h_input_tokens += other.cache_creation_1h_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
    }

    fn all(&self) -> [u64; 5] {
        [
            self.input_tokens,
            self.output_tokens,
            self.cache_creation_input_tokens,
            self.cache_creation_1h_input_tokens,
            self.cache_read_input_tokens,
        ]
    }

    /// All tokens that the model was given.
    pub(crate) fn prompt(&self) -> u64 {
        self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The hash of the model message's id; 0 if it has none.
    pub(crate) message: u64,
    pub(crate) time: i64,
    pub(crate) model: u32,
    pub(crate) tokens: Tokens,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) models: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    /// The index of each message's entry. Rebuilt when the ledger comes from the index.
    known: HashMap<u64, usize>,
}

impl Part for Ledger {
    fn add(&mut self, _offset: u64, _line: &[u8], record: &Record<'_>) {
        if record.kind != Kind::Assistant {
            return;
        }
        let Some(usage) = record.usage.filter(|usage| usage.is_object()) else {
            return;
        };
        let Some(model) = record.model.filter(|model| *model != b"<synthetic>") else {
            return;
        };
        let entry = Entry {
            message: message_hash(record),
            time: record
                .timestamp
                .and_then(Raw::escaped)
                .and_then(millis)
                .unwrap_or(0),
            model: self.model(model),
            tokens: tokens(usage),
        };
        if self.known.len() < self.entries.len() {
            self.known = self
                .entries
                .iter()
                .enumerate()
                .map(|(index, entry)| (entry.message, index))
                .collect();
        }
        if let Some(index) = self.known.get(&entry.message).filter(|_| entry.message != 0) {
            self.entries[*index] = entry;
        } else {
            // A message without an id gets a number that no hash has.
            let key = if entry.message == 0 {
                u64::MAX - self.entries.len() as u64
            } else {
                entry.message
            };
            self.known.insert(key, self.entries.len());
            self.entries.push(entry);
        }
    }
}

impl Saved for Ledger {
    const TABLE: &'static str = "ledger";

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * ENTRY_BYTES + 64);
        out.extend((self.models.len() as u64).to_le_bytes());
        for model in &self.models {
            push_text(&mut out, model);
        }
        for Entry {
            message,
            time,
            model,
            tokens,
        } in &self.entries
        {
            out.extend(message.to_le_bytes());
            out.extend(time.to_le_bytes());
            out.extend(model.to_le_bytes());
            for count in tokens.all() {
                out.extend(count.to_le_bytes());
            }
        }
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let mut ledger = Self::default();
        for _ in 0..input.count(8)? {
            ledger.models.push(input.text()?.to_owned());
        }
        ledger.entries.reserve_exact(input.0.len() / ENTRY_BYTES);
        while !input.0.is_empty() {
            ledger.entries.push(Entry {
                message: input.u64()?,
                time: input.i64()?,
                model: input.u32()?,
                tokens: Tokens {
                    input_tokens: input.u64()?,
                    output_tokens: input.u64()?,
                    cache_creation_input_tokens: input.u64()?,
                    cache_creation_1h_input_tokens: input.u64()?,
                    cache_read_input_tokens: input.u64()?,
                },
            });
        }
        Some(ledger)
    }
}

const ENTRY_BYTES: usize = 8 + 8 + 4 + 5 * 8;

impl Ledger {
    fn model(&mut self, name: &[u8]) -> u32 {
        let found = self.models.iter().position(|known| known.as_bytes() == name);
        let index = found.unwrap_or_else(|| {
            self.models.push(String::from_utf8_lossy(name).into_owned());
            self.models.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}

fn tokens(usage: Raw<'_>) -> Tokens {
    let mut tokens = Tokens::default();
    usage.entries(|key, value| match key {
        b"input_tokens" => tokens.input_tokens = value.number(),
        b"output_tokens" => tokens.output_tokens = value.number(),
        b"cache_creation_input_tokens" => tokens.cache_creation_input_tokens = value.number(),
        b"cache_read_input_tokens" => tokens.cache_read_input_tokens = value.number(),
        b"cache_creation" => {
            tokens.cache_creation_1h_input_tokens =
                value.get(b"ephemeral_1h_input_tokens").map_or(0, Raw::number);
        }
        _ => {}
    });
    tokens
}
