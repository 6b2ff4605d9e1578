//! What is needed to start a process, as data: whoever starts it may be another process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// A process that is ready to be started: data only, so that somebody else may start it.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; ours if `None`.
    pub cwd: Option<PathBuf>,
    /// How many files it may have open at once; as many as whoever starts it if `None`.
    pub open_files: Option<u64>,
}

impl std::fmt::Debug for Launch {
    /// Leaves out the values of the environment: they hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("open_files", &self.open_files)
            .finish()
    }
}
