//! Standard input and output, which every version of the CLI supports.

use futures_util::{StreamExt, sink};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

use super::{Line, LineSink, Wire};
use crate::frame::{self, MAX_LINE};
use crate::spawn::Spawned;

/// Connects to a process through its pipes.
pub fn stdio(spawned: Spawned) -> Wire {
    Wire {
        incoming: frame::lines(spawned.stdout, MAX_LINE).boxed(),
        outgoing: line_sink(spawned.stdin),
        process: Box::new(spawned.process),
    }
}

fn line_sink(stdin: ChildStdin) -> LineSink {
    Box::pin(sink::unfold(stdin, |mut stdin, line: Line| async move {
        stdin.write_all(&line.json).await?;
        stdin.write_all(b"\n").await?;
        stdin.flush().await?;
        Ok(stdin)
    }))
}
