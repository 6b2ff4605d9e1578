//! Keeps agents from acting as their own user: commands that give out credentials refuse to run inside an agent, and
//! other programs of the same user can't read the server's memory and environment.

use tiller_core::credentials::SecretHash;

/// The environment's API key, and the hash by which the server recognises it after removing the key.
const KEY: &str = "TILLER_API_KEY";
const KEY_HASH: &str = "TILLER_API_KEY_SHA256";

/// Refuses to run if an agent is among the ancestors of this process.
pub(crate) fn refuse_beneath_an_agent(command: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        !is_beneath_an_agent(),
        "`tiller {command}` gives access to everything, so it does not run inside an agent's session. Run it in a terminal \
         of your own."
    );
    Ok(())
}

fn is_beneath_an_agent() -> bool {
    std::env::var_os(tiller_agent::process::RUN_MARK).is_some() || has_agent_among_ancestors()
}

#[cfg(target_os = "linux")]
fn has_agent_among_ancestors() -> bool {
    /// More than any tree of processes is deep.
    const DEEPEST: usize = 128;
    let mut pid = std::process::id();
    for _ in 0..DEEPEST {
        let Some(parent) = parent_of(pid).filter(|parent| *parent > 0) else {
            return false;
        };
        let read = |name: &str| std::fs::read(format!("/proc/{parent}/{name}")).unwrap_or_default();
        let mark = format!("{}=", tiller_agent::process::RUN_MARK);
        let is_marked = read("environ")
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(mark.as_bytes()));
        // A process that dropped its environment and its parent becomes a child of its agent's keeper.
        let command = read("cmdline");
        let is_keeper = command.split(|byte| *byte == 0).nth(1).is_some_and(|argument| {
            [crate::backend::KEEPER, crate::backend::SHIELD]
                .map(str::as_bytes)
                .contains(&argument)
        });
        if is_marked || is_keeper {
            return true;
        }
        pid = parent;
    }
    false
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn has_agent_among_ancestors() -> bool {
    false
}

/// The hash of the environment's key.
pub(crate) fn environment_key() -> Option<SecretHash> {
    let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let hash = text(KEY_HASH).and_then(|hash| SecretHash::from_hex(&hash));
    text(KEY).map(|key| SecretHash::of(&key)).or(hash)
}

/// Restarts this program without the key in its environment, which every program of the same user could read. The hash
/// that it gets instead is enough to recognise the key.
#[cfg(unix)]
pub(crate) fn forget_environment_key() {
    use std::os::unix::process::CommandExt;
    let Some(hash) = environment_key().filter(|_| std::env::var_os(KEY).is_some()) else {
        return;
    };
    let mut arguments = std::env::args_os();
    let (Some(_), Ok(program)) = (arguments.next(), std::env::current_exe()) else {
        return;
    };
    let error = std::process::Command::new(program)
        .args(arguments)
        .env_remove(KEY)
        .env(KEY_HASH, hash.to_hex())
        .exec();
    // The key works, but is less well hidden.
    crate::log::say(&format!(
        "tiller: {KEY} stays readable in this process's environment: {error}"
    ));
}

#[cfg(not(unix))]
pub(crate) fn forget_environment_key() {}

/// Keeps other programs of the same user, agents among them, from reading this process's memory and environment.
pub(crate) fn close_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "other programs of this user can read this process's memory");
    }
}
