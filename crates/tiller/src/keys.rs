//! API keys.

use std::path::PathBuf;

use anyhow::{Context, bail};
use tiller_core::credentials::{ApiKey, CredentialStore, Scopes, Secret};
use tiller_core::rights::{Ceiling, Sees};
use tiller_core::{Approval, Timestamp};

use crate::cli::{KeyArgs, SeesChoice};
use crate::data_dir::DataDir;

pub(crate) async fn create(data_dir: &DataDir, args: KeyArgs, roots: &[PathBuf]) -> anyhow::Result<()> {
    let name = args.name.trim().to_owned();
    if name.is_empty() || name.chars().any(char::is_control) {
        bail!("a key needs a name without control characters");
    }
    let scope = &args.scope;
    let scopes = Scopes::parse(scope).with_context(|| {
        format!("unknown scope in '{scope}': use read, run and approve, separated by commas")
    })?;
    let approval = args.approval.as_deref().map(|name| {
        Approval::parse(name).with_context(|| format!("unknown approval '{name}': use ask or auto"))
    });
    let approval = approval.transpose()?;
    if approval == Some(Approval::Auto) && !scopes.approve {
        bail!("a key whose sessions are approved automatically needs the scope approve");
    }
    let ceiling = ceiling(&args, roots)?;
    let secret = Secret::generate("tiller_")?;
    let limits = limits(&ceiling);
    let key = ApiKey {
        id: ApiKey::new_id()?,
        name: name.clone(),
        scopes,
        approval,
        ceiling,
        created_at: Timestamp::now(),
    };
    if !data_dir.open_store()?.add_key(key, secret.hash()).await? {
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
        println!("{}\t{}{limits}{approval}\t{}", key.name, key.scopes, key.id);
    }
    Ok(())
}

/// `key` is a name or an id.
pub(crate) async fn revoke(data_dir: &DataDir, key: &str) -> anyhow::Result<()> {
    if !data_dir.open_store()?.revoke_key(key).await? {
        bail!("there is no key '{key}'; `tiller key list` lists all");
    }
    println!("The key '{key}' is revoked. Its sessions are stopped.");
    Ok(())
}

fn ceiling(args: &KeyArgs, roots: &[PathBuf]) -> anyhow::Result<Ceiling> {
    let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    let resolved = |root: &PathBuf| {
        let resolved = root.canonicalize();
        resolved.with_context(|| format!("{} is not a folder", root.display()))
    };
    let roots: Vec<PathBuf> = roots.iter().map(resolved).collect::<Result<_, _>>()?;
    let folders = args.sandbox_folder.iter().map(resolved);
    Ok(Ceiling {
        modes: some(&args.mode),
        tools: some(&args.tool),
        roots: (!roots.is_empty()).then_some(roots),
        budget_usd: args.budget_usd,
        sandbox: args.sandbox,
        sandbox_folders: folders.collect::<Result<_, _>>()?,
        sandbox_hosts: args.sandbox_host.iter().map(ToString::to_string).collect(),
        sees: match args.sees {
            SeesChoice::Own => Sees::Own,
            SeesChoice::All => Sees::All,
        },
    })
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
    if ceiling.sandbox {
        words.push("in a sandbox only".to_owned());
    }
    for folder in &ceiling.sandbox_folders {
        words.push(format!("may write to {}", folder.display()));
    }
    if !ceiling.sandbox_hosts.is_empty() {
        words.push(format!("may reach {}", ceiling.sandbox_hosts.join(", ")));
    }
    if ceiling.sees == Sees::All {
        words.push("sees all sessions".to_owned());
    }
    words.insert(0, String::new());
    words.join("; ")
}
