//! `cargo xtask bench NAME`. `start` is measured here, from outside; the others are benchmarks of the crates.

mod start;

use std::path::PathBuf;

use anyhow::{Result, bail};

pub(crate) use self::start::{BASELINE, serve_baseline};
use crate::project::Project;
use crate::run;
use crate::target::Target;

pub(crate) fn list(project: &Project) {
    println!("start      release executable: size, time to the first page, idle memory");
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
    if !benches(project, name).is_dir() {
        bail!("there is no benchmark {name:?}; `cargo xtask bench` lists them");
    }
    run::show(&mut project.cargo(
        &target,
        ["bench", "--locked", "--package", &format!("tiller-{name}")],
    ))
}

fn benches(project: &Project, name: &str) -> PathBuf {
    project.root.join("crates").join(name).join("benches")
}
