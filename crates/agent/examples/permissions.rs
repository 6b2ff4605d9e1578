//! Asks on the terminal before the agent does anything: `cargo run --example permissions`

use tiller_agent::{Client, Error, Options, PermissionReply, PermissionRequest, query};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "Create a file hello.txt that says hello.".to_owned());
    let builder = Client::builder(Options::new()).on_permission(ask);
    let digest = query(prompt, builder).finish().await?;
    println!("{}", digest.final_text().unwrap_or_default());
    for call in digest.tool_calls() {
        println!("{} {}", if call.is_error { "✗" } else { "✓" }, call.name);
    }
    Ok(())
}

/// A person takes their time; everything else goes on meanwhile.
async fn ask(request: PermissionRequest) -> PermissionReply {
    println!("May I use {}? {} [y/N]", request.tool_name, request.input);
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match line.await {
        Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("y") => PermissionReply::allow(),
        _ => PermissionReply::deny("The user said no."),
    }
}
