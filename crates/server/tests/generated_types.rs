//! `web/src/gen` is generated from the Rust types. This test keeps it up to date; `cargo xtask gen-types` regenerates
//! it.

use std::path::{Path, PathBuf};

use tiller_message::{Body, SummaryView};
use tiller_server::export_types;
use ts_rs::{Config, TS};

fn generated_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/gen")
}

#[test]
fn typescript_types_are_in_step_with_the_rust_types() {
    let scratch = tempfile::tempdir().unwrap();
    let config = Config::new()
        .with_out_dir(scratch.path())
        .with_large_int("number");
    export_types(&config).unwrap();
    Body::export_all(&config).unwrap();
    SummaryView::export_all(&config).unwrap();

    let update = std::env::var_os("TILLER_UPDATE").is_some();
    for entry in std::fs::read_dir(generated_folder()).unwrap() {
        let committed = entry.unwrap().path();
        let is_generated = scratch.path().join(committed.file_name().unwrap()).exists();
        if update && !is_generated {
            std::fs::remove_file(&committed).unwrap();
        } else {
            assert!(
                is_generated,
                "{} is generated no more: run `cargo xtask gen-types`",
                committed.display()
            );
        }
    }
    for entry in std::fs::read_dir(scratch.path()).unwrap() {
        let path = entry.unwrap().path();
        let committed = generated_folder().join(path.file_name().unwrap());
        let fresh = std::fs::read_to_string(&path).unwrap();
        if update {
            std::fs::create_dir_all(generated_folder()).unwrap();
            std::fs::write(&committed, fresh).unwrap();
        } else {
            let found = std::fs::read_to_string(&committed).unwrap_or_default();
            assert!(
                found == fresh,
                "{} is out of date: run `cargo xtask gen-types`",
                committed.display()
            );
        }
    }
}
