//! The speed of events from an agent to a client: through keeper, store and WebSocket, compared with a bare bridge that
//! reads the agent's pipe and writes each line to a WebSocket, in the same run.
//!
//! Reports, and never fails. This executable plays all parts except the product: agent, bridge and client.

#![allow(
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that can't go on says where, and its figures are rough"
)]

mod agent;
mod bridge;
mod client;
mod machine;
mod product;

use std::process::ExitCode;
use std::time::Duration;

use self::client::{Client, Delays};

/// The number of events at full speed.
const FULL: u64 = 300_000;
/// The number of rounds at a thousand events a second, alternating with the bridge.
const PACED: u64 = 2_000;
const PACE: u64 = 1_000;
/// If a virtual machine was suspended for a hundredth of a round, that determines the round's p99, whatever was
/// measured. So only rounds with at most half of that count, and rounds are repeated until enough count or it is
/// hopeless.
const CALM: Duration = Duration::from_millis(10);
const ROUNDS: usize = 15;
const MOST_ROUNDS: usize = 60;
/// The limit for nearly all events of a round.
const QUICK: Duration = Duration::from_millis(1);
/// The number of parallel sessions, and the rate of each.
const MANY: usize = 50;
const MANY_PACE: u64 = 20;
const MANY_EVENTS: u64 = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        // The arguments of an agent.
        Some("--print") => agent::play(),
        Some("--version") => println!("2.1.325 (Claude Code)"),
        Some("bridge") => bridge::serve(),
        _ => {
            // Besides cargo's own arguments: the names of the measurements; all without a name.
            let wanted: Vec<String> = arguments.into_iter().filter(|name| name != "--bench").collect();
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(measure(&wanted));
        }
    }
    ExitCode::SUCCESS
}

async fn measure(wanted: &[String]) {
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    if wants("full") {
        full_speed().await;
    }
    if wants("paced") {
        paced().await;
    }
    if wants("many") {
        many().await;
    }
}

async fn full_speed() {
    println!("full speed, {FULL} events             events/s    CPU per event");
    let mut rates = Vec::new();
    for (name, batching) in [("bare bridge", false), ("bare bridge that batches", true)] {
        let mut bridge = bridge::start(FULL, None, batching).await;
        let rate = client::full_speed(&mut bridge.connect().await, FULL).await;
        row(name, rate, bridge.cpu(), FULL);
        rates.push(rate);
    }
    let product = product::start(FULL, None).await;
    let mut client = product.session().await;
    let ours = client::full_speed(&mut client, FULL).await;
    product.settle(&client, FULL).await;
    let cpu = product.cpu();
    row("tiller", ours, cpu, FULL);
    println!(
        "  of the bridges' rates: {:.2}, {:.2}",
        ours / rates[0],
        ours / rates[1]
    );
    let page = product.last_page(&client).await;
    println!("  last 50 messages of {FULL}: {:.1} ms", milliseconds(page));
    println!(
        "  server's memory at its highest: {:.1} MB",
        product.peak_megabytes()
    );
}

/// Two seconds at a thousand events a second.
struct Round {
    delays: Delays,
    /// How long the machine was suspended in the meantime.
    lost: Duration,
}

impl Round {
    async fn of(client: &mut Client) -> Self {
        let before = machine::lost();
        let delays = client::delays(client, PACED).await;
        Self {
            delays,
            lost: machine::lost().saturating_sub(before),
        }
    }

    fn is_calm(&self) -> bool {
        self.lost <= CALM
    }
}

async fn paced() {
    let product = product::start(PACED, Some(PACE)).await;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    let calm = |rounds: &[Round]| rounds.iter().filter(|round| round.is_calm()).count();
    while ours.len() < MOST_ROUNDS && calm(&bare).min(calm(&ours)) < ROUNDS {
        let mut bridge = bridge::start(PACED, Some(PACE), false).await;
        bare.push(Round::of(&mut bridge.connect().await).await);
        ours.push(Round::of(&mut product.session().await).await);
    }
    println!("paced, {PACE} events a second; the median of the rounds (the least and the most)");
    let rounds = |rounds: &'_ [Round], which: fn(&Round) -> bool| -> Vec<Delays> {
        let chosen = rounds.iter().filter(|round| which(round));
        chosen.map(|round| round.delays).collect()
    };
    compare(
        "in which the machine ran",
        &rounds(&bare, Round::is_calm),
        &rounds(&ours, Round::is_calm),
    );
    compare("all", &rounds(&bare, |_| true), &rounds(&ours, |_| true));
    println!("  keeper's memory: {:.1} MB", product.keeper_megabytes());
}

fn compare(which: &str, bare: &[Delays], ours: &[Delays]) {
    println!(
        "  rounds: {which:<30} {:>18} {:>22} {:>20}",
        "median", "p99", "first"
    );
    if bare.is_empty() || ours.is_empty() {
        println!("    none: the machine was kept from running all the time");
        return;
    }
    delays("bare bridge", bare);
    delays("tiller", ours);
    let of_bare = |which: fn(&Delays) -> Duration| {
        let typical =
            |rounds: &[Delays]| middle(rounds.iter().map(|round| which(round).as_secs_f64()).collect()).1;
        typical(ours) / typical(bare)
    };
    println!(
        "    of the bridge's: median {:.2}, p99 {:.2}",
        of_bare(|round| round.median),
        of_bare(|round| round.p99)
    );
}

async fn many() {
    let product = product::start(MANY_EVENTS, Some(MANY_PACE)).await;
    let clients: Vec<_> = futures_util::future::join_all((0..MANY).map(|_| product.session())).await;
    let readers = clients.into_iter().map(|mut client| async move {
        client::full_speed(&mut client, MANY_EVENTS).await;
    });
    futures_util::future::join_all(readers).await;
    println!(
        "{MANY} sessions at {MANY_PACE} events a second: {:.1} MB",
        product.peak_megabytes()
    );
}

fn row(name: &str, rate: f64, cpu: Duration, events: u64) {
    let each = cpu.as_secs_f64() * 1e6 / events as f64;
    println!("  {name:<32} {rate:>10.0}    {each:>8.2} µs");
}

fn delays(name: &str, rounds: &[Delays]) {
    let column = |which: fn(&Delays) -> Duration| {
        let micros = rounds.iter().map(|round| which(round).as_secs_f64() * 1e6);
        let (least, median, most) = middle(micros.collect());
        format!("{median:.0} µs ({least:.0}–{most:.0})")
    };
    let quick = rounds.iter().filter(|round| round.p99 < QUICK).count();
    println!(
        "    {name:<12} p99 < {} ms: {quick:>2} of {:<2} {:>20} {:>22} {:>20}",
        QUICK.as_millis(),
        rounds.len(),
        column(|round| round.median),
        column(|round| round.p99),
        column(|round| round.first)
    );
}

/// Minimum, median and maximum.
fn middle(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
