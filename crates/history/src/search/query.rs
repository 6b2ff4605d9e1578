//! Full-text search: a query, and the messages that match it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::error::{HistoryError, Result};
use crate::history::History;
use crate::list::card::Piece;
use crate::model::{Page, Role};
use crate::read::place::{ProjectId, SessionId};
use crate::search::find::{Criteria, Hit, find, owner};
use crate::search::text::{Term, terms};

/// The length of an excerpt in characters, and how many of them are before the first match.
const EXCERPT: usize = 240;
const BEFORE: usize = 60;

/// A search. All conditions that are set must hold.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words that must all occur, in any order; "in quotes" as a phrase. Chinese needs no blanks. The last word may be
    /// unfinished.
    pub text: String,
    pub project: Option<ProjectId>,
    /// Only messages that call this tool or return its result.
    pub tool: Option<String>,
    /// Only sessions that changed a file whose path contains this.
    pub file: Option<String>,
    /// Only sessions in which a model whose name contains this answered.
    pub model: Option<String>,
    /// Milliseconds since 1970: at or after this time.
    pub from: Option<i64>,
    /// Before this time.
    pub to: Option<i64>,
    /// Only in these sessions.
    pub only: Option<Arc<BTreeSet<SessionId>>>,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts", optional_fields)]
pub struct SearchResult {
    pub session_id: SessionId,
    pub project: ProjectId,
    pub uuid: String,
    pub role: Role,
    pub timestamp: String,
    pub excerpt: String,
    /// The excerpt, split where matches begin and end.
    pub fragments: Vec<Fragment>,
    /// The session's title.
    pub title: String,
    /// A tool's result, not typed by anyone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub is_tool_result: bool,
    /// The summary of a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(as = "Option<bool>", optional)]
    pub is_summary: bool,
    /// The id of the subagent that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// A piece of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct Fragment {
    pub text: String,
    /// Whether it matches the query.
    pub is_match: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[ts(export_to = "history.ts")]
pub struct SearchPage {
    pub results: Vec<SearchResult>,
    pub total: usize,
    /// False if there are more matches than were counted.
    pub total_is_exact: bool,
    /// False while the transcripts are being indexed for the first time: a later search may find more.
    pub is_complete: bool,
}

impl History {
    /// Searches what has been indexed so far: the most recently used conversation first, and within each the newest
    /// message first.
    pub fn search(&self, query: &SearchQuery, page: Page) -> Result<SearchPage> {
        let index = self.index.as_ref().ok_or(HistoryError::NoIndex)?;
        let terms = terms(&query.text);
        if terms.is_empty() {
            return Err(HistoryError::Invalid(
                "a search needs at least one letter, digit or character",
            ));
        }
        let crate::model::Offset::FromStart(offset) = page.offset else {
            return Err(HistoryError::Invalid("search results are counted from the first"));
        };
        // Read before the search: messages that are indexed meanwhile may be missing.
        let is_complete = self.caught_up.load(Ordering::Relaxed);
        let criteria = Criteria {
            terms: &terms,
            tool: query.tool.as_deref(),
            times: query.from.unwrap_or(i64::MIN)..query.to.unwrap_or(i64::MAX),
            offset,
            limit: page.limit.min(Page::MAX),
        };
        let digests = self.catalogue.by_path(self.index.as_ref());
        let session_of = |path: &str| {
            let owner = owner(path);
            let own = digests
                .get(path)
                .and_then(|digest| digest.current().get(Piece::SidechainOf));
            let project = owner.project().to_owned();
            let stem = own.unwrap_or_else(|| owner.stem()).to_owned();
            (format!("{project}/{stem}.jsonl"), project, stem)
        };
        let found =
            find(index, &self.projects, &criteria, |path| {
                let (session, project, stem) = session_of(path);
                if query.only.as_ref().is_some_and(|only| {
                    SessionId::parse(&stem).map_or(true, |session| !only.contains(&session))
                }) {
                    return false;
                }
                if query
                    .project
                    .as_ref()
                    .is_some_and(|wanted| wanted.as_str() != project)
                {
                    return false;
                }
                if query.file.is_none() && query.model.is_none() {
                    return true;
                }
                digests.get(session.as_str()).is_some_and(|digest| {
                    let digest = digest.current();
                    let file = query.file.as_deref();
                    let model = query.model.as_deref();
                    file.is_none_or(|wanted| digest.has_changed(wanted))
                        && model.is_none_or(|wanted| {
                            digest
                                .names(Piece::Models)
                                .iter()
                                .any(|name| name.contains(wanted))
                        })
                })
            });
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                // The next update rebuilds the index.
                self.caught_up.store(false, Ordering::Relaxed);
                index.mend_words(&error)?;
                return Err(error);
            }
        };
        let results = found.hits.into_iter().filter_map(|hit| {
            let (session, project, stem) = session_of(&hit.path);
            let title = digests
                .get(session.as_str())
                .map(|digest| digest.current().title().into())
                .unwrap_or_default();
            result(hit, &terms, &project, &stem, title)
        });
        Ok(SearchPage {
            results: results.collect(),
            total: found.total,
            total_is_exact: found.is_exact,
            is_complete,
        })
    }
}

fn result(hit: Hit, terms: &[Term], project: &str, stem: &str, title: String) -> Option<SearchResult> {
    let fragments = excerpt(&hit.text, terms);
    let file = hit
        .path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(".jsonl");
    Some(SearchResult {
        session_id: SessionId::parse(stem).ok()?,
        project: ProjectId::parse(project).ok()?,
        uuid: hit.uuid,
        role: if hit.role == "user" {
            Role::User
        } else {
            Role::Assistant
        },
        timestamp: hit.timestamp,
        is_tool_result: hit.is_tool_result,
        is_summary: hit.is_summary,
        excerpt: fragments.iter().map(|fragment| fragment.text.as_str()).collect(),
        fragments,
        title,
        agent_id: file.strip_prefix("agent-").map(str::to_owned),
    })
}

