//! The load of the machine, once a second.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::events::request::{Handled, Reply, Request};
use crate::events::socket::Connection;
use crate::statistics::Load;

#[derive(Debug, Deserialize, TS, ToSchema)]
#[ts(export_to = "events.ts")]
pub struct StatisticsSubscribe {}

/// Shares from 0 to 1.
#[expect(clippy::struct_field_names, reason = "the names are the contract's")]
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct MachineLoad {
    pub cpu_usage: f64,
    pub ram_usage: f64,
    pub storage_usage: f64,
}

impl From<Load> for MachineLoad {
    fn from(Load { cpu, ram, storage }: Load) -> Self {
        Self {
            cpu_usage: cpu,
            ram_usage: ram,
            storage_usage: storage,
        }
    }
}

pub(in crate::events) fn subscribe(
    connection: &mut Connection,
    _: Request,
    StatisticsSubscribe {}: StatisticsSubscribe,
) -> Handled {
    connection.watch_statistics();
    Handled::Answered(Reply::Nothing)
}
