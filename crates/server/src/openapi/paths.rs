//! Every operation. The functions only carry their description; what answers is in the doors.
#![expect(dead_code, reason = "the functions only carry descriptions")]

use utoipa::OpenApi;

use super::Keys;

#[allow(
    clippy::wildcard_imports,
    reason = "every form is used here, and nowhere else"
)]
use super::schemas::*;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tiller",
        description = "Start coding agents, watch them, decide what they may do, and find again what they did. \
                       Every call but /health needs a key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; \
                       a page on the same origin uses its cookie, together with the page's own secret in `X-Tiller-Page`."
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "task", description = "One prompt, one result"),
        (name = "sessions", description = "WebSockets on which sessions live"),
        (name = "history", description = "Every conversation that Claude Code keeps a transcript of"),
        (name = "machine", description = "The machine and its folders"),
    ),
    security(("bearer" = []), ("key" = [])),
    modifiers(&Keys),
    paths(
        task, task_stream, task_watch, task_answer, task_permission, task_stop,
        chat, events, cli, image,
        history_projects, history_project_sessions, history_sessions, history_session, history_export,
        history_tool_result, history_search, history_usage, history_live, history_vault, history_turn_vault,
        history_restore, history_take_over,
        health, system, backends, recent_cwds, directories, session_title, sign_ins, sign_out, claude, openapi, docs, docs_style,
    )
)]
pub(super) struct Description;

