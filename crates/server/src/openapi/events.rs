//! The reference of the event API, generated from its table.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::page::{escaped, put};
use crate::error::Language;
use crate::events::{ClientEvent, ClientRow, Ordering, Schemas, ServerEvent, ServerRow};

struct Words {
    title: &'static str,
    intro: &'static str,
    client: &'static str,
    server: &'static str,
    payload: &'static str,
    scope: &'static str,
    order: &'static str,
    answers: &'static str,
    seq: &'static str,
    in_loop: &'static str,
    beside: &'static str,
    command: &'static str,
    question: &'static str,
}

const ENGLISH: Words = Words {
    title: "The event API",
    intro: "<p>Connect a WebSocket to <code>/ws/events</code>; with <code>?only=subscribed</code> it hears only the sessions that \
            it subscribes to. Each text frame is one event: <code>{type, commandId?, payload}</code>. A client may give any \
            frame a <code>commandId</code>, a string of at most 64 characters: every direct answer and every \
            <code>runner.error</code> that the frame caused carries the same. A frame that is not understood is answered \
            with <code>runner.error</code>, and the connection lives on.</p>\
            <pre>{&quot;type&quot;: &quot;session.start&quot;, &quot;commandId&quot;: &quot;1&quot;, &quot;payload&quot;: {&quot;prompt&quot;: \
            &quot;Say hello&quot;, &quot;cwd&quot;: &quot;/home/me/project&quot;}}</pre>",
    client: "Events that a client sends",
    server: "Events that the server sends",
    payload: "Payload",
    scope: "Needs the scope",
    order: "Executed",
    answers: "Answered by",
    seq: "Has <code>seq</code>, the event’s number in its session.",
    in_loop: "at once",
    beside: "in parallel",
    command: "after the session’s earlier commands; later ones wait for it",
    question: "after the session’s earlier commands; nothing waits for it",
};

const CHINESE: Words = Words {
    title: "事件 API",
    intro: "<p>用 WebSocket 连接 <code>/ws/events</code>；加上 <code>?only=subscribed</code> 则只接收已订阅的会话。每个文本帧是一个事件：\
            <code>{type, commandId?, payload}</code>。客户端可以为任何帧加上 <code>commandId</code>（最多 64 个字符）：\
            该帧的每个直接回答，以及由它引起的每个 <code>runner.error</code>，都带有相同的 <code>commandId</code>。无法理解的帧会收到 \
            <code>runner.error</code>，连接保持不变。</p>\
            <pre>{&quot;type&quot;: &quot;session.start&quot;, &quot;commandId&quot;: &quot;1&quot;, &quot;payload&quot;: {&quot;prompt&quot;: \
            &quot;你好&quot;, &quot;cwd&quot;: &quot;/home/me/project&quot;}}</pre>",
    client: "客户端发送的事件",
    server: "服务器发送的事件",
    payload: "内容",
    scope: "所需权限",
    order: "执行顺序",
    answers: "回答",
    seq: "带有 <code>seq</code>：该事件在会话中的编号。",
    in_loop: "立即执行",
    beside: "与其他命令并行执行",
    command: "在该会话之前的命令之后执行，之后的命令等待它",
    question: "在该会话之前的命令之后执行，其他命令不等待它",
};

/// The client events, for programs: each with the scope that it needs and the events that answer it.
pub(super) fn table() -> Value {
    let row = |row: &ClientRow| {
        let answers: Vec<&str> = row.answers.iter().map(|kind| kind.name()).collect();
        json!({ "type": row.name, "scope": row.scope.to_string(), "answers": answers })
    };
    ClientEvent::ROWS.iter().map(row).collect()
}

