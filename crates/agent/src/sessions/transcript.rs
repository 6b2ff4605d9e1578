//! One file of a conversation: a JSON object a line. What is not understood is passed over and never lost.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::{SessionInfo, SessionMessage};

/// How much of the beginning and of the end of a file is read for [`info`].
const PEEK: u64 = 64 * 1024;

/// A transcript that was found.
pub(super) struct File {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) modified: SystemTime,
    size: u64,
}

/// The transcripts in a folder; none if it can't be read.
pub(super) fn files(folder: &Path) -> Vec<File> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            let id = path.file_stem()?.to_str()?.to_owned();
            if path.extension()? != "jsonl" || uuid::Uuid::parse_str(&id).is_err() {
                return None;
            }
            let metadata = entry.metadata().ok()?;
            Some(File {
                id,
                modified: metadata.modified().ok()?,
                size: metadata.len(),
                path,
            })
        })
        .collect()
}

/// What the first and the last lines tell; `None` for a file in which nothing was said, or only by a subagent.
pub(super) fn info(file: &File) -> io::Result<Option<SessionInfo>> {
    let mut reader = fs::File::open(&file.path)?;
    let mut head = Vec::new();
    Read::by_ref(&mut reader).take(PEEK).read_to_end(&mut head)?;
    let mut tail = Vec::new();
    if file.size > PEEK {
        reader.seek(SeekFrom::Start(file.size.saturating_sub(PEEK).max(PEEK)))?;
        reader.read_to_end(&mut tail)?;
    }
    let mut info = SessionInfo {
        id: file.id.clone(),
        custom_title: None,
        generated_title: None,
        first_prompt: None,
        cwd: None,
        git_branch: None,
        tag: None,
        created_at: None,
        modified: file.modified,
        size: file.size,
    };
    let mut spoken = false;
    for entry in lines(&head).chain(lines(&tail)) {
        let text = |name: &str| {
            entry[name]
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        if entry["isSidechain"] == Value::Bool(true) && !spoken {
            return Ok(None);
        }
        info.cwd = info.cwd.or_else(|| text("cwd").map(PathBuf::from));
        info.created_at = info.created_at.or_else(|| text("timestamp"));
        info.git_branch = text("gitBranch").or(info.git_branch);
        match entry["type"].as_str() {
            Some("custom-title") => info.custom_title = text("customTitle"),
            Some("ai-title") => info.generated_title = text("aiTitle"),
            Some("summary") => info.generated_title = text("summary").or(info.generated_title),
            Some("tag") => info.tag = text("tag"),
            Some("user") => {
                spoken = true;
                info.first_prompt = info.first_prompt.or_else(|| prompt(&entry));
            }
            Some("assistant") => spoken = true,
            _ => {}
        }
    }
    // The first prompt may be longer than what was looked at.
    Ok((spoken || file.size > PEEK).then_some(info))
}

/// What the user typed, if the entry is something that they typed.
fn prompt(entry: &Value) -> Option<String> {
    if entry["isMeta"] == Value::Bool(true) {
        return None;
    }
    let content = &entry["message"]["content"];
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => return None,
    };
    let text = text.trim();
    // The CLI's own words, such as those about commands, are in tags.
    (!text.is_empty() && !text.starts_with('<')).then(|| text.to_owned())
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Value> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(Value::is_object)
}

/// A whole transcript.
pub(super) struct Transcript {
    pub(super) entries: Vec<Value>,
}

impl Transcript {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        Ok(Self {
            entries: lines(&fs::read(path)?).collect(),
        })
    }

    /// The messages of the main conversation, in the order in which they were written.
    fn main(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.entries.iter().filter(|entry| {
            matches!(
                entry["type"].as_str(),
                Some("user" | "assistant" | "attachment" | "system" | "progress")
            ) && entry["uuid"].is_string()
                && entry["isSidechain"] != Value::Bool(true)
        })
    }

    /// The branch that resuming would go on with.
    pub(super) fn messages(&self) -> Vec<SessionMessage> {
        let branch = self.branch();
        self.main()
            .filter(|entry| is_spoken(entry) && entry["isMeta"] != Value::Bool(true))
            .filter(|entry| entry["uuid"].as_str().is_some_and(|uuid| branch.contains(uuid)))
            .map(|entry| SessionMessage {
                is_assistant: entry["type"] == "assistant",
                uuid: entry["uuid"].as_str().unwrap_or_default().to_owned(),
                timestamp: entry["timestamp"].as_str().map(str::to_owned),
                message: entry["message"].clone(),
            })
            .collect()
    }

    /// The ids of the messages from the last one up to the first, and of what belongs to them: a model message is written
    /// as one line for each block, and tools that run together have results beside one another.
    fn branch(&self) -> HashSet<&str> {
        let by_id: HashMap<&str, &Value> = self
            .main()
            .filter_map(|entry| Some((entry["uuid"].as_str()?, entry)))
            .collect();
        let mut branch = HashSet::new();
        let mut next = self.main().rfind(|entry| is_spoken(entry));
        while let Some(entry) = next {
            if !branch.insert(entry["uuid"].as_str().unwrap_or_default()) {
                break;
            }
            next = entry["parentUuid"]
                .as_str()
                .and_then(|parent| by_id.get(parent).copied());
        }
        loop {
            let known: HashSet<&str> = branch
                .iter()
                .filter_map(|uuid| by_id.get(uuid)?["message"]["id"].as_str())
                .collect();
            let before = branch.len();
            for entry in self.main().filter(|entry| is_spoken(entry)) {
                let Some(uuid) = entry["uuid"].as_str() else {
                    continue;
                };
                let beside = entry["parentUuid"]
                    .as_str()
                    .is_some_and(|parent| branch.contains(parent));
                let same_message = entry["message"]["id"]
                    .as_str()
                    .is_some_and(|id| known.contains(id));
                if same_message || (beside && is_tool_result(entry)) {
                    branch.insert(uuid);
                }
            }
            if branch.len() == before {
                return branch;
            }
        }
    }
}

fn is_spoken(entry: &Value) -> bool {
    matches!(entry["type"].as_str(), Some("user" | "assistant"))
}

fn is_tool_result(entry: &Value) -> bool {
    entry["message"]["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"))
}

/// Adds lines at the end, each in one piece: an agent may be writing as well.
pub(super) fn append(path: &Path, entries: &[Value]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(text(entries).as_bytes())
}

/// Writes a new file, which only its owner can read.
pub(super) fn create(path: &Path, entries: &[Value]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text(entries).as_bytes())
}

fn text(entries: &[Value]) -> String {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&entry.to_string());
        text.push('\n');
    }
    text
}
