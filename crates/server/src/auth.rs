//! Authentication: browsers that signed in with a one-time code, and programs with a key.
//!
//! A browser has two secrets. Its cookie goes to every port of the host; the page's own secret is kept in the storage
//! of the page's origin, which no other port can read, and is sent in a header, or on a WebSocket as a subprotocol.
//! Only both together are a credential.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Extension, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, ORIGIN, SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use tiller_core::credentials::{
    ApiKey, CredentialStore, SIGN_IN_LIFETIME, Secret, SecretHash, SignIn, SignInId, SignInSecrets, Viewer,
};
use tiller_core::{StoreError, Timestamp};

use crate::app::App;
use crate::audit::RefusalPace;
use crate::error::ApiError;
use crate::limit::Tally;
use crate::listen::{Budgets, Slot};
use crate::proxy::IsHttps;
use crate::route_scopes;

/// How long a one-time code is valid.
pub const CODE_LIFETIME: Duration = Duration::from_mins(10);

/// The header in which a page sends its own secret.
pub(crate) const PAGE_HEADER: &str = "x-tiller-page";

/// The subprotocol of WebSockets, and the prefix under which the page's secret is offered beside it.
pub const PROTOCOL: &str = "tiller.v1";
pub const PAGE_PROTOCOL: &str = "page.";

/// How many wrong keys and codes one address may try in a minute before it has to wait. A valid one always works.
const WRONG_TRIES: u32 = 20;

/// How many cookies with our name are checked. Pages on other ports of the host can set some; a browser keeps at most
/// 180 for a host.
const MAX_COOKIES: usize = 180;

/// The last use of a sign-in is stored at most this often.
const TOUCH_INTERVAL: Duration = Duration::from_mins(5);

/// The cookie's name in a data folder with this instance id.
pub fn cookie_name(instance: &str) -> String {
    format!("tiller_{instance}")
}

/// The credential of a connection. Long connections keep it, to check whether it is still valid.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Credential {
    SignIn(SignInId),
    Key(SecretHash),
}

/// An authenticated caller, as handlers see it.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) viewer: Viewer,
    pub(crate) credential: Credential,
    /// The caller's connection.
    pub(crate) slot: Option<Arc<Slot>>,
}

impl Visitor {
    /// Only the person at the machine may manage sign-ins.
    pub(crate) fn is_person(&self) -> bool {
        self.viewer.key.is_none()
    }
}

/// The two secrets of a new sign-in, for the browser.
pub(crate) struct NewSecrets {
    pub(crate) cookie: Secret,
    pub(crate) page: Secret,
}

pub(crate) struct Authenticator {
    credentials: Arc<dyn CredentialStore>,
    environment_key: Option<SecretHash>,
    cookie_name: String,
    wrong_tries: Tally,
    budgets: Budgets<Credential>,
}

impl Authenticator {
    pub(crate) fn new(
        credentials: Arc<dyn CredentialStore>,
        environment_key: Option<SecretHash>,
        instance: &str,
    ) -> Self {
        Self {
            credentials,
            environment_key,
            cookie_name: cookie_name(instance),
            wrong_tries: Tally::new(WRONG_TRIES, Duration::from_mins(1)),
            budgets: Budgets::default(),
        }
    }

    pub(crate) fn credentials(&self) -> &dyn CredentialStore {
        self.credentials.as_ref()
    }

    /// The viewer of this credential. `None` if the credential is not, or no longer, valid.
    pub(crate) async fn viewer(&self, credential: &Credential) -> Result<Option<Viewer>, StoreError> {
        match credential {
            Credential::SignIn(id) => {
                let now = Timestamp::now();
                let Some(sign_in) = self.credentials.sign_in(id.clone(), now).await? else {
                    return Ok(None);
                };
                self.note_use(&sign_in, now).await;
                Ok(Some(Viewer::PERSON))
            }
            Credential::Key(hash) => {
                if self
                    .environment_key
                    .is_some_and(|key| bool::from(key.0.ct_eq(&hash.0)))
                {
                    return Ok(Some(Viewer::PERSON));
                }
                let Some(key) = self.credentials.find_key(*hash).await? else {
                    return Ok(None);
                };
                self.note_use_of_key(&key, Timestamp::now()).await;
                Ok(Some(Viewer {
                    key: Some(key.id),
                    ceiling: Some(Arc::new(key.ceiling)),
                    scopes: key.scopes,
                    approval: key.approval,
                }))
            }
        }
    }

