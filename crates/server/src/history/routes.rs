//! The routes under `/api/history`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tiller_history::{
    History, HistoryError, Page, ProjectId, SearchPage, Session, SessionId, SessionPage, UsageQuery,
    UsageReport,
};

use super::access::{Seen, own_conversations};
use super::live;
use super::query::{Parameters, ToldAs};
use super::running;
use super::stream::written_by;
use super::wire::{
    HistoryEntries, HistoryMessages, HistoryProjects, HistorySessions, VaultSetting, VaultState,
};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::{BodyRefusals, ErrorBody, Refusals};
use crate::routes::{Routes, routes};
use crate::underway::whole;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .routes(routes!(projects))
        .routes(routes!(sessions))
        .routes(routes!(all_sessions))
        .routes(routes!(messages))
        .routes(routes!(export))
        .routes(routes!(tool_result))
        .routes(routes!(search))
        .routes(routes!(usage))
        .routes(routes!(live::live))
        .routes(routes!(vault, turn_vault))
        .routes(routes!(restore))
        .routes(routes!(take_over))
}

/// Runs a query on a thread that may block, with the visitor's rights.
async fn ask<T: Send + 'static>(
    app: &App,
    visitor: Visitor,
    query: impl FnOnce(&Arc<History>, Seen<'_>) -> Result<T, HistoryError> + Send + 'static,
) -> Result<T, ApiError> {
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden);
    }
    let sees_all = visitor.viewer.sees_all();
    let own = own_conversations(&app.sessions.for_viewer(visitor.viewer), sees_all).await?;
    let handle = app.history.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let history = handle.history()?;
        query(&history, Seen::new(&history, own))
    });
    let answer = asked.await.map_err(|error| ApiError::internal(&error))?;
    answer.map_err(|error| match error {
        HistoryError::NotFound => ApiError::SessionNotFound,
        HistoryError::Invalid(_) => ApiError::WrongForm,
        error @ (HistoryError::NoIndex | HistoryError::Index(_) | HistoryError::Io(_)) => {
            ApiError::internal(&error)
        }
    })
}

/// An id that can't be the name of a transcript is answered like an unknown one.
fn session_id(id: &str) -> Result<SessionId, ApiError> {
    SessionId::parse(id).map_err(|_| ApiError::SessionNotFound)
}

