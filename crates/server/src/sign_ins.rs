//! Signs in with a link, lists sign-ins, and signs out.

use std::net::IpAddr;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use tiller_core::audit::Actor;
use tiller_core::credentials::SignInId;
use tiller_core::{StoreError, Timestamp};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::{Credential, Visitor, add_cookie};
use crate::body::OptionalBody;
use crate::error::ApiError;
use crate::openapi::{BodyRefusals, ErrorBody, Refusals};
use crate::proxy::IsHttps;

/// `GET /?code=…`: sets a cookie and redirects to the page, with the page's own secret after `#`, which browsers don't
/// send anywhere.
pub(crate) async fn enter(
    app: &App,
    code: &str,
    headers: &HeaderMap,
    address: IpAddr,
    https: IsHttps,
) -> Result<Response, ApiError> {
    let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    let new = app
        .authenticator
        .redeem(code, headers, user_agent.unwrap_or_default(), address)
        .await?;
    tracing::info!(%address, "a browser signed in");
    app.announcements.look_again();
    let mut response = Redirect::to(&format!("/#k={}", new.page.expose())).into_response();
    add_cookie(
        &mut response,
        app.authenticator.set_cookie(new.cookie.expose()),
        https,
    )?;
    Ok(response)
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct SignInEntry {
    id: String,
    /// The browser's `User-Agent`.
    user_agent: String,
    /// The address from which it signed in.
    address: String,
    /// Milliseconds since 1970.
    created_at: i64,
    last_used_at: i64,
    /// Whether it is the caller's own sign-in.
    current: bool,
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct SignIns {
    sign_ins: Vec<SignInEntry>,
}

/// The signed-in browsers, the most recently used first
///
/// For the person at the machine only.
#[utoipa::path(
    get, operation_id = "sign_ins", path = "/api/sign-ins", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("已登录的浏览器，最近使用的在前")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = SignIns), (status = 403, body = ErrorBody), Refusals,
))]
pub(crate) async fn list(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Json<SignIns>, ApiError> {
    if !visitor.is_person() {
        return Err(ApiError::Forbidden);
    }
    let found = app.authenticator.credentials().sign_ins(Timestamp::now()).await;
    let own = match &visitor.credential {
        Credential::SignIn(id) => Some(id),
        Credential::Key(_) => None,
    };
    let sign_ins = found.map_err(internal)?.into_iter().map(|sign_in| SignInEntry {
        current: own == Some(&sign_in.id),
        id: sign_in.id.as_str().to_owned(),
        user_agent: sign_in.user_agent,
        address: sign_in.address,
        created_at: sign_in.created_at.0,
        last_used_at: sign_in.last_used_at.0,
    });
    Ok(Json(SignIns {
        sign_ins: sign_ins.collect(),
    }))
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct Success {
    success: bool,
}

impl Success {
    pub(crate) fn new() -> Self {
        Self { success: true }
    }
}

/// The sign-ins to end: without a body, the caller's own.
#[derive(Debug, Default, Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "http.ts", optional_fields)]
pub(crate) struct SignOut {
    /// All of them, whatever else is given.
    all: Option<bool>,
    /// One from the list.
    id: Option<String>,
}

/// Sign out
///
/// Without a body, the caller's browser; with `id` one from the list; with `all` every browser. Their connections end
/// within five seconds. For the person at the machine only.
#[utoipa::path(
    post, operation_id = "sign_out", path = "/api/sign-out", tag = "machine", request_body = Option<SignOut>,
    extensions(("x-summary-zh-CN" = json!("退出登录：当前浏览器、指定的一个，或全部")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = Success), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    Refusals, BodyRefusals,
))]
pub(crate) async fn sign_out(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Extension(https): Extension<IsHttps>,
    OptionalBody(wanted): OptionalBody<SignOut>,
) -> Result<Response, ApiError> {
    if !visitor.is_person() {
        return Err(ApiError::Forbidden);
    }
    let credentials = app.authenticator.credentials();
    let own = match visitor.credential {
        Credential::SignIn(id) => Some(id),
        Credential::Key(_) => None,
    };
    let ends_own = match (wanted.all.unwrap_or(false), wanted.id) {
        (true, _) => {
            credentials
                .end_all_sign_ins(Actor::Person)
                .await
                .map_err(internal)?;
            own.is_some()
        }
        (false, Some(id)) => {
            let id = SignInId::from(id);
            let ended = credentials.end_sign_in(id.clone(), Actor::Person).await;
            if !ended.map_err(internal)? {
                return Err(ApiError::NoSuchSignIn);
            }
            own.as_ref() == Some(&id)
        }
        (false, None) => {
            // A key is revoked, not signed out.
            let id = own.ok_or(ApiError::NoSuchSignIn)?;
            // Already ended elsewhere, which is fine.
            credentials
                .end_sign_in(id, Actor::Person)
                .await
                .map_err(internal)?;
            true
        }
    };
    tracing::info!("signed out");
    let mut response = Json(Success::new()).into_response();
    if ends_own {
        add_cookie(&mut response, app.authenticator.clear_cookie(), https)?;
    }
    Ok(response)
}

fn internal(error: StoreError) -> ApiError {
    ApiError::store(&error)
}
