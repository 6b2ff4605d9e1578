//! The HTTP side: receives the CLI's requests, chooses the reply and sends it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Json, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::completions::{self, Chunks};
use super::gate::{Gate, Gates};
use super::request::{AnsweredBy, Conversation, ModelRequest, is_side_request, side_answer};
use super::script::{Failure, Part, Reply, Script};
use super::sse::{Frame, Player, assemble};

/// A running scripted model on a loopback port. It ends when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    gates: Gates,
    progress: Mutex<Progress>,
    requests: Mutex<Vec<ModelRequest>>,
    message_count: AtomicU64,
    /// Makes message ids unique across servers: a CLI that resumes a session treats equal ids as one message.
    id_prefix: u64,
}

/// How far the script has been used.
#[derive(Debug, Default)]
struct Progress {
    /// The number of replies given, for each turn that a rule answers.
    turns: HashMap<Turn, usize>,
    queue: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Turn {
    session_id: Option<String>,
    rule: usize,
    prompt: String,
    prompt_count: usize,
}

impl ModelServer {
    /// Serves `script` on a free port of 127.0.0.1.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on(script, 0).await
    }

    /// As [`ModelServer::start`], on a port of the caller's choice.
    pub async fn start_on(script: Script, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            gates: Gates::default(),
            progress: Mutex::default(),
            requests: Mutex::default(),
            message_count: AtomicU64::new(0),
            id_prefix: RandomState::new().build_hasher().finish(),
        });
        let app = router(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            match axum::serve(listener, app).await {
                Ok(()) => {}
                Err(error) => eprintln!("the scripted model stopped: {error}"),
            }
        });
        Ok(Self {
            address,
            shared,
            serving,
        })
    }

    /// The value of `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The environment with which the CLI talks only to this server.
    pub fn env(&self) -> Vec<(String, String)> {
        cli_environment(&self.base_url())
    }

    /// A gate of the script, to wait for and to open.
    pub fn gate(&self, name: &str) -> Gate {
        self.shared.gates.get(name)
    }

    /// All model calls so far, including side requests, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.shared.requests).clone()
    }

    /// The calls that belong to a conversation.
    pub fn conversation_requests(&self) -> Vec<ModelRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.answered_by != AnsweredBy::Side);
        requests
    }

    /// Runs until the server ends, which it does not do on its own.
    pub async fn run(mut self) {
        if let Err(error) = (&mut self.serving).await {
            eprintln!("the scripted model stopped: {error}");
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The environment with which a CLI talks only to the model at `base_url`.
fn cli_environment(base_url: &str) -> Vec<(String, String)> {
    [
        ("ANTHROPIC_BASE_URL", base_url),
        ("ANTHROPIC_API_KEY", "sk-test"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        // A proxy from the developer's shell could not reach a loopback port.
        ("NO_PROXY", "127.0.0.1"),
        ("no_proxy", "127.0.0.1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        // The CLI sends `HEAD /` to warm up the connection; axum answers HEAD where it answers GET.
        .route("/", get(|| async { "scripted model\n" }))
        .route("/v1/messages", post(messages))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/_testkit/gates/{name}/open", post(open_gate))
        .route("/_testkit/gates/{name}/reached", get(gate_reached))
        .route("/_testkit/requests", get(list_requests))
        // Whole conversations are sent with every call; some tests have long ones.
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn open_gate(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> StatusCode {
    shared.gates.get(&name).open();
    StatusCode::NO_CONTENT
}

async fn gate_reached(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> StatusCode {
    shared.gates.get(&name).reached().await;
    StatusCode::NO_CONTENT
}

async fn list_requests(State(shared): State<Arc<Shared>>) -> Json<Vec<ModelRequest>> {
    Json(lock(&shared.requests).clone())
}

async fn count_tokens(Json(body): Json<Value>) -> Json<Value> {
    // Four characters to a token is the usual rule of thumb; nothing here depends on it.
    Json(json!({"input_tokens": body.to_string().len() / 4}))
}

async fn messages(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let from_cli = headers.contains_key("x-app");
    let streaming = body["stream"] == true;
    let more = shared.script.headers.clone();
    let mut response = match shared.play(&headers, body, from_cli).await {
        Ok(events) if streaming => stream_response(events, |event| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        }),
        Ok(events) => whole_response(events).await,
        Err(failure) => failure,
    };
    for (name, value) in more {
        // What can't be a header is left out.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Always answers with a stream, which agents request.
async fn chat_completions(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    match shared.play(&headers, completions::to_messages(&body), true).await {
        Ok(events) => {
            let mut chunks = Chunks::default();
            stream_response(events, move |event| chunks.of(event))
        }
        Err(failure) => failure,
    }
}

impl Shared {
    /// Chooses the reply to a request of the Messages API and begins to play it. The error is the response if the reply
    /// is an error. Only a request of an agent may be a side request.
    async fn play(
        self: Arc<Self>,
        headers: &HeaderMap,
        body: Value,
        from_agent: bool,
    ) -> Result<mpsc::Receiver<Frame>, Response> {
        let shared = self;
        let reply = shared.choose(headers, &body, from_agent);
        for part in leading_waits(&reply) {
            match part {
                Part::Gate { name } => shared.gates.get(name).pass().await,
                Part::Pause { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
                _ => {}
            }
        }
        if let Some(failure) = &reply.error {
            return Err(error_response(failure));
        }
        let reply = Reply {
            parts: reply.parts[leading_waits(&reply).len()..].to_vec(),
            ..reply
        };

        let number = shared.message_count.fetch_add(1, Ordering::Relaxed);
        let message_id = format!("msg_scripted_{:016x}_{number}", shared.id_prefix);
        // One event may wait: the reply never runs far ahead of the client.
        let (output, events) = mpsc::channel::<Frame>(1);
        tokio::spawn(async move {
            let player = Player {
                body: &body,
                gates: &shared.gates,
                message_id,
                output,
            };
            player.play(&reply).await;
        });
        Ok(events)
    }
}

async fn whole_response(mut events: mpsc::Receiver<Frame>) -> Response {
    let mut whole = Vec::new();
    while let Some(frame) = events.recv().await {
        match frame {
            Ok(event) if event["type"] == "error" => {
                return (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    Json(json!({"type": "error", "error": event["error"]})),
                )
                    .into_response();
            }
            Ok(event) => whole.push(event),
            Err(error) => {
                let broken = stream::iter([Ok::<_, io::Error>("{\"id\":".to_owned()), Err(error)]);
                return Body::from_stream(broken).into_response();
            }
        }
    }
    Json(assemble(whole)).into_response()
}

/// Waits at the start of a reply delay the response's head, as with a model that is slow to start.
fn leading_waits(reply: &Reply) -> &[Part] {
    let count = reply
        .parts
        .iter()
        .take_while(|part| matches!(part, Part::Gate { .. } | Part::Pause { .. }))
        .count();
    &reply.parts[..count]
}

fn stream_response(
    events: mpsc::Receiver<Frame>,
    mut text: impl FnMut(&Value) -> String + Send + 'static,
) -> Response {
    let frames = stream::unfold(events, |mut events| async {
        events.recv().await.map(|frame| (frame, events))
    })
    .map(move |frame| frame.map(|event| text(&event)));
    (
        [
            (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        Body::from_stream(frames),
    )
        .into_response()
}

fn error_response(failure: &Failure) -> Response {
    let error_type = match failure.status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let message = failure
        .message
        .clone()
        .unwrap_or_else(|| format!("scripted error {}", failure.status));
    let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = Json(json!({"type": "error", "error": {"type": error_type, "message": message}}));
    match failure.retry_after {
        Some(seconds) => (status, [(header::RETRY_AFTER, seconds.to_string())], body).into_response(),
        None => (status, body).into_response(),
    }
}

impl Shared {
    /// Chooses the reply for a request and records the request.
    fn choose(&self, headers: &HeaderMap, body: &Value, from_agent: bool) -> Reply {
        let session_id = headers
            .get("x-claude-code-session-id")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let conversation = Conversation::of(body);
        let (reply, answered_by) = if is_side_request(body, from_agent) {
            (Reply::text(side_answer(body)), AnsweredBy::Side)
        } else {
            self.scripted(session_id.clone(), &conversation)
        };
        lock(&self.requests).push(ModelRequest {
            body: body.clone(),
            session_id,
            prompt: conversation.prompt().to_owned(),
            answered_by,
        });
        reply
    }

    fn scripted(&self, session_id: Option<String>, conversation: &Conversation) -> (Reply, AnsweredBy) {
        let mut progress = lock(&self.progress);
        let scripted = if let Some((rule, prompt)) = self.matching_rule(conversation) {
            let turn = Turn {
                session_id,
                rule,
                prompt: prompt.to_owned(),
                prompt_count: conversation.prompt_count,
            };
            let next = progress.turns.entry(turn).or_default();
            let reply = *next;
            *next += 1;
            self.script.rules[rule]
                .replies
                .get(reply)
                .map(|found| (found.clone(), AnsweredBy::Rule { rule, reply }))
        } else {
            let reply = progress.queue;
            progress.queue += 1;
            self.script
                .queue
                .get(reply)
                .map(|found| (found.clone(), AnsweredBy::Queue { reply }))
        };
        scripted.unwrap_or_else(|| {
            let last_resort = || Reply::text("The script has no reply for this.");
            let reply = self.script.otherwise.clone().unwrap_or_else(last_resort);
            (reply, AnsweredBy::Otherwise)
        })
    }

    /// The first rule that matches the newest text of the turn, or else an earlier one.
    fn matching_rule<'a>(&self, conversation: &'a Conversation) -> Option<(usize, &'a str)> {
        conversation.turn_prompts.iter().rev().find_map(|prompt| {
            let rule = self
                .script
                .rules
                .iter()
                .position(|rule| prompt.contains(&rule.contains))?;
            Some((rule, prompt.as_str()))
        })
    }
}

/// A test that panicked while it held the lock must not hide the other results.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
