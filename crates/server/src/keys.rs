//! The keys for programs: seen, made and revoked by the person at the machine. `tiller key` does the same.

use axum::Json;
use axum::extract::{Extension, State};
use serde::{Deserialize, Serialize};
use tiller_core::audit::Actor;
use tiller_core::credentials::{ApiKey, KeyRefused, NewKey, RevokedSessions, Scopes};
use tiller_core::rights::{Ceiling, Sees};
use tiller_core::{Approval, SessionId, StoreError};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Visitor;
use crate::body::{Body, Refusal};
use crate::error::{ApiError, FieldProblem, WrongField};
use crate::openapi::{BodyRefusals, ErrorBody, Refusals};
use crate::sign_ins::Success;

/// Which sessions a key sees. Its own are always among them.
#[derive(Debug, Default, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "http.ts")]
pub(crate) enum KeySees {
    #[default]
    Own,
    /// These, too.
    Sessions(Vec<String>),
    /// Those that work in these folders or beneath them, too.
    Folders(Vec<String>),
    /// Those of everyone.
    All,
}

/// What a key never exceeds. What is absent sets no limit.
#[derive(Debug, Default, Deserialize, Serialize, TS, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[ts(export_to = "http.ts", optional_fields)]
pub(crate) struct KeyCeiling {
    /// The permission modes that it may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    modes: Option<Vec<String>>,
    /// The tools and rules that it may grant. A tool's name covers all of its rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// The folders beneath which its agents may work.
    #[serde(skip_serializing_if = "Option::is_none")]
    roots: Option<Vec<String>>,
    /// What each of its sessions may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_usd: Option<f64>,
    /// Its agents run shielded, or not at all.
    #[ts(as = "Option<bool>")]
    shield: bool,
    /// Its agents run in a sandbox, or not at all.
    #[ts(as = "Option<bool>")]
    sandbox: bool,
    /// With a sandbox, the folders that its agents can write to as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>")]
    sandbox_folders: Vec<String>,
    /// With a sandbox, the hosts that its agents can reach as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>")]
    sandbox_hosts: Vec<String>,
    #[ts(as = "Option<KeySees>")]
    sees: KeySees,
}

/// What a credential allows.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "http.ts")]
pub(crate) enum KeyScope {
    /// Look and watch.
    Read,
    /// Start, continue, stop, delete.
    Run,
    /// Answer decisions, and everything that grants.
    Approve,
}

/// Who answers in sessions that are started with a key and don't say so.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "http.ts")]
pub(crate) enum KeyApproval {
    Ask,
    Auto,
}

/// A key, without its secret.
#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct KeyEntry {
    id: String,
    name: String,
    scopes: Vec<KeyScope>,
    /// `null`: as the server is configured.
    approval: Option<KeyApproval>,
    ceiling: KeyCeiling,
    /// Milliseconds since 1970.
    created_at: i64,
    /// To within a few minutes; `null`: never.
    last_used_at: Option<i64>,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct KeyList {
    /// The oldest first.
    keys: Vec<KeyEntry>,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(export_to = "http.ts", optional_fields)]
pub(crate) struct KeyRequest {
    /// What the key is for.
    #[schema(
        max_length = 100,
        min_length = 1,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*\S[^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
    /// Absent: all.
    #[schema(min_items = 1)]
    scopes: Option<Vec<KeyScope>>,
    approval: Option<KeyApproval>,
    /// Absent: no limit beyond its scopes; it sees its own sessions.
    ceiling: Option<KeyCeiling>,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct KeyCreated {
    key: KeyEntry,
    /// The key itself. It is told this once; only its hash is kept.
    secret: String,
}

/// What becomes of what a revoked key has started.
#[derive(Clone, Copy, Debug, Default, Deserialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "http.ts")]
pub(crate) enum KeySessions {
    /// Running turns are stopped, and prompts that wait are dropped.
    #[default]
    Stop,
    /// They go on, and are the person's to steer.
    Keep,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "http.ts", optional_fields)]
pub(crate) struct KeyRevocation {
    id: String,
    /// Absent: `stop`.
    sessions: Option<KeySessions>,
}

/// The keys for programs, the oldest first
///
/// For the person at the machine only.
#[utoipa::path(
    get, operation_id = "keys", path = "/api/keys", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("供程序使用的密钥，最早创建的在前")), ("x-scope" = json!("person"))),
    responses((status = 200, body = KeyList), Refusals))]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<KeyList>, ApiError> {
    let keys = app.authenticator.credentials().keys().await.map_err(internal)?;
    Ok(Json(KeyList {
        keys: keys.into_iter().map(KeyEntry::from).collect(),
    }))
}

/// Make a key
///
/// `secret` is told this once. For the person at the machine only.
#[utoipa::path(
    post, operation_id = "create_key", path = "/api/keys", tag = "machine", request_body = KeyRequest,
    extensions(("x-summary-zh-CN" = json!("创建密钥；密钥本身仅显示这一次")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = KeyCreated), (status = 409, body = ErrorBody, description = "There is a key of that name."),
    Refusals, BodyRefusals,
))]
pub(crate) async fn create(
    State(app): State<App>,
    Body(wanted): Body<KeyRequest>,
) -> Result<Json<KeyCreated>, Refusal> {
    let wanted = wanted.into_new_key()?;
    let made = tokio::task::spawn_blocking(move || wanted.make()).await;
    let made = made.map_err(|error| ApiError::internal(&error))?;
    let (key, secret) = made.map_err(internal)?.map_err(refused)?;
    let added = app
        .authenticator
        .credentials()
        .add_key(key.clone(), secret.hash(), Actor::Person);
    if !added.await.map_err(internal)? {
        return Err(ApiError::KeyNameTaken.into());
    }
    tracing::info!(key = key.id, "a key was made");
    app.announcements.look_again();
    Ok(Json(KeyCreated {
        key: key.into(),
        secret: secret.expose().to_owned(),
    }))
}

