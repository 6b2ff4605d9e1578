//! The executable: command line, configuration, wiring, and the web UI inside it.

mod assets;
mod attach;
mod audit;
mod backend;
mod bundle;
mod cli;
mod client;
mod config;
mod data_dir;
mod doctor;
mod insider;
mod keys;
mod link;
mod log;
mod memory;
mod render;
mod restart;
mod run;
mod serve;
mod sessions;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{AuditCommand, Cli, Command, KeyCommand};

fn main() -> ExitCode {
    // Before the command line is parsed: the rest belongs to another program.
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some(OsStr::new(backend::KEEPER))
        && let Some(folder) = arguments.next()
    {
        return tiller_keeper::keep(Path::new(&folder));
    }
    if first.as_deref() == Some(OsStr::new(backend::SHIELD)) {
        return tiller_process::launch_shielded(arguments);
    }
    if first.as_deref() == Some(OsStr::new(backend::DEMO_AGENT)) {
        return tiller_testkit::agent::main(std::env::args().skip(2));
    }
    let cli = Cli::parse();
    if matches!(cli.command, None | Some(Command::Serve)) {
        insider::forget_environment_key();
    }
    match run(cli) {
        Ok(code) => code,
        // The reader of the output has gone; there is nothing to report.
        Err(error) if run::output_is_closed(&error) => ExitCode::from(run::PIPE_CLOSED),
        Err(error) => {
            // All causes in one line: `alternate` joins them.
            log::say(&format!("tiller: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let done = |()| ExitCode::SUCCESS;
        let args = cli.serve;
        match cli.command {
            None | Some(Command::Serve) => serve::run(args).await.map(done),
            Some(Command::Run(task)) => run::run(&args, task).await,
            Some(Command::Sessions { json }) => sessions::list(&args, json).await.map(done),
            Some(Command::Attach { session }) => {
                insider::refuse_beneath_an_agent("attach")?;
                attach::run(&args, &session).await.map(done)
            }
            Some(Command::Doctor { json, bundle }) => doctor::run(&args, json, bundle.as_deref()).await,
            Some(Command::Audit(command)) => {
                insider::refuse_beneath_an_agent("audit")?;
                let data_dir = args.data_dir()?;
                match command {
                    AuditCommand::Verify { head } => audit::verify(&data_dir, head).await,
                    AuditCommand::Export => audit::export(&data_dir).await,
                }
                .map(done)
            }
            Some(Command::Restart) => restart::run(&args.data_dir()?).await.map(done),
            Some(Command::Link) => {
                insider::refuse_beneath_an_agent("link")?;
                link::run(&args.data_dir()?).await.map(done)
            }
            Some(Command::Key(command)) => {
                insider::refuse_beneath_an_agent("key")?;
                let data_dir = args.data_dir()?;
                match command {
                    KeyCommand::Create(key) => keys::create(&data_dir, *key, args.roots_given()).await,
                    KeyCommand::List => keys::list(&data_dir).await,
                    KeyCommand::Revoke { key, keep_sessions } => {
                        keys::revoke(&data_dir, &key, keep_sessions).await
                    }
                }
                .map(done)
            }
        }
    });
    // Threads that wait for a client or a disk must not keep the program from ending.
    runtime.shutdown_background();
    outcome
}
