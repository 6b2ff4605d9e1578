//! Asks the agent one thing: `cargo run --example hello -- "What does this project do?"`

use tiller_agent::{Error, Options, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "What does this project do?".to_owned());
    let digest = query(prompt, Options::new()).finish().await?;
    println!("{}", digest.final_text().unwrap_or_default());
    println!("It cost ${:.4}.", digest.cost().total_usd);
    Ok(())
}
