//! Several agents work at the same time, each in a conversation of its own: `cargo run --example many_at_once`

use tiller_agent::{Error, Options, query};
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut agents = JoinSet::new();
    for topic in ["the tests", "the documentation", "the dependencies"] {
        agents.spawn(async move {
            let digest = query(
                format!("In one sentence: how good are {topic} here?"),
                Options::new(),
            )
            .finish()
            .await?;
            Ok::<_, Error>((topic, digest))
        });
    }
    let mut cost = 0.0;
    while let Some(finished) = agents.join_next().await {
        match finished {
            Ok(Ok((topic, digest))) => {
                cost += digest.cost().total_usd;
                println!("{topic}: {}", digest.final_text().unwrap_or_default());
            }
            Ok(Err(error)) => eprintln!("{error}"),
            Err(error) => eprintln!("an agent's task failed: {error}"),
        }
    }
    println!("All of it cost ${cost:.4}.");
    Ok(())
}
