//! The scripted CLI as an executable, for programs that expect the path of Claude Code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiller_testkit::agent::main(std::env::args().skip(1))
}
