//! The web UI's files. They contain no secrets, so they need no credential.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::{ConnectInfo, Extension, Query, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;
use crate::proxy::IsHttps;
use crate::sign_ins;

/// The source of the files: they are embedded in the executable.
pub trait Assets: Send + Sync + 'static {
    /// The file at `path` (without a leading slash), compressed if the client accepts that.
    fn find(&self, path: &str, accept_gzip: bool) -> Option<Asset>;
}

pub struct Asset {
    pub body: Cow<'static, [u8]>,
    pub content_type: &'static str,
    pub etag: String,
    pub gzip: bool,
    /// Its name changes with its content, so it may be cached forever.
    pub immutable: bool,
}

#[derive(Deserialize)]
pub(crate) struct Entry {
    code: Option<String>,
}

pub(crate) async fn index(
    State(app): State<App>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    Extension(https): Extension<IsHttps>,
    Query(entry): Query<Entry>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    // Programs that check links before people open them, such as mail scanners, send HEAD.
    let Some(code) = entry.code.filter(|_| method == Method::GET) else {
        return file(&app, "index.html", &headers);
    };
    match sign_ins::enter(&app, &code, &headers, address.ip(), https).await {
        Ok(response) => response,
        // A used or expired link: the page knows whether it is signed in, and what to do.
        Err(ApiError::Unauthorized) => file(&app, "index.html", &headers),
        Err(refusal) => refusal.into_response(),
    }
}

pub(crate) async fn asset(State(app): State<App>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return ApiError::NoSuchRoute.into_response();
    }
    file(&app, uri.path().trim_start_matches('/'), &headers)
}

fn file(app: &App, path: &str, headers: &HeaderMap) -> Response {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("gzip"));
    let accept_gzip = headers.get(ACCEPT_ENCODING).is_some_and(accepts);
    let Some(asset) = app.assets.find(path, accept_gzip) else {
        return ApiError::NoSuchRoute.into_response();
    };
    let cache = if asset.immutable {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let known = headers
        .get(IF_NONE_MATCH)
        .is_some_and(|etag| etag.as_bytes() == asset.etag.as_bytes());
    let response = Response::builder()
        .header(CACHE_CONTROL, cache)
        .header(ETAG, &asset.etag)
        .header(VARY, "accept-encoding");
    let response = if known {
        response.status(StatusCode::NOT_MODIFIED).body(Body::empty())
    } else {
        let response = response.header(CONTENT_TYPE, asset.content_type);
        let response = if asset.gzip {
            response.header(CONTENT_ENCODING, "gzip")
        } else {
            response
        };
        response.body(Body::from(match asset.body {
            Cow::Borrowed(bytes) => bytes::Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        }))
    };
    response.unwrap_or_else(|error| ApiError::internal(&error).into_response())
}
