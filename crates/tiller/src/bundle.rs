//! The archive that `tiller doctor --bundle` writes for those who help: how this installation is set up and how large
//! everything is. Nothing that was said in a session, no title, no key, and no value that may be a secret.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Value, json};
use tiller_core::RawJson;
use tiller_core::audit::{AuditLog, Chain};
use tiller_core::redact::{HIDDEN, redacted};

use crate::data_dir::DataDir;

const README: &str = "\
What `tiller doctor --bundle` found. Look through it before you send it to someone.

findings.json     what the doctor looked at, and what it advises
machine.json      versions, system, memory, processors
config.json       config.toml of the data folder, without values that may be secrets
environment.json  which variables are set; values only where they can't be secret
files.json        what is in the data folder, with sizes; no content
database.json     versions, counts and damage of sessions.db, and whether the audit log is whole; no content
";

/// Variables whose values can't be secret.
const PLAIN: [&str; 12] = [
    "LANG",
    "LC_ALL",
    "TERM",
    "SHELL",
    "TILLER_HOST",
    "TILLER_PORT",
    "TILLER_BACKEND",
    "TILLER_TRANSPORT",
    "TILLER_AGENT_GRACE",
    "TILLER_LOG",
    "TILLER_LOG_FORMAT",
    "XDG_SESSION_TYPE",
];

/// How the names of variables begin that say something about us.
const TELLING: [&str; 8] = [
    "TILLER_",
    "CLAUDE",
    "ANTHROPIC_",
    "XDG_",
    "HTTP",
    "NO_PROXY",
    "SSL_",
    "NODE_",
];

/// Writes the archive, for its owner only. `findings` is what the doctor found.
pub(crate) async fn write(path: &Path, data_dir: &DataDir, findings: &impl Serialize) -> anyhow::Result<()> {
    let contents = [
        ("findings.json", first_lines(serde_json::to_value(findings)?)),
        ("machine.json", machine()),
        ("config.json", config(data_dir)),
        ("environment.json", environment()),
        ("files.json", files(data_dir.path())),
        ("database.json", database(data_dir).await),
    ];
    let file = create(path).with_context(|| format!("can't write {}", path.display()))?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    add(&mut archive, "README.txt", README.as_bytes())?;
    for (name, content) in contents {
        add(&mut archive, name, format!("{content:#}\n").as_bytes())?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

fn add(archive: &mut tar::Builder<GzEncoder<File>>, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    archive.append_data(&mut header, format!("tiller-doctor/{name}"), content)?;
    Ok(())
}

/// Never in place of something that is there.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// An error may quote lines of a file that it is about; its first line does not.
fn first_lines(mut value: Value) -> Value {
    match &mut value {
        Value::String(text) => {
            let first = text.lines().next().unwrap_or_default().to_owned();
            *text = first;
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|each| *each = first_lines(each.take())),
        Value::Object(fields) => {
            for (_, each) in fields.iter_mut() {
                *each = first_lines(each.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    without_secrets(&value)
}

/// Names stay, values that may be secrets go.
fn without_secrets(value: &Value) -> Value {
    let hidden = || HIDDEN.into();
    let Ok(raw) = RawJson::of(value) else {
        return hidden();
    };
    serde_json::from_str(redacted(&raw).as_str()).unwrap_or_else(|_| hidden())
}

fn machine() -> Value {
    json!({
        "tiller": env!("CARGO_PKG_VERSION"),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": std::fs::read_to_string("/proc/version").ok().map(|text| text.trim().to_owned()),
        "memoryBytes": tiller_server::total_memory(),
        "processors": std::thread::available_parallelism().map(usize::from).ok(),
    })
}

fn config(data_dir: &DataDir) -> Value {
    let text = match std::fs::read_to_string(data_dir.config_file()) {
        Ok(text) => text,
        Err(error) => return json!({ "unreadable": error.to_string() }),
    };
    match toml::from_str::<toml::Table>(&text) {
        Ok(table) => {
            let mut value = serde_json::to_value(table).unwrap_or_default();
            // Command lines, in which anything may stand.
            if let Some(agents) = value.get_mut("acp_agents").and_then(Value::as_array_mut) {
                for agent in agents {
                    let name = agent.as_str().and_then(|entry| entry.split('=').next());
                    *agent = format!("{}={HIDDEN}", name.unwrap_or_default()).into();
                }
            }
            without_secrets(&value)
        }
        // The error would quote the file.
        Err(_) => json!({ "unreadable": "not TOML" }),
    }
}

fn environment() -> Value {
    let mut found = serde_json::Map::new();
    let mut names: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect();
    names.sort();
    for (name, value) in names {
        let is_plain = PLAIN.contains(&name.as_str());
        let is_telling = TELLING.iter().any(|start| name.to_uppercase().starts_with(start));
        if is_plain {
            found.insert(name, value.to_string_lossy().into());
        } else if is_telling {
            found.insert(name, "(set)".into());
        }
    }
    found.into()
}

/// What is in the folder, and how much is in its folders.
fn files(folder: &Path) -> Value {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return json!({ "unreadable": true });
    };
    let entries = entries.flatten().filter_map(|entry| {
        let found = entry.metadata().ok()?;
        let modified = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let (files, bytes) = if found.is_dir() {
            size(&entry.path())
        } else {
            (1, found.len())
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        Some(json!({
            "name": name,
            "folder": found.is_dir(),
            "files": files,
            "bytes": bytes,
            "mode": mode(&found),
            "modified": modified,
        }))
    });
    let mut entries: Vec<Value> = entries.collect();
    entries.sort_by_key(|entry| entry["name"].to_string());
    entries.into()
}

fn size(folder: &Path) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.fold((0, 0), |(files, bytes), entry| match entry.metadata() {
        // Links are not followed: they may lead in a circle.
        Ok(found) if found.is_dir() => {
            let (more, size) = size(&entry.path());
            (files + more, bytes + size)
        }
        Ok(found) => (files + 1, bytes + found.len()),
        Err(_) => (files, bytes),
    })
}

/// In octal, where files have one.
fn mode(found: &std::fs::Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        format!("{:o}", found.permissions().mode() & 0o7777)
    }
    #[cfg(not(unix))]
    {
        if found.permissions().readonly() {
            "read-only"
        } else {
            "writable"
        }
        .to_owned()
    }
}

async fn database(data_dir: &DataDir) -> Value {
    if !data_dir.path().join("sessions.db").exists() {
        return json!({ "there": false });
    }
    let described = async {
        let store = data_dir.open_store()?;
        let description = store.describe().await?;
        let (mut after, mut chain) = (0, Chain::default());
        let audit = loop {
            let page = store.audit_page(after, 1000).await?;
            let Some(last) = page.last() else {
                break chain.finish().map(|head| head.seq);
            };
            after = last.seq;
            if let Err(broken) = page.iter().try_for_each(|record| chain.check(record)) {
                break Err(broken);
            }
        };
        let audit = match audit {
            Ok(entries) => json!({ "entries": entries, "whole": true }),
            Err(broken) => json!({ "whole": false, "why": broken.to_string() }),
        };
        anyhow::Ok(json!({
            "version": description.version,
            "damage": description.damage,
            "rows": description.rows.into_iter().collect::<serde_json::Map<_, _>>(),
            "audit": audit,
        }))
    };
    described
        .await
        .unwrap_or_else(|error| first_lines(json!({ "unreadable": format!("{error:#}") })))
}
