//! The audit log: what is refused here is added to it, and the person at the machine reads it. `tiller audit` checks and exports
//! it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_core::audit::{Action, Actor, AuditEntry, AuditRecord};
use tiller_core::{SessionId, Timestamp};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::{Authenticator, Visitor};
use crate::error::ApiError;
use crate::limit::Tally;
use crate::openapi::{ErrorBody, Refusals};

/// How many refusals of one key, or without one of one address, are noted in a minute: nobody may fill the disk.
const NOTED: u32 = 20;

/// How many entries a page has unless it is said, and at most.
const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;

/// The largest number that every reader of JSON knows exactly.
const LARGEST_NUMBER: u64 = (1 << 53) - 1;

/// How often refusals are noted.
pub(crate) struct RefusalPace(Tally<String>);

impl Default for RefusalPace {
    fn default() -> Self {
        Self(Tally::new(NOTED, Duration::from_mins(1)))
    }
}

impl RefusalPace {
    /// Notes that a key was refused something. The person at the machine is refused nothing that would be worth an entry.
    pub(crate) async fn refused(
        &self,
        authenticator: &Authenticator,
        visitor: &Visitor,
        what: &str,
        session: Option<SessionId>,
    ) {
        let Some(key) = &visitor.viewer.key else { return };
        if !self.0.count(key.clone(), Instant::now()) {
            return;
        }
        let mut entry =
            AuditEntry::new(Actor::Key(key.clone()), Action::Refused, Timestamp::now()).with("what", what);
        entry.session = session;
        append(authenticator, entry).await;
    }

    /// Notes that someone came with a wrong key, cookie or code. Their number is limited by the caller.
    pub(crate) async fn wrong_credential(authenticator: &Authenticator, address: IpAddr) {
        let entry = AuditEntry::new(Actor::Nobody, Action::Refused, Timestamp::now())
            .with("what", "wrong credential")
            .with("address", address.to_canonical().to_string());
        append(authenticator, entry).await;
    }
}

async fn append(authenticator: &Authenticator, entry: AuditEntry) {
    if let Err(error) = authenticator.credentials().audit(entry).await {
        tracing::warn!(%error, "the audit log lacks an entry about a refusal");
    }
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct AuditLogEntry {
    /// From 1, without gaps.
    seq: u64,
    /// Milliseconds since 1970.
    at: i64,
    /// `person`, `command-line`, `nobody`, or the id of a key.
    actor: String,
    /// `sign_in`, `sign_out`, `key_created`, `key_revoked`, `decision`, `grant` or `refused`.
    action: String,
    session_id: Option<String>,
    #[schema(value_type = Object)]
    #[ts(type = "Record<string, unknown>")]
    detail: Value,
    /// The SHA-256, in hex, of this entry and the hash before it.
    hash: String,
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct AuditPage {
    /// In order.
    entries: Vec<AuditLogEntry>,
    /// What the next page comes after; `null`: there was no more when this was read.
    next: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct PageQuery {
    after: Option<u64>,
    limit: Option<u32>,
}

/// The audit log: decisions, sign-ins, keys, grants and refusals
///
/// The entries after `after`, in order. Each hash covers the entry and the hash before it; `tiller audit verify` checks them.
/// For the person at the machine only.
#[utoipa::path(
    get, operation_id = "audit", path = "/api/audit", tag = "machine", params(
    ("after" = Option<u64>, Query, maximum = 9_007_199_254_740_991_u64, description = "The number of the entry before the page; 0 unless given."),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 unless given."),
),
    extensions(("x-summary-zh-CN" = json!("审计日志：决定、登录、密钥、授权和拒绝")), ("x-scope" = json!("person"))),
    responses((status = 200, body = AuditPage), (status = 422, body = ErrorBody), Refusals))]
pub(crate) async fn page(
    State(app): State<App>,
    query: Result<Query<PageQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<AuditPage>, ApiError> {
    let Query(PageQuery { after, limit }) = query.map_err(|_| ApiError::WrongForm)?;
    let (after, limit) = (after.unwrap_or(0), limit.unwrap_or(PAGE));
    if !(1..=LARGEST_PAGE).contains(&limit) || after > LARGEST_NUMBER {
        return Err(ApiError::WrongForm);
    }
    let credentials = app.authenticator.credentials();
    let found = credentials.audit_page(after, limit).await;
    let entries = found.map_err(|error| ApiError::store(&error))?;
    let is_full = u32::try_from(entries.len()) == Ok(limit);
    let next = entries.last().map(|last| last.seq).filter(|_| is_full);
    Ok(Json(AuditPage {
        entries: entries.into_iter().map(AuditLogEntry::from).collect(),
        next,
    }))
}

impl From<AuditRecord> for AuditLogEntry {
    fn from(record: AuditRecord) -> Self {
        Self {
            detail: record.detail_json(),
            seq: record.seq,
            at: record.at.0,
            actor: record.actor,
            action: record.action,
            session_id: record.session,
            hash: record.hash,
        }
    }
}