/// Revoke a key
///
/// Its connections end within five seconds, and what it started is stopped, unless `sessions` is `keep`. For the person at
/// the machine only.
#[utoipa::path(
    post, operation_id = "revoke_key", path = "/api/keys/revoke", tag = "machine", request_body = KeyRevocation,
    extensions(("x-summary-zh-CN" = json!("吊销密钥；由它启动的会话随之停止，或交还给你")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = Success), (status = 404, body = ErrorBody), Refusals, BodyRefusals,
))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Extension(_): Extension<Visitor>,
    Body(wanted): Body<KeyRevocation>,
) -> Result<Json<Success>, ApiError> {
    let sessions = match wanted.sessions.unwrap_or_default() {
        KeySessions::Stop => RevokedSessions::Stop,
        KeySessions::Keep => RevokedSessions::Keep,
    };
    let credentials = app.authenticator.credentials();
    let revoked = credentials.revoke_key(&wanted.id, sessions, Actor::Person).await;
    if !revoked.map_err(internal)? {
        return Err(ApiError::NoSuchKey);
    }
    tracing::info!(sessions = sessions.as_str(), "a key was revoked");
    app.announcements.look_again();
    Ok(Json(Success::new()))
}

impl KeyRequest {
    fn into_new_key(self) -> Result<NewKey, WrongField> {
        let has = |scope: fn(&KeyScope) -> bool| {
            let scopes = self.scopes.as_ref();
            scopes.is_none_or(|scopes| scopes.iter().any(scope))
        };
        let scopes = Scopes {
            read: has(|scope| matches!(scope, KeyScope::Read)),
            run: has(|scope| matches!(scope, KeyScope::Run)),
            approve: has(|scope| matches!(scope, KeyScope::Approve)),
        };
        let approval = self.approval.map(|approval| match approval {
            KeyApproval::Ask => Approval::Ask,
            KeyApproval::Auto => Approval::Auto,
        });
        let wanted = self.ceiling.unwrap_or_default();
        let folders = |folders: Vec<String>| folders.into_iter().map(Into::into).collect();
        let sees = match wanted.sees {
            KeySees::Own => Sees::Own,
            KeySees::All => Sees::All,
            KeySees::Folders(named) => Sees::Folders(folders(named)),
            KeySees::Sessions(ids) => {
                let wrong = |_| WrongField::new("ceiling.sees.sessions", FieldProblem::WrongForm);
                let ids = ids.iter().map(|id| id.parse::<SessionId>().map_err(wrong));
                Sees::Sessions(ids.collect::<Result<_, _>>()?)
            }
        };
        Ok(NewKey {
            name: self.name,
            scopes,
            approval,
            ceiling: Ceiling {
                modes: wanted.modes,
                tools: wanted.tools,
                roots: wanted.roots.map(folders),
                budget_usd: wanted.budget_usd,
                shield: wanted.shield,
                sandbox: wanted.sandbox,
                sandbox_folders: folders(wanted.sandbox_folders),
                sandbox_hosts: wanted.sandbox_hosts,
                sees,
            },
        })
    }
}

impl From<ApiKey> for KeyEntry {
    fn from(key: ApiKey) -> Self {
        let Scopes { read, run, approve } = key.scopes;
        let scopes = [
            (KeyScope::Read, read),
            (KeyScope::Run, run),
            (KeyScope::Approve, approve),
        ];
        Self {
            id: key.id,
            name: key.name,
            scopes: scopes
                .into_iter()
                .filter_map(|(scope, has)| has.then_some(scope))
                .collect(),
            approval: key.approval.map(|approval| match approval {
                Approval::Ask => KeyApproval::Ask,
                Approval::Auto => KeyApproval::Auto,
            }),
            ceiling: key.ceiling.into(),
            created_at: key.created_at.0,
            last_used_at: key.last_used_at.map(|at| at.0),
        }
    }
}

impl From<Ceiling> for KeyCeiling {
    fn from(ceiling: Ceiling) -> Self {
        let texts = |folders: Vec<std::path::PathBuf>| -> Vec<String> {
            let texts = folders.iter().map(|folder| folder.display().to_string());
            texts.collect()
        };
        Self {
            modes: ceiling.modes,
            tools: ceiling.tools,
            roots: ceiling.roots.map(texts),
            budget_usd: ceiling.budget_usd,
            shield: ceiling.shield,
            sandbox: ceiling.sandbox,
            sandbox_folders: texts(ceiling.sandbox_folders),
            sandbox_hosts: ceiling.sandbox_hosts,
            sees: match ceiling.sees {
                Sees::Own => KeySees::Own,
                Sees::All => KeySees::All,
                Sees::Folders(folders) => KeySees::Folders(texts(folders)),
                Sees::Sessions(ids) => KeySees::Sessions(ids.iter().map(ToString::to_string).collect()),
            },
        }
    }
}

fn refused(refused: KeyRefused) -> Refusal {
    let field = match refused {
        KeyRefused::Folder(_) => return ApiError::WorkingDirInvalid.into(),
        KeyRefused::AutoWithoutApprove => return ApiError::KeyNeedsApprove.into(),
        KeyRefused::Name => "name",
        KeyRefused::NoScope => "scopes",
        KeyRefused::List => "ceiling",
        KeyRefused::Budget => "ceiling.budgetUsd",
        KeyRefused::NoSandbox => "ceiling.sandbox",
        KeyRefused::Host => "ceiling.sandboxHosts",
    };
    WrongField::new(field, FieldProblem::WrongForm).into()
}

fn internal(error: StoreError) -> ApiError {
    ApiError::store(&error)
}
