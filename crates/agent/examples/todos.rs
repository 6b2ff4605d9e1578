//! Shows the agent's to-do list as it works: `cargo run --example todos`

use tiller_agent::message::TodoStatus;
use tiller_agent::{Digest, Error, Options, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "Plan three steps to tidy up this folder, and take them.".to_owned());
    let mut messages = query(prompt, Options::new());
    let mut digest = Digest::new();
    let mut shown = Vec::new();
    while let Some(message) = messages.next().await {
        digest.push(&message?);
        let todos = digest.todos();
        if todos.items() != shown {
            println!("{}/{}", todos.completed(), todos.total());
            for todo in todos.items() {
                let mark = match todo.status {
                    TodoStatus::Completed => "✅",
                    TodoStatus::InProgress => "🔧",
                    TodoStatus::Pending => "⭕",
                };
                println!("  {mark} {}", todo.label());
            }
            shown = todos.items().to_vec();
        }
    }
    println!("{}", digest.final_text().unwrap_or_default());
    Ok(())
}
