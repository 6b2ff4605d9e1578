//! Usage: tokens and cost by day, project, model and session.
//!
//! A model message counts once, however many lines it has and however many transcripts it was copied to by forks; the
//! copy in the oldest transcript counts.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::Result;
use crate::history::History;
use crate::list::catalogue::with_buffer;
use crate::read::follow::{Followed, follow};
use crate::read::place::{ProjectId, Transcript};
use crate::search::find::owner;
use crate::usage::ledger::{Ledger, Tokens};
use crate::usage::prices;

/// Which usage to add up.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    pub project: Option<ProjectId>,
    /// Milliseconds since 1970, from (inclusive) to (exclusive).
    pub from: Option<i64>,
    pub to: Option<i64>,
    /// The time zone of the days.
    pub time_zone: TimeZone,
}

impl Default for UsageQuery {
    fn default() -> Self {
        Self {
            project: None,
            from: None,
            to: None,
            time_zone: TimeZone::system(),
        }
    }
}

/// Tokens and their cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Usage {
    #[serde(flatten)]
    pub tokens: Tokens,
    pub cost_usd: f64,
    /// Model messages.
    pub messages: u64,
}

/// One line of a table of usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct UsageRow {
    /// The day (`2026-11-15`), project, model or session.
    pub key: String,
    #[serde(flatten)]
    pub usage: Usage,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct UsageReport {
    pub total: Usage,
    /// Oldest first.
    pub days: Vec<UsageRow>,
    /// The most expensive first, as in the following lists.
    pub projects: Vec<UsageRow>,
    pub models: Vec<UsageRow>,
    pub sessions: Vec<UsageRow>,
    /// Models with unknown prices: their tokens are counted, their cost is not.
    pub models_without_price: Vec<String>,
}

impl History {
    /// Adds up the usage of the transcripts.
    pub fn usage(&self, query: &UsageQuery) -> Result<UsageReport> {
        let mut files = self.every_transcript()?;
        if let Some(project) = &query.project {
            files.retain(|file| file.project() == project.as_str());
        }
        let ledgers = self.ledgers(files)?;
        let mut sums = Sums::default();
        let mut seen: HashSet<u64> = HashSet::new();
        for (transcript, ledger) in &ledgers {
            let owner = owner(&transcript.path);
            for entry in &ledger.current().entries {
                let wanted = query.from.is_none_or(|from| entry.time >= from)
                    && query.to.is_none_or(|to| entry.time < to);
                if !wanted || (entry.message != 0 && !seen.insert(entry.message)) {
                    continue;
                }
                let model = ledger
                    .current()
                    .models
                    .get(entry.model as usize)
                    .map_or("", String::as_str);
                sums.add(entry.time, &owner, model, &entry.tokens, &query.time_zone);
            }
        }
        Ok(sums.report())
    }

    /// The current ledgers of these transcripts, oldest first.
    fn ledgers(&self, files: Vec<Transcript>) -> Result<Vec<(Transcript, Followed<Ledger>)>> {
        let mut saved: HashMap<String, Followed<Ledger>> = HashMap::new();
        if let Some(index) = &self.index {
            index.load_all(|path, ledger| drop(saved.insert(path.to_owned(), ledger)))?;
        }
        let mut work: Vec<(Transcript, Option<Followed<Ledger>>)> = files
            .into_iter()
            .map(|file| (saved.remove(&file.path), file))
            .map(|(known, file)| (file, known))
            .collect();
        work.sort_by_key(|(file, _)| std::cmp::Reverse(file.stamp.size));
        let read: Vec<(Transcript, Followed<Ledger>, bool)> = work
            .into_par_iter()
            .with_max_len(1)
            .filter_map(|(file, known)| {
                if let Some(known) = known.as_ref().filter(|known| known.is_as_of(file.stamp)) {
                    return Some((file, known.clone(), false));
                }
                let read = self.projects.open(&file.path).and_then(|(mut open, stamp)| {
                    Ok(with_buffer(|buffer| follow(&mut open, stamp, known, buffer))?)
                });
                match read {
                    Ok(ledger) => Some((file, ledger, true)),
                    Err(error) => {
                        tracing::warn!(%error, "a transcript could not be read");
                        None
                    }
                }
            })
            .collect();
        if let Some(index) = &self.index {
            let new = read
                .iter()
                .filter(|(_, _, is_new)| *is_new)
                .map(|(file, ledger, _)| (file.path.as_str(), ledger));
            if let Err(error) = index.save(new) {
                tracing::warn!(%error, "usage could not be saved in the index");
            }
        }
        let mut ledgers: Vec<(Transcript, Followed<Ledger>)> =
            read.into_iter().map(|(file, ledger, _)| (file, ledger)).collect();
        ledgers.sort_by(|(a, first), (b, second)| {
            let began = |ledger: &Followed<Ledger>| {
                ledger
                    .current()
                    .entries
                    .first()
                    .map_or(i64::MAX, |entry| entry.time)
            };
            began(first).cmp(&began(second)).then_with(|| a.path.cmp(&b.path))
        });
        Ok(ledgers)
    }
}

