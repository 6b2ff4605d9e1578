//! A scripted Messages API server, which acts as the model of the real Claude Code CLI, and of agents that use the chat
//! completions API.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use serde_json::json;
//! use tiller_testkit::model::{ModelServer, Reply, Script};
//!
//! let script = Script::new()
//!     .on("count the files", [
//!         Reply::tool("Bash", json!({"command": "ls | wc -l"})),
//!         Reply::text("There are {{tool_result}} of them."),
//!     ])
//!     .on("take your time", [Reply::text("Thinking about it… ").gate("go").and_text("done.")]);
//! let model = ModelServer::start(script).await?;
//! // Start the CLI with `model.env()` in its environment, send "take your time" …
//! model.gate("go").reached().await;
//! // … see the first half on the screen, then let the rest come:
//! model.gate("go").open();
//! # Ok(())
//! # }
//! ```
//!
//! # Scripts
//!
//! A [`Script`] is data, and its JSON form is what `tiller-testkit model --script FILE` reads:
//!
//! ```json
//! {
//!   "rules": [
//!     {"contains": "count the files", "replies": [
//!       {"parts": [{"type": "thinking", "thinking": "I should look."},
//!                  {"type": "tool_use", "name": "Bash", "input": {"command": "ls | wc -l"}}]},
//!       {"parts": [{"type": "text", "text": "There are {{tool_result}} of them."}],
//!        "usage": {"input_tokens": 120, "output_tokens": 12}}
//!     ]},
//!     {"contains": "be busy", "replies": [
//!       {"error": {"status": 529}},
//!       {"error": {"status": 429, "retry_after": 1}},
//!       {"parts": [{"type": "text", "text": "half an ans"}, {"type": "cut"}]},
//!       {"parts": [{"type": "text", "text": "Slowly… ", "chunk": 4, "pause_ms": 20},
//!                  {"type": "gate", "name": "go"},
//!                  {"type": "text", "text": "done."}]}
//!     ]}
//!   ],
//!   "queue": [{"parts": [{"type": "text", "text": "For a prompt that no rule knows, one after the other."}]}],
//!   "otherwise": {"parts": [{"type": "text", "text": "When all else has run out."}]}
//! }
//! ```
//!
//! Every field but `contains`/`replies` and what makes up a part may be left out.
//!
//! - **Rules** are tried in order; the first whose `contains` is in the user's prompt wins. Its `replies` are used one for
//!   each call of the model during that turn: the first for the prompt, the next when the tool results are back, and so
//!   on. A call that the CLI repeats after an error takes the next reply too. The same prompt sent again starts again.
//! - **`queue`** serves prompts that no rule matches, in order, across turns and sessions.
//! - **`otherwise`** answers when a rule's replies or the queue are used up. The request then shows as
//!   [`AnsweredBy::Otherwise`], which a test can look for.
//! - **Parts** of a reply are sent in order. Text parts with nothing but gates and pauses between them are one block, and
//!   so are thinking parts; `{"type": "end_block"}` forces a new one. [`Part`] lists them all.
//! - **Placeholders** in text: `{{tool_result}}` (what the tools of this call returned), `{{prompt}}` (this turn's prompt)
//!   and `{{prompts}}` (all prompts of the conversation, joined by ` | `, which shows what the CLI remembers).
//! - **Side requests** of the CLI (a title for the session and the like) get a harmless answer and use up nothing.
//!
//! # From outside
//!
//! Beside both APIs, the server answers `POST /_testkit/gates/NAME/open`, `GET /_testkit/gates/NAME/reached` (answers when the gate
//! was reached) and `GET /_testkit/requests`, so that a browser test in another language can steer it.

mod completions;
mod gate;
mod request;
mod script;
mod server;
mod sse;

pub use gate::Gate;
pub use request::{AnsweredBy, ModelRequest};
pub use script::{Failure, Part, Reply, Rule, Script, Usage};
pub use server::ModelServer;
