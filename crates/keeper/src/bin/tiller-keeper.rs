//! A keeper as a program of its own, for tests. The product's executable has it built in.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(folder) => tiller_keeper::keep(Path::new(&folder)),
        None => ExitCode::FAILURE,
    }
}
