//! Stops the agent on Ctrl-C, or after some seconds, and goes on talking: `cargo run --example interrupt -- 5`

use std::time::Duration;

use tiller_agent::{Client, Error, Options};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(10.0);
    let client = Client::connect(Options::new()).await?;
    let interrupter = client.interrupter();
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
        }
        if let Err(error) = interrupter.interrupt().await {
            eprintln!("{error}");
        }
    });
    let result = client.ask("Count to a million.").await?;
    println!("It ended with {}.", result.subtype);
    let result = client.ask("How far did you get?").await?;
    println!("{}", result.result.unwrap_or_default());
    client.close().await;
    Ok(())
}
