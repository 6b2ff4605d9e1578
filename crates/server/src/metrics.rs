//! Figures for Prometheus. What changes is counted where it happens; how things stand is looked up when someone asks.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64};

use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::Refusals;

/// The text format that scrapers ask for.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From what a page needs to what a task takes, in seconds.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0];

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Answered {
    method: String,
    /// As the API's description has it, without ids.
    route: String,
    status: u32,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OfRoute {
    route: String,
}

/// What is counted as it happens.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<OfRoute, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tiller");
        let requests = Family::<Answered, Counter>::default();
        let durations = Family::<OfRoute, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register("http_requests", "Answered requests", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "From a request's head to the head of its answer",
            Unit::Seconds,
            durations.clone(),
        );
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of Tiller", version);
        Self {
            registry,
            requests,
            durations,
        }
    }
}

/// Counts every request, whatever becomes of it.
pub(crate) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = known_method(request.method().as_str());
    // Addresses that don't exist would otherwise each be a series of their own.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("other", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let answered = Answered {
        method,
        route: route.clone(),
        status: u32::from(response.status().as_u16()),
    };
    app.metrics.requests.get_or_create(&answered).inc();
    let took = began.elapsed().as_secs_f64();
    app.metrics
        .durations
        .get_or_create(&OfRoute { route })
        .observe(took);
    response
}

/// A client may make methods up, and each would be a series.
fn known_method(method: &str) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    known
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other")
        .to_owned()
}

/// Figures for Prometheus
///
/// In the OpenMetrics text format: requests, sessions, agents, decisions that wait, events, memory. They are about everyone's
/// sessions, so a key needs to see all (`tiller key create NAME --scope read --sees all`).
#[utoipa::path(
    get, operation_id = "metrics", path = "/metrics", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("供 Prometheus 抓取的指标")), ("x-scope" = json!("read all"))),
    responses((status = 200, body = String, content_type = "application/openmetrics-text"), Refusals))]
pub(crate) async fn metrics(
    State(app): State<App>,
    Extension(_): Extension<Visitor>,
) -> Result<Response, ApiError> {
    let text = tokio::task::spawn_blocking(move || render(&app)).await;
    let text = text.map_err(|error| ApiError::internal(&error))?;
    let text = text.map_err(|error| ApiError::internal(&error))?;
    Ok(([(CONTENT_TYPE, FORMAT)], text).into_response())
}

fn render(app: &App) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    encode(&mut text, &app.metrics.registry)?;
    // One end for both parts.
    let end = "# EOF\n";
    text.truncate(text.trim_end_matches(end).len());
    let mut now = Registry::with_prefix("tiller");
    let census = app.sessions.for_supervision().census();
    let gauge = |now: &mut Registry, name: &str, help: &str, value: usize| {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        now.register(name, help, ConstGauge::new(value));
    };
    gauge(&mut now, "sessions_loaded", "Sessions in memory", census.loaded);
    gauge(
        &mut now,
        "sessions_running",
        "Sessions with a running turn",
        census.running,
    );
    gauge(&mut now, "agents", "Agent processes", census.agents);
    gauge(
        &mut now,
        "decisions_waiting",
        "Decisions that wait for an answer",
        census.waiting,
    );
    gauge(
        &mut now,
        "prompts_queued",
        "Prompts that wait for a turn to end",
        census.queued,
    );
    now.register(
        "events",
        "Events of sessions since the server started",
        ConstCounter::new(census.events),
    );
    encode(&mut text, &now)?;
    text.truncate(text.trim_end_matches(end).len());
    process(&mut text)?;
    writeln!(text, "# EOF")?;
    Ok(text)
}

/// Under the names that dashboards know.
fn process(text: &mut String) -> std::fmt::Result {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
    let Ok(own) = sysinfo::get_current_pid() else {
        return Ok(());
    };
    let mut system = System::new();
    let wanted = ProcessRefreshKind::nothing().with_memory().with_cpu();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, wanted);
    let Some(process) = system.process(own) else {
        return Ok(());
    };
    let mut registry = Registry::with_prefix("process");
    let memory: Gauge<i64, AtomicI64> = Gauge::default();
    memory.set(i64::try_from(process.memory()).unwrap_or(i64::MAX));
    registry.register_with_unit("resident_memory", "Resident memory", Unit::Bytes, memory);
    let started: Gauge<i64, AtomicI64> = Gauge::default();
    started.set(i64::try_from(process.start_time()).unwrap_or(i64::MAX));
    registry.register_with_unit(
        "start_time",
        "When the server started, since 1970",
        Unit::Seconds,
        started,
    );
    let cpu: Counter<f64, AtomicU64> = Counter::default();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a process fit")]
    cpu.inc_by(process.accumulated_cpu_time() as f64 / 1000.0);
    registry.register_with_unit("cpu", "Processor time", Unit::Seconds, cpu);
    let mut part = String::new();
    encode(&mut part, &registry)?;
    text.push_str(part.trim_end_matches("# EOF\n"));
    Ok(())
}
