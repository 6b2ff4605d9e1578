//! `cargo xtask bench NAME`. `start` and `lists` are measured here, from outside; the others are benchmarks of crates.

mod lists;
mod server;
mod shield;
mod start;

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Result, bail};

pub(crate) use self::start::{BASELINE, serve_baseline};
use crate::project::Project;
use crate::run;
use crate::target::Target;

/// Where the history's benchmark looks for ccusage.
const CCUSAGE: &str = "TILLER_BENCH_CCUSAGE";
const CCUSAGE_VERSION: &str = "18.0.11";

pub(crate) fn list(project: &Project) {
    println!("start      release executable: size, time to the first page, idle memory");
    println!("lists      release executable: the lists of a large history over HTTP, and memory afterwards");
    println!("shield     release executable: what the shield and the sandbox cost an agent");
    println!("against    the history's own scanner and index beside sonic-rs, serde_json, tantivy and FTS5");
    println!("events     from an agent to a client: rate, delay, CPU and memory, beside a bare bridge");
    println!("sessions   100,000 stored sessions: start, memory and lists, beside an empty store");
    for name in ["agent", "history", "core", "store", "server"] {
        if benches(project, name).is_dir() {
            println!("{name:<10} benchmarks of tiller-{name}");
        }
    }
}

pub(crate) fn run(project: &Project, name: &str) -> Result<()> {
    let target = Target::of(project);
    let _turn = target.take_turn(project)?;
    if name == "start" {
        return start::measure(project, &target);
    }
    if name == "shield" {
        return shield::measure(project, &target);
    }
    if name == "lists" {
        return lists::measure(project, &target);
    }
    if name == "against" {
        let manifest = benches(project, "history").join("against/Cargo.toml");
        let mut against = project.cargo(&target, ["run", "--release", "--locked", "--manifest-path"]);
        return run::show(against.arg(manifest));
    }
    if name == "events" || name == "sessions" {
        let arguments = ["bench", "--locked", "--package", "tiller", "--bench", name];
        return run::show(&mut project.cargo(&target, arguments));
    }
    if !benches(project, name).is_dir() {
        bail!("unknown benchmark {name:?}; `cargo xtask bench` lists them");
    }
    let package = format!("tiller-{name}");
    let mut bench = project.cargo(&target, ["bench", "--locked", "--package", &package]);
    if name == "history" && env::var_os(CCUSAGE).is_none() {
        match ccusage(project) {
            Ok(program) => drop(bench.env(CCUSAGE, program)),
            Err(error) => eprintln!("without ccusage: {error:#}"),
        }
    }
    run::show(&mut bench)
}

/// The program with which the history's usage figures are compared.
fn ccusage(project: &Project) -> Result<PathBuf> {
    let folder = project.cache.join("ccusage");
    let program = folder.join("node_modules/.bin/ccusage");
    if !program.is_file() {
        println!("Installing ccusage {CCUSAGE_VERSION} into {}…", folder.display());
        fs::create_dir_all(&folder)?;
        run::npm_install(&folder, "ccusage", CCUSAGE_VERSION)?;
    }
    Ok(program)
}

fn benches(project: &Project, name: &str) -> PathBuf {
    project.root.join("crates").join(name).join("benches")
}