#[derive(Default)]
struct Sums {
    total: Usage,
    days: BTreeMap<i64, Usage>,
    /// The day of each quarter of an hour, cached because it is expensive to compute.
    quarters: HashMap<i64, i64>,
    projects: HashMap<String, Usage>,
    models: HashMap<String, Usage>,
    sessions: HashMap<String, Usage>,
    without_price: Vec<String>,
}

impl Sums {
    fn add(&mut self, time: i64, owner: &Transcript, model: &str, tokens: &Tokens, zone: &TimeZone) {
        let cost = prices::cost(model, tokens);
        if cost.is_none() && !self.without_price.iter().any(|known| known == model) {
            self.without_price.push(model.to_owned());
        }
        // Days begin on a quarter of an hour in every zone.
        let quarter = time.div_euclid(900_000);
        let day = *self.quarters.entry(quarter).or_insert_with(|| day_of(time, zone));
        let into = [
            &mut self.total,
            self.days.entry(day).or_default(),
            entry(&mut self.projects, owner.project()),
            entry(&mut self.models, model),
            entry(&mut self.sessions, owner.stem()),
        ];
        for usage in into {
            usage.tokens.add(tokens);
            usage.cost_usd += cost.unwrap_or(0.0);
            usage.messages += 1;
        }
    }

    fn report(self) -> UsageReport {
        let day = |(number, usage): (i64, Usage)| UsageRow {
            key: day_name(number),
            usage,
        };
        UsageReport {
            total: self.total,
            days: self.days.into_iter().map(day).collect(),
            projects: dearest_first(self.projects),
            models: dearest_first(self.models),
            sessions: dearest_first(self.sessions),
            models_without_price: self.without_price,
        }
    }
}

fn entry<'a>(sums: &'a mut HashMap<String, Usage>, key: &str) -> &'a mut Usage {
    if !sums.contains_key(key) {
        sums.insert(key.to_owned(), Usage::default());
    }
    sums.entry(key.to_owned()).or_default()
}

fn dearest_first(sums: HashMap<String, Usage>) -> Vec<UsageRow> {
    let mut rows: Vec<UsageRow> = sums
        .into_iter()
        .map(|(key, usage)| UsageRow { key, usage })
        .collect();
    rows.sort_by(|a, b| {
        b.usage
            .cost_usd
            .total_cmp(&a.usage.cost_usd)
            .then_with(|| a.key.cmp(&b.key))
    });
    rows
}

/// Days since 1970 in a zone.
fn day_of(time: i64, zone: &TimeZone) -> i64 {
    let Ok(time) = jiff::Timestamp::from_millisecond(time) else {
        return 0;
    };
    let local = time.as_second() + i64::from(zone.to_offset(time).seconds());
    local.div_euclid(86_400)
}

fn day_name(day: i64) -> String {
    let time = jiff::Timestamp::from_second(day * 86_400).unwrap_or_default();
    time.strftime("%Y-%m-%d").to_string()
}
