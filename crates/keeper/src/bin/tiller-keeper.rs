//! A keeper as a program of its own, for tests. The product's executable has it built in.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (first, second) = (arguments.next(), arguments.next());
    match (first, second) {
        (Some(command), Some(folder)) if command == "call" => call(Path::new(&folder)),
        (Some(command), Some(argument)) if command == "shield" => {
            tiller_process::launch_shielded(std::iter::once(argument).chain(arguments))
        }
        (Some(folder), _) => tiller_keeper::keep(Path::new(&folder)),
        (None, _) => ExitCode::FAILURE,
    }
}

/// Sends a keeper what its program would send, with the run's secret, and prints whether the keeper answers.
fn call(folder: &Path) -> ExitCode {
    let said = || -> std::io::Result<bool> {
        let secret = std::fs::read(folder.join("secret"))?;
        let length = u32::try_from(1 + 8 + secret.len()).map_err(std::io::Error::other)?;
        let mut keeper = UnixStream::connect(folder.join("socket"))?;
        let mut order = length.to_le_bytes().to_vec();
        order.push(2);
        order.extend((secret.len() as u64).to_le_bytes());
        order.extend(secret);
        keeper.write_all(&order)?;
        Ok(keeper.read(&mut [0; 64])? > 0)
    };
    println!(
        "{}",
        if said().unwrap_or(false) {
            "heard"
        } else {
            "refused"
        }
    );
    ExitCode::SUCCESS
}
