//! Exports a session as a document: Markdown, an HTML page, or JSON.
//!
//! Written while it is read, a few messages at a time, so that the size of a session does not matter. The page loads
//! and runs nothing: all text is escaped, and its policy forbids scripts.

use std::io::Write;

use serde_json::Value;
use tiller_message::{Block, Content};

use crate::error::{HistoryError, Result};
use crate::history::History;
use crate::model::{Branch, Include, Message, Role, Session};
use crate::read::place::SessionId;
use crate::read::transcript::Reader;

/// Messages in memory at once.
const CHUNK: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Html,
    /// `{session, messages}`, as in the API.
    Json,
}

impl Format {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Json => "json",
        }
    }
}

impl History {
    /// Writes a whole session to `out`.
    pub fn export(
        &self,
        id: &SessionId,
        format: Format,
        include: Include,
        out: &mut dyn Write,
    ) -> Result<()> {
        let listed = self.find(id)?;
        let session = listed.session()?;
        let view = self.transcripts.view(self, &listed.transcript, include)?;
        let mut reader = Reader::new(self, &view);
        let mut document = Document {
            format,
            out,
            is_first: true,
        };
        document.begin(&session).map_err(HistoryError::Io)?;
        let mut start = 0;
        while start < view.items.len() {
            let end = (start + CHUNK).min(view.items.len());
            for message in reader.messages(start..end)? {
                document.message(&message).map_err(HistoryError::Io)?;
            }
            start = end;
        }
        document.end().map_err(HistoryError::Io)
    }
}

struct Document<'a> {
    format: Format,
    out: &'a mut dyn Write,
    is_first: bool,
}

impl Document<'_> {
    fn begin(&mut self, session: &Session) -> std::io::Result<()> {
        let title = if session.title.is_empty() {
            session.id.as_str()
        } else {
            &session.title
        };
        match self.format {
            Format::Json => {
                write!(self.out, "{{\"session\":")?;
                serde_json::to_writer(&mut *self.out, session)?;
                write!(self.out, ",\"messages\":[")
            }
            Format::Markdown => {
                let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                writeln!(self.out, "# {title}\n")?;
                for (name, value) in facts(session) {
                    writeln!(self.out, "- {name}: `{}`", value.replace('`', "'"))?;
                }
                Ok(())
            }
            Format::Html => {
                let title = escaped(title);
                write!(self.out, "{HEAD_START}{title}{HEAD_END}<h1>{title}</h1><dl>")?;
                for (name, value) in facts(session) {
                    write!(self.out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
                }
                writeln!(self.out, "</dl>")
            }
        }
    }

    fn message(&mut self, message: &Message) -> std::io::Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.format {
            Format::Json => {
                if !is_first {
                    write!(self.out, ",")?;
                }
                serde_json::to_writer(&mut *self.out, message)?;
                Ok(())
            }
            Format::Markdown => self.markdown(message),
            Format::Html => self.html(message),
        }
    }

    fn end(&mut self) -> std::io::Result<()> {
        match self.format {
            Format::Json => writeln!(self.out, "]}}"),
            Format::Markdown => Ok(()),
            Format::Html => writeln!(self.out, "</main></body></html>"),
        }
    }

    fn markdown(&mut self, message: &Message) -> std::io::Result<()> {
        writeln!(self.out, "\n## {}\n\n*{}*", heading(message), message.timestamp)?;
        for block in &message.content {
            match piece(block) {
                Piece::Text(text) => writeln!(self.out, "\n{text}")?,
                Piece::Thinking(text) => {
                    writeln!(self.out)?;
                    for line in text.lines() {
                        writeln!(self.out, "> {line}")?;
                    }
                }
                Piece::Call { name, input } => {
                    writeln!(self.out, "\n**{name}**\n")?;
                    self.fenced(&input, "json")?;
                }
                Piece::Result { name, text } => {
                    writeln!(self.out, "\n{name} →\n")?;
                    self.fenced(&text, "text")?;
                }
                Piece::Other(kind) => writeln!(self.out, "\n*[{kind}]*")?,
            }
        }
        Ok(())
    }

    /// A code block whose fence is longer than any in the text.
    fn fenced(&mut self, text: &str, language: &str) -> std::io::Result<()> {
        let longest = text
            .split(|letter| letter != '`')
            .map(str::len)
            .max()
            .unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        writeln!(
            self.out,
            "{fence}{language}\n{}\n{fence}",
            text.trim_end_matches('\n')
        )
    }

    fn html(&mut self, message: &Message) -> std::io::Result<()> {
        let role = if message.role == Role::User {
            "user"
        } else {
            "assistant"
        };
        let side = if message.sidechain || message.branch.is_some() {
            " aside"
        } else {
            ""
        };
        writeln!(
            self.out,
            "<section class=\"{role}{side}\" id=\"{}\"><h2>{}</h2><time>{}</time>",
            escaped(&message.uuid),
            escaped(&heading(message)),
            escaped(&message.timestamp)
        )?;
        for block in &message.content {
            match piece(block) {
                Piece::Text(text) => writeln!(self.out, "<div class=\"text\">{}</div>", escaped(text))?,
                Piece::Thinking(text) => {
                    writeln!(
                        self.out,
                        "<details class=\"thinking\"><summary>thinking</summary><div class=\"text\">{}</div></details>",
                        escaped(text)
                    )?;
                }
                Piece::Call { name, input } => {
                    writeln!(
                        self.out,
                        "<details class=\"call\" open><summary>{}</summary><pre>{}</pre></details>",
                        escaped(name),
                        escaped(&input)
                    )?;
                }
                Piece::Result { name, text } => {
                    writeln!(
                        self.out,
                        "<details class=\"result\"><summary>{} →</summary><pre>{}</pre></details>",
                        escaped(name),
                        escaped(&text)
                    )?;
                }
                Piece::Other(kind) => writeln!(self.out, "<p class=\"other\">[{}]</p>", escaped(kind))?,
            }
        }
        writeln!(self.out, "</section>")
    }
}

