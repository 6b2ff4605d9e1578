//! Who gets in: a browser with a cookie that it got for a one-time code, a program with a key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, ORIGIN, SET_COOKIE, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use subtle::ConstantTimeEq;
use tiller_core::credentials::{CredentialStore, Secret, SecretHash, Viewer};
use tiller_core::{StoreError, Timestamp};

use crate::app::App;
use crate::error::ApiError;
use crate::limit::Tally;

/// How long a one-time code is good for.
pub const CODE_LIFETIME: Duration = Duration::from_mins(10);

const COOKIE_NAME: &str = "tiller";
const COOKIE_LIFETIME: Duration = Duration::from_hours(90 * 24);

/// Wrong keys and codes that one address may try in a minute before it is told to wait. A right one always works.
const WRONG_TRIES: u32 = 20;

/// What someone came in with. Kept by long connections, to ask again whether it still holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential {
    Cookie(SecretHash),
    Key(SecretHash),
}

/// Someone who has come in, as handlers see them.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) viewer: Viewer,
    pub(crate) credential: Credential,
}

pub(crate) struct Doorkeeper {
    credentials: Arc<dyn CredentialStore>,
    environment_key: Option<SecretHash>,
    wrong_tries: Tally,
}

impl Doorkeeper {
    pub(crate) fn new(credentials: Arc<dyn CredentialStore>, environment_key: Option<SecretHash>) -> Self {
        Self {
            credentials,
            environment_key,
            wrong_tries: Tally::new(WRONG_TRIES, Duration::from_mins(1)),
        }
    }

    /// Who this credential belongs to. `None` if it is not, or no longer, good.
    pub(crate) async fn viewer(&self, credential: Credential) -> Result<Option<Viewer>, StoreError> {
        match credential {
            Credential::Cookie(hash) => {
                let valid = self.credentials.cookie_is_valid(hash, Timestamp::now()).await?;
                Ok(valid.then_some(Viewer::PERSON))
            }
            Credential::Key(hash) => {
                if self
                    .environment_key
                    .is_some_and(|key| bool::from(key.0.ct_eq(&hash.0)))
                {
                    return Ok(Some(Viewer::PERSON));
                }
                let key = self.credentials.find_key(hash).await?;
                Ok(key.map(|key| Viewer {
                    key: Some(key.name),
                    scopes: key.scopes,
                }))
            }
        }
    }

    async fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        address: IpAddr,
    ) -> Result<Visitor, ApiError> {
        let credential = match key(headers) {
            Some(key) => Credential::Key(SecretHash::of(key)),
            None => Credential::Cookie(SecretHash::of(cookie(headers).ok_or(ApiError::Unauthorized)?)),
        };
        // A browser sends a cookie on its own, so there the origin must speak for the page. Programs have no cookie.
        let unsafe_request = headers.contains_key(UPGRADE) || !matches!(*method, Method::GET | Method::HEAD);
        if matches!(credential, Credential::Cookie(_)) && unsafe_request && !headers.contains_key(ORIGIN) {
            return Err(ApiError::ForeignOrigin);
        }
        let viewer = self
            .viewer(credential)
            .await
            .map_err(|error| ApiError::internal(&error))?;
        match viewer {
            Some(viewer) if viewer.scopes.read || viewer.scopes.run || viewer.scopes.approve => {
                Ok(Visitor { viewer, credential })
            }
            Some(_) => Err(ApiError::Forbidden),
            None => Err(self.wrong_try(address)),
        }
    }

    fn wrong_try(&self, address: IpAddr) -> ApiError {
        tracing::warn!(%address, "a wrong key or link was used");
        if self.wrong_tries.count(address, Instant::now()) {
            ApiError::Unauthorized
        } else {
            ApiError::RateLimited
        }
    }

    /// Exchanges a code from the link for a cookie.
    async fn redeem(&self, code: &str, address: IpAddr) -> Result<Secret, ApiError> {
        let internal = |error: StoreError| ApiError::internal(&error);
        let cookie = Secret::generate("").map_err(internal)?;
        let now = Timestamp::now();
        let expires = Timestamp(now.0 + milliseconds(COOKIE_LIFETIME));
        let redeemed = self
            .credentials
            .redeem_code(SecretHash::of(code), cookie.hash(), expires, now)
            .await
            .map_err(internal)?;
        if redeemed {
            Ok(cookie)
        } else {
            Err(self.wrong_try(address))
        }
    }
}

/// Lets nobody through without a credential; handlers find a [`Visitor`] in the request.
pub(crate) async fn require_credential(
    State(app): State<App>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, headers) = (request.method().clone(), request.headers().clone());
    match app.doorkeeper.admit(&method, &headers, address.ip()).await {
        Ok(visitor) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// `GET /?code=…`: a cookie, and the page without the code in its address.
pub(crate) async fn enter(app: &App, code: &str, address: IpAddr) -> Result<Response, ApiError> {
    let secret = app.doorkeeper.redeem(code, address).await?;
    let cookie = format!(
        "{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
        secret.expose(),
        COOKIE_LIFETIME.as_secs()
    );
    let mut response = Redirect::to("/").into_response();
    let value = HeaderValue::from_str(&cookie).map_err(|error| ApiError::internal(&error))?;
    response.headers_mut().insert(SET_COOKIE, value);
    Ok(response)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
    bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
}