/// Folders in which Claude Code was used
#[utoipa::path(
    get, operation_id = "history_projects", path = "/api/history/projects", tag = "history",
    extensions(("x-summary-zh-CN" = json!("使用过 Claude Code 的目录")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, body = HistoryProjects), Refusals,
))]
async fn projects(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, ApiError> {
    let listed = ask(&app, visitor, |history, seen| {
        Ok(HistoryProjects {
            list: seen.projects()?,
            retention_days: history.retention_days(),
        })
    });
    Ok(Json(listed.await?).into_response())
}

/// The conversations of a project, newest first
#[utoipa::path(
    get, operation_id = "history_project_sessions", path = "/api/history/projects/{id}/sessions", tag = "history", params(
    ("id" = String, Path),
    ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
),
    extensions(("x-summary-zh-CN" = json!("一个项目的会话，最新的在前")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, body = SessionPage), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
async fn sessions(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let page = Parameters::parse(query.as_deref())?.page()?;
    let project = ProjectId::parse(&project).map_err(|_| ApiError::NoSuchRoute)?;
    let viewer = app.sessions.for_viewer(visitor.viewer.clone());
    let sessions = ask(&app, visitor, move |_, seen| seen.sessions(&project, page)).await;
    let mut sessions = sessions.map_err(|error| match error {
        ApiError::SessionNotFound => ApiError::NoSuchRoute,
        other => other,
    })?;
    running::note(&viewer, &mut sessions.sessions).await;
    Ok(Json(sessions).into_response())
}

/// All conversations, newest first, with filters
#[utoipa::path(
    get, operation_id = "history_sessions", path = "/api/history/sessions", tag = "history", params(
    ("project" = Option<String>, Query), ("tool" = Option<String>, Query), ("file" = Option<String>, Query),
    ("model" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
    ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
),
    extensions(("x-summary-zh-CN" = json!("全部会话，可筛选，最新的在前")), ("x-scope" = json!("read"))),
    responses((status = 200, body = HistorySessions), (status = 422, body = ErrorBody), Refusals))]
async fn all_sessions(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Json<HistorySessions>, ApiError> {
    let parameters = Parameters::parse(query.as_deref())?;
    let (filter, page) = (parameters.filter()?, parameters.timed_page()?);
    let viewer = app.sessions.for_viewer(visitor.viewer.clone());
    let found = ask(&app, visitor, move |_, seen| {
        let page = match seen.find_sessions(&filter, page) {
            // An unknown project has no sessions.
            Err(HistoryError::NotFound) => SessionPage {
                sessions: Vec::new(),
                total: 0,
            },
            found => found?,
        };
        Ok(HistorySessions {
            page,
            facets: seen.facets()?,
        })
    });
    let mut found = found.await?;
    running::note(&viewer, &mut found.page.sessions).await;
    Ok(Json(found))
}

/// The messages of a conversation
#[utoipa::path(
    get, operation_id = "history_session", path = "/api/history/sessions/{id}", tag = "history", params(
    ("id" = String, Path),
    ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
    ("include" = Option<String>, Query, description = "`chain`, `conversation` or `all`."),
    ("as" = Option<String>, Query, description = "`messages`, or `entries`: each message as a live session tells it."),
),
    extensions(("x-summary-zh-CN" = json!("一个会话的消息")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, body = HistoryMessages), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
async fn messages(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::parse(query.as_deref())?;
    let (page, include, told_as) = (parameters.page()?, parameters.include()?, parameters.told_as()?);
    let id = session_id(&id)?;
    let around = parameters.text("around").map(str::to_owned);
    let viewer = app.sessions.for_viewer(visitor.viewer.clone());
    match told_as {
        ToldAs::Messages => {
            let mut page = ask(&app, visitor, move |_, seen| {
                let page = seen.page_at(&id, around.as_deref(), page, include)?;
                seen.messages(&id, page, include)
            })
            .await?;
            running::note(&viewer, [&mut page.session]).await;
            let resume_command = page.session.resume_command();
            Ok(Json(HistoryMessages { page, resume_command }).into_response())
        }
        ToldAs::Entries => {
            let mut page = ask(&app, visitor, move |_, seen| {
                let page = seen.page_at(&id, around.as_deref(), page, include)?;
                seen.entries(&id, page, include)
            })
            .await?;
            running::note(&viewer, [&mut page.session]).await;
            let resume_command = page.session.resume_command();
            let decided = running::decided(&viewer, &page.session).await;
            Ok(Json(HistoryEntries {
                page,
                resume_command,
                decided,
            })
            .into_response())
        }
    }
}

// Ends a process that Tiller did not start, so only viewers who may see the whole history may ask for it.
/// End the process that uses a conversation outside of Tiller
///
/// Then the conversation can continue here. The answer is the conversation, without a `driver`.
#[utoipa::path(
    post, operation_id = "history_take_over", path = "/api/history/sessions/{id}/takeover", tag = "history", params(("id" = String, Path)),
    extensions(("x-summary-zh-CN" = json!("结束正在别处运行该会话的程序")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = Session), (status = 404, body = ErrorBody), Refusals,
))]
async fn take_over(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Json<Session>, ApiError> {
    if visitor.viewer.key.is_some() || !visitor.viewer.scopes.run {
        return Err(ApiError::Forbidden);
    }
    let id = session_id(&id)?;
    let viewer = app.sessions.for_viewer(visitor.viewer.clone());
    let mut session = ask(&app, visitor, move |_, seen| seen.session(&id)).await?;
    // Runs to its end even if the client disconnects: a process that ignores the request to end is killed.
    whole(async move {
        running::take_over(&viewer, &session).await?;
        running::note(&viewer, [&mut session]).await;
        Ok(Json(session))
    })
    .await?
}

/// Search in messages, tool calls and results, the most recently used conversation first
#[utoipa::path(
    get, operation_id = "history_search", path = "/api/history/search", tag = "history", params(
    ("q" = String, Query, description = "All words must match; \"in quotes\" as a phrase."),
    ("project" = Option<String>, Query), ("tool" = Option<String>, Query), ("file" = Option<String>, Query),
    ("model" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
    ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
),
    extensions(("x-summary-zh-CN" = json!("全文搜索")), ("x-scope" = json!("read"))),
    responses((status = 200, body = SearchPage), (status = 422, body = ErrorBody), Refusals))]
async fn search(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::parse(query.as_deref())?;
    let (query, page) = (parameters.search()?, parameters.timed_page()?);
    let found = ask(&app, visitor, move |_, seen| seen.search(&query, page)).await?;
    Ok(Json(found).into_response())
}

// Totals reveal something about every session, so only viewers who may see all sessions get them.
/// Tokens and cost by day, project, model and session
#[utoipa::path(
    get, operation_id = "history_usage", path = "/api/history/usage", tag = "history", params(
    ("project" = Option<String>, Query), ("from" = Option<i64>, Query), ("to" = Option<i64>, Query),
),
    extensions(("x-summary-zh-CN" = json!("按日、项目、模型和会话统计用量与费用")), ("x-scope" = json!("person"))),
    responses((status = 200, body = UsageReport), (status = 422, body = ErrorBody), Refusals))]
