//! The agents that a session can choose, as clients see them.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use tiller_core::backend::{Capabilities as CoreCapabilities, OptionInfo, OptionKind, WhyChosen};
use tiller_core::{BackendChoice, BackendInfo};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::openapi::Refusals;

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct BackendList {
    /// The default one first.
    backends: Vec<Backend>,
}

/// An agent that a session can choose.
#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
struct Backend {
    /// The name by which a session chooses the agent.
    name: String,
    /// The agent's name for a person.
    title: String,
    version: Option<String>,
    installed: bool,
    /// Whether the user is signed in to the agent's provider. Null: the agent does not report it, or has not yet.
    signed_in: Option<bool>,
    capabilities: Capabilities,
    options: Vec<BackendOption>,
    how_to_install: Option<String>,
}

/// An option of an agent.
#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
struct BackendOption {
    name: String,
    title: String,
    /// `string`, `number`, `bool`, `choice` or `list`.
    #[schema(value_type = String)]
    #[ts(type = "\"string\" | \"number\" | \"bool\" | \"choice\" | \"list\"")]
    kind: OptionKind,
    /// The values to choose from, if known.
    choices: Vec<String>,
    #[ts(type = "unknown")]
    default: Option<Value>,
    /// A running agent can change the option; otherwise it takes effect with the next turn.
    live: bool,
    /// The option lets the agent do more without asking, so setting it needs the scope `approve`.
    grants: bool,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
struct Capabilities {
    streaming: bool,
    permissions: bool,
    resume: bool,
    subagents: bool,
}

/// The agent of sessions that don't choose one, and why it is the default.
#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct DefaultBackend {
    /// `claude`, `demo`, …
    name: String,
    version: Option<String>,
    /// `stdio` or `sdk-url`.
    transport: &'static str,
    /// For a person, in English.
    reason: String,
    /// `found`, `stdioChosen`, `connects`, `cannotConnect`, `versionUnknown`, `notInstalled` or `demoChosen`.
    #[schema(value_type = String)]
    #[ts(type = "string")]
    why: WhyChosen,
    /// Where the agent was found on this machine.
    path: Option<String>,
    capabilities: Capabilities,
}

impl From<BackendInfo> for DefaultBackend {
    fn from(info: BackendInfo) -> Self {
        Self {
            name: info.name,
            version: info.version,
            transport: info.transport,
            reason: info.reason,
            why: info.why,
            path: info.path,
            capabilities: info.capabilities.into(),
        }
    }
}

impl From<CoreCapabilities> for Capabilities {
    fn from(capabilities: CoreCapabilities) -> Self {
        let CoreCapabilities {
            streaming,
            permissions,
            resume,
            subagents,
        } = capabilities;
        Self {
            streaming,
            permissions,
            resume,
            subagents,
        }
    }
}

impl From<OptionInfo> for BackendOption {
    fn from(option: OptionInfo) -> Self {
        Self {
            name: option.name,
            title: option.title,
            kind: option.kind,
            choices: option.choices,
            default: option.default,
            live: option.live,
            grants: option.grants,
        }
    }
}

/// The agents that a session can choose
#[utoipa::path(
    get, operation_id = "backends", path = "/api/backends", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("会话可选用的智能体")), ("x-scope" = json!("any"))),
    responses((status = 200, body = BackendList), Refusals)
)]
pub(crate) async fn backends(State(app): State<App>) -> Json<BackendList> {
    let backends = app.sessions.backends().await.into_iter();
    let backends = backends.map(
        |BackendChoice {
             info,
             options,
             signed_in,
         }| Backend {
            name: info.name,
            title: info.title,
            version: info.version,
            installed: info.installed,
            signed_in,
            capabilities: info.capabilities.into(),
            options: options.into_iter().map(BackendOption::from).collect(),
            how_to_install: info.how_to_install,
        },
    );
    Json(BackendList {
        backends: backends.collect(),
    })
}
