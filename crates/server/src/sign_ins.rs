//! Signing in with a link, seeing who is signed in, and signing out.

use std::net::IpAddr;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
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

/// `GET /?code=…`: a cookie, and the page without the code in its address but with its own secret, which stays in the
/// browser: what follows `#` is sent nowhere.
pub(crate) async fn enter(
    app: &App,
    code: &str,
    headers: &HeaderMap,
    address: IpAddr,
    https: IsHttps,
) -> Result<Response, ApiError> {
    let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    let new = app
        .doorkeeper
        .redeem(code, headers, user_agent.unwrap_or_default(), address)
        .await?;
    tracing::info!(%address, "a browser has signed in");
    let mut response = Redirect::to(&format!("/#k={}", new.page.expose())).into_response();
    add_cookie(
        &mut response,
        app.doorkeeper.set_cookie(new.cookie.expose()),
        https,
    )?;
    Ok(response)
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct SignInEntry {
    id: String,
    /// What the browser calls itself.
    user_agent: String,
    /// The address from which it signed in.
    address: String,
    /// Milliseconds since 1970.
    created_at: i64,
    last_used_at: i64,
    /// Whether it is the one that asks.
    current: bool,
}

#[derive(Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "http.ts")]
pub(crate) struct SignIns {
    sign_ins: Vec<SignInEntry>,
}

/// The browsers that are signed in, the last used first
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
    let found = app.doorkeeper.credentials().sign_ins(Timestamp::now()).await;
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

/// Which sign-ins to end: without a body, the one that asks.
#[derive(Debug, Default, Deserialize, TS, ToSchema)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "http.ts", optional_fields)]
pub(crate) struct SignOut {
    /// Every one, whatever else is asked for.
    all: Option<bool>,
    /// One of the list.
    id: Option<String>,
}

/// Sign out
///
/// Without a body, the browser that asks; with `id` one of the list; with `all` every browser. Their connections end within
/// five seconds. For the person at the machine only.
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
    let credentials = app.doorkeeper.credentials();
    let own = match visitor.credential {
        Credential::SignIn(id) => Some(id),
        Credential::Key(_) => None,
    };
    let ends_own = match (wanted.all.unwrap_or(false), wanted.id) {
        (true, _) => {
            credentials.end_all_sign_ins().await.map_err(internal)?;
            own.is_some()
        }
        (false, Some(id)) => {
            let id = SignInId::from(id);
            if !credentials.end_sign_in(id.clone()).await.map_err(internal)? {
                return Err(ApiError::NoSuchSignIn);
            }
            own.as_ref() == Some(&id)
        }
        (false, None) => {
            // A key is revoked, not signed out.
            let id = own.ok_or(ApiError::NoSuchSignIn)?;
            // Ended from elsewhere meanwhile: all the same.
            credentials.end_sign_in(id).await.map_err(internal)?;
            true
        }
    };
    tracing::info!("signed out");
    let mut response = Json(Success { success: true }).into_response();
    if ends_own {
        add_cookie(&mut response, app.doorkeeper.clear_cookie(), https)?;
    }
    Ok(response)
}

fn internal(error: StoreError) -> ApiError {
    ApiError::store(&error)
}