async fn usage(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Json<UsageReport>, ApiError> {
    if visitor.viewer.key.is_some() {
        return Err(ApiError::Forbidden);
    }
    let parameters = Parameters::parse(query.as_deref())?;
    let (from, to) = parameters.times()?;
    let query = UsageQuery {
        project: parameters.project()?,
        from,
        to,
        ..UsageQuery::default()
    };
    ask(&app, visitor, move |history, _| history.usage(&query))
        .await
        .map(Json)
}

/// The vault holds the whole history, so only viewers who may see all of it may use it.
fn may_use_vault(visitor: &Visitor, changes_it: bool) -> Result<(), ApiError> {
    if visitor.viewer.key.is_some() || (changes_it && !visitor.viewer.scopes.run) {
        return Err(ApiError::Forbidden);
    }
    Ok(())
}

/// The archive of transcripts
#[utoipa::path(
    get, operation_id = "history_vault", path = "/api/history/vault", tag = "history", params(
    ("offset" = Option<usize>, Query), ("limit" = Option<usize>, Query, minimum = 1),
),
    extensions(("x-summary-zh-CN" = json!("记录存档")), ("x-scope" = json!("person"))),
    responses((status = 200, body = VaultState), (status = 422, body = ErrorBody), Refusals))]
async fn vault(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Json<VaultState>, ApiError> {
    may_use_vault(&visitor, false)?;
    let page = Parameters::parse(query.as_deref())?.page()?;
    vault_state(&app, visitor, page).await.map(Json)
}

async fn vault_state(app: &App, visitor: Visitor, page: Page) -> Result<VaultState, ApiError> {
    let handle = app.history.clone();
    ask(app, visitor, move |history, _| {
        let (stored, page) = handle.vault().content(history, page)?;
        Ok(VaultState {
            enabled: handle.vault().is_on(),
            archiving: handle.vault().is_archiving(),
            retention_days: history.retention_days(),
            stored_sessions: stored.sessions,
            stored_bytes: stored.bytes,
            page,
        })
    })
    .await
}

/// Turn the archive on or off
#[utoipa::path(
    put, operation_id = "history_turn_vault", path = "/api/history/vault", tag = "history", request_body = VaultSetting,
    extensions(("x-summary-zh-CN" = json!("开启或关闭存档")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = VaultState), Refusals, BodyRefusals,
))]
async fn turn_vault(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Json(setting): Json<VaultSetting>,
) -> Result<Json<VaultState>, ApiError> {
    may_use_vault(&visitor, true)?;
    let handle = app.history.clone();
    ask(&app, visitor.clone(), move |_, _| {
        handle.set_vault(setting.enabled)
    })
    .await?;
    vault_state(&app, visitor, Page::first(50)).await.map(Json)
}

// The only route that writes to the CLI's home.
/// Restore a transcript from the archive
#[utoipa::path(
    post, operation_id = "history_restore", path = "/api/history/vault/{id}/restore", tag = "history", params(("id" = String, Path)),
    extensions(("x-summary-zh-CN" = json!("从存档恢复一个会话")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = Session), (status = 404, body = ErrorBody), Refusals,
))]
async fn restore(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Json<Session>, ApiError> {
    may_use_vault(&visitor, true)?;
    let id = session_id(&id)?;
    let handle = app.history.clone();
    ask(&app, visitor, move |history, _| {
        handle.vault().restore(history, &id)
    })
    .await
    .map(Json)
}

/// A conversation as a file
#[utoipa::path(
    get, operation_id = "history_export", path = "/api/history/sessions/{id}/export", tag = "history", params(
    ("id" = String, Path),
    ("format" = Option<String>, Query, description = "`markdown`, `html` or `json`."),
    ("include" = Option<String>, Query, description = "`chain`, `conversation` or `all`."),
),
    extensions(("x-summary-zh-CN" = json!("把会话导出为文件")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, description = "The file", content_type = "text/markdown", body = String),
    (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
async fn export(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let parameters = Parameters::parse(query.as_deref())?;
    let (format, include) = (parameters.format()?, parameters.include()?);
    let id = session_id(&id)?;
    let name = format!("attachment; filename=\"{}.{}\"", id.as_str(), format.extension());
    // Looked up first: once the body has begun, the status can't change any more.
    let history = ask(&app, visitor, {
        let id = id.clone();
        move |history, seen| seen.session(&id).map(|_| Arc::clone(history))
    })
    .await?;
    let body = written_by(move |out| {
        let written = history.export(&id, format, include, out);
        written.map_err(std::io::Error::other)
    });
    let headers = [
        (CONTENT_TYPE, format.media_type().to_owned()),
        (CONTENT_DISPOSITION, name),
    ];
    Ok((headers, body).into_response())
}

// A message shows only the beginning of a large result; this is all of it, as plain text.
/// A large tool result in full
#[utoipa::path(
    get, operation_id = "history_tool_result", path = "/api/history/sessions/{id}/tool-results/{name}", tag = "history", params(
    ("id" = String, Path), ("name" = String, Path),
),
    extensions(("x-summary-zh-CN" = json!("较大的工具结果的全文")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, content_type = "text/plain", body = String),
    (status = 404, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
async fn tool_result(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let id = session_id(&id)?;
    let mut file = ask(&app, visitor, move |_, seen| seen.tool_result(&id, &name)).await?;
    let body = written_by(move |out| std::io::copy(&mut file, out).map(drop));
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response())
}