    /// Extends a sign-in that is used. True if that was due.
    async fn note_use(&self, sign_in: &SignIn, now: Timestamp) -> bool {
        if now.0 - sign_in.last_used_at.0 < milliseconds(TOUCH_INTERVAL) {
            return false;
        }
        // On a full disk people can still read; the next use tries again.
        if let Err(error) = self.credentials.touch_sign_in(sign_in.id.clone(), now).await {
            tracing::debug!(%error, "can't store the use of a sign-in");
        }
        true
    }

    /// Notes when a key was last used.
    async fn note_use_of_key(&self, key: &ApiKey, now: Timestamp) {
        let is_fresh = |at: Timestamp| now.0 - at.0 < milliseconds(TOUCH_INTERVAL);
        if key.last_used_at.is_some_and(is_fresh) {
            return;
        }
        if let Err(error) = self.credentials.touch_key(key.id.clone(), now).await {
            tracing::debug!(%error, "the use of a key was not noted");
        }
    }

    async fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        address: IpAddr,
    ) -> Result<Admitted, ApiError> {
        let Some(key) = key(headers) else {
            return self.admit_page(method, headers, address).await;
        };
        let credential = Credential::Key(SecretHash::of(key));
        let viewer = self.viewer(&credential).await.map_err(internal)?;
        match viewer {
            Some(viewer) if viewer.scopes.read || viewer.scopes.run || viewer.scopes.approve => {
                Ok(Admitted {
                    visitor: Visitor {
                        viewer,
                        credential,
                        slot: None,
                    },
                    renewed: None,
                })
            }
            Some(_) => Err(ApiError::Forbidden),
            None => Err(self.wrong_try(address).await),
        }
    }

    /// A page of ours: a cookie and a page secret that belong together.
    async fn admit_page(
        &self,
        method: &Method,
        headers: &HeaderMap,
        address: IpAddr,
    ) -> Result<Admitted, ApiError> {
        let mut cookies = self.cookies(headers).peekable();
        if cookies.peek().is_none() {
            return Err(ApiError::Unauthorized);
        }
        // A browser sends a cookie on its own, so the origin must prove that the page sent the request. Programs have
        // no cookie.
        let is_upgrade = headers.contains_key(UPGRADE);
        let unsafe_request = is_upgrade || !matches!(*method, Method::GET | Method::HEAD);
        if unsafe_request && !headers.contains_key(ORIGIN) {
            return Err(ApiError::ForeignOrigin);
        }
        let page = if is_upgrade {
            offered_secret(headers)
        } else {
            headers.get(PAGE_HEADER).and_then(|value| value.to_str().ok())
        };
        let page = SecretHash::of(page.ok_or(ApiError::Unauthorized)?);
        let now = Timestamp::now();
        let found = self.credentials.sign_in_of_page(page, now).await;
        let Some((sign_in, expected)) = found.map_err(internal)? else {
            return Err(self.wrong_try(address).await);
        };
        // Pages on other ports of the host can set cookies with our name, too: all of them are tried.
        let Some(cookie) = cookies.find(|cookie| bool::from(SecretHash::of(cookie).0.ct_eq(&expected.0)))
        else {
            return Err(self.wrong_try(address).await);
        };
        let renewed = self
            .note_use(&sign_in, now)
            .await
            .then(|| self.set_cookie(cookie));
        Ok(Admitted {
            visitor: Visitor {
                viewer: Viewer::PERSON,
                credential: Credential::SignIn(sign_in.id),
                slot: None,
            },
            renewed,
        })
    }

    async fn wrong_try(&self, address: IpAddr) -> ApiError {
        if self.wrong_tries.count(address, Instant::now()) {
            tracing::warn!(%address, "a wrong key or link was used");
            RefusalPace::wrong_credential(self, address).await;
            ApiError::Unauthorized
        } else {
            // Not logged: nobody may fill the log.
            ApiError::RateLimited
        }
    }

    /// Exchanges a code from the link for a sign-in.
    pub(crate) async fn redeem(
        &self,
        code: &str,
        headers: &HeaderMap,
        user_agent: &str,
        address: IpAddr,
    ) -> Result<NewSecrets, ApiError> {
        let new = NewSecrets {
            cookie: Secret::generate("").map_err(internal)?,
            page: Secret::generate("").map_err(internal)?,
        };
        let now = Timestamp::now();
        let sign_in = SignIn::new(user_agent, address.to_canonical().to_string(), now).map_err(internal)?;
        let secrets = SignInSecrets {
            cookie: new.cookie.hash(),
            page: new.page.hash(),
        };
        let redeemed = self
            .credentials
            .redeem_code(SecretHash::of(code), sign_in, secrets, now)
            .await
            .map_err(internal)?;
        if !redeemed {
            return Err(self.wrong_try(address).await);
        }
        // The browser drops its earlier cookie, so nobody could use that sign-in any more.
        for replaced in self.cookies(headers) {
            let ended = self
                .credentials
                .end_sign_in_of_cookie(SecretHash::of(replaced))
                .await;
            ended.map_err(internal)?;
        }
        Ok(new)
    }

    /// The values of all cookies with our name.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie_name)
            .map(|(_, value)| value)
            .take(MAX_COOKIES)
    }

    /// The header value that sets the cookie, without the attribute that depends on the connection.
    pub(crate) fn set_cookie(&self, value: &str) -> String {
        format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
            self.cookie_name,
            SIGN_IN_LIFETIME.as_secs()
        )
    }

    /// The header value that removes the cookie.
    pub(crate) fn clear_cookie(&self) -> String {
        format!(
            "{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
            self.cookie_name
        )
    }
}

