//! Asks several things in one conversation, from several tasks: `cargo run --example turns`

use tiller_agent::{Client, Error, Options};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect(Options::new()).await?;
    let mut first = client.turn("Name a colour.").await?;
    let handle = client.handle();
    let second = tokio::spawn(async move { handle.ask("Name an animal.").await });
    while let Some(message) = first.next().await {
        println!("first: {}", message?.type_name());
    }
    println!("{}", first.finish().await?.result.unwrap_or_default());
    match second.await {
        Ok(answer) => println!("{}", answer?.result.unwrap_or_default()),
        Err(error) => eprintln!("the task failed: {error}"),
    }
    client.close().await;
    Ok(())
}
