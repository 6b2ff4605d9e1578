//! Starting a client with functions that answer the agent's questions.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::dispatch::{self, Handlers};
use super::{AgentError, Client};
use crate::control::{
    ElicitationReply, ElicitationRequest, HookMatcher, Initialize, PermissionReply, PermissionRequest,
    RequestError,
};
use crate::hooks::Hook;
use crate::link::{self, Inbox, Link};
use crate::options::{McpServer, Options};
use tiller_process::Sockets;

pub(super) type PermissionCallback =
    Arc<dyn Fn(PermissionRequest) -> BoxFuture<'static, PermissionReply> + Send + Sync>;
pub(super) type ElicitationCallback =
    Arc<dyn Fn(ElicitationRequest) -> BoxFuture<'static, ElicitationReply> + Send + Sync>;

/// What an agent is started with: [`Options`], and functions that answer its questions.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    options: Options,
    permission: Option<PermissionCallback>,
    elicitation: Option<ElicitationCallback>,
    hooks: Vec<Hook>,
    server_names: Vec<String>,
    initialize: Map<String, Value>,
    #[cfg(feature = "tools")]
    servers: BTreeMap<String, crate::tools::Server>,
}

impl From<Options> for ClientBuilder {
    fn from(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }
}

impl ClientBuilder {
    /// Decides about every tool that the agent wants to use and that no rule covers. Takes as long as it needs; the
    /// agent's other messages keep coming. Without it, such tools are denied.
    ///
    /// ```
    /// use tiller_agent::{Client, Options, PermissionReply};
    ///
    /// let builder = Client::builder(Options::new()).on_permission(|request| async move {
    ///     match request.tool_name.as_str() {
    ///         "Read" | "Grep" => PermissionReply::allow(),
    ///         _ => PermissionReply::deny("Only looking, please."),
    ///     }
    /// });
    /// ```
    pub fn on_permission<F, R>(mut self, decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = PermissionReply> + Send + 'static,
    {
        self.permission = Some(Arc::new(move |request| Box::pin(decide(request))));
        self
    }

    /// Answers what MCP servers want of the user. Without it, they are told that the user has closed the question.
    pub fn on_elicitation<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
        R: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |request| Box::pin(answer(request))));
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// A field of the first request that has no method here, such as `agentProgressSummaries`.
    pub fn initialize_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.initialize.insert(name.into(), value.into());
        self
    }

    /// Adds tools of the caller's. The agent sees each of them as `mcp__SERVER__TOOL`.
    #[cfg(feature = "tools")]
    pub fn tools(self, tools: crate::tools::ToolServer) -> Self {
        let name = tools.name().to_owned();
        self.mcp_service(name, tools)
    }

    /// Adds any MCP server that is written with `rmcp`, to run inside this process.
    #[cfg(feature = "tools")]
    pub fn mcp_service(mut self, name: impl Into<String>, handler: impl rmcp::ServerHandler) -> Self {
        let name = name.into();
        if self
            .servers
            .insert(name.clone(), crate::tools::Server::new(handler))
            .is_none()
        {
            self.server_names.push(name);
        }
        self
    }

    /// Starts the agent.
    pub async fn connect(self) -> Result<Client, AgentError> {
        let (link, inbox) = link::connect(&self.prepared_options()).await?;
        self.attach(link, inbox).await
    }

    /// Starts the agent and lets it connect to a server of the caller's, see
    /// [`connect_websocket`](crate::connect_websocket).
    pub async fn connect_websocket(self, url: &str, sockets: Sockets) -> Result<Client, AgentError> {
        let (link, inbox) = link::connect_websocket(&self.prepared_options(), url, sockets).await?;
        self.attach(link, inbox).await
    }

    fn prepared_options(&self) -> Options {
        let mut options = self.options.clone();
        if self.permission.is_none() {
            options = options.ask_permission(false);
        }
        for name in self.server_names.clone() {
            options = options.mcp_server(name.clone(), McpServer::Sdk { name });
        }
        options
    }

    /// Uses an agent that is running already.
    pub async fn attach(self, link: Link, inbox: Inbox) -> Result<Client, AgentError> {
        let sdk_mcp_servers = self.server_names;
        let mut hooks: BTreeMap<String, Vec<HookMatcher>> = BTreeMap::new();
        let mut callbacks = HashMap::new();
        for (number, hook) in self.hooks.into_iter().enumerate() {
            let id = format!("hook_{number}");
            hooks
                .entry(hook.event.as_str().to_owned())
                .or_default()
                .push(HookMatcher {
                    matcher: hook.matcher,
                    hook_callback_ids: vec![id.clone()],
                    timeout: hook.timeout.map(|timeout| timeout.as_secs_f64()),
                });
            callbacks.insert(id, (hook.event, hook.callback));
        }
        let handlers = Handlers {
            permission: self.permission,
            elicitation: self.elicitation,
            hooks: callbacks,
            #[cfg(feature = "tools")]
            servers: crate::tools::Bridges::new(self.servers, link.clone()),
        };
        let (sender, messages) = link::inbox_channel(self.options.inbox_bytes);
        // Before the first request: the CLI may ask for our tools before it answers.
        let dispatcher = tokio::spawn(dispatch::run(inbox, sender, link.clone(), Arc::new(handlers)));
        let mut client = Client {
            link,
            messages,
            initialized: crate::control::Initialized::default(),
            resumed: self.options.resumed_id().map(str::to_owned),
            session_id: None,
            turn_ended: false,
            dispatcher,
        };
        let request = Initialize {
            hooks,
            sdk_mcp_servers,
            extra: self.initialize,
        };
        client.initialized = match client.link.request(request).await {
            Ok(initialized) => initialized,
            Err(RequestError::Closed) => return Err(client.ended().await),
            Err(error) => return Err(error.into()),
        };
        Ok(client)
    }
}