fn facts(session: &Session) -> Vec<(&'static str, String)> {
    vec![
        ("Session", session.id.to_string()),
        ("Project", session.project_path.to_string()),
        ("Begun", session.timestamp.to_string()),
        ("Last active", session.last_active.to_string()),
        ("Messages", session.message_count.to_string()),
        ("Models", session.models.join(", ")),
        ("Tools", session.tools_used.join(", ")),
        ("Files changed", session.files_changed.join(", ")),
    ]
}

fn heading(message: &Message) -> String {
    let who = match message.role {
        Role::User if message.compaction.is_some() => "Summary",
        Role::User if message.is_meta => "CLI",
        Role::User
            if message
                .content
                .iter()
                .any(|block| block.as_tool_result().is_some()) =>
        {
            "Result"
        }
        Role::User => "User",
        Role::Assistant => "Assistant",
    };
    let mut notes = Vec::new();
    if message.sidechain {
        notes.push(format!(
            "subagent {}",
            message.agent_id.as_deref().unwrap_or_default()
        ));
    }
    match message.branch {
        Some(Branch::Compacted) => notes.push("compacted".to_owned()),
        Some(Branch::Left) => notes.push("left branch".to_owned()),
        None => {}
    }
    if notes.is_empty() {
        who.to_owned()
    } else {
        format!("{who} ({})", notes.join(", ").trim())
    }
}

/// A content block, for reading.
enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Call { name: &'a str, input: String },
    Result { name: &'a str, text: String },
    Other(&'a str),
}

fn piece(block: &Block) -> Piece<'_> {
    match block {
        Block::Text(block) => Piece::Text(&block.text),
        Block::Thinking(block) => Piece::Thinking(&block.thinking),
        Block::ToolUse(call) | Block::ServerToolUse(call) | Block::McpToolUse(call) => Piece::Call {
            name: &call.name,
            input: serde_json::to_string_pretty(&call.input).unwrap_or_default(),
        },
        Block::ToolResult(result) | Block::McpToolResult(result) => {
            let text = match &result.content {
                Content::Text(text) => text.clone(),
                Content::Blocks(parts) => parts
                    .iter()
                    .map(|part| part.as_text().unwrap_or("[image]"))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            let name = result.extra.get("tool_name").and_then(Value::as_str);
            Piece::Result {
                name: name.unwrap_or("Tool"),
                text,
            }
        }
        other => Piece::Other(kind(other)),
    }
}

/// The type of a block without text.
fn kind(block: &Block) -> &str {
    let fields = match block {
        Block::Image(media) | Block::Document(media) => &media.extra,
        Block::RedactedThinking(thoughts) => &thoughts.extra,
        Block::WebSearchToolResult(result)
        | Block::WebFetchToolResult(result)
        | Block::CodeExecutionToolResult(result)
        | Block::BashCodeExecutionToolResult(result)
        | Block::TextEditorCodeExecutionToolResult(result)
        | Block::ToolSearchToolResult(result) => &result.extra,
        Block::Other(fields) => fields,
        _ => return "",
    };
    fields.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters other than tab and newline are not allowed in HTML.
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

const HEAD_START: &str = "<!doctype html>\n<html><head><meta charset=\"utf-8\">\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"referrer\" content=\"no-referrer\"><title>";

const HEAD_END: &str = "</title><style>
:root{color-scheme:light dark;--line:light-dark(#d8dce2,#3a3f47);--soft:light-dark(#f5f6f8,#23262b)}
body{font:15px/1.6 system-ui,sans-serif;margin:0;background:light-dark(#fff,#191b1f);color:light-dark(#1c1f24,#e3e5e8)}
main{max-width:52rem;margin:0 auto;padding:2rem 1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:.95rem;margin:0;display:inline-block}
time{float:right;font-size:.8rem;opacity:.7}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;font-size:.85rem}dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}
section{border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;margin:1rem 0}
section.user{background:var(--soft)}section.aside{margin-left:2rem;border-style:dashed}
.text{white-space:pre-wrap;overflow-wrap:anywhere;margin-top:.5rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace;background:var(--soft);padding:.6rem;border-radius:6px;max-height:30rem;overflow:auto}
details{margin-top:.5rem}summary{cursor:pointer;font-weight:600;font-size:.85rem}.thinking{opacity:.75}
</style></head><body><main>";
