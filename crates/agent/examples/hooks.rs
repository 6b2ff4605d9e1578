//! Watches every command and forbids some: `cargo run --example hooks`

use tiller_agent::hooks::HookInput;
use tiller_agent::{Client, Error, Hook, HookEvent, HookOutput, Options, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "Which processes use the most memory?".to_owned());
    let builder =
        Client::builder(Options::new()).hook(Hook::new(HookEvent::PreToolUse, guard).matching("Bash"));
    let digest = query(prompt, builder).finish().await?;
    println!("{}", digest.final_text().unwrap_or_default());
    Ok(())
}

async fn guard(input: HookInput) -> HookOutput {
    let command = input.tool_input["command"].as_str().unwrap_or_default();
    println!("$ {command}");
    if command.contains("rm ") || command.contains("sudo") {
        HookOutput::deny_tool("Nothing is removed and nobody becomes root here.")
    } else {
        HookOutput::allow_tool("It looks harmless.")
    }
}
