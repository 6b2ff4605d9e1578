//! A scripted agent that speaks the Agent Client Protocol: what a prompt says decides what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiller_testkit::acp::main()
}
