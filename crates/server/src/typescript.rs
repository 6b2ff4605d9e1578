//! The page's types: every type of the wire, exported to `web/src/gen`. `cargo xtask gen-types` calls it.

use tiller_history::{SearchPage, UsageReport};
use ts_rs::{Config, ExportError, TS};

use crate::backends::BackendList;
use crate::events::{ClientEvent, ServerEvent};
use crate::history::wire::{
    HistoryChanges, HistoryEntries, HistoryMessages, HistoryProjects, HistorySessions, VaultSetting,
    VaultState,
};
use crate::inventory::Inventory;
use crate::openapi::ErrorBody;
use crate::sign_ins::{SignIns, SignOut, Success};
use crate::system::{Directories, Health, RecentCwds, System, Title, TitleRequest};
use crate::task::{AnswerRequest, Done, PermissionAnswer, StopRequest, TaskRequest, TaskResponse};

macro_rules! export {
    ($config:expr, $($type:ty),+ $(,)?) => { $(<$type>::export_all($config)?;)+ };
}

/// Writes every type, and those that it mentions, to the folder of the configuration.
pub fn export_types(config: &Config) -> Result<(), ExportError> {
    // The event API.
    export!(config, ClientEvent, ServerEvent);
    // What requests of HTTP send and what they are answered.
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
        Directories,
        Health,
        RecentCwds,
        System,
        Title,
        TitleRequest
    );
    export!(config, SignIns, SignOut, Success, Inventory, ErrorBody);
    Ok(())
}
