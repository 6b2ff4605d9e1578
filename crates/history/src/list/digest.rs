//! The digest of one transcript for the list of sessions, built line by line.
//!
//! When the file has grown, a digest continues where it stopped. It is saved as a [`Card`](crate::list::card::Card), so
//! nothing in it depends on the file's location.

use std::collections::BTreeMap;

use memchr::memmem;

use crate::list::names::{Naming, nameable};
use crate::read::follow::Part;
use crate::read::json::Raw;
use crate::read::record::{Kind, Record};
use crate::read::typed::{self, Typed};

/// How many characters of the first prompt are kept; the title is its beginning.
const PROMPT_CHARS: usize = 400;
/// How many names of tools, files and models are kept of one session: far more than people have, and a bound for
/// hostile files.
const MAX_NAMES: usize = 5000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Digest {
    pub(crate) message_count: u64,
    pub(crate) created: Option<String>,
    pub(crate) first_time: Option<String>,
    pub(crate) last_time: Option<String>,
    /// The working directory of the first user line, or of the first line that has one.
    pub(crate) cwd: Option<String>,
    pub(crate) cwd_is_of_user: bool,
    pub(crate) prompt: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) custom_title: Option<String>,
    pub(crate) ai_title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) tools: Naming,
    /// Absolute until a user line has the working directory, then relative to it if inside it.
    pub(crate) files: Naming,
    pub(crate) models: Naming,
    pub(crate) git_branch: Option<String>,
    pub(crate) version: Option<String>,
    /// Set if the whole file belongs to a subagent of that session, as in older releases.
    pub(crate) sidechain_of: Option<String>,
    pub(crate) damaged: u64,
    pub(crate) unknown: BTreeMap<String, u64>,
}

impl Part for Digest {
    fn add(&mut self, _offset: u64, _line: &[u8], record: &Record<'_>) {
        match record.kind {
            Kind::User => self.user(record),
            Kind::Assistant => self.assistant(record),
            Kind::FileHistorySnapshot => self.snapshot(record),
            Kind::FileHistoryDelta => {
                if let Some(path) = record.tracking_path.and_then(Raw::text) {
                    self.changed(&path);
                }
            }
            Kind::CustomTitle => self.custom_title = title_text(record),
            Kind::AiTitle => self.ai_title = title_text(record),
            Kind::Summary => self.summary = title_text(record),
            Kind::Unknown(name) => {
                let name = String::from_utf8_lossy(name);
                *self.unknown.entry(nameable(&name).into_owned()).or_default() += 1;
            }
            Kind::Untyped => *self.unknown.entry(String::new()).or_default() += 1,
            Kind::System | Kind::Attachment | Kind::LastPrompt | Kind::Bookkeeping => {}
        }
        if record.kind.is_link() {
            self.link(record);
        }
    }

    fn damaged(&mut self) {
        self.damaged += 1;
    }
}

impl Digest {
    /// All texts, in the order of a card.
    pub(crate) fn texts(&self) -> [&Option<String>; 12] {
        [
            &self.created,
            &self.first_time,
            &self.last_time,
            &self.cwd,
            &self.prompt,
            &self.command,
            &self.custom_title,
            &self.ai_title,
            &self.summary,
            &self.git_branch,
            &self.version,
            &self.sidechain_of,
        ]
    }

    pub(crate) fn texts_mut(&mut self) -> [&mut Option<String>; 12] {
        [
            &mut self.created,
            &mut self.first_time,
            &mut self.last_time,
            &mut self.cwd,
            &mut self.prompt,
            &mut self.command,
            &mut self.custom_title,
            &mut self.ai_title,
            &mut self.summary,
            &mut self.git_branch,
            &mut self.version,
            &mut self.sidechain_of,
        ]
    }

    /// The fields of every link of the chain.
    fn link(&mut self, record: &Record<'_>) {
        if let Some(time) = record.timestamp.and_then(Raw::escaped) {
            set_text(&mut self.last_time, time);
            if self.first_time.is_none() {
                self.first_time.clone_from(&self.last_time);
            }
            if self.created.is_none() && record.kind == Kind::User {
                self.created.clone_from(&self.last_time);
            }
        }
        if !self.cwd_is_of_user
            && (self.cwd.is_none() || record.kind == Kind::User)
            && let Some(cwd) = record.cwd.and_then(Raw::text)
        {
            self.cwd = Some(cwd.into_owned());
            self.cwd_is_of_user = record.kind == Kind::User;
            if self.cwd_is_of_user && !self.files.is_empty() {
                self.files = relative(
                    self.cwd.as_deref(),
                    crate::list::names::listed(self.files.as_str()),
                );
            }
        }
        if let Some(version) = record.version.and_then(Raw::escaped) {
            set_text(&mut self.version, version);
        }
        if let Some(branch) = record.branch.and_then(Raw::escaped) {
            set_text(&mut self.git_branch, branch);
        }
    }

