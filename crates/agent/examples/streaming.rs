//! Prints the answer while it is being written, and what the agent does: `cargo run --example streaming`

use std::io::Write;

use tiller_agent::{Body, DeltaKind, Error, Options, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "List the files here and say what they are.".to_owned());
    let mut messages = query(prompt, Options::new().partial_messages(true));
    while let Some(message) = messages.next().await {
        let message = message?;
        if let Some(delta) = message.delta() {
            if delta.kind == DeltaKind::Text {
                print!("{}", delta.text);
                if let Err(error) = std::io::stdout().flush() {
                    eprintln!("{error}");
                }
            }
            continue;
        }
        if let Body::Assistant(assistant) = message.body() {
            for call in assistant
                .message
                .content
                .iter()
                .filter_map(|block| block.as_tool_use())
            {
                println!("\n[{} {}]", call.name, call.input);
            }
        }
    }
    println!();
    Ok(())
}
