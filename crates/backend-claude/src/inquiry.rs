//! Requests to a running CLI beside its work, and what it reports about itself when it starts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Serialize;
use tiller_agent::control::{
    ControlRequest, Fields, FileSuggestions, GetContextUsage, GetHooksListing, GetSettings, GetUsage,
    HookMatcher, Initialize, Initialized, ListModels, ListPermissionRules, McpStatus, ModelInfo,
    RequestError, RewindFiles,
};
use tiller_agent::link::Link;
use tokio::sync::mpsc;

use tiller_core::RawJson;
use tiller_core::backend::{AgentEvent, Catalogue, Inquiry, InquiryFailed, Offers, PositionedEvent, Rewound};

/// What the CLI offers, as the last one that was started reported it.
#[derive(Clone, Default)]
pub(crate) struct LastOffers(Arc<Mutex<Option<Arc<Offers>>>>);

impl Catalogue for LastOffers {
    fn offers(&self) -> Option<Arc<Offers>> {
        self.get()
    }
}

impl LastOffers {
    pub(crate) fn get(&self) -> Option<Arc<Offers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, told: &Initialized) {
        let resolved = |model: &ModelInfo| {
            let name = model.extra.get("resolvedModel").and_then(|name| name.as_str());
            name.map(str::to_owned)
        };
        let names = told.models.iter().map(|model| model.value.clone());
        let offers = Offers {
            models: names.chain(told.models.iter().filter_map(resolved)).collect(),
            efforts: told
                .models
                .iter()
                .flat_map(|model| model.supported_effort_levels.iter().cloned())
                .collect(),
            model_list: RawJson::of(&told.models).ok(),
            commands: RawJson::of(&told.commands).ok(),
        };
        // A CLI that lists nothing has nothing to report.
        if !offers.models.is_empty() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(offers));
        }
    }
}

/// A request to the CLI and the processing of its answer.
pub(crate) type Exchange = BoxFuture<'static, ()>;

/// Queues a request at once: later lines to the CLI come after it. `None`: it is already done.
pub(crate) fn begin(exchange: impl Future<Output = ()> + Send + 'static) -> Option<Exchange> {
    // A task budget that others have used up must not delay the request.
    let mut exchange = tokio::task::unconstrained(exchange).boxed();
    exchange.as_mut().now_or_never().is_none().then_some(exchange)
}

/// As [`begin`], in the background.
pub(crate) fn aside(exchange: impl Future<Output = ()> + Send + 'static) {
    if let Some(exchange) = begin(exchange) {
        tokio::spawn(exchange);
    }
}

/// The first request to a CLI that was just started. It is queued before anything else.
pub(crate) fn initialize(
    link: &Link,
    hooks: &[String],
    hook_time: Duration,
    offers: LastOffers,
    events: Option<mpsc::Sender<Vec<PositionedEvent>>>,
) -> Option<Exchange> {
    let link = link.clone();
    let request = Initialize {
        hooks: registered(hooks, hook_time),
        ..Initialize::default()
    };
    begin(async move {
        match link.request(request).await {
            Ok(told) => offers.put(&told),
            Err(error) => tracing::debug!(%error, "the CLI did not say what it offers"),
        }
        let Some(events) = events else { return };
        // Releases that can't tell count from zero in each process.
        let usd = match link.request(GetUsage { skip_behaviors: true }).await {
            Ok(usage) => usage.session.total_cost_usd,
            Err(RequestError::Unsupported { .. }) => 0.0,
            Err(error) => {
                tracing::debug!(%error, "the CLI did not say what its conversation has cost");
                return;
            }
        };
        let told = PositionedEvent::without_position(AgentEvent::CountsFrom { usd });
        // A session that does not listen any more does not need it.
        drop(events.send(vec![told]).await);
    })
}

/// One hook callback for each event, whose id is the event's name.
fn registered(hooks: &[String], hook_time: Duration) -> BTreeMap<String, Vec<HookMatcher>> {
    let matcher = |event: &String| HookMatcher {
        matcher: None,
        hook_callback_ids: vec![event.clone()],
        // Our timeout comes first.
        timeout: Some(hook_time.as_secs_f64() + 10.0),
    };
    hooks
        .iter()
        .map(|event| (event.clone(), vec![matcher(event)]))
        .collect()
}

pub(crate) async fn inquire(link: &Link, inquiry: Inquiry) -> Result<RawJson, InquiryFailed> {
    match inquiry {
        Inquiry::ContextUsage => ask(link, GetContextUsage {}).await,
        Inquiry::McpStatus => ask(link, McpStatus {}).await,
        Inquiry::FileSuggestions { query } => ask(link, FileSuggestions { query }).await,
        Inquiry::PermissionRules => ask(link, ListPermissionRules {}).await,
        Inquiry::Hooks => ask(link, GetHooksListing {}).await,
        Inquiry::Usage => ask(link, GetUsage { skip_behaviors: true }).await,
        Inquiry::Settings => ask(link, GetSettings {}).await,
        Inquiry::Models => ask(link, ListModels {}).await,
        // Reported only when the CLI was started.
        Inquiry::Commands => Err(InquiryFailed::Unsupported),
    }
}

/// Restores files, or reports what would change.
pub(crate) async fn rewind(link: &Link, prompt: String, dry_run: bool) -> Result<Rewound, InquiryFailed> {
    let request = RewindFiles {
        user_message_id: prompt,
        dry_run,
    };
    let told = link.request(request).await.map_err(failed)?;
    let lines = |count: Option<u64>| u32::try_from(count.unwrap_or_default()).unwrap_or(u32::MAX);
    Ok(Rewound {
        possible: told.can_rewind,
        files_changed: told.files_changed,
        insertions: lines(told.insertions),
        deletions: lines(told.deletions),
        error: told.error,
    })
}

/// A title for a session that begins with this prompt: `{"title": …}`.
pub(crate) async fn title(link: &Link, prompt: &str) -> Result<RawJson, InquiryFailed> {
    ask(link, GenerateTitle::of(prompt)).await
}

/// Asks a small model of the CLI's own choice. Newer than the crate's list of requests.
#[derive(Serialize)]
struct GenerateTitle {
    description: String,
    /// The title is stored by Tiller; the transcript is the CLI's.
    persist: bool,
}

impl ControlRequest for GenerateTitle {
    const SUBTYPE: &'static str = "generate_session_title";
    type Answer = Fields;
}

impl GenerateTitle {
    /// The beginning says what it is about; the rest would only cost.
    const LENGTH: usize = 2000;

    fn of(prompt: &str) -> Self {
        Self {
            description: prompt.chars().take(Self::LENGTH).collect(),
            persist: false,
        }
    }
}

async fn ask<R: ControlRequest>(link: &Link, request: R) -> Result<RawJson, InquiryFailed>
where
    R::Answer: Serialize,
{
    let answer = link.request(request).await.map_err(failed)?;
    RawJson::of(&answer).map_err(|error| InquiryFailed::Failed(error.to_string()))
}

fn failed(error: RequestError) -> InquiryFailed {
    match error {
        RequestError::Unsupported { .. } => InquiryFailed::Unsupported,
        RequestError::Closed => InquiryFailed::NoAgent,
        other => InquiryFailed::Failed(other.to_string()),
    }
}