/// An admitted request.
struct Admitted {
    visitor: Visitor,
    /// The cookie to set again, so that it does not expire before the sign-in.
    renewed: Option<String>,
}

fn internal(error: StoreError) -> ApiError {
    ApiError::store(&error)
}

/// Adds a cookie, restricted to encrypted connections if the browser uses one.
pub(crate) fn add_cookie(
    response: &mut Response,
    mut cookie: String,
    https: IsHttps,
) -> Result<(), ApiError> {
    if https.0 {
        cookie.push_str("; Secure");
    }
    let value = HeaderValue::from_str(&cookie).map_err(|error| ApiError::internal(&error))?;
    response.headers_mut().append(SET_COOKIE, value);
    Ok(())
}

/// Refuses requests without a credential; handlers find a [`Visitor`] in the request.
pub(crate) async fn require_credential(
    State(app): State<App>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    Extension(https): Extension<IsHttps>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let Admitted { mut visitor, renewed } =
        match app.authenticator.admit(&method, &headers, address.ip()).await {
            Ok(admitted) => admitted,
            Err(refusal) => return refusal.into_response(),
        };
    visitor.slot = request.extensions().get::<Arc<Slot>>().cloned();
    if let Some(slot) = &visitor.slot {
        slot.set_authenticated();
        slot.meter
            .belongs_to(|| app.authenticator.budgets.of(visitor.credential.clone()));
    }
    // Sockets and streams need further rights, which their handlers check.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str).to_owned();
    let mut response = if route_scopes::may_use(&visitor, &method, &route) {
        request.extensions_mut().insert(visitor.clone());
        next.run(request).await
    } else {
        ApiError::Forbidden.into_response()
    };
    if response.status() == StatusCode::FORBIDDEN {
        let what = format!("{method} {route}");
        app.refusals
            .refused(&app.authenticator, &visitor, &what, None)
            .await;
    }
    // A sign-out sets its own cookie.
    if let Some(cookie) = renewed
        && !response.headers().contains_key(SET_COOKIE)
        && let Err(refusal) = add_cookie(&mut response, cookie, https)
    {
        return refusal.into_response();
    }
    response
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

/// The page's secret among the offered subprotocols, if our protocol is offered, too.
fn offered_secret(headers: &HeaderMap) -> Option<&str> {
    let offered = || {
        headers
            .get_all(SEC_WEBSOCKET_PROTOCOL)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
    };
    offered().find(|protocol| *protocol == PROTOCOL)?;
    offered().find_map(|protocol| protocol.strip_prefix(PAGE_PROTOCOL))
}
