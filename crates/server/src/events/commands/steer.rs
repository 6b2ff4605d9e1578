//! Stopping a session, and changing what it is called, where it is listed and how it works.

use serde::{Deserialize, Deserializer};
use tiller_core::CommandError;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::translate;
use crate::events::wire::{Approval, PermissionMode, SessionRef};

/// What is absent stays as it is; `null` is the default.
#[expect(clippy::option_option, reason = "absent and null mean different things")]
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionConfigure {
    pub session_id: String,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    #[schema(value_type = Option<String>)]
    pub model: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<PermissionMode>>", optional)]
    #[schema(value_type = Option<PermissionMode>)]
    pub permission_mode: Option<Option<PermissionMode>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<Approval>>", optional)]
    #[schema(value_type = Option<Approval>)]
    pub approval: Option<Option<Approval>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    #[schema(value_type = Option<String>)]
    pub effort: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    #[schema(value_type = Option<String>)]
    pub allowed_tools: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<f64>>", optional)]
    #[schema(value_type = Option<f64>)]
    pub max_budget_usd: Option<Option<f64>>,
    #[serde(default, deserialize_with = "present")]
    #[ts(as = "Option<Option<u32>>", optional)]
    #[schema(value_type = Option<u32>)]
    pub max_turns: Option<Option<u32>>,
}

/// Tells `null` from what is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRename {
    pub session_id: String,
    pub title: String,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionArchive {
    pub session_id: String,
    pub archived: bool,
}

pub(in crate::events) async fn stop(context: Context, session: SessionRef) -> Result<Reply, Refused> {
    let stopped = match session_id(&session.session_id) {
        Ok(id) => context.sessions.stop(id).await,
        Err(error) => Err(error),
    };
    match stopped {
        // Nothing runs, which is what the client wanted.
        Ok(()) | Err(CommandError::UnknownSession) => Ok(Reply::Nothing),
        Err(error) => Err(error.into()),
    }
}

pub(in crate::events) async fn configure(
    context: Context,
    configure: SessionConfigure,
) -> Result<Reply, Refused> {
    let id = session_id(&configure.session_id)?;
    context
        .sessions
        .configure(id, translate::patch(configure))
        .await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn rename(context: Context, rename: SessionRename) -> Result<Reply, Refused> {
    let id = session_id(&rename.session_id)?;
    context.sessions.rename(id, &rename.title).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn archive(context: Context, archive: SessionArchive) -> Result<Reply, Refused> {
    let id = session_id(&archive.session_id)?;
    context.sessions.archive(id, archive.archived).await?;
    Ok(Reply::Nothing)
}

pub(in crate::events) async fn take_over(context: Context, session: SessionRef) -> Result<Reply, Refused> {
    let id = session_id(&session.session_id)?;
    context.sessions.take_over(id).await?;
    Ok(Reply::Entry(id))
}
