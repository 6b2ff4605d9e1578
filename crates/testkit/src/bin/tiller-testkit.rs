//! The testkit as a program: for browser tests in another language, and for people.

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: tiller-testkit model [--script FILE] [--port N] [--until-stdin-ends]
       tiller-testkit agent [--script FILE] [--demo-speed FACTOR] [flags of the Claude Code CLI]

  model   A scripted Messages API server. Prints its base URL as one line, then serves until it is stopped.
          --script FILE   what the model says, as JSON (the format is in the documentation of `tiller_testkit::model`)
          --port N        0, the default, lets the system choose
          --until-stdin-ends   stops when stdin is closed, so that it never outlives the test that started it
  agent   A scripted CLI, or without a script the demo agent, on stdin and stdout. `scripted-claude` is the same
          as an executable of its own. Scripts are in the documentation of `tiller_testkit::agent::script`.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) if command == "agent" => tiller_testkit::agent::main(rest.iter().cloned()),
        #[cfg(feature = "model")]
        Some((command, rest)) if command == "model" => match model(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tiller-testkit model: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

#[cfg(feature = "model")]
#[tokio::main]
async fn model(arguments: &[String]) -> Result<(), String> {
    use std::io::Write as _;
    use tiller_testkit::model::{ModelServer, Script};
    use tokio::io::AsyncReadExt as _;

    let mut script = Script::new();
    let mut port = 0;
    let mut until_stdin_ends = false;
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        if flag == "--until-stdin-ends" {
            until_stdin_ends = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--script" => {
                let text = std::fs::read_to_string(value)
                    .map_err(|error| format!("{value} can't be read: {error}"))?;
                script = serde_json::from_str(&text)
                    .map_err(|error| format!("{value} is not a script: {error}"))?;
            }
            "--port" => {
                port = value.parse().map_err(|_| format!("{value} is not a port"))?;
            }
            _ => return Err(format!("{flag} is unknown\n{USAGE}")),
        }
    }
    let server = ModelServer::start_on(script, port)
        .await
        .map_err(|error| format!("port {port} can't be used: {error}"))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", server.base_url())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("the address can't be printed: {error}"))?;
    if until_stdin_ends {
        let mut stdin = tokio::io::stdin();
        let mut ignored = Vec::new();
        tokio::select! {
            () = server.run() => {}
            _ = stdin.read_to_end(&mut ignored) => {}
        }
    } else {
        server.run().await;
    }
    Ok(())
}