/// Writes the reference, and returns the types that it links to.
pub(super) fn render(page: &mut String, language: Language) -> Map<String, Value> {
    let words = match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    };
    let mut forms = Map::new();
    put!(page, "<h2>{}</h2>{}", words.title, words.intro);
    put!(page, "<h3>{}</h3>", words.client);
    for row in ClientEvent::ROWS {
        client(page, row, words, language, &mut forms);
    }
    put!(page, "<h3>{}</h3>", words.server);
    for row in ServerEvent::ROWS {
        server(page, row, words, language, &mut forms);
    }
    forms
}

fn client(
    page: &mut String,
    row: &ClientRow,
    words: &Words,
    language: Language,
    forms: &mut Map<String, Value>,
) {
    let about = about(row.english, row.chinese, language);
    put!(page, "<section><h3>{}</h3><p>{about}</p><table>", row.name);
    put!(
        page,
        "<tr><td>{}</td><td>{}</td></tr>",
        words.payload,
        payload((row.schemas)(), forms)
    );
    put!(
        page,
        "<tr><td>{}</td><td><code>{}</code></td></tr>",
        words.scope,
        row.scope
    );
    let order = match row.order {
        Ordering::InLoop => words.in_loop,
        Ordering::Beside => words.beside,
        Ordering::Command => words.command,
        Ordering::Question => words.question,
    };
    put!(page, "<tr><td>{}</td><td>{order}</td></tr>", words.order);
    if !row.answers.is_empty() {
        let answers: Vec<_> = row
            .answers
            .iter()
            .map(|kind| format!("<code>{}</code>", kind.name()))
            .collect();
        put!(
            page,
            "<tr><td>{}</td><td>{}</td></tr>",
            words.answers,
            answers.join(" ")
        );
    }
    page.push_str("</table></section>");
}

fn server(
    page: &mut String,
    row: &ServerRow,
    words: &Words,
    language: Language,
    forms: &mut Map<String, Value>,
) {
    let about = about(row.english, row.chinese, language);
    put!(page, "<section><h3>{}</h3><p>{about}</p>", row.name);
    if row.has_seq {
        put!(page, "<p>{}</p>", words.seq);
    }
    put!(
        page,
        "<table><tr><td>{}</td><td>{}</td></tr></table></section>",
        words.payload,
        payload((row.schemas)(), forms)
    );
}

fn about(english: &[&str], chinese: &str, language: Language) -> String {
    match language {
        Language::English => escaped(&english.concat()),
        Language::Chinese => escaped(chinese),
    }
}

/// A link to the payload's type, which is collected with the types that it mentions.
fn payload(schemas: Schemas, forms: &mut Map<String, Value>) -> String {
    for (name, schema) in schemas.all {
        // A schema that can't be serialized is left out of the page; the page's test finds the dead link.
        if let Ok(schema) = serde_json::to_value(schema) {
            forms.insert(name, schema);
        }
    }
    format!("<a href=\"#{0}\">{0}</a>", escaped(&schemas.payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_in_the_reference_and_every_row_keeps_what_the_types_say() {
        for language in [Language::English, Language::Chinese] {
            let mut page = String::new();
            let forms = render(&mut page, language);
            let names = ClientEvent::ROWS.iter().map(|row| row.name);
            for name in names.chain(ServerEvent::ROWS.iter().map(|row| row.name)) {
                assert!(page.contains(&format!("<section><h3>{name}</h3>")), "{name}");
            }
            for link in page.split("href=\"#").skip(1) {
                let name = link.split('"').next().unwrap();
                assert!(forms.contains_key(name), "{name} is described");
            }
        }
        for row in ServerEvent::ROWS {
            let Schemas { payload, all } = (row.schemas)();
            let (_, schema) = all.iter().find(|(name, _)| *name == payload).unwrap();
            let schema = serde_json::to_value(schema).unwrap();
            assert_eq!(
                row.has_seq,
                !schema["properties"]["seq"].is_null(),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn names_are_unique() {
        for names in [
            ClientEvent::ROWS.iter().map(|row| row.name).collect::<Vec<_>>(),
            ServerEvent::ROWS.iter().map(|row| row.name).collect(),
        ] {
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len());
        }
    }
}
