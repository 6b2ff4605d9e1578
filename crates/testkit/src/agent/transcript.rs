//! The conversation on disk, in the CLI's place and format.

use std::collections::HashSet;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

use super::PROTOCOL_VERSION;
use super::options::{Options, Start};

/// A session's file, and what the agent remembers of it.
#[derive(Debug)]
pub(crate) struct Transcript {
    session_id: String,
    cwd: PathBuf,
    path: PathBuf,
    /// Opened with the first message: a session without messages leaves no file.
    file: Option<File>,
    last_uuid: Option<String>,
    /// The ids of the user's messages, to recognise duplicates.
    user_uuids: HashSet<String>,
    prompts: Vec<String>,
}

/// Why a session can't begin.
#[derive(Debug)]
pub(crate) enum OpenError {
    NotFound(String),
    NotAnId(String),
    InUse(String),
    Io(io::Error),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(id) => write!(f, "No conversation found with session ID: {id}"),
            Self::NotAnId(id) => write!(
                f,
                "Error: --resume requires a valid session ID, and {id:?} is not a UUID."
            ),
            Self::InUse(id) => write!(f, "Error: Session ID {id} is already in use."),
            Self::Io(error) => write!(f, "The session's file can't be used: {error}"),
        }
    }
}

impl OpenError {
    /// The errors of the `result` line, if the CLI writes one.
    pub(crate) fn result_errors(&self) -> Option<Value> {
        match self {
            Self::NotFound(_) | Self::NotAnId(_) => Some(json!([self.to_string()])),
            Self::InUse(_) | Self::Io(_) => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Transcript {
    pub(crate) fn open(options: &Options) -> Result<Self, OpenError> {
        let cwd = env::current_dir()?;
        let folder = project_folder(&cwd)?;
        let resumed = match &options.start {
            Start::New => None,
            Start::Resume(id) => {
                let id = Uuid::parse_str(id).map_err(|_| OpenError::NotAnId(id.clone()))?;
                let path = folder.join(format!("{id}.jsonl"));
                if !path.is_file() {
                    return Err(OpenError::NotFound(id.to_string()));
                }
                Some((id.to_string(), path))
            }
            Start::Newest => newest(&folder),
        };
        let new_id = || {
            options
                .session_id
                .clone()
                .unwrap_or_else(|| Uuid::new_v4().to_string())
        };
        match resumed {
            Some((_, original)) if options.fork => {
                let mut transcript = Self::new(&folder, new_id(), cwd);
                transcript.copy_from(&original)?;
                Ok(transcript)
            }
            Some((id, path)) => {
                let mut transcript = Self::new(&folder, id, cwd);
                transcript.remember(&read_lines(&path)?);
                Ok(transcript)
            }
            None => {
                let transcript = Self::new(&folder, new_id(), cwd);
                if transcript.path.exists() {
                    return Err(OpenError::InUse(transcript.session_id));
                }
                Ok(transcript)
            }
        }
    }

    fn new(folder: &Path, session_id: String, cwd: PathBuf) -> Self {
        Self {
            path: folder.join(format!("{session_id}.jsonl")),
            session_id,
            cwd,
            file: None,
            last_uuid: None,
            user_uuids: HashSet::new(),
            prompts: Vec::new(),
        }
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.session_id
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// All prompts of this session, oldest first.
    pub(crate) fn prompts(&self) -> &[String] {
        &self.prompts
    }

    pub(crate) fn has_user_message(&self, uuid: &str) -> bool {
        self.user_uuids.contains(uuid)
    }

    /// Adds a `user` or `assistant` line. A full disk must not end the conversation, so the error is only printed.
    pub(crate) fn append(&mut self, kind: &str, uuid: &str, message: &Value, extra: Value) {
        let mut line = json!({
            "parentUuid": self.last_uuid, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
            "timestamp": timestamp(), "userType": "external", "entrypoint": "sdk-cli", "cwd": self.cwd,
            "sessionId": self.session_id, "version": PROTOCOL_VERSION, "gitBranch": "",
        });
        if let (Value::Object(line), Value::Object(extra)) = (&mut line, extra) {
            line.extend(extra);
        }
        self.remember(std::slice::from_ref(&line));
        if let Err(error) = self.write(&line) {
            eprintln!("The transcript {} can't be written: {error}", self.path.display());
        }
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_to_append(&self.path)?),
        };
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn remember(&mut self, lines: &[Value]) {
        for line in lines {
            if let Some(uuid) = line["uuid"].as_str() {
                self.last_uuid = Some(uuid.to_owned());
                if line["type"] == "user" {
                    self.user_uuids.insert(uuid.to_owned());
                }
            }
            if line["type"] == "user" && line["isMeta"] != true {
                let prompt = prompt_text(&line["message"]["content"]);
                if !prompt.is_empty() && !prompt.starts_with("[Request interrupted") {
                    self.prompts.push(prompt);
                }
            }
        }
    }

    fn copy_from(&mut self, original: &Path) -> io::Result<()> {
        let mut lines = read_lines(original)?;
        for line in &mut lines {
            line["sessionId"] = Value::from(self.session_id.as_str());
            self.write(line)?;
        }
        self.remember(&lines);
        Ok(())
    }
}

/// The text that a user typed, from a message's content in either form.
pub(crate) fn prompt_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// Now, as the CLI writes it.
pub(crate) fn timestamp() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

fn project_folder(cwd: &Path) -> io::Result<PathBuf> {
    let config = env::var_os("CLAUDE_CONFIG_DIR")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".claude")))
        .ok_or_else(|| io::Error::other("there is no home folder; set CLAUDE_CONFIG_DIR"))?;
    let name: String = cwd
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    Ok(config.join("projects").join(name))
}

/// The session of this folder that was written to last.
fn newest(folder: &Path) -> Option<(String, PathBuf)> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.to_owned();
            Uuid::parse_str(&id).ok()?;
            Some((path.metadata().ok()?.modified().ok()?, id, path))
        })
        .max()
        .map(|(_, id, path)| (id, path))
}

/// The readable lines. A torn last line of a killed process is skipped.
fn read_lines(path: &Path) -> io::Result<Vec<Value>> {
    let bytes = fs::read(path)?;
    Ok(bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

fn open_to_append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let torn = fs::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|&last| last != b'\n'));
    let mut file = options.open(path)?;
    if torn {
        // The unfinished line of a killed process must not spoil the next one.
        file.write_all(b"\n")?;
    }
    Ok(file)
}
