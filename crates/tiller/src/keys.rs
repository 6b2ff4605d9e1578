//! Keys for programs.

use anyhow::{Context, bail};
use tiller_core::credentials::{ApiKey, CredentialStore, Scopes, Secret};
use tiller_core::{Approval, Timestamp};

use crate::data_dir::DataDir;

pub(crate) async fn create(
    data_dir: &DataDir,
    name: String,
    scope: &str,
    approval: Option<&str>,
) -> anyhow::Result<()> {
    let name = name.trim().to_owned();
    if name.is_empty() || name.chars().any(char::is_control) {
        bail!("a key needs a name of visible characters");
    }
    let scopes = Scopes::parse(scope).with_context(|| {
        format!("unknown scope in '{scope}': use read, run and approve, separated by commas")
    })?;
    let approval = approval.map(|name| {
        Approval::parse(name).with_context(|| format!("unknown approval '{name}': use ask or auto"))
    });
    let approval = approval.transpose()?;
    if approval == Some(Approval::Auto) && !scopes.approve {
        bail!("a key whose sessions are approved automatically needs the scope approve");
    }
    let secret = Secret::generate("tiller_")?;
    let key = ApiKey {
        name: name.clone(),
        scopes,
        approval,
        created_at: Timestamp::now(),
    };
    if !data_dir.open_store()?.add_key(key, secret.hash()).await? {
        bail!("there is a key named '{name}' already: revoke it first, or choose another name");
    }
    println!("The key '{name}' allows: {scopes}. It is shown this once; only its hash is kept.");
    println!("{}", secret.expose());
    Ok(())
}

pub(crate) async fn list(data_dir: &DataDir) -> anyhow::Result<()> {
    let keys = data_dir.open_store()?.keys().await?;
    if keys.is_empty() {
        println!("There are no keys. `tiller key create NAME` makes one.");
    }
    for key in keys {
        match key.approval {
            Some(approval) => println!("{}\t{}\tapproval {}", key.name, key.scopes, approval.as_str()),
            None => println!("{}\t{}", key.name, key.scopes),
        }
    }
    Ok(())
}

pub(crate) async fn revoke(data_dir: &DataDir, name: &str) -> anyhow::Result<()> {
    if !data_dir.open_store()?.revoke_key(name).await? {
        bail!("there is no key named '{name}': `tiller key list` shows all");
    }
    println!("The key '{name}' is revoked.");
    Ok(())
}
