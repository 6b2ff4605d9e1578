//! Stops sessions, and changes their titles, settings and place in the list.

use serde::Deserialize;
use tiller_core::CommandError;
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::settings::{SandboxLevel, TextList, with_settings};
use crate::events::wire::{Approval, PermissionMode, SessionRef};

with_settings! {
    /// An absent setting is unchanged; `null` is the default.
    #[derive(Debug, Deserialize, TS, ToSchema)]
    #[serde(rename_all = "camelCase")]
    #[ts(export_to = "events.ts", optional_fields)]
    pub struct SessionConfigure {
        pub session_id: String,
    }
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
        // No turn is running, which is what the client wanted.
        Ok(()) | Err(CommandError::UnknownSession) => Ok(Reply::Nothing),
        Err(error) => Err(error.into()),
    }
}

pub(in crate::events) async fn configure(
    context: Context,
    mut configure: SessionConfigure,
) -> Result<Reply, Refused> {
    let id = session_id(&configure.session_id)?;
    context.sessions.configure(id, configure.take_settings()).await?;
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