    fn user(&mut self, record: &Record<'_>) {
        if self.message_count == 0 && record.is_sidechain {
            self.sidechain_of = record
                .session
                .and_then(Raw::text)
                .map(std::borrow::Cow::into_owned);
        }
        self.message_count += 1;
        if self.prompt.is_none() {
            match typed::typed(record) {
                Typed::Prompt(text) => self.prompt = Some(typed::shortened(&text, PROMPT_CHARS).to_owned()),
                Typed::Command(text) if self.command.is_none() => {
                    self.command = Some(typed::shortened(&text, PROMPT_CHARS).to_owned());
                }
                Typed::Command(_) | Typed::Nothing => {}
            }
        }
        if let Some(path) = edited_file(record) {
            self.changed(&path);
        }
    }

    fn assistant(&mut self, record: &Record<'_>) {
        self.message_count += 1;
        if let Some(model) = record.model {
            // The CLI writes its own errors and notes under a model that does not exist.
            if model != b"<synthetic>" && self.models.last().is_none_or(|last| last.as_bytes() != model) {
                add_name(&mut self.models, &String::from_utf8_lossy(model));
            }
        }
        let Some(content) = record.content.filter(|content| content.is_array()) else {
            return;
        };
        let tools = &mut self.tools;
        let mut note = |block: Raw<'_>| {
            let (mut is_call, mut tool) = (false, None);
            block.first_entries(|key, value| {
                match key {
                    b"type" => {
                        is_call = value.escaped() == Some(b"tool_use");
                        return is_call && tool.is_none();
                    }
                    b"name" => tool = value.text(),
                    _ => {}
                }
                !is_call || tool.is_none()
            });
            if let Some(name) = tool.filter(|_| is_call) {
                add_name(tools, &name);
            }
        };
        let first = content.0[1..].trim_ascii_start();
        if record.content_blocks == 1 && first.starts_with(b"{") {
            // The usual line. Type and name are at the beginning of the block, whose end need not be found.
            note(Raw(first));
        } else if memmem::find(content.0, b"\"tool_use\"").is_some() {
            content.items(note);
        }
    }

    fn snapshot(&mut self, record: &Record<'_>) {
        if let Some(backups) = record
            .snapshot
            .and_then(|snapshot| snapshot.get(b"trackedFileBackups"))
        {
            backups.entries(|path, _| {
                let path = crate::read::json::text_of(path);
                self.changed(&path);
            });
        }
    }

    fn changed(&mut self, path: &str) {
        let cwd = self.cwd.as_deref().filter(|_| self.cwd_is_of_user);
        add_name(&mut self.files, inside(cwd, path));
    }
}

/// Paths relative to a folder, without duplicates.
pub(crate) fn relative<'a>(folder: Option<&str>, paths: impl Iterator<Item = &'a str>) -> Naming {
    paths.map(|path| inside(folder, path)).collect()
}

/// A path relative to a folder, if inside it.
fn inside<'a>(folder: Option<&str>, path: &'a str) -> &'a str {
    folder
        .and_then(|folder| path.strip_prefix(folder)?.strip_prefix(['/', '\\']))
        .unwrap_or(path)
}

/// The file that a tool edited, from its structured result. Tools that only read have no patch.
fn edited_file<'a>(record: &Record<'a>) -> Option<std::borrow::Cow<'a, str>> {
    let path = record
        .result_path
        .filter(|_| record.result_is_edit && !record.result_is_error)?;
    path.text()
}

fn title_text(record: &Record<'_>) -> Option<String> {
    let text = record.title.and_then(Raw::text)?;
    Some(typed::shortened(text.trim(), PROMPT_CHARS).to_owned())
}

/// Sets a text without a new allocation for every line.
fn set_text(slot: &mut Option<String>, value: &[u8]) {
    if slot.as_ref().is_some_and(|old| old.as_bytes() == value) {
        return;
    }
    let text = match std::str::from_utf8(value) {
        Ok(text) => std::borrow::Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(value),
    };
    match slot {
        Some(old) => {
            old.clear();
            old.push_str(&text);
        }
        None => *slot = Some(text.into_owned()),
    }
}

fn add_name(names: &mut Naming, name: &str) {
    if names.len() < MAX_NAMES {
        names.add(name);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::list::card::Card;

    pub(crate) fn digest(lines: &[&str]) -> Digest {
        let mut digest = Digest::default();
        for line in lines {
            let record = Record::read(line.as_bytes()).unwrap();
            digest.add(0, line.as_bytes(), &record);
        }
        digest
    }

    fn card(lines: &[&str]) -> Card {
        Card::of(&digest(lines))
    }

    #[test]
    fn files_are_relative_to_the_folder_of_the_first_user_line() {
        let early = r#"{"type":"file-history-delta","trackingPath":"/p/a.rs"}"#;
        let other = r#"{"type":"attachment","cwd":"/elsewhere"}"#;
        let user = r#"{"type":"user","cwd":"/p","message":{"content":"x"}}"#;
        let late = r#"{"type":"file-history-snapshot","snapshot":{"trackedFileBackups":{"/p/a.rs":{},"b \"q\".rs":{},"/elsewhere/c.rs":{},"/p2/d.rs":{}}}}"#;
        assert_eq!(
            card(&[other, early, user, late]).files_changed(),
            ["a.rs", "b \"q\".rs", "/elsewhere/c.rs", "/p2/d.rs"]
        );
        assert_eq!(card(&[other, early]).files_changed(), ["/p/a.rs"]);
        assert!(card(&[early, user]).has_changed("a.r"));
    }
}
