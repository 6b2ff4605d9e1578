//! Commands for a running task: answers, permissions, stop.

use axum::extract::{Extension, Json, State};
use axum::http::HeaderMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tiller_core::{
    Behavior, CommandError, DecisionAnswer, DecisionRef, DecisionRequest, EventBody, RequestId, SessionId,
    SessionStatus, Sessions,
};
use ts_rs::TS;
use utoipa::ToSchema;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema};

use super::questions::{Noted, is_question, parse_question_id};
use crate::app::App;
use crate::auth::Visitor;
use crate::body::Body;
use crate::error::{ApiError, Language};
use crate::openapi::{BodyRefusals, ErrorBody, Refusals};
use crate::underway::whole;

/// How many events are read from the log at once.
const PAGE: u32 = 512;

#[derive(Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "task.ts")]
#[schema(example = json!({ "session_id": "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10", "question_id": "…-0", "answer": "OAuth 2" }))]
pub(crate) struct AnswerRequest {
    session_id: String,
    question_id: String,
    /// A label, a list of labels, or free text; `null` cancels the question.
    // Required, if only as `null`.
    #[serde(deserialize_with = "present")]
    #[schema(schema_with = answer_schema, required = true)]
    #[ts(type = "string | Array<string> | null")]
    answer: Value,
}

fn answer_schema() -> Schema {
    let of = |kind| ObjectBuilder::new().schema_type(kind).build();
    let labels = ArrayBuilder::new().items(of(Type::String));
    let choices = OneOfBuilder::new().item(of(Type::String)).item(labels.build());
    choices.item(of(Type::Null)).build().into()
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

#[derive(Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "task.ts", optional_fields)]
pub(crate) struct PermissionAnswer {
    session_id: String,
    request_id: String,
    decision: Decision,
    /// Sent to the agent with a denial.
    #[serde(default)]
    message: Option<String>,
    /// The SHA-256, in hex, of the input's JSON as it was shown. If the pending input differs: 409 `not_as_shown`.
    #[serde(default)]
    shown: Option<String>,
}

#[derive(Clone, Copy, Deserialize, TS, ToSchema)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "task.ts")]
enum Decision {
    Allow,
    /// Allows it and keeps the rules that the agent suggested.
    AllowAlways,
    Deny,
}

#[derive(Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "task.ts")]
pub(crate) struct StopRequest {
    session_id: String,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "task.ts")]
pub(crate) struct Done {
    success: bool,
    /// In the caller's language.
    message: String,
}

/// A confirmation, in the caller's language.
fn done(headers: &HeaderMap, english: &str, chinese: &str) -> Json<Done> {
    let message = match Language::of(headers) {
        Language::English => english,
        Language::Chinese => chinese,
    };
    Json(Done {
        success: true,
        message: message.to_owned(),
    })
}

/// Answer a question
#[utoipa::path(
    post, operation_id = "task_answer", path = "/api/task/answer", tag = "task", request_body = AnswerRequest,
    extensions(("x-summary-zh-CN" = json!("回答问题")), ("x-scope" = json!("approve"))),
    responses(
    (status = 200, body = Done),
    (status = 404, body = ErrorBody, description = "`session_not_found` or `question_not_found`."),
    Refusals, BodyRefusals,
))]
pub(super) async fn answer(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Body(request): Body<AnswerRequest>,
) -> Result<Json<Done>, ApiError> {
    whole(take_answer(app, visitor, request)).await??;
    Ok(done(
        &headers,
        "The answer was submitted. The task continues.",
        "答案已提交，任务继续执行",
    ))
}

/// Runs to its end even if the client disconnects: an answer that is noted but not stored would be lost with the
/// server, and could not be given again.
async fn take_answer(app: App, visitor: Visitor, request: AnswerRequest) -> Result<(), ApiError> {
    let (sessions, session) = decider(&app, visitor, &request.session_id)?;
    let (id, index) = parse_question_id(&request.question_id).ok_or(ApiError::QuestionNotFound)?;
    let Some(asked) = waiting(&sessions, session, id).await?.filter(is_question) else {
        return Err(match outcome(&sessions, session, id).await? {
            Some(Behavior::Withdrawn) => ApiError::TaskInterrupted,
            _ => ApiError::QuestionNotFound,
        });
    };
    let questions = &app.tasks.questions;
    match questions.note(&asked, index, &request.answer)? {
        Noted::More(said) => questions.keep(&sessions, session, (id, index), said).await,
        Noted::All(answer) => {
            let decided = sessions.answer(session, DecisionRef::Request(id), answer).await;
            questions.forget(&sessions, session, id).await;
            decided.map_err(|error| match error {
                // Answered between the check and this call.
                CommandError::Refused(_) => ApiError::QuestionNotFound,
                other => other.into(),
            })
        }
    }
}

