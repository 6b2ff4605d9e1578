//! Starting a client with functions that answer the agent's questions.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::answers::{Answers, Handlers};
use super::conductor::{Conductor, Known};
use super::route::Router;
use super::turn::Judge;
use super::{Client, ClientHandle};
use crate::control::{
    ElicitationReply, ElicitationRequest, GetUsage, HookMatcher, Initialize, Initialized, PermissionReply,
    PermissionRequest, RequestError,
};
use crate::error::Error;
use crate::hooks::Hook;
use crate::link::{self, Inbox, Link};
use crate::options::{Conversation, McpServer, Options};
use tokio::sync::mpsc;

/// Prompts that wait for their turn. More senders than this have to wait themselves.
const PROMPTS: usize = 256;
/// Interrupts that wait for one before them.
const INTERRUPTS: usize = 16;
/// How long a CLI that resumes a conversation may take to tell what the conversation has cost so far.
const COST_TIME: Duration = Duration::from_secs(5);

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
    #[doc(alias = "can_use_tool")]
    #[doc(alias = "canUseTool")]
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
    ///
    /// If the future is dropped, the agent ends, and nothing is left of it.
    pub async fn connect(self) -> Result<Client, Error> {
        // On the heap, as are the others: callers keep this future in theirs.
        Box::pin(async move {
            #[cfg(feature = "history")]
            self.restore().await?;
            let (link, inbox) = link::connect(&self.prepared_options()).await?;
            self.attach(link, inbox).await
        })
        .await
    }

    /// Starts the agent and lets it connect to a server of the caller's, see
    /// [`connect_websocket`](crate::link::connect_websocket).
    #[cfg(feature = "websocket")]
    pub async fn connect_websocket(
        self,
        url: &str,
        sockets: tiller_process::Sockets,
    ) -> Result<Client, Error> {
        Box::pin(async move {
            #[cfg(feature = "history")]
            self.restore().await?;
            let options = self.prepared_options();
            let (link, inbox) = link::connect_websocket(&options, url, sockets).await?;
            self.attach(link, inbox).await
        })
        .await
    }

    /// Fetches the conversation that is to be resumed from the session store, if it is not on disk.
    #[cfg(feature = "history")]
    async fn restore(&self) -> Result<(), Error> {
        let (Some(store), Some(id)) = (&self.options.session_store, self.options.resumed_id()) else {
            return Ok(());
        };
        let cwd = match &self.options.cwd {
            Some(cwd) => cwd.clone(),
            None => std::env::current_dir().map_err(Error::Session)?,
        };
        let Some(home) = crate::launch::home(&self.options) else {
            return Ok(());
        };
        crate::sessions::restore(store.as_ref(), &home, &cwd, id)
            .await
            .map_err(Error::Session)
    }

    fn prepared_options(&self) -> Options {
        // How a prompt is known to have been taken, see the module `route`.
        let mut options = self.options.clone().replay_user_messages(true);
        if self.permission.is_none() {
            options = options.ask_permission(false);
        }
        for name in self.server_names.clone() {
            options = options.mcp_server(name.clone(), McpServer::Sdk { name });
        }
        options
    }

    /// Uses an agent that is running already and has been told nothing yet. Prompts that it takes should come back
    /// ([`Options::replay_user_messages`]): versions before 2.1.325 tell nothing else about whose answer is whose.
    pub async fn attach(self, link: Link, inbox: Inbox) -> Result<Client, Error> {
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
        let inbox_bytes = self.options.inbox_bytes;
        let (outside, outside_receiver) = link::inbox_channel(inbox_bytes);
        let (prompts, prompts_receiver) = mpsc::channel(PROMPTS);
        let (interrupts, interrupts_receiver) = mpsc::channel(INTERRUPTS);
        let known = Arc::new(Known::default());
        #[cfg(feature = "history")]
        let (mirror, mirroring) = match self
            .options
            .session_store
            .clone()
            .map(crate::sessions::Mirror::start)
        {
            Some((mirror, task)) => (Some(mirror), Some(task)),
            None => (None, None),
        };
        // Before the first request: the CLI may ask for our tools before it answers.
        let conductor = Conductor {
            inbox,
            link: link.clone(),
            answers: Answers::new(handlers, link.clone()),
            router: Router::new(self.options.replay_user_messages),
            outside,
            prompts: prompts_receiver,
            interrupts: interrupts_receiver,
            known: Arc::clone(&known),
            #[cfg(feature = "history")]
            mirror,
        };
        let conductor = tokio::spawn(conductor.run());
        let resumes = matches!(
            self.options.conversation,
            Conversation::Resume(_) | Conversation::Latest
        );
        let judge = Arc::new(Judge {
            resumes,
            resumed: self.options.resumed_id().map(str::to_owned),
        });
        let mut client = Client {
            handle: ClientHandle {
                link,
                prompts,
                interrupts,
                judge,
                known,
                inbox_bytes,
            },
            turns: VecDeque::new(),
            outside: outside_receiver,
            initialized: Initialized::default(),
            ended: false,
            conductor,
            #[cfg(feature = "history")]
            mirroring,
        };
        client.initialized = client
            .request(Initialize {
                hooks,
                sdk_mcp_servers,
                extra: self.initialize,
            })
            .await?;
        if resumes {
            client.note_cost_so_far().await?;
        }
        Ok(client)
    }
}

impl Client {
    /// Newer versions go on counting the cost when a conversation is resumed, and tell how far they are. Older ones count
    /// from zero.
    async fn note_cost_so_far(&self) -> Result<(), Error> {
        match self
            .link()
            .request_within(GetUsage { skip_behaviors: true }, COST_TIME)
            .await
        {
            Ok(usage) => self.known.set_total_usd(usage.session.total_cost_usd),
            Err(RequestError::Closed) => return Err(self.ended().await),
            Err(error) => tracing::debug!(%error, "what the conversation has cost so far is not known"),
        }
        Ok(())
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("options", &self.options)
            .field("asks_permission", &self.permission.is_some())
            .field("hooks", &self.hooks)
            .field("servers", &self.server_names)
            .finish_non_exhaustive()
    }
}
