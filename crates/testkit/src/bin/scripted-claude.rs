//! The scripted CLI as an executable of its own, to be given to whatever expects the path of Claude Code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiller_testkit::agent::main(std::env::args().skip(1))
}
