//! What a client asks about the machine and its folders.

use std::num::IntErrorKind;
use std::path::Path;

use axum::Json;
use axum::extract::{Extension, Query, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiller_core::BackendInfo;
use tiller_core::backend::{Capabilities, OptionInfo};

use crate::app::App;
use crate::auth::Visitor;
use crate::body::Body;
use crate::error::ApiError;
use crate::statistics::disk_of;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn health() -> Json<Value> {
    Json(json!({ "status": "ok", "version": VERSION }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct System {
    cpu_model: String,
    #[serde(rename = "totalMemoryGB")]
    total_memory_gb: u64,
    /// In GB.
    total_storage: u64,
    version: &'static str,
    backend: BackendInfo,
    /// Where a session works that does not say where.
    cwd: String,
    roots: Vec<String>,
}

/// What `GET /api/backends` answers.
#[derive(Serialize)]
pub(crate) struct BackendList {
    backends: Vec<Backend>,
}

/// An agent that a session can choose.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Backend {
    name: String,
    title: String,
    version: Option<String>,
    installed: bool,
    /// Null: the agent does not say.
    signed_in: Option<bool>,
    capabilities: Capabilities,
    options: Vec<OptionInfo>,
    how_to_install: Option<String>,
}

/// `GET /api/backends`: the default one first.
pub(crate) async fn backends(State(app): State<App>) -> Json<BackendList> {
    let backends = app
        .sessions
        .backends()
        .into_iter()
        .map(|(info, options)| Backend {
            name: info.name,
            title: info.title,
            version: info.version,
            installed: info.installed,
            signed_in: None,
            capabilities: info.capabilities,
            options,
            how_to_install: info.how_to_install,
        });
    Json(BackendList {
        backends: backends.collect(),
    })
}

/// How much memory the machine has, in bytes.
pub fn total_memory() -> u64 {
    use sysinfo::{MemoryRefreshKind, RefreshKind};
    let wanted = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    sysinfo::System::new_with_specifics(wanted).total_memory()
}

pub(crate) async fn system(State(app): State<App>) -> Result<Json<System>, ApiError> {
    tokio::task::spawn_blocking(move || Json(describe(&app)))
        .await
        .map_err(|error| ApiError::internal(&error))
}

fn describe(app: &App) -> System {
    use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind};
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let machine = sysinfo::System::new_with_specifics(wanted);
    let paths = app.sessions.paths();
    System {
        cpu_model: machine
            .cpus()
            .first()
            .map(|cpu| cpu.brand().trim().to_owned())
            .unwrap_or_default(),
        total_memory_gb: gigabytes(machine.total_memory()),
        total_storage: gigabytes(storage_of(paths.default_directory())),
        version: VERSION,
        backend: app.sessions.backend(),
        cwd: paths.default_directory().display().to_string(),
        roots: paths
            .roots()
            .iter()
            .map(|root| root.display().to_string())
            .collect(),
    }
}

fn storage_of(path: &Path) -> u64 {
    let disks = sysinfo::Disks::new_with_refreshed_list();
    disk_of(&disks, path).map_or(0, sysinfo::Disk::total_space)
}

fn gigabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30)
}

#[derive(Deserialize)]
pub(crate) struct Limit {
    limit: Option<String>,
}

/// How many folders are told: as many as asked for, from 1 to 20, 8 unless said. `None`: that is no number.
fn folders(limit: Option<&str>) -> Option<usize> {
    let (least, most) = (1, 20);
    match limit.map_or(Ok(8), str::parse::<i64>) {
        Ok(limit) => usize::try_from(limit.clamp(least, most)).ok(),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => usize::try_from(most).ok(),
            IntErrorKind::NegOverflow => usize::try_from(least).ok(),
            _ => None,
        },
    }
}

pub(crate) async fn recent_cwds(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    query: Result<Query<Limit>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Limit { limit }) = query.map_err(|_| ApiError::WrongForm)?;
    let limit = folders(limit.as_deref()).ok_or(ApiError::WrongForm)?;
    let cwds = app.sessions.seen_by(visitor.viewer).recent_cwds(limit).await?;
    Ok(Json(json!({ "cwds": cwds })))
}

#[derive(Deserialize)]
pub(crate) struct Folder {
    path: Option<String>,
}

pub(crate) async fn directories(
    State(app): State<App>,
    query: Result<Query<Folder>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Folder { path }) = query.map_err(|_| ApiError::WrongForm)?;
    let listing = tokio::task::spawn_blocking(move || app.sessions.paths().list(path.as_deref()))
        .await
        .map_err(|error| ApiError::internal(&error))?
        .map_err(|_| ApiError::WorkingDirInvalid)?;
    let entries: Vec<_> = listing
        .entries
        .iter()
        .map(|(name, path)| json!({ "name": name, "path": path.display().to_string() }))
        .collect();
    Ok(Json(json!({
        "path": listing.path.display().to_string(),
        "parent": listing.parent.map(|parent| parent.display().to_string()),
        "entries": entries,
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TitleRequest {
    prompt: String,
}

pub(crate) async fn session_title(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Body(request): Body<TitleRequest>,
) -> Result<Json<Value>, ApiError> {
    if request.prompt.trim().is_empty() {
        return Err(ApiError::PromptEmpty);
    }
    let title = app
        .sessions
        .seen_by(visitor.viewer)
        .title_for(&request.prompt)
        .await;
    Ok(Json(json!({ "title": title })))
}

#[cfg(test)]
mod tests {
    use super::folders;

    #[test]
    fn a_limit_beyond_the_range_is_the_nearest_in_it() {
        for (limit, expected) in [
            (None, Some(8)),
            (Some("3"), Some(3)),
            (Some("0"), Some(1)),
            (Some("-7"), Some(1)),
            (Some("21"), Some(20)),
            (Some("99999999999999999999"), Some(20)),
            (Some("-99999999999999999999"), Some(1)),
            (Some("many"), None),
            (Some("1.5"), None),
            (Some(""), None),
        ] {
            assert_eq!(folders(limit), expected, "{limit:?}");
        }
    }
}
