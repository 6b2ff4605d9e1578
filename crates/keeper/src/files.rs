//! The files of a run beside the agent's output, for later programs.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use tiller_process::{Ended, Tree};

/// The file that records how the agent ended, for a program that comes when the keeper has gone.
pub(crate) const EXIT_FILE: &str = "exit.json";

/// The file that records the agent's process.
pub(crate) const PID_FILE: &str = "pid";

/// The keeper's socket.
pub(crate) const SOCKET: &str = "socket";

/// The file with the secret that a program must show to attach. Only its user can read it, and a shielded agent can't.
const SECRET_FILE: &str = "secret";

/// As long as an API key.
const SECRET: usize = 32;

/// Creates the secret of a new run.
pub(crate) fn create_secret(folder: &Path) -> io::Result<Vec<u8>> {
    let mut secret = vec![0; SECRET];
    getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
    let mut options = fs::File::options();
    let mut file = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(folder.join(SECRET_FILE))?;
    file.write_all(&secret)?;
    Ok(secret)
}

/// The secret of a run; empty for a run of an earlier version.
pub(crate) fn read_secret(folder: &Path) -> io::Result<Vec<u8>> {
    match fs::read(folder.join(SECRET_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        secret => secret,
    }
}

/// Writes a file atomically.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    fs::write(&unfinished, bytes)?;
    fs::rename(unfinished, folder.join(name))
}

pub(crate) fn write_pid(folder: &Path, tree: &Tree) -> io::Result<()> {
    write_whole(folder, PID_FILE, &serde_json::to_vec(&tree.identity())?)
}

pub(crate) fn write_exit(folder: &Path, ended: &Ended, last_input: u64, end: u64) -> io::Result<()> {
    let exit = ExitFile {
        code: ended.code,
        signal: ended.signal,
        uptime_ms: crate::wire::millis(ended.uptime),
        stderr: ended.stderr_tail.clone(),
        end,
        last_input: Some(last_input),
    };
    write_whole(folder, EXIT_FILE, &serde_json::to_vec(&exit)?)
}

/// How an agent ended.
#[derive(serde::Deserialize, serde::Serialize)]
pub(crate) struct ExitFile {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) uptime_ms: u64,
    pub(crate) stderr: String,
    /// The position at which its output ends.
    pub(crate) end: u64,
    /// The number of the last line that the agent got. Absent in files of earlier versions.
    #[serde(default)]
    pub(crate) last_input: Option<u64>,
}

/// `None`: the file does not exist or can't be read.
pub(crate) fn read_exit(folder: &Path) -> Option<ExitFile> {
    serde_json::from_slice(&fs::read(folder.join(EXIT_FILE)).ok()?).ok()
}
