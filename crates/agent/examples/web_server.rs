//! A web server with one agent, which answers `POST /` with what it says: `cargo run --example web_server -- 8000`

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use tiller_agent::{Client, ClientHandle, Options};

/// Requests that come at the same time are answered one after another, each with its own answer. A visitor who leaves
/// takes their prompt back.
async fn ask(State(agent): State<ClientHandle>, prompt: String) -> Result<String, (StatusCode, String)> {
    match agent.ask(prompt).await {
        Ok(result) => Ok(result.result.unwrap_or_default()),
        Err(error) => Err((StatusCode::BAD_GATEWAY, error.to_string())),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).map_or(Ok(8000), |port| port.parse())?;
    let client = Client::connect(Options::new()).await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/", post(ask)).with_state(client.handle());
    axum::serve(listener, router)
        .with_graceful_shutdown(async {
            // Without signals there is nothing to wait for.
            tokio::signal::ctrl_c().await.ok();
        })
        .await?;
    client.close().await;
    Ok(())
}
