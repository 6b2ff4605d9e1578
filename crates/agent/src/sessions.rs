//! Conversations on disk: list, read, rename, tag, fork and delete them, or keep a copy of them elsewhere.
//!
//! The CLI writes every conversation to a file under `~/.claude/projects`. [`Sessions`] reads and changes those files in
//! the way the CLI does; it needs no running agent and starts none. A [`SessionStore`] gets a copy of what agents write
//! while they run, and gives it back on another machine.
//!
//! ```no_run
//! # async fn example() -> Result<(), tiller_agent::Error> {
//! use tiller_agent::sessions::{ListOptions, Sessions};
//!
//! let sessions = Sessions::from_env();
//! for session in sessions.list(ListOptions::new().cwd("/srv/project").limit(10)).await? {
//!     println!("{}  {}", session.id, session.title().unwrap_or("(no title)"));
//! }
//! # Ok(())
//! # }
//! ```

mod fork;
mod store;
mod transcript;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::error::Error;
use transcript::Transcript;

pub use store::{MemoryStore, SessionKey, SessionStore, StoreError};
pub(crate) use store::{Mirror, restore};

/// A conversation on disk, as far as its first and last lines tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "SDKSessionInfo")]
pub struct SessionInfo {
    /// The id with which the conversation is resumed.
    pub id: String,
    /// The title that a user or [`Sessions::rename`] gave it.
    pub custom_title: Option<String>,
    /// The title that the CLI made up, or the summary of a compaction.
    pub generated_title: Option<String>,
    /// The first thing that the user said.
    pub first_prompt: Option<String>,
    /// The working directory. Resuming works only from there.
    pub cwd: Option<PathBuf>,
    /// The branch of the working directory, as of the last line.
    pub git_branch: Option<String>,
    /// The tag that [`Sessions::tag`] gave it.
    pub tag: Option<String>,
    /// When the conversation began, as the CLI wrote it (RFC 3339).
    pub created_at: Option<String>,
    /// When the file was last written.
    pub modified: SystemTime,
    /// The size of the file in bytes.
    pub size: u64,
}

impl SessionInfo {
    /// What to show: the title that was given, else the one that was made up, else the first prompt.
    pub fn title(&self) -> Option<&str> {
        self.custom_title
            .as_deref()
            .or(self.generated_title.as_deref())
            .or(self.first_prompt.as_deref())
    }
}

/// A message of a conversation on disk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionMessage {
    /// Whether the model said it. Otherwise the user did, or it is the result of a tool.
    pub is_assistant: bool,
    /// The id of the message, for [`ForkOptions::up_to`] and
    /// [`Options::resume_at`](crate::Options::resume_at).
    pub uuid: String,
    /// When it was written, as the CLI wrote it (RFC 3339).
    pub timestamp: Option<String>,
    /// The message of the model's API: `role`, `content` and so on.
    pub message: Value,
}

impl SessionMessage {
    /// The text of the message, without tool calls and their results.
    pub fn text(&self) -> String {
        match &self.message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// Which conversations to list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    cwd: Option<PathBuf>,
    limit: Option<usize>,
    offset: usize,
}

impl ListOptions {
    /// All of them, the newest first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of this working directory.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// At most this many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Leaves out the first of them.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }
}

/// What a fork of a conversation is like.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    up_to: Option<String>,
    title: Option<String>,
}

impl ForkOptions {
    /// The whole conversation, with the title of the original and ` (fork)`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only up to the message with this uuid, and with it.
    pub fn up_to(mut self, message_uuid: impl Into<String>) -> Self {
        self.up_to = Some(message_uuid.into());
        self
    }

    /// The fork's title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// The conversations in a CLI's home folder.
#[derive(Debug, Clone)]
pub struct Sessions {
    projects: PathBuf,
}

impl Sessions {
    /// Those of `CLAUDE_CONFIG_DIR`, or of `~/.claude`.
    pub fn from_env() -> Self {
        let home = std::env::var_os("CLAUDE_CONFIG_DIR")
            .map(PathBuf::from)
            .or_else(|| Some(std::env::home_dir()?.join(".claude")))
            .unwrap_or_default();
        Self::in_home(home)
    }

    /// Those of a given folder, as [`Options::claude_home`](crate::Options::claude_home) has it.
    pub fn in_home(claude_home: impl AsRef<Path>) -> Self {
        Self {
            projects: claude_home.as_ref().join("projects"),
        }
    }

    /// Lists conversations, the newest first. Reads the beginning and the end of each file, not the whole.
    #[doc(alias = "list_sessions")]
    pub async fn list(&self, options: ListOptions) -> Result<Vec<SessionInfo>, Error> {
        self.blocking(move |sessions| {
            let mut files = sessions.files(options.cwd.as_deref())?;
            files.sort_by(|left, right| {
                right
                    .modified
                    .cmp(&left.modified)
                    .then(left.path.cmp(&right.path))
            });
            let mut listed = Vec::new();
            let mut skipped = 0;
            for file in files {
                if options.limit.is_some_and(|limit| listed.len() >= limit) {
                    break;
                }
                // One that can't be read stops nobody else.
                let Ok(Some(info)) = transcript::info(&file) else {
                    continue;
                };
                if skipped < options.offset {
                    skipped += 1;
                    continue;
                }
                listed.push(info);
            }
            Ok(listed)
        })
        .await
    }

