//! The machine and its folders, for clients.

use std::num::IntErrorKind;
use std::path::Path;

use axum::Json;
use axum::extract::{Extension, Query, State};
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Visitor;
use crate::backends::DefaultBackend;
use crate::body::Body;
use crate::error::ApiError;
use crate::openapi::{BodyRefusals, ErrorBody, Refusals};
use crate::statistics::disk_of;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether the server is running; needs no credential
#[utoipa::path(
    get, operation_id = "health", path = "/health", tag = "machine", security(()),
    extensions(("x-summary-zh-CN" = json!("服务是否在运行；无需密钥"))),
    responses(
    (status = 200, body = Health), (status = 403, body = ErrorBody, description = "A host name that is not allowed."),
))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health {
        status: "ok",
        version: VERSION,
    })
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct Health {
    #[schema(example = "ok")]
    status: &'static str,
    version: &'static str,
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct System {
    cpu_model: String,
    #[serde(rename = "totalMemoryGB")]
    total_memory_gb: u64,
    /// In GB.
    total_storage: u64,
    version: &'static str,
    backend: DefaultBackend,
    /// The working directory of a session that does not choose one.
    cwd: String,
    roots: Vec<String>,
}

/// How much memory the machine has, in bytes.
pub fn total_memory() -> u64 {
    use sysinfo::{MemoryRefreshKind, RefreshKind};
    let wanted = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    sysinfo::System::new_with_specifics(wanted).total_memory()
}

/// The machine, the version and the default agent
#[utoipa::path(
    get, operation_id = "system", path = "/api/system", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("机器、版本和所用的智能体")), ("x-scope" = json!("any"))),
    responses((status = 200, body = System), Refusals))]
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
        backend: app.sessions.backend().into(),
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

/// How many folders to return: 1 to 20, and 8 by default. `None`: not a number.
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

/// Recently used folders
#[utoipa::path(
    get, operation_id = "recent_cwds", path = "/api/recent-cwds", tag = "machine", params(
    ("limit" = Option<isize>, Query, description = "1 to 20, 8 by default. Other numbers are clamped."),
),
    extensions(("x-summary-zh-CN" = json!("最近使用的目录")), ("x-scope" = json!("any"))),
    responses((status = 200, body = RecentCwds), (status = 422, body = ErrorBody), Refusals))]
pub(crate) async fn recent_cwds(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    query: Result<Query<Limit>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<RecentCwds>, ApiError> {
    let Query(Limit { limit }) = query.map_err(|_| ApiError::WrongForm)?;
    let limit = folders(limit.as_deref()).ok_or(ApiError::WrongForm)?;
    let cwds = app.sessions.for_viewer(visitor.viewer).recent_cwds(limit).await?;
    Ok(Json(RecentCwds { cwds }))
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct RecentCwds {
    /// Newest first.
    cwds: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Folder {
    path: Option<String>,
}

/// The subfolders of a folder
#[utoipa::path(
    get, operation_id = "directories", path = "/api/directories", tag = "machine", params(
    ("path" = Option<String>, Query, description = "Inside a root. Default: the default working directory."),
),
    extensions(("x-summary-zh-CN" = json!("目录中的子目录")), ("x-scope" = json!("any"))),
    responses(
    (status = 200, body = Directories), (status = 400, body = ErrorBody, description = "The folder does not exist or may not be used."),
    (status = 422, body = ErrorBody), Refusals,
))]
pub(crate) async fn directories(
    State(app): State<App>,
    query: Result<Query<Folder>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Directories>, ApiError> {
    let Query(Folder { path }) = query.map_err(|_| ApiError::WrongForm)?;
    let listing = tokio::task::spawn_blocking(move || app.sessions.paths().list(path.as_deref()))
        .await
        .map_err(|error| ApiError::internal(&error))?
        .map_err(|_| ApiError::WorkingDirInvalid)?;
    let entries = listing.entries.into_iter().map(|(name, path)| DirectoryEntry {
        name,
        path: path.display().to_string(),
    });
    Ok(Json(Directories {
        path: listing.path.display().to_string(),
        parent: listing.parent.map(|parent| parent.display().to_string()),
        entries: entries.collect(),
    }))
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct Directories {
    path: String,
    /// `null` for a folder whose parent is outside every root.
    parent: Option<String>,
    entries: Vec<DirectoryEntry>,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct DirectoryEntry {
    name: String,
    path: String,
}

#[derive(Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "prompt": "Explain the parser" }))]
#[ts(export_to = "http.ts")]
pub(crate) struct TitleRequest {
    #[schema(pattern = r"\S")]
    prompt: String,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct Title {
    title: String,
}

/// A title for a prompt
#[utoipa::path(
    post, operation_id = "session_title", path = "/api/session-title", tag = "machine", request_body = TitleRequest,
    extensions(("x-summary-zh-CN" = json!("为任务描述生成标题")), ("x-scope" = json!("run"))),
    responses(
    (status = 200, body = Title), Refusals, BodyRefusals,
))]
pub(crate) async fn session_title(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Body(request): Body<TitleRequest>,
) -> Result<Json<Title>, ApiError> {
    if request.prompt.trim().is_empty() {
        return Err(ApiError::PromptEmpty);
    }
    let title = app
        .sessions
        .for_viewer(visitor.viewer)
        .title_for(&request.prompt)
        .await;
    Ok(Json(Title { title }))
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
