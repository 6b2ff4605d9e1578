//! Builds the web UI and prepares it for embedding (see `src/assets.rs`).
//!
//! `OUT_DIR/web/gzip` holds the compressed form of every file that shrinks and `OUT_DIR/web/plain` the other files as they are:
//! each file is in the executable once. `OUT_DIR/web/source` is what both were made from. All three belong to this build
//! alone, so that a debug and a release build may run side by side.

#[path = "build/web.rs"]
#[allow(dead_code, reason = "xtask uses the rest")]
mod web;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};

/// Embeds the UI in this folder instead of building it: for distributors who build without Node.js.
const READY_BUILT: &str = "TILLER_WEB_DIST";

fn main() -> ExitCode {
    match embed_web() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo shows the first line by itself and the rest, which is npm's output if any, below it.
            let message = format!("The web UI could not be built. {error:#}");
            let (headline, details) = message.split_once('\n').unwrap_or((&message, ""));
            println!("cargo::error={headline}");
            eprintln!("{details}");
            ExitCode::FAILURE
        }
    }
}

fn embed_web() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/web.rs");
    println!("cargo::rerun-if-env-changed={READY_BUILT}");
    let embedded = variable("OUT_DIR")?.join("web");
    declare(&embedded)?;

    if let Some(dist) = env::var_os(READY_BUILT)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
    {
        if !dist.is_absolute() || !dist.join("index.html").is_file() {
            bail!(
                "{READY_BUILT} must be the absolute path of a folder with an index.html; it is {}",
                dist.display()
            );
        }
        println!("cargo::rerun-if-changed={}", dist.display());
        return lay_out(&dist, &embedded);
    }

    let folder = web::WebFolder::new(workspace()?.join("web"));
    for path in folder.watched()? {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let built = folder.build()?;
    lay_out(&built.dist, &embedded)
}

fn workspace() -> Result<PathBuf> {
    let here = variable("CARGO_MANIFEST_DIR")?;
    here.ancestors()
        .nth(2)
        .map(Path::to_owned)
        .context("the crate does not lie in crates/ of the workspace")
}

fn variable(name: &str) -> Result<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .with_context(|| format!("cargo did not set {name}"))
}

/// Tells `src/assets.rs` which folders to embed: their paths are known only here, and an attribute takes only literals.
fn declare(embedded: &Path) -> Result<()> {
    let mut code = Vec::new();
    for (name, folder) in [("Plain", "plain"), ("Gzip", "gzip")] {
        let folder = embedded.join(folder);
        let folder = folder.to_str().context("the target folder's path is not UTF-8")?;
        writeln!(
            code,
            "#[derive(rust_embed::RustEmbed)]\n#[folder = {folder:?}]\nstruct {name};"
        )?;
    }
    write(&embedded.with_extension("rs"), &code)
}

/// Makes `embedded` the image of `dist`. Unchanged files are kept: compressing takes longest.
fn lay_out(dist: &Path, embedded: &Path) -> Result<()> {
    let [source, plain, gzip] = ["source", "plain", "gzip"].map(|name| embedded.join(name));
    let files = files_below(dist)?;
    for folder in [&source, &plain, &gzip] {
        fs::create_dir_all(folder)?;
        for stale in files_below(folder)?.iter().filter(|file| !files.contains(file)) {
            fs::remove_file(folder.join(stale))?;
        }
    }
    for file in &files {
        let content = fs::read(dist.join(file)).with_context(|| file.display().to_string())?;
        if fs::read(source.join(file)).is_ok_and(|before| before == content) {
            continue;
        }
        let (form, other, bytes) = match compress(&content)? {
            Some(compressed) => (&gzip, &plain, compressed),
            None => (&plain, &gzip, content.clone()),
        };
        write(&form.join(file), &bytes)?;
        if other.join(file).exists() {
            fs::remove_file(other.join(file))?;
        }
        // Last: if this is interrupted, the source still differs and the file is made again.
        write(&source.join(file), &content)?;
    }
    Ok(())
}

/// The gzip form, if it is at least a tenth smaller. It has no timestamp, so that equal files give equal executables.
fn compress(content: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    let compressed = encoder.finish()?;
    Ok((compressed.len() < content.len() / 10 * 9).then_some(compressed))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("{} can't be written", path.display()))
}

/// The files below a folder, relative to it, without hidden ones.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        for entry in fs::read_dir(folder.join(&relative))? {
            let entry = entry?;
            let name: OsString = entry.file_name();
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let path = relative.join(name);
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else {
                files.push(path);
            }
        }
    }
    Ok(files)
}