/// Answer a permission request
#[utoipa::path(
    post, operation_id = "task_permission", path = "/api/task/permission", tag = "task", request_body = PermissionAnswer,
    extensions(("x-summary-zh-CN" = json!("回答权限请求")), ("x-scope" = json!("approve"))),
    responses(
    (status = 200, body = Done),
    (status = 404, body = ErrorBody, description = "`session_not_found` or `request_not_found`."),
    (status = 409, body = ErrorBody, description = "The request was already answered."),
    Refusals, BodyRefusals,
))]
pub(super) async fn permission(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Body(request): Body<PermissionAnswer>,
) -> Result<Json<Done>, ApiError> {
    let (sessions, session) = decider(&app, visitor, &request.session_id)?;
    let id: RequestId = request
        .request_id
        .parse()
        .map_err(|_| ApiError::RequestNotFound)?;
    let Some(asked) = waiting(&sessions, session, id)
        .await?
        .filter(|asked| !is_question(asked))
    else {
        return Err(match outcome(&sessions, session, id).await? {
            Some(Behavior::Withdrawn) => ApiError::TaskInterrupted,
            Some(Behavior::Allow | Behavior::Deny) => ApiError::AlreadyAnswered,
            None => ApiError::RequestNotFound,
        });
    };
    let answer = match request.decision {
        Decision::Allow => DecisionAnswer::Allow {
            input: None,
            permissions: None,
        },
        Decision::AllowAlways => DecisionAnswer::Allow {
            input: None,
            permissions: asked.suggestions,
        },
        Decision::Deny => DecisionAnswer::Deny {
            message: request.message,
            interrupt: false,
        },
    };
    let shown = request.shown.as_deref();
    sessions
        .answer_shown(session, DecisionRef::Request(id), answer, shown)
        .await?;
    Ok(done(
        &headers,
        "The decision was submitted. The task continues.",
        "决定已提交，任务继续执行",
    ))
}

/// Stop a task
#[utoipa::path(
    post, operation_id = "task_stop", path = "/api/task/stop", tag = "task", request_body = StopRequest,
    extensions(("x-summary-zh-CN" = json!("停止任务")), ("x-scope" = json!("run"))),
    responses(
    (status = 200, body = Done), (status = 404, body = ErrorBody), Refusals, BodyRefusals,
))]
pub(super) async fn stop(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Body(request): Body<StopRequest>,
) -> Result<Json<Done>, ApiError> {
    if !visitor.viewer.scopes.run {
        return Err(ApiError::Forbidden);
    }
    let sessions = app.sessions.for_viewer(visitor.viewer);
    let session = session_id(&request.session_id)?;
    let (record, _) = sessions.find(session).await?;
    if record.status == SessionStatus::Running {
        sessions.stop(session).await?;
    }
    Ok(done(&headers, "The task was stopped.", "任务已停止"))
}

/// A text that is not a session id counts as an unknown session.
pub(super) fn session_id(text: &str) -> Result<SessionId, ApiError> {
    text.parse().map_err(|_| ApiError::SessionNotFound)
}

/// The sessions with the rights of a caller that may decide, and the session that it names.
fn decider(app: &App, visitor: Visitor, session: &str) -> Result<(Sessions, SessionId), ApiError> {
    if !visitor.viewer.scopes.approve {
        return Err(ApiError::Forbidden);
    }
    Ok((app.sessions.for_viewer(visitor.viewer), session_id(session)?))
}

async fn waiting(
    sessions: &Sessions,
    session: SessionId,
    id: RequestId,
) -> Result<Option<DecisionRequest>, ApiError> {
    let (_, pending) = sessions.find(session).await?;
    Ok(pending.into_iter().find(|asked| asked.id == id))
}

/// How a decision ended that is no longer pending. `None`: there never was one. Read from the log, which also has the
/// decisions of earlier servers.
async fn outcome(
    sessions: &Sessions,
    session: SessionId,
    id: RequestId,
) -> Result<Option<Behavior>, ApiError> {
    let mut last = 0;
    loop {
        let page = sessions.replay(session, last, PAGE).await?;
        let resolved = page.iter().find_map(|event| match &event.body {
            EventBody::DecisionResolved {
                request, behavior, ..
            } if *request == id => Some(*behavior),
            _ => None,
        });
        match page.last() {
            Some(event) if resolved.is_none() => last = event.seq,
            _ => return Ok(resolved),
        }
    }
}
