//! Holds a conversation, ends the agent, and goes on with the conversation later: `cargo run --example resume`

use tiller_agent::{Client, Error, Options, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect(Options::new()).await?;
    let first = client.ask("Remember the number 4711.").await?;
    println!("{}", first.result.unwrap_or_default());
    client.close().await;

    let options = Options::new().resume(&first.session_id);
    match query("Which number was it?", options).finish().await {
        Ok(digest) => println!("{}", digest.final_text().unwrap_or_default()),
        Err(Error::SessionExpired { .. }) => println!("That conversation is gone; start a new one."),
        Err(error) => return Err(error),
    }
    Ok(())
}
