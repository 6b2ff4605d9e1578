//! MCP servers inside this process: Rust functions as tools of the agent.
//!
//! The CLI sends JSON-RPC messages for such a server as control requests. A bridge hands them to an `rmcp` service and
//! returns its answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer, ServerHandler, Service};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

pub use schemars;

use crate::client::guarded;
use crate::control::{McpMessage, McpRequest, Reply};
use crate::link::Link;

/// Messages that wait for a server: more than the CLI ever has under way at once.
const QUEUE: usize = 64;

/// What a tool returns.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput(CallToolResult);

impl ToolOutput {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(CallToolResult::success(vec![ContentBlock::text(text)]))
    }

    /// A failure, which the model is told about.
    pub fn error(message: impl Into<String>) -> Self {
        Self(CallToolResult::error(vec![ContentBlock::text(message)]))
    }

    /// Adds an image, as base64.
    pub fn with_image(mut self, media_type: impl Into<String>, base64: impl Into<String>) -> Self {
        self.0.content.push(ContentBlock::image(base64, media_type));
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<T: Into<ToolOutput>, E: std::fmt::Display> From<Result<T, E>> for ToolOutput {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(output) => output.into(),
            Err(error) => Self::error(error.to_string()),
        }
    }
}

type ToolCallback = Arc<dyn Fn(Value) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// What a client may assume about a tool, before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolHints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    max_result_chars: Option<u32>,
}

impl ToolHints {
    /// Nothing is known of the tool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the tool changes nothing. The agent may then call it at the same time as others.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = Some(read_only);
        self
    }

    /// Whether the tool may destroy something.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.destructive = Some(destructive);
        self
    }

    /// Whether calling the tool twice is the same as calling it once.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    /// Whether the tool reaches out to the world, as a search of the web does.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.open_world = Some(open_world);
        self
    }

    /// Up to how many characters the CLI shows the tool's result to the model as it is, before it puts the result into a
    /// file and shows its beginning.
    #[doc(alias = "maxResultSizeChars")]
    pub fn max_result_chars(mut self, characters: u32) -> Self {
        self.max_result_chars = Some(characters);
        self
    }

    fn apply(self, mut tool: Tool) -> Tool {
        let mut annotations = tool.annotations.take().unwrap_or_default();
        annotations.read_only_hint = self.read_only;
        annotations.destructive_hint = self.destructive;
        annotations.idempotent_hint = self.idempotent;
        annotations.open_world_hint = self.open_world;
        tool.annotations = Some(annotations);
        if let Some(characters) = self.max_result_chars {
            let mut meta = rmcp::model::MetaObject::new();
            meta.insert("anthropic/maxResultSizeChars".to_owned(), json!(characters));
            tool.meta = Some(meta);
        }
        tool
    }
}

/// Rust functions as tools of the agent.
///
/// ```
/// use tiller_agent::tools::schemars::{self, JsonSchema};
/// use tiller_agent::{ToolServer, tools::ToolHints};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: f64,
///     /// The second number.
///     b: f64,
/// }
///
/// let tools = ToolServer::new("calculator")
///     .tool("add", "Adds two numbers", |Add { a, b }| async move { format!("{}", a + b) })
///     .hints("add", ToolHints::new().read_only(true));
/// ```
#[derive(Clone)]
#[doc(alias = "create_sdk_mcp_server")]
pub struct ToolServer {
    name: String,
    version: String,
    tools: BTreeMap<String, (Tool, ToolCallback)>,
}

