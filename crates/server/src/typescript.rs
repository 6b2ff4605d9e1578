//! The page's types: exports every wire type to `web/src/gen`. `cargo xtask gen-types` calls it.

use tiller_history::{SearchPage, UsageReport};
use ts_rs::{Config, ExportError, TS};

use crate::audit::AuditPage;
use crate::backends::BackendList;
use crate::events::{ClientEvent, DecisionFile, ServerEvent};
use crate::history::wire::{
    HistoryChanges, HistoryEntries, HistoryMessages, HistoryProjects, HistorySessions, VaultSetting,
    VaultState,
};
use crate::inventory::Inventory;
use crate::keys::{KeyCreated, KeyList, KeyRequest, KeyRevocation};
use crate::openapi::ErrorBody;
use crate::ready::Ready;
use crate::sign_ins::{SignIns, SignOut, Success};
use crate::system::{Directories, Health, RecentCwds, System, Title, TitleRequest};
use crate::task::{AnswerRequest, Done, PermissionAnswer, StopRequest, TaskRequest, TaskResponse};

macro_rules! export {
    ($config:expr, $($type:ty),+ $(,)?) => { $(<$type>::export_all($config)?;)+ };
}

/// Writes all types, and the types that they mention, to the configured folder.
pub fn export_types(config: &Config) -> Result<(), ExportError> {
    // The event API.
    export!(config, ClientEvent, ServerEvent);
    // The requests and responses of the HTTP API.
    export!(
        config,
        AnswerRequest,
        Done,
        PermissionAnswer,
        StopRequest,
        TaskRequest,
        TaskResponse
    );
    export!(
        config,
        HistoryChanges,
        HistoryEntries,
        HistoryMessages,
        HistoryProjects,
        HistorySessions
    );
    export!(config, SearchPage, UsageReport, VaultSetting, VaultState);
    export!(
        config,
        BackendList,
        DecisionFile,
        Directories,
        Health,
        RecentCwds,
        System,
        Title,
        TitleRequest
    );
    export!(
        config,
        AuditPage,
        KeyCreated,
        KeyList,
        KeyRequest,
        KeyRevocation,
        Ready,
        SignIns,
        SignOut,
        Success
    );
    export!(config, Inventory, ErrorBody);
    Ok(())
}
