//! Answers the agent's questions with the caller's functions, each in a task of its own: a function that waits for a
//! person must not hold up anything else.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use super::builder::{ElicitationCallback, PermissionCallback};
use crate::control::{
    ElicitationReply, HookRequest, InboundRequest, McpRequest, PermissionReply, Reply, RequestId, RequestKind,
};
use crate::hooks::{HookCallback, HookEvent, HookInput};
use crate::link::{Inbound, Inbox, InboxSender, Link};

pub(super) struct Handlers {
    pub(super) permission: Option<PermissionCallback>,
    pub(super) elicitation: Option<ElicitationCallback>,
    pub(super) hooks: HashMap<String, (HookEvent, HookCallback)>,
    #[cfg(feature = "tools")]
    pub(super) servers: crate::tools::Bridges,
}

/// Passes messages on and has questions answered, until the agent ends or the client is dropped.
pub(super) async fn run(mut inbox: Inbox, messages: InboxSender, link: Link, handlers: Arc<Handlers>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<RequestId, AbortHandle> = HashMap::new();
    while let Some(inbound) = inbox.next().await {
        match inbound {
            Inbound::Request(request) => {
                let id = request.id.clone();
                running.retain(|_, task| !task.is_finished());
                // Finished tasks are collected so that they do not pile up.
                while tasks.try_join_next().is_some() {}
                let task = tasks.spawn(serve(request, link.clone(), Arc::clone(&handlers)));
                running.insert(id, task);
            }
            Inbound::Cancelled(id) => {
                if let Some(task) = running.remove(&id) {
                    task.abort();
                }
            }
            Inbound::Malformed { error, .. } => {
                tracing::warn!(%error, "a line of the agent was not understood");
            }
            Inbound::Oversized { length } => {
                tracing::warn!(length, "a line of the agent was too long");
            }
            Inbound::Exited(_) => {
                messages.send_last(inbound);
                return;
            }
            Inbound::Message(ref message) => {
                let size = message.json().len();
                if messages.send(inbound, size).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn serve(request: InboundRequest, link: Link, handlers: Arc<Handlers>) {
    let reply = answer(&request, &handlers).await;
    if let Err(error) = link.respond(&request.id, reply).await {
        tracing::debug!(%error, "an answer came too late");
    }
}

async fn answer(request: &InboundRequest, handlers: &Handlers) -> Reply {
    match &request.kind {
        RequestKind::CanUseTool(asked) => {
            let decision = match &handlers.permission {
                Some(decide) => decide((**asked).clone()).await,
                None => PermissionReply::deny("There is nobody to ask for permission."),
            };
            decision.into_reply(asked)
        }
        RequestKind::Hook(due) => hook(due, handlers).await,
        RequestKind::Mcp(message) => mcp(message, handlers).await,
        RequestKind::Elicitation(asked) => match &handlers.elicitation {
            Some(answer) => answer((**asked).clone()).await.into(),
            None => ElicitationReply::Cancel.into(),
        },
        RequestKind::Dialog(dialog) => Reply::Error(format!("Unsupported dialog: {}", dialog.dialog_kind)),
        RequestKind::Other { subtype } => {
            Reply::Error(format!("Unsupported control request subtype: {subtype}"))
        }
    }
}

async fn hook(due: &HookRequest, handlers: &Handlers) -> Reply {
    let Some((event, callback)) = handlers.hooks.get(&due.callback_id) else {
        return Reply::Error(format!("There is no hook {}", due.callback_id));
    };
    let mut input: HookInput = match serde_json::from_str(due.input.get()) {
        Ok(input) => input,
        Err(error) => return Reply::Error(error.to_string()),
    };
    if input.tool_use_id.is_none() {
        input.tool_use_id.clone_from(&due.tool_use_id);
    }
    let output = callback(input).await;
    Reply::success(&output.to_json(event.as_str())).unwrap_or_else(|error| Reply::Error(error.to_string()))
}

#[cfg(feature = "tools")]
async fn mcp(message: &McpRequest, handlers: &Handlers) -> Reply {
    handlers.servers.handle(message).await
}

#[cfg(not(feature = "tools"))]
#[allow(clippy::unused_async, reason = "the same shape as with tools")]
async fn mcp(message: &McpRequest, _handlers: &Handlers) -> Reply {
    Reply::Error(format!("There is no MCP server {}", message.server_name))
}
