//! Gives the agent a function of this program as a tool: `cargo run --example custom_tool`

use serde::Deserialize;
use tiller_agent::tools::schemars::{self, JsonSchema};
use tiller_agent::{Client, Error, Options, ToolServer, query};

#[derive(Deserialize, JsonSchema)]
struct City {
    /// The city's name in English.
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "How is the weather in Oslo?".to_owned());
    let tools = ToolServer::new("weather").tool(
        "now",
        "The weather in a city at this moment",
        |City { name }| async move { format!("In {name} it is 12 °C and raining.") },
    );
    let builder = Client::builder(Options::new().allowed_tools(["mcp__weather__now"])).tools(tools);
    let digest = query(prompt, builder).finish().await?;
    println!("{}", digest.final_text().unwrap_or_default());
    Ok(())
}