macro_rules! operations {
    ($($(#[$attribute:meta])* $name:ident;)+) => { $($(#[$attribute])* fn $name() {})+ };
}

operations! {
    /// Run a task and wait for its end
    ///
    /// Nobody can be asked: what needs approval is denied. A task that ran and failed, or reached `timeout_s`, is 200
    /// with `success: false`. At most 10 a minute for each address.
    #[utoipa::path(post, path = "/api/task", tag = "task", request_body = TaskRequest, responses(
        (status = 200, body = TaskResponse, headers(("X-Session-Id" = String))),
        (status = 404, body = ErrorBody, description = "There is no session to resume."),
        Refusals, BodyRefusals,
    ))]
    task;

    /// Run a task and hear what happens as it happens
    ///
    /// Server-sent events: `text`, `thinking`, `tool_use`, `tool_result`, `todos`, `ask_user_question`,
    /// `permission_request`, `error`, and `complete`, which is always the last. The id of an event is its place; a comment
    /// comes when nothing else has for a while. At most 10 a minute for each address.
    #[utoipa::path(post, path = "/api/task/stream", tag = "task", request_body = TaskRequest, responses(
        (status = 200, content_type = "text/event-stream", body = ServerSentEvent, headers(("X-Session-Id" = String))),
        (status = 404, body = ErrorBody, description = "There is no session to resume."),
        Refusals, BodyRefusals,
    ))]
    task_stream;

    /// Watch a task again
    ///
    /// From its start, or after the event that the header `Last-Event-ID` names, as a browser's EventSource does by itself. A
    /// client that has seen what was never said gets `reset`, and asks again.
    #[utoipa::path(get, path = "/api/task/{session_id}/stream", tag = "task", params(
        ("session_id" = String, Path),
    ), responses(
        (status = 200, content_type = "text/event-stream", body = ServerSentEvent, headers(("X-Session-Id" = String))),
        (status = 204, description = "Everything has been seen."),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    task_watch;

    /// Answer a question
    #[utoipa::path(post, path = "/api/task/answer", tag = "task", request_body = AnswerRequest, responses(
        (status = 200, body = Done),
        (status = 404, body = ErrorBody, description = "`session_not_found` or `question_not_found`."),
        Refusals, BodyRefusals,
    ))]
    task_answer;

    /// Answer a permission request
    #[utoipa::path(post, path = "/api/task/permission", tag = "task", request_body = PermissionAnswer, responses(
        (status = 200, body = Done),
        (status = 404, body = ErrorBody, description = "`session_not_found` or `request_not_found`."),
        (status = 409, body = ErrorBody, description = "Someone has answered it already."),
        Refusals, BodyRefusals,
    ))]
    task_permission;

    /// Stop a task
    #[utoipa::path(post, path = "/api/task/stop", tag = "task", request_body = StopRequest, responses(
        (status = 200, body = Done), (status = 404, body = ErrorBody), Refusals, BodyRefusals,
    ))]
    task_stop;

    /// The chat API: a WebSocket that is one conversation
    #[utoipa::path(get, path = "/ws", tag = "sessions", params(
        ("session_id" = Option<String>, Query, description = "A session's id, or any name; `default` unless given."),
        ("cwd" = Option<String>, Query, description = "Where a new session works."),
        ("after_seq" = Option<usize>, Query, description = "Replays what came after it."),
    ), responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 400, body = ErrorBody, description = "Not a WebSocket, or a working directory that may not be used."),
        (status = 422, body = ErrorBody), Refusals,
    ))]
    chat;

    /// The event API: a WebSocket for all sessions
    #[utoipa::path(get, path = "/ws/events", tag = "sessions", params(
        ("only" = Option<String>, Query, description = "`subscribed`: hears nothing but what it subscribes to."),
    ), responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 400, body = ErrorBody, description = "Not a WebSocket."), Refusals,
    ))]
    events;

    /// Where a Claude Code that was started with --sdk-url connects; for nobody else
    #[utoipa::path(get, path = "/ws/cli/{session_id}", tag = "sessions", security(()), params(
        ("session_id" = String, Path),
        ("run" = Option<String>, Query, description = "The secret that this run was started with."),
    ), responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 400, body = ErrorBody, description = "Not a WebSocket."),
        (status = 401, body = ErrorBody, description = "No such run is expected."), (status = 403, body = ErrorBody),
    ))]
    cli;

    /// An image that was sent with a prompt
    #[utoipa::path(get, path = "/api/sessions/{session}/images/{image}", tag = "sessions", params(
        ("session" = String, Path), ("image" = String, Path),
    ), responses(
        (status = 200, content_type = "image/png", body = Vec<u8>), (status = 404, body = ErrorBody), Refusals,
    ))]
    image;

    /// Folders that Claude Code was used in
    #[utoipa::path(get, path = "/api/history/projects", tag = "history", responses(
        (status = 200, body = Projects), Refusals,
    ))]
    history_projects;

    /// The conversations of a project, newest first
    #[utoipa::path(get, path = "/api/history/projects/{id}/sessions", tag = "history", params(
        ("id" = String, Path),
        ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
    ), responses(
        (status = 200, body = Sessions), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    history_project_sessions;

    /// All conversations, newest first, narrowed down
    #[utoipa::path(get, path = "/api/history/sessions", tag = "history", params(
        ("project" = Option<String>, Query), ("tool" = Option<String>, Query), ("file" = Option<String>, Query),
        ("model" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
        ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
    ), responses((status = 200, body = Sessions), (status = 422, body = ErrorBody), Refusals))]
    history_sessions;

    /// The messages of a conversation
    #[utoipa::path(get, path = "/api/history/sessions/{id}", tag = "history", params(
        ("id" = String, Path),
        ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
        ("include" = Option<String>, Query, description = "`chain`, `conversation` or `all`."),
        ("as" = Option<String>, Query, description = "`messages`, or `entries`: each message as a live session tells it."),
    ), responses(
        (status = 200, body = Messages), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    history_session;

    /// A conversation as a file
    #[utoipa::path(get, path = "/api/history/sessions/{id}/export", tag = "history", params(
        ("id" = String, Path),
        ("format" = Option<String>, Query, description = "`markdown`, `html` or `json`."),
        ("include" = Option<String>, Query, description = "`chain`, `conversation` or `all`."),
    ), responses(
        (status = 200, description = "The file", content_type = "text/markdown", body = String),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    history_export;

    /// The whole of a large tool result
    #[utoipa::path(get, path = "/api/history/sessions/{id}/tool-results/{name}", tag = "history", params(
        ("id" = String, Path), ("name" = String, Path),
    ), responses(
        (status = 200, content_type = "text/plain", body = String),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    history_tool_result;

    /// Search in everything that was said, called and returned, the conversation that was used last first
    #[utoipa::path(get, path = "/api/history/search", tag = "history", params(
        ("q" = String, Query, description = "Words that must all be there; \"in quotes\" just so."),
        ("project" = Option<String>, Query), ("tool" = Option<String>, Query), ("file" = Option<String>, Query),
        ("model" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
        ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
    ), responses((status = 200, body = SearchResults), (status = 422, body = ErrorBody), Refusals))]
    history_search;

    /// Tokens and cost by day, project, model and session
    #[utoipa::path(get, path = "/api/history/usage", tag = "history", params(
        ("project" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
    ), responses((status = 200, body = UsageReport), (status = 422, body = ErrorBody), Refusals))]
    history_usage;

    /// What changes in the history, as server-sent events
    #[utoipa::path(get, path = "/api/history/live", tag = "history", responses(
        (status = 200, content_type = "text/event-stream", body = ServerSentEvent), Refusals,
    ))]
    history_live;

    /// The archive of transcripts
    #[utoipa::path(get, path = "/api/history/vault", tag = "history", params(
        ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
    ), responses((status = 200, body = VaultState), (status = 422, body = ErrorBody), Refusals))]
    history_vault;

    /// Turn the archive on or off
    #[utoipa::path(put, path = "/api/history/vault", tag = "history", request_body = VaultSetting, responses(
        (status = 200, body = VaultState), Refusals, BodyRefusals,
    ))]
    history_turn_vault;

    /// Bring a transcript back from the archive
    #[utoipa::path(post, path = "/api/history/vault/{id}/restore", tag = "history", params(("id" = String, Path)), responses(
        (status = 200, body = Session), (status = 404, body = ErrorBody), Refusals,
    ))]
    history_restore;

    /// End the program that works on a conversation elsewhere
    ///
    /// So that it can go on here. The answer is the conversation, without a `driver`.
    #[utoipa::path(post, path = "/api/history/sessions/{id}/takeover", tag = "history", params(("id" = String, Path)), responses(
        (status = 200, body = Session), (status = 404, body = ErrorBody), Refusals,
    ))]
    history_take_over;

    /// Whether the server is there; needs no key
    #[utoipa::path(get, path = "/health", tag = "machine", security(()), responses(
        (status = 200, body = Health), (status = 403, body = ErrorBody, description = "A host name that is not served."),
    ))]
    health;

    /// The agents that a session can choose
    #[utoipa::path(get, path = "/api/backends", tag = "machine", responses((status = 200, body = BackendList), Refusals))]
    backends;

    /// The machine, the version and the default agent
    #[utoipa::path(get, path = "/api/system", tag = "machine", responses((status = 200, body = System), Refusals))]
    system;

    /// Folders that were used last
    #[utoipa::path(get, path = "/api/recent-cwds", tag = "machine", params(
        ("limit" = Option<isize>, Query, description = "1 to 20, the nearest of these for others; 8 unless given."),
    ), responses((status = 200, body = RecentCwds), (status = 422, body = ErrorBody), Refusals))]
    recent_cwds;

    /// The folders in a folder
    #[utoipa::path(get, path = "/api/directories", tag = "machine", params(
        ("path" = Option<String>, Query, description = "Inside a root; absent: the default working directory."),
    ), responses(
        (status = 200, body = Directories), (status = 400, body = ErrorBody, description = "A folder that may not be seen."),
        (status = 422, body = ErrorBody), Refusals,
    ))]
    directories;

    /// A title for a prompt
    #[utoipa::path(post, path = "/api/session-title", tag = "machine", request_body = TitleRequest, responses(
        (status = 200, body = Title), Refusals, BodyRefusals,
    ))]
    session_title;

    /// The browsers that are signed in, the last used first
    ///
    /// For the person at the machine only.
    #[utoipa::path(get, path = "/api/sign-ins", tag = "machine", responses(
        (status = 200, body = SignIns), (status = 403, body = ErrorBody), Refusals,
    ))]
    sign_ins;

    /// Sign out
    ///
    /// Without a body, the browser that asks; with `id` one of the list; with `all` every browser. Their connections end within
    /// five seconds. For the person at the machine only.
    #[utoipa::path(post, path = "/api/sign-out", tag = "machine", request_body = Option<SignOut>, responses(
        (status = 200, body = Success), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        Refusals, BodyRefusals,
    ))]
    sign_out;

    /// What Claude Code has been given: skills, commands, agents, MCP servers, plugins, hooks
    #[utoipa::path(get, path = "/api/claude", tag = "machine", params(("cwd" = Option<String>, Query)), responses(
        (status = 200, body = Object), (status = 400, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
    ))]
    claude;

    /// This description
    #[utoipa::path(get, path = "/api/openapi.json", tag = "machine", responses((status = 200, body = Object), Refusals))]
    openapi;

    /// This description, to read
    #[utoipa::path(get, path = "/api/docs", tag = "machine", params(
        ("lang" = Option<String>, Query, pattern = "^(en|zh|zh-CN)$", description = "`en` or `zh`; otherwise `Accept-Language` decides."),
    ), responses(
        (status = 200, content_type = "text/html", body = String), (status = 422, body = ErrorBody), Refusals,
    ))]
    docs;

    /// How that page looks
    #[utoipa::path(get, path = "/api/docs/style.css", tag = "machine", responses(
        (status = 200, content_type = "text/css", body = String), Refusals,
    ))]
    docs_style;
}
