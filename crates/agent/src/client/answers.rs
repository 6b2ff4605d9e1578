//! Answers the agent's questions with the caller's functions, each in a task of its own: a function that waits for a
//! person must not hold up anything else. A function that panics is answered for, so that the turn goes on.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::{AbortHandle, JoinSet};

use super::builder::{ElicitationCallback, PermissionCallback};
use crate::control::{
    ElicitationReply, HookRequest, InboundRequest, McpRequest, PermissionReply, Reply, RequestId, RequestKind,
};
use crate::hooks::{HookCallback, HookEvent, HookInput};
use crate::link::Link;

/// The caller's functions.
pub(super) struct Handlers {
    pub(super) permission: Option<PermissionCallback>,
    pub(super) elicitation: Option<ElicitationCallback>,
    pub(super) hooks: HashMap<String, (HookEvent, HookCallback)>,
    #[cfg(feature = "tools")]
    pub(super) servers: crate::tools::Bridges,
}

/// The questions that are being answered.
pub(super) struct Answers {
    handlers: Arc<Handlers>,
    link: Link,
    tasks: JoinSet<()>,
    running: HashMap<RequestId, AbortHandle>,
}

impl Answers {
    pub(super) fn new(handlers: Handlers, link: Link) -> Self {
        Self {
            handlers: Arc::new(handlers),
            link,
            tasks: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    /// Has a question answered.
    pub(super) fn begin(&mut self, request: InboundRequest) {
        self.running.retain(|_, task| !task.is_finished());
        // Finished tasks are collected so that they do not pile up.
        while self.tasks.try_join_next().is_some() {}
        let id = request.id.clone();
        let serving = serve(request, self.link.clone(), Arc::clone(&self.handlers));
        self.running.insert(id, self.tasks.spawn(serving));
    }

    /// The agent no longer wants an answer.
    pub(super) fn withdraw(&mut self, id: &RequestId) {
        if let Some(task) = self.running.remove(id) {
            task.abort();
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
                Some(decide) => guarded("permission callback", async { decide((**asked).clone()).await })
                    .await
                    .unwrap_or_else(PermissionReply::deny),
                None => PermissionReply::deny("There is nobody to ask for permission."),
            };
            decision.into_reply(asked)
        }
        RequestKind::Hook(due) => hook(due, handlers).await,
        RequestKind::Mcp(message) => mcp(message, handlers).await,
        RequestKind::Elicitation(asked) => match &handlers.elicitation {
            Some(answer) => guarded("elicitation callback", async { answer((**asked).clone()).await })
                .await
                .map_or_else(Reply::Error, Reply::from),
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
    match guarded("hook", async { callback(input).await }).await {
        Ok(output) => Reply::success(&output.to_json(event.as_str()))
            .unwrap_or_else(|error| Reply::Error(error.to_string())),
        Err(reason) => Reply::Error(reason),
    }
}

/// Runs a function of the caller's. A panic becomes a log line and an error that the agent can be told.
pub(crate) async fn guarded<T>(what: &str, function: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(function).catch_unwind().await.map_err(|panic| {
        let reason = panic_message(panic.as_ref());
        tracing::error!(what, reason, "a function of the application has panicked");
        format!("The application's {what} failed: {reason}")
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
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