/// The part of a text around the first match, on one line, split where matches begin and end.
fn excerpt(text: &str, terms: &[Term]) -> Vec<Fragment> {
    // A result may be megabytes long: look closely only at the part that will be shown.
    let around = first_match(text, terms).unwrap_or(0);
    let start = text.floor_char_boundary(around.saturating_sub(4 * BEFORE));
    let end = text.ceil_char_boundary((around + 4 * EXCERPT).min(text.len()));
    close_excerpt(&text[start..end], terms, start > 0, end < text.len())
}

/// The approximate position of the first match in bytes, case-insensitive for ASCII only.
fn first_match(text: &str, terms: &[Term]) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let needles = terms.iter().flat_map(|term| {
        if lower.contains(&term.text) {
            vec![term.text.as_str()]
        } else {
            term.words.iter().map(String::as_str).collect()
        }
    });
    let begins = |at: usize, needle: &str| {
        let before = lower[..at].chars().next_back();
        !needle.starts_with(|first: char| first.is_ascii_alphanumeric())
            || !before.is_some_and(char::is_alphanumeric)
    };
    needles
        .filter_map(|needle| {
            lower
                .match_indices(needle)
                .map(|(at, _)| at)
                .find(|at| begins(*at, needle))
        })
        .min()
}

fn close_excerpt(text: &str, terms: &[Term], more_before: bool, more_after: bool) -> Vec<Fragment> {
    let letters: Vec<char> = text
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .collect();
    // Lowercasing single characters keeps positions; the few letters that grow are ignored.
    let lower: Vec<char> = letters
        .iter()
        .map(|letter| letter.to_lowercase().next().unwrap_or(*letter))
        .collect();
    let mut matches = Vec::new();
    for term in terms {
        let needles: Vec<Vec<char>> = match occurrences(&lower, &term.text.chars().collect::<Vec<_>>()) {
            found if !found.is_empty() => {
                matches.extend(found);
                continue;
            }
            _ => term.words.iter().map(|word| word.chars().collect()).collect(),
        };
        for needle in needles {
            matches.extend(occurrences(&lower, &needle));
        }
    }
    matches.sort_unstable();
    let first = matches.first().map_or(0, |(start, _)| *start);
    let mut start = first.saturating_sub(BEFORE);
    let end = (start + EXCERPT).min(letters.len());
    start = start.min(end.saturating_sub(EXCERPT));
    let mut fragments = Vec::new();
    let mut push = |letters: &[char], is_match: bool| {
        if !letters.is_empty() {
            fragments.push(Fragment {
                text: letters.iter().collect(),
                is_match,
            });
        }
    };
    if start > 0 || more_before {
        push(&['…'], false);
    }
    let mut at = start;
    for (from, to) in matches {
        let (from, to) = (from.max(at), to.min(end));
        if from < to {
            push(&letters[at..from], false);
            push(&letters[from..to], true);
            at = to;
        }
    }
    push(&letters[at..end], false);
    if end < letters.len() || more_after {
        push(&['…'], false);
    }
    fragments
}

/// The positions of a needle; for a word of letters only at the beginnings of words.
fn occurrences(text: &[char], needle: &[char]) -> Vec<(usize, usize)> {
    let Some(first) = needle.first() else {
        return Vec::new();
    };
    let is_word = first.is_ascii_alphanumeric();
    let mut found = Vec::new();
    let mut at = 0;
    while at + needle.len() <= text.len() && found.len() < 200 {
        let begins = !is_word || at == 0 || !text[at - 1].is_alphanumeric();
        if begins && text[at] == *first && text[at..].starts_with(needle) {
            found.push((at, at + needle.len()));
            at += needle.len();
        } else {
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, query: &str) -> String {
        excerpt(text, &terms(query))
            .iter()
            .map(|fragment| {
                if fragment.is_match {
                    format!("[{}]", fragment.text)
                } else {
                    fragment.text.clone()
                }
            })
            .collect()
    }

    #[test]
    fn excerpts_mark_what_was_searched_for() {
        assert_eq!(
            marked("Please fix the Login\npage", "login pag"),
            "Please fix the [Login] [pag]e"
        );
        assert_eq!(
            marked("请修复登录页面的错误", "登录页面"),
            "请修复[登录页面]的错误"
        );
        assert_eq!(marked("错", "错"), "[错]");
        let long = format!("{} needle {}", "word ".repeat(100), "tail ".repeat(100));
        let shown = marked(&long, "needle");
        assert!(
            shown.starts_with('…') && shown.contains("[needle]") && shown.ends_with('…'),
            "{shown}"
        );
        assert!(shown.chars().count() < EXCERPT + 10);
    }

    #[test]
    fn a_result_is_the_shape_of_the_contract() {
        let hit = Hit {
            path: "-p/s/subagents/agent-a1.jsonl".into(),
            uuid: "u".into(),
            role: "assistant",
            timestamp: "t".into(),
            is_tool_result: false,
            is_summary: false,
            text: "all done".into(),
        };
        let json = serde_json::to_value(result(hit, &terms("done"), "-p", "s", "T".into()).unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"session_id": "s", "project": "-p", "uuid": "u", "role": "assistant", "timestamp": "t",
                "excerpt": "all done", "title": "T", "agent_id": "a1",
                "fragments": [{"text": "all ", "is_match": false}, {"text": "done", "is_match": true}]})
        );
    }
}
