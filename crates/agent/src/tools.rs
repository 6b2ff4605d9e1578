//! MCP servers inside this process: Rust functions as tools of the agent.
//!
//! The CLI sends JSON-RPC messages for such a server as control requests. A bridge hands them to an `rmcp` service and
//! returns its answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

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

/// Rust functions as tools of the agent.
///
/// ```
/// use serde::Deserialize;
/// use serde_json::json;
/// use tiller_agent::ToolServer;
///
/// #[derive(Deserialize)]
/// struct Add { a: f64, b: f64 }
///
/// let tools = ToolServer::new("calculator").tool(
///     "add",
///     "Adds two numbers",
///     json!({
///         "type": "object",
///         "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
///         "required": ["a", "b"],
///     }),
///     |Add { a, b }| async move { format!("{}", a + b) },
/// );
/// ```
#[derive(Clone)]
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

    /// Adds a tool: its name, what it does (for the model), the JSON schema of its input, and the function itself. A
    /// call whose input does not fit the function's argument fails, and the model is told why.
    pub fn tool<A, O, F, R>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned,
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
        let callback: ToolCallback = Arc::new(move |input| match serde_json::from_value(input) {
            Ok(argument) => {
                let running = function(argument);
                Box::pin(async move { running.await.into() })
            }
            Err(error) => Box::pin(std::future::ready(ToolOutput::error(format!(
                "The input does not fit: {error}"
            )))),
        });
        self.tools.insert(name, (tool, callback));
        self
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
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

async fn serve<H: ServerHandler>(handler: Arc<H>, pipe: Pipe) {
    match rmcp::serve_server(handler, pipe).await {
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