impl ToolServer {
    /// A server without tools. The agent sees its tools as `mcp__NAME__TOOL`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tools: BTreeMap::new(),
        }
    }

    /// Adds a tool: its name, what it does (for the model), and the function itself. The type of the function's argument
    /// says what the model is told about the input: comments on its fields become descriptions. `()` is a tool without
    /// input, and [`serde_json::Value`] one with any object.
    ///
    /// A call whose input does not fit fails, and the model is told why; so does a function that panics.
    pub fn tool<A, O, F, R>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Into<ToolOutput>,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
    {
        let schema = schemars::generate::SchemaSettings::draft2020_12()
            .into_generator()
            .into_root_schema_for::<A>()
            .to_value();
        let schema = match schema {
            Value::Object(schema) if schema.get("type") == Some(&json!("object")) => Value::Object(schema),
            // The input of a tool is an object.
            _ => json!({ "type": "object" }),
        };
        self.tool_with_schema(name, description, schema, function)
    }

    /// Adds a tool whose input has this JSON schema, which must be that of an object.
    pub fn tool_with_schema<A, O, F, R>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        O: Into<ToolOutput>,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
    {
        let schema = match input_schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        let name = name.into();
        let description: Cow<'static, str> = Cow::Owned(description.into());
        let tool = Tool::new(name.clone(), description, Arc::new(schema));
        let function = Arc::new(function);
        let callback: ToolCallback = Arc::new(move |input| match argument(input) {
            Ok(argument) => {
                let function = Arc::clone(&function);
                Box::pin(async move {
                    // The function itself may panic as well as its future.
                    guarded("tool", async { function(argument).await.into() })
                        .await
                        .unwrap_or_else(ToolOutput::error)
                })
            }
            Err(error) => Box::pin(std::future::ready(ToolOutput::error(format!(
                "The input does not fit: {error}"
            )))),
        });
        self.tools.insert(name, (tool, callback));
        self
    }

    /// Says what clients may assume about a tool that was added before. Does nothing if there is none of this name.
    #[doc(alias = "ToolAnnotations")]
    pub fn hints(mut self, name: &str, hints: ToolHints) -> Self {
        if let Some((tool, _)) = self.tools.get_mut(name) {
            *tool = hints.apply(tool.clone());
        }
        self
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("name", &self.name)
            .field("tools", &self.tools.keys())
            .finish_non_exhaustive()
    }
}

/// The argument of a tool's function. A function without input takes `()`, which is not an empty object to serde.
fn argument<A: DeserializeOwned>(input: Value) -> Result<A, serde_json::Error> {
    let is_empty = input.as_object().is_some_and(Map::is_empty);
    match serde_json::from_value(input) {
        Err(_) if is_empty && let Ok(nothing) = serde_json::from_value(Value::Null) => Ok(nothing),
        argument => argument,
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(self.name.clone(), self.version.clone()))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.values().map(|(tool, _)| tool.clone()).collect();
        Ok(ListToolsResult {
            tools,
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((_, callback)) = self.tools.get(request.name.as_ref()) else {
            return Err(ErrorData::invalid_params(
                format!("There is no tool {}", request.name),
                None,
            ));
        };
        let input = Value::Object(request.arguments.unwrap_or_default());
        Ok(callback(input).await.0.into())
    }
}

/// An MCP server that can be started, again and again: the CLI may connect to it anew.
#[derive(Clone)]
pub(crate) struct Server {
    start: Arc<dyn Fn(Pipe) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Server {
    pub(crate) fn new(handler: impl ServerHandler) -> Self {
        let handler = Arc::new(handler);
        Self {
            start: Arc::new(move |pipe| Box::pin(serve(Arc::clone(&handler), pipe))),
        }
    }
}

/// A server whose every request is answered, also when its function panics.
struct Guarded<H>(Arc<H>);

impl<H: ServerHandler> Service<RoleServer> for Guarded<H> {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<<RoleServer as ServiceRole>::Resp, ErrorData> {
        guarded("MCP server", self.0.handle_request(request, context))
            .await
            .unwrap_or_else(|reason| Err(ErrorData::internal_error(reason, None)))
    }

    async fn handle_notification(
        &self,
        notification: <RoleServer as ServiceRole>::PeerNot,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        guarded("MCP server", self.0.handle_notification(notification, context))
            .await
            .unwrap_or_else(|reason| Err(ErrorData::internal_error(reason, None)))
    }

    fn get_info(&self) -> <RoleServer as ServiceRole>::Info {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}

async fn serve<H: ServerHandler>(handler: Arc<H>, pipe: Pipe) {
    match rmcp::serve_server(Guarded(handler), pipe).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::warn!(%error, "an MCP server of this process has failed");
            }
        }
        Err(error) => tracing::warn!(%error, "an MCP server of this process did not start"),
    }
}

