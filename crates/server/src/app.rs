//! The application: every route in one list, and what all of them go through.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tiller_core::credentials::{CredentialStore, SecretHash};
use tiller_core::{Approval, Sessions};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::arrival::Pace;
use crate::auth::Doorkeeper;
use crate::error::Language;
use crate::guard::HostPolicy;
use crate::history::{self, HistoryHandle};
use crate::listen::listen;
use crate::pages::Assets;
use crate::proxy::TrustedProxies;
use crate::statistics::Statistics;
use crate::task::{self, Tasks};
use crate::{arrival, auth, chat, cli, error, events, guard, inventory, openapi, pages, sign_ins, system};

/// The largest body and the largest WebSocket message.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

/// Who may reach the doors, and how often.
#[derive(Clone, Debug)]
pub struct Access {
    pub hosts: HostPolicy,
    pub proxies: TrustedProxies,
    /// What is spoken with clients that don't say what they read.
    pub language: Language,
    /// How many tasks one address may start in a minute, at each of the two endpoints.
    pub task_starts_per_minute: u32,
    /// What tells this data folder from others; the cookie is named after it.
    pub instance: String,
    /// Who answers in sessions whose client does not say so, unless its key does.
    pub approval: Approval,
}

/// What the doors serve and how. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) sessions: Sessions,
    pub(crate) history: HistoryHandle,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) doorkeeper: Arc<Doorkeeper>,
    pub(crate) access: Arc<Access>,
    pub(crate) assets: Arc<dyn Assets>,
    pub(crate) statistics: Arc<Statistics>,
    /// Held by whoever is sent a whole conversation. It may be a hundred megabytes, several times over while it is on its
    /// way, so they get theirs one after the other.
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
        let doorkeeper = Arc::new(Doorkeeper::new(credentials, environment_key, &access.instance));
        let statistics = Arc::new(Statistics::new(sessions.paths().default_directory().to_owned()));
        Self {
            statistics,
            sessions,
            history,
            tasks: Arc::new(Tasks::new(access.task_starts_per_minute)),
            doorkeeper,
            access: Arc::new(access),
            assets,
            whole_conversations: Arc::new(Semaphore::new(1)),
        }
    }

    fn router(self) -> Router {
        let protected = Router::new()
            .route("/ws", get(chat::upgrade))
            .route("/ws/events", get(events::upgrade))
            .route("/api/sessions/{session}/images/{image}", get(events::image))
            .route("/api/system", get(system::system))
            .route("/api/backends", get(system::backends))
            .route("/api/recent-cwds", get(system::recent_cwds))
            .route("/api/directories", get(system::directories))
            .route("/api/session-title", post(system::session_title))
            .route("/api/sign-ins", get(sign_ins::list))
            .route("/api/sign-out", post(sign_ins::sign_out))
            .route("/api/claude", get(inventory::inventory))
            .route("/api/openapi.json", get(openapi::document))
            .route("/api/docs", get(openapi::docs))
            .route("/api/docs/style.css", get(openapi::style))
            .merge(history::routes())
            .merge(task::routes())
            .route_layer(from_fn_with_state(self.clone(), auth::require_credential));
        let open = Router::new()
            .route("/health", get(system::health))
            .route("/ws/cli/{session_id}", get(cli::upgrade))
            .route("/", get(pages::index));
        protected
            .merge(open)
            .fallback(pages::asset)
            .method_not_allowed_fallback(error::method_not_allowed)
            .layer(DefaultBodyLimit::max(MAX_MESSAGE))
            .layer(from_fn_with_state(Pace::LEAST, arrival::in_time))
            .layer(from_fn_with_state(self.clone(), guard::same_origin_only))
            .layer(from_fn(guard::security_headers))
            .layer(from_fn(error::speak_the_callers_language))
            .with_state(self)
    }
}

/// Goes on with the tasks of the last server, and serves for ever. The caller ends it by dropping the future; connections that are open then live on until the
/// program ends.
pub async fn serve(listener: TcpListener, app: App) -> std::io::Result<()> {
    let resumed = app.tasks.resume(&app.sessions).await;
    resumed.map_err(std::io::Error::other)?;
    let access = Arc::clone(&app.access);
    listen(listener, app.router(), access).await
}
