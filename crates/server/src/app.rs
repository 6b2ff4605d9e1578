//! The application: all routes in one list, and the middleware that every request passes through.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use tiller_core::credentials::{CredentialStore, SecretHash};
use tiller_core::{Approval, Sessions};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::announcements::Announcements;
use crate::arrival::Pace;
use crate::audit::RefusalPace;
use crate::auth::Authenticator;
use crate::error::Language;
use crate::guard::HostPolicy;
use crate::history::{self, HistoryHandle};
use crate::listen::listen;
use crate::metrics::Metrics;
use crate::pages::Assets;
use crate::proxy::TrustedProxies;
use crate::ready::Readiness;
use crate::routes::{Routes, routes};
use crate::session_access::SessionAccess;
use crate::statistics::Statistics;
use crate::task::{self, Tasks};
use crate::{
    announcements, arrival, audit, auth, backends, chat, cli, error, events, guard, inventory, keys, metrics,
    openapi, pages, ready, sign_ins, system,
};

/// The largest body and the largest WebSocket message.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

/// Who may reach the server, and how often.
#[derive(Clone, Debug)]
pub struct Access {
    pub hosts: HostPolicy,
    pub proxies: TrustedProxies,
    /// The language of messages to clients that don't send `Accept-Language`.
    pub language: Language,
    /// How many tasks one address may start in a minute, at each of the two endpoints.
    pub task_starts_per_minute: u32,
    /// The id of this data folder; the cookie's name contains it.
    pub instance: String,
    /// The approval mode of sessions whose client and key don't choose one.
    pub approval: Approval,
}

/// The application's state. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) sessions: SessionAccess,
    pub(crate) history: HistoryHandle,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) access: Arc<Access>,
    pub(crate) assets: Arc<dyn Assets>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) announcements: Arc<Announcements>,
    pub(crate) refusals: Arc<RefusalPace>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Arc<Readiness>,
    /// Limits responses with a whole conversation to one at a time: one may take a hundred megabytes, several times
    /// over while it is sent.
    pub(crate) whole_conversations: Arc<Semaphore>,
}

impl App {
    /// `environment_key` is the hash of a key that is accepted beside the stored ones.
    pub fn new(
        sessions: Sessions,
        history: HistoryHandle,
        credentials: Arc<dyn CredentialStore>,
        environment_key: Option<SecretHash>,
        access: Access,
        assets: Arc<dyn Assets>,
    ) -> Self {
        let authenticator = Arc::new(Authenticator::new(credentials, environment_key, &access.instance));
        let statistics = Arc::new(Statistics::new(sessions.paths().default_directory().to_owned()));
        Self {
            statistics,
            announcements: Arc::default(),
            refusals: Arc::default(),
            metrics: Arc::default(),
            readiness: Arc::default(),
            sessions: SessionAccess::new(sessions),
            history,
            tasks: Arc::new(Tasks::new(access.task_starts_per_minute)),
            authenticator,
            access: Arc::new(access),
            assets,
            whole_conversations: Arc::new(Semaphore::new(1)),
        }
    }

    fn router(self) -> Router {
        let protected = protected_routes()
            .into_router()
            .route_layer(from_fn_with_state(self.clone(), auth::require_credential));
        protected
            .merge(open_routes().into_router())
            .route("/", get(pages::index))
            .fallback(pages::asset)
            .method_not_allowed_fallback(error::method_not_allowed)
            .layer(DefaultBodyLimit::max(MAX_MESSAGE))
            .layer(from_fn_with_state(self.clone(), metrics::count))
            .layer(from_fn_with_state(Pace::LEAST, arrival::in_time))
            .layer(from_fn_with_state(self.clone(), guard::same_origin_only))
            .layer(from_fn(guard::security_headers))
            .layer(from_fn(error::localize_errors))
            .with_state(self)
    }
}

/// All routes that need a credential, with their descriptions.
fn protected_routes() -> Routes {
    task::routes()
        .merge(chat::routes())
        .merge(events::routes())
        .merge(history::routes())
        .routes(routes!(system::system))
        .routes(routes!(backends::backends))
        .routes(routes!(system::recent_cwds))
        .routes(routes!(system::directories))
        .routes(routes!(system::session_title))
        .routes(routes!(sign_ins::list))
        .routes(routes!(sign_ins::sign_out))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(audit::page))
        .routes(routes!(metrics::metrics))
        .routes(routes!(inventory::inventory))
        .routes(routes!(openapi::document))
        .routes(routes!(openapi::docs))
        .routes(routes!(openapi::style))
}

/// All routes that need no credential, with their descriptions.
fn open_routes() -> Routes {
    Routes::new()
        .routes(routes!(system::health))
        .routes(routes!(ready::ready))
        .routes(routes!(cli::upgrade))
}

/// All routes, for what derives from them: the description, the scopes.
pub(crate) fn all_routes() -> Routes {
    protected_routes().merge(open_routes())
}

/// Resumes the tasks of the last server and serves forever. The caller ends it by dropping the future; connections that
/// are open then stay until the process ends.
pub async fn serve(listeners: Vec<TcpListener>, app: App) -> std::io::Result<()> {
    let resumed = app.tasks.resume(app.sessions.for_supervision()).await;
    resumed.map_err(std::io::Error::other)?;
    let access = Arc::clone(&app.access);
    let watched = app.clone();
    tokio::select! {
        ended = listen(listeners, app.router(), access) => ended,
        () = announcements::watch(&watched) => Ok(()),
    }
}