    /// One conversation; `None` if there is none of this id.
    #[doc(alias = "get_session_info")]
    pub async fn info(&self, id: &str) -> Result<Option<SessionInfo>, Error> {
        let id = id.to_owned();
        self.blocking(move |sessions| match sessions.find(&id)? {
            Some(file) => transcript::info(&file),
            None => Ok(None),
        })
        .await
    }

    /// What was said, oldest first: the branch of the conversation that resuming would go on with, without what
    /// subagents said. After a compaction, what came after it.
    #[doc(alias = "get_session_messages")]
    pub async fn messages(&self, id: &str) -> Result<Vec<SessionMessage>, Error> {
        let id = id.to_owned();
        self.blocking(move |sessions| {
            let file = sessions.existing(&id)?;
            Ok(Transcript::read(&file.path)?.messages())
        })
        .await
    }

    /// Gives a conversation a title.
    #[doc(alias = "rename_session")]
    pub async fn rename(&self, id: &str, title: &str) -> Result<(), Error> {
        let title = title.trim();
        if title.is_empty() {
            return Err(invalid("a title must not be empty"));
        }
        let line = json!({ "type": "custom-title", "customTitle": title, "sessionId": id });
        self.append(id, &line).await
    }

    /// Gives a conversation a tag; `None` takes it away.
    #[doc(alias = "tag_session")]
    pub async fn tag(&self, id: &str, tag: Option<&str>) -> Result<(), Error> {
        let tag = tag.map(str::trim);
        if tag.is_some_and(str::is_empty) {
            return Err(invalid("a tag must not be empty; `None` takes it away"));
        }
        let line = json!({ "type": "tag", "tag": tag.unwrap_or_default(), "sessionId": id });
        self.append(id, &line).await
    }

    /// Copies a conversation under a new id, which is returned. (An agent that should go on in a copy at once needs no
    /// more than [`Options::fork`](crate::Options::fork).)
    #[doc(alias = "fork_session")]
    pub async fn fork(&self, id: &str, options: ForkOptions) -> Result<String, Error> {
        let id = id.to_owned();
        self.blocking(move |sessions| {
            let file = sessions.existing(&id)?;
            let info = transcript::info(&file)?;
            let title = options.title.unwrap_or_else(|| {
                let original = info.as_ref().and_then(SessionInfo::title);
                format!("{} (fork)", original.unwrap_or("Forked session"))
            });
            let transcript = Transcript::read(&file.path)?;
            let fork = fork::fork(&transcript, &id, options.up_to.as_deref(), &title)?;
            let path = file.path.with_file_name(format!("{}.jsonl", fork.id));
            transcript::create(&path, &fork.lines)?;
            Ok(fork.id)
        })
        .await
    }

    /// Deletes a conversation, with what its subagents said. It can't be resumed any more.
    #[doc(alias = "delete_session")]
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.blocking(move |sessions| {
            let file = sessions.existing(&id)?;
            std::fs::remove_file(&file.path)?;
            match std::fs::remove_dir_all(file.path.with_extension("")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn append(&self, id: &str, line: &Value) -> Result<(), Error> {
        let (id, line) = (id.to_owned(), line.clone());
        self.blocking(move |sessions| transcript::append(&sessions.existing(&id)?.path, &[line]))
            .await
    }

    /// File system work, kept off the runtime's threads.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let sessions = self.clone();
        tokio::task::spawn_blocking(move || work(&sessions))
            .await
            .map_err(|error| Error::Session(io::Error::other(error)))?
            .map_err(Error::Session)
    }

    fn files(&self, cwd: Option<&Path>) -> io::Result<Vec<transcript::File>> {
        let folders = match cwd {
            Some(cwd) => vec![self.folder(cwd)],
            None => match std::fs::read_dir(&self.projects) {
                Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        Ok(folders
            .iter()
            .flat_map(|folder| transcript::files(folder))
            .collect())
    }

    /// Where conversations that are held in a folder are kept. A long path is cut and gets a hash, so its folder is
    /// found by what it begins with.
    fn folder(&self, cwd: &Path) -> PathBuf {
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let name = project_name(&real);
        if name.len() > MAX_NAME {
            let begin = &name[..MAX_NAME];
            let entries = std::fs::read_dir(&self.projects).into_iter().flatten().flatten();
            let found = entries.map(|entry| entry.path()).find(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(begin))
            });
            if let Some(found) = found {
                return found;
            }
        }
        self.projects.join(name)
    }

    fn find(&self, id: &str) -> io::Result<Option<transcript::File>> {
        // Also keeps ids from being paths.
        if uuid::Uuid::parse_str(id).is_err() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{id}` is not the id of a session: those are UUIDs"),
            ));
        }
        Ok(self.files(None)?.into_iter().find(|file| file.id == id))
    }

    fn existing(&self, id: &str) -> io::Result<transcript::File> {
        self.find(id)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no session {id}")))
    }
}

/// The longest name that the CLI gives a project's folder before it cuts it.
const MAX_NAME: usize = 200;

/// The CLI's name for a project's folder: everything but letters and digits becomes a dash.
pub(crate) fn project_name(cwd: &Path) -> String {
    let dash = |character: char| {
        if character.is_ascii_alphanumeric() {
            character
        } else {
            '-'
        }
    };
    cwd.to_string_lossy().chars().map(dash).collect()
}

fn invalid(reason: &str) -> Error {
    Error::Session(io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned()))
}
