//! `cargo xtask fuzz`: generated input for whatever reads foreign input, led by what it reaches in the code.
//!
//! libFuzzer comes from the crate libfuzzer-sys. The counters that it follows are a pass of LLVM that the stable compiler has,
//! too. What cargo-fuzz would add, AddressSanitizer, takes a nightly compiler; debug assertions and overflow checks are on.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::run;
use crate::target::Target;

/// What is fuzzed: the executables of `fuzz/`, each with what it begins with.
const TARGETS: &[(&str, &[&str])] = &[
    (
        "framing",
        &[
            "\x05{\"a\":1}\r\n\n{\"b\"",
            "\x01a line that is longer than the limit\nshort\n",
        ],
    ),
    (
        "messages",
        &[
            r#"{"type":"system","subtype":"init","session_id":"s","tools":["Bash"],"model":"m"}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}"#,
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"TodoWrite","input":{"todos":[{"content":"a","status":"pending"}]}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"tool_use_result":{"filePath":"/a"}}"#,
            r#"{"duration_ms":1,"type":"result","subtype":"success","is_error":false,"usage":{"input_tokens":1},"total_cost_usd":0.1}"#,
            r#"{"command":"ls","nested":[[[{"a":null}]]]}"#,
        ],
    ),
    (
        "wire",
        &[
            "\x09\0\0\0\x05\x01\0\0\0\0\0\0\0",
            "\x01\0\0\0\x04",
            "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET http://a/b?c HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n",
        ],
    ),
    (
        "paths",
        &[
            "h/a/b",
            "../o/s",
            "l/s",
            "h/k",
            "u/r/h/.ssh",
            "a/./../b",
            "*.example.com:443",
            "/tmp/x",
        ],
    ),
];

const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

pub(crate) fn run(project: &Project, seconds: u32) -> Result<()> {
    let target = Target::of(project);
    let _turn = target.take_turn(project)?;
    run_in(project, &target, seconds)
}

/// The same for a step of the tests, whose turn it is already.
pub(crate) fn run_in(project: &Project, target: &Target, seconds: u32) -> Result<()> {
    let folder = target.path().join("fuzz");
    let mut build = project.cargo(
        target,
        ["build", "--locked", "--quiet", "--bins", "--manifest-path"],
    );
    build
        .arg(project.root.join("fuzz/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        // Named, the flags are not for build scripts, which have nobody who counts.
        .env("CARGO_BUILD_TARGET", host()?);
    run::show(&mut build)?;
    for (name, seeds) in TARGETS {
        let corpus = corpus(project, name, seeds)?;
        println!("{name}: {seconds} s");
        let program = folder.join(host()?).join("debug").join(name);
        let mut fuzz = Command::new(program);
        fuzz.arg(format!("-max_total_time={seconds}"))
            .args([
                "-max_len=4096",
                "-timeout=20",
                "-rss_limit_mb=2048",
                "-verbosity=0",
            ])
            // What broke something stays here, to be tried again with `fuzz`.
            .arg(format!(
                "-artifact_prefix={}/",
                corpus.parent().unwrap_or(&corpus).display()
            ))
            .arg(&corpus);
        run::quietly(&mut fuzz)?;
    }
    Ok(())
}

fn host() -> Result<String> {
    let version = run::read(Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .ok_or_else(|| anyhow::anyhow!("rustc does not name its host"))
}

/// What earlier runs have found, and what everyone begins with.
fn corpus(project: &Project, name: &str, seeds: &[&str]) -> Result<PathBuf> {
    let folder = project.cache.join("fuzz").join(name).join("corpus");
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(folder)
}
