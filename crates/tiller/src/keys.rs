//! API keys.

use std::path::PathBuf;

use anyhow::{Context, bail};
use tiller_core::audit::Actor;
use tiller_core::credentials::{CredentialStore, NewKey, RevokedSessions, Scopes};
use tiller_core::rights::{Ceiling, Sees};
use tiller_core::{Approval, Timestamp};

use crate::cli::{KeyArgs, SeesChoice};
use crate::data_dir::DataDir;

pub(crate) async fn create(data_dir: &DataDir, args: KeyArgs, roots: &[PathBuf]) -> anyhow::Result<()> {
    let scope = &args.scope;
    let scopes = Scopes::parse(scope).with_context(|| {
        format!("unknown scope in '{scope}': use read, run and approve, separated by commas")
    })?;
    let approval = args.approval.as_deref().map(|name| {
        Approval::parse(name).with_context(|| format!("unknown approval '{name}': use ask or auto"))
    });
    let new = NewKey {
        name: args.name.clone(),
        scopes,
        approval: approval.transpose()?,
        ceiling: ceiling(args, roots),
    };
    let (key, secret) = new.make()??;
    let (name, limits) = (key.name.clone(), limits(&key.ceiling));
    let added = data_dir
        .open_store()?
        .add_key(key, secret.hash(), Actor::CommandLine)
        .await?;
    if !added {
        bail!("a key named '{name}' already exists. Revoke it first, or choose another name");
    }
    println!("The key '{name}' allows: {scopes}{limits}. It is shown only once; only its hash is stored.");
    println!("{}", secret.expose());
    Ok(())
}

pub(crate) async fn list(data_dir: &DataDir) -> anyhow::Result<()> {
    let keys = data_dir.open_store()?.keys().await?;
    if keys.is_empty() {
        println!("There are no keys. Create one with `tiller key create NAME`.");
    }
    for key in keys {
        let approval = key
            .approval
            .map(|approval| format!("; approval {}", approval.as_str()));
        let (limits, approval) = (limits(&key.ceiling), approval.unwrap_or_default());
        let used = key.last_used_at.map_or_else(|| "never used".to_owned(), ago);
        println!(
            "{}\t{}{limits}{approval}\t{}\t{used}",
            key.name, key.scopes, key.id
        );
    }
    Ok(())
}

/// `key` is a name or an id.
pub(crate) async fn revoke(data_dir: &DataDir, key: &str, keep_sessions: bool) -> anyhow::Result<()> {
    let sessions = if keep_sessions {
        RevokedSessions::Keep
    } else {
        RevokedSessions::Stop
    };
    let store = data_dir.open_store()?;
    if !store.revoke_key(key, sessions, Actor::CommandLine).await? {
        bail!("there is no key '{key}'; `tiller key list` lists all");
    }
    let rest = match sessions {
        RevokedSessions::Stop => "Its sessions are stopped.",
        RevokedSessions::Keep => "Its sessions go on, and are yours to steer.",
    };
    println!("The key '{key}' is revoked. {rest}");
    Ok(())
}

fn ceiling(args: KeyArgs, roots: &[PathBuf]) -> Ceiling {
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    let sees = match (args.sees, args.sees_session, args.sees_folder) {
        (SeesChoice::All, ..) => Sees::All,
        (SeesChoice::Own, sessions, _) if !sessions.is_empty() => Sees::Sessions(sessions),
        (SeesChoice::Own, _, folders) if !folders.is_empty() => Sees::Folders(folders),
        (SeesChoice::Own, ..) => Sees::Own,
    };
    Ceiling {
        modes: some(args.mode),
        tools: some(args.tool),
        roots: (!roots.is_empty()).then(|| roots.to_vec()),
        budget_usd: args.budget_usd,
        shield: args.shield,
        sandbox: args.sandbox,
        sandbox_folders: args.sandbox_folder,
        sandbox_hosts: args.sandbox_host.iter().map(ToString::to_string).collect(),
        sees,
    }
}

/// The limits of a key, for people.
fn limits(ceiling: &Ceiling) -> String {
    let mut words = Vec::new();
    if let Some(modes) = &ceiling.modes {
        words.push(format!("modes {}", modes.join(", ")));
    }
    if let Some(tools) = &ceiling.tools {
        words.push(format!("tools {}", tools.join(", ")));
    }
    for root in ceiling.roots.iter().flatten() {
        words.push(format!("within {}", root.display()));
    }
    if let Some(budget) = ceiling.budget_usd {
        words.push(format!("at most ${budget} a session"));
    }
    if ceiling.shield {
        words.push("shielded only".to_owned());
    }
    if ceiling.sandbox {
        words.push("in a sandbox only".to_owned());
    }
    for folder in &ceiling.sandbox_folders {
        words.push(format!("may write to {}", folder.display()));
    }
    if !ceiling.sandbox_hosts.is_empty() {
        words.push(format!("may reach {}", ceiling.sandbox_hosts.join(", ")));
    }
    match &ceiling.sees {
        Sees::Own => {}
        Sees::All => words.push("sees all sessions".to_owned()),
        Sees::Sessions(sessions) => {
            let ids: Vec<_> = sessions.iter().map(ToString::to_string).collect();
            words.push(format!("sees the sessions {}", ids.join(", ")));
        }
        Sees::Folders(folders) => {
            let folders: Vec<_> = folders
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            words.push(format!("sees the sessions in {}", folders.join(", ")));
        }
    }
    words.insert(0, String::new());
    words.join("; ")
}

/// How long ago a key was used, roughly: uses are noted every few minutes.
fn ago(at: Timestamp) -> String {
    let minutes = (Timestamp::now().0 - at.0).max(0) / 60_000;
    match minutes {
        0..=9 => "used just now".to_owned(),
        10..=119 => format!("used {minutes} minutes ago"),
        120..=2879 => format!("used {} hours ago", minutes / 60),
        _ => format!("used {} days ago", minutes / 1440),
    }
}
