//! The executable: command line, configuration, wiring, and the web UI inside it.

mod assets;
mod backend;
mod cli;
mod config;
mod data_dir;
mod keys;
mod link;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command, KeyCommand};

fn main() -> ExitCode {
    // Before the command line is parsed as ours: what follows is another program's.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(backend::DEMO_AGENT) {
        return tiller_testkit::agent::main(arguments);
    }
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // All causes in one line: `alternate` joins them.
            eprintln!("tiller: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match cli.command {
            None | Some(Command::Serve) => serve::run(cli.serve).await,
            Some(Command::Link) => link::run(&cli.serve.data_dir()?).await,
            Some(Command::Key(KeyCommand::Create { name, scope })) => {
                keys::create(&cli.serve.data_dir()?, name, &scope).await
            }
            Some(Command::Key(KeyCommand::List)) => keys::list(&cli.serve.data_dir()?).await,
            Some(Command::Key(KeyCommand::Revoke { name })) => {
                keys::revoke(&cli.serve.data_dir()?, &name).await
            }
        }
    });
    // Threads that wait for a client or a disk must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}
