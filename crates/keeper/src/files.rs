//! What stands in a run's folder beside the agent's output, for programs that come later.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use tiller_process::{Ended, Tree};

/// The name of the file that tells how the agent ended, for a program that comes when the keeper is gone.
pub(crate) const EXIT_FILE: &str = "exit.json";

/// The name of the file that tells which process the agent is.
pub(crate) const PID_FILE: &str = "pid";

/// The socket on which a keeper can be found.
pub(crate) const SOCKET: &str = "socket";

/// The name of the file with what a program has to know that attaches. Only its user can read it, and the agent can't
/// where it is shielded.
const SECRET_FILE: &str = "secret";

/// As long as a key of ours.
const SECRET: usize = 32;

/// Makes the secret of a new run.
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

/// The secret of a run; empty for one that an earlier version has started.
pub(crate) fn read_secret(folder: &Path) -> io::Result<Vec<u8>> {
    match fs::read(folder.join(SECRET_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        secret => secret,
    }
}

/// Written whole or not at all.
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
    /// Where its output ends.
    pub(crate) end: u64,
    /// The last numbered line that was passed on to it. Files of earlier versions don't say.
    #[serde(default)]
    pub(crate) last_input: Option<u64>,
}

/// `None`: nobody has written it, or it can't be read.
pub(crate) fn read_exit(folder: &Path) -> Option<ExitFile> {
    serde_json::from_slice(&fs::read(folder.join(EXIT_FILE)).ok()?).ok()
}
