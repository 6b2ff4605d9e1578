//! Lists the conversations of this folder and what was said last in the newest: `cargo run --example sessions`

use tiller_agent::Error;
use tiller_agent::sessions::{ListOptions, Sessions};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let sessions = Sessions::from_env();
    let listed = sessions.list(ListOptions::new().cwd(".").limit(10)).await?;
    for session in &listed {
        println!("{}  {}", session.id, session.title().unwrap_or("(nothing said)"));
    }
    if let Some(newest) = listed.first()
        && let Some(last) = sessions.messages(&newest.id).await?.last()
    {
        println!("Last: {}", last.text());
    }
    Ok(())
}