/// The MCP servers of one client.
pub(crate) struct Bridges {
    servers: BTreeMap<String, Server>,
    link: Link,
    running: tokio::sync::Mutex<HashMap<String, Arc<Bridge>>>,
}

impl Bridges {
    pub(crate) fn new(servers: BTreeMap<String, Server>, link: Link) -> Self {
        Self {
            servers,
            link,
            running: tokio::sync::Mutex::default(),
        }
    }

    /// Hands a message to its server, and the server's answer back.
    pub(crate) async fn handle(&self, request: &McpRequest) -> Reply {
        let Some(server) = self.servers.get(&request.server_name) else {
            return Reply::Error(format!("There is no MCP server {}", request.server_name));
        };
        let message: Value = match serde_json::from_str(request.message.get()) {
            Ok(message) => message,
            Err(error) => return Reply::Error(error.to_string()),
        };
        let bridge = {
            let mut running = self.running.lock().await;
            let begins = message.get("method").and_then(Value::as_str) == Some("initialize");
            if begins || !running.contains_key(&request.server_name) {
                let bridge = Arc::new(Bridge::start(server, &request.server_name, self.link.clone()));
                running.insert(request.server_name.clone(), Arc::clone(&bridge));
                bridge
            } else {
                match running.get(&request.server_name) {
                    Some(bridge) => Arc::clone(bridge),
                    None => return Reply::Error("the MCP server has ended".to_owned()),
                }
            }
        };
        match bridge.exchange(message).await {
            Ok(response) => Reply::success(&json!({ "mcp_response": response }))
                .unwrap_or_else(|error| Reply::Error(error.to_string())),
            Err(reason) => Reply::Error(reason),
        }
    }
}

/// Who waits for the answer to which JSON-RPC request, by the JSON of its id.
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Value>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's end of a bridge.
pub(crate) struct Pipe {
    from_cli: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    waiting: Waiting,
    link: Link,
    name: String,
}

impl Transport<RoleServer> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (waiting, link, name) = (Arc::clone(&self.waiting), self.link.clone(), self.name.clone());
        async move {
            let message = serde_json::to_value(&message).map_err(io::Error::other)?;
            let is_answer = message.get("method").is_none();
            let id = message.get("id").filter(|_| is_answer).map(Value::to_string);
            if let Some(waiter) = id.and_then(|id| lock(&waiting).remove(&id)) {
                // The CLI may have given up waiting.
                drop(waiter.send(message));
                return Ok(());
            }
            // What the server says of its own accord.
            if let Err(error) = link
                .request(McpMessage {
                    server_name: name.clone(),
                    message,
                })
                .await
            {
                tracing::debug!(%error, name, "the CLI did not take a message of an MCP server");
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.from_cli.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.from_cli.close();
        Ok(())
    }
}

/// One running server.
struct Bridge {
    to_server: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    waiting: Waiting,
    task: tokio::task::JoinHandle<()>,
}

impl Bridge {
    fn start(server: &Server, name: &str, link: Link) -> Self {
        let (to_server, from_cli) = mpsc::channel(QUEUE);
        let waiting: Waiting = Arc::default();
        let pipe = Pipe {
            from_cli,
            waiting: Arc::clone(&waiting),
            link,
            name: name.to_owned(),
        };
        let task = tokio::spawn((server.start)(pipe));
        Self {
            to_server,
            waiting,
            task,
        }
    }

    async fn exchange(&self, message: Value) -> Result<Value, String> {
        let is_request = message.get("method").is_some();
        let id = message.get("id").filter(|_| is_request).map(Value::to_string);
        let typed = serde_json::from_value(message).map_err(|error| error.to_string())?;
        let answer = id.map(|id| {
            let (sender, answer) = oneshot::channel();
            lock(&self.waiting).insert(id, sender);
            answer
        });
        self.to_server
            .send(typed)
            .await
            .map_err(|_| "the MCP server has ended".to_owned())?;
        match answer {
            Some(answer) => answer.await.map_err(|_| "the MCP server has ended".to_owned()),
            // A notification has no answer, but a control request needs one.
            None => Ok(json!({ "jsonrpc": "2.0", "result": {}, "id": 0 })),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}
