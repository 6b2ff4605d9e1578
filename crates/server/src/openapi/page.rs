//! The description as a page: plain HTML in two languages, without a script.

use std::fmt::Write as _;

use serde_json::Value;

use super::events;
use crate::error::Language;

pub(super) const STYLE: &str = include_str!("style.css");

pub(super) fn tag(language: Language) -> &'static str {
    match language {
        Language::English => "en",
        Language::Chinese => "zh-CN",
    }
}

/// The field with an operation's summary in Chinese; the English one is its doc comment.
const CHINESE_SUMMARY: &str = "x-summary-zh-CN";

const TAGS: &[(&str, &str, &str)] = &[
    ("task", "Tasks", "任务"),
    ("sessions", "Sessions", "会话"),
    ("history", "History", "历史记录"),
    ("machine", "The machine", "机器"),
];

/// The chat API, which OpenAPI can't describe.
const PROTOCOLS_ENGLISH: &str = r#"
<h2>The chat API</h2>
<p>Connect to <code>/ws?session_id=NAME</code>. The first frame is <code>system</code> <code>session_start</code>; every
later frame of the session has a <code>seq</code>, and <code>after_seq</code> replays what came after one. At most 60 messages
a minute are taken on a connection.</p>
<p>You send <code>user_message {message: {content, images?, context?}, uuid?}</code>, <code>permission_response {request_id,
decision, updated_input?, updated_permissions?, message?, interrupt?}</code>, <code>interrupt</code>, <code>set_model
{model}</code>, <code>set_permission_mode {mode}</code>, <code>register_hooks {events}</code> and
<code>hook_callback_response {callback_id, output}</code>.</p>
<p>You hear <code>stream</code> (pieces as they come), <code>assistant</code> (text, thinking, tool calls and their results),
<code>permission_request</code>, <code>hook_callback</code>, <code>user_message</code>, <code>system</code>,
<code>result</code> and <code>error</code> with <code>details.code</code>.</p>
<pre>{"type": "user_message", "session_id": "demo", "message": {"content": "What files are here?"}}</pre>
"#;

const PROTOCOLS_CHINESE: &str = r#"
<h2>聊天 API</h2>
<p>连接 <code>/ws?session_id=名称</code>。第一帧是 <code>system</code> <code>session_start</code>；之后会话的每一帧都带有
<code>seq</code>，用 <code>after_seq</code> 可重放其后的内容。每个连接每分钟最多接收 60 条消息。</p>
<p>客户端发送：<code>user_message {message: {content, images?, context?}, uuid?}</code>、<code>permission_response {request_id,
decision, updated_input?, updated_permissions?, message?, interrupt?}</code>、<code>interrupt</code>、<code>set_model
{model}</code>、<code>set_permission_mode {mode}</code>、<code>register_hooks {events}</code>、<code>hook_callback_response
{callback_id, output}</code>。</p>
<p>服务器发送：<code>stream</code>（实时片段）、<code>assistant</code>（文本、思考、工具调用及结果）、
<code>permission_request</code>、<code>hook_callback</code>、<code>user_message</code>、<code>system</code>、
<code>result</code>，以及带 <code>details.code</code> 的 <code>error</code>。</p>
<pre>{"type": "user_message", "session_id": "demo", "message": {"content": "当前目录有哪些文件？"}}</pre>
"#;

struct Words {
    title: &'static str,
    intro: &'static str,
    scope: &'static str,
    parameters: &'static str,
    body: &'static str,
    answers: &'static str,
    forms: &'static str,
    protocols: &'static str,
}

const ENGLISH: Words = Words {
    title: "Tiller’s API",
    intro: "Every call but <code>/health</code> needs a key: <code>Authorization: Bearer KEY</code> or \
            <code>X-API-Key: KEY</code>, from <code>tiller key create NAME</code>. Programs read the same at \
            <a href=\"/api/openapi.json\">/api/openapi.json</a>. <a href=\"?lang=zh\" lang=\"zh-CN\">中文</a>",
    scope: "Needs the scope",
    parameters: "Parameters",
    body: "Body",
    answers: "Answers",
    forms: "Forms",
    protocols: PROTOCOLS_ENGLISH,
};

const CHINESE_WORDS: Words = Words {
    title: "Tiller API",
    intro: "除 <code>/health</code> 外，所有调用都需要密钥：<code>Authorization: Bearer KEY</code> 或 \
            <code>X-API-Key: KEY</code>，用 <code>tiller key create 名称</code> 创建。供程序读取的描述见 \
            <a href=\"/api/openapi.json\">/api/openapi.json</a>。<a href=\"?lang=en\" lang=\"en\">English</a>",
    scope: "所需权限",
    parameters: "参数",
    body: "请求体",
    answers: "响应",
    forms: "数据结构",
    protocols: PROTOCOLS_CHINESE,
};

/// Writing to a string can't fail.
macro_rules! put {
    ($page:expr, $($argument:tt)*) => { write!($page, $($argument)*).ok() };
}

pub(super) use put;

pub(super) fn render(openapi: &Value, language: Language) -> String {
    let words = match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE_WORDS,
    };
    let mut page = String::with_capacity(64 << 10);
    put!(
        page,
        "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/api/docs/style.css\"></head><body><main><h1>{title}</h1><p>{}</p>",
        tag(language),
        words.intro,
        title = words.title
    );
    for (name, english, chinese) in TAGS {
        let heading = match language {
            Language::English => english,
            Language::Chinese => chinese,
        };
        put!(page, "<h2>{heading}</h2>");
        for (path, method, operation) in operations(openapi) {
            if operation["tags"][0] == *name {
                operation_in_words(&mut page, path, method, operation, words, language);
            }
        }
    }
    page.push_str(words.protocols);
    let payloads = events::render(&mut page, language);
    put!(page, "<h2>{}</h2>", words.forms);
    let forms = openapi["components"]["schemas"].as_object().into_iter().flatten();
    let is_new =
        |(name, _): &(&String, &Value)| openapi["components"]["schemas"].get(name.as_str()).is_none();
    for (name, schema) in forms.chain(payloads.iter().filter(is_new)) {
        put!(page, "<section id=\"{0}\"><h3>{0}</h3>", escaped(name));
        paragraph(&mut page, &schema["description"]);
        let required = schema["required"].as_array();
        let is_required =
            |field: &str| required.is_some_and(|required| required.iter().any(|name| name == field));
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<_> = values.iter().filter_map(Value::as_str).map(escaped).collect();
            put!(page, "<p><code>{}</code></p>", values.join("</code> <code>"));
        }
        page.push_str("<table>");
        for (field, form) in schema["properties"].as_object().into_iter().flatten() {
            let optional = if is_required(field) { "" } else { "?" };
            let about = form["description"].as_str().unwrap_or_default();
            put!(
                page,
                "<tr><td><code>{}{optional}</code></td><td>{}</td><td>{}</td></tr>",
                escaped(field),
                form_in_words(form),
                escaped(about)
            );
        }
        page.push_str("</table>");
        example(&mut page, &schema["example"]);
        page.push_str("</section>");
    }
    page.push_str("</main></body></html>");
    page
}

fn operations(openapi: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = openapi["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

fn operation_in_words(
    page: &mut String,
    path: &str,
    method: &str,
    operation: &Value,
    words: &Words,
    language: Language,
) {
    put!(
        page,
        "<section><h3><b>{}</b> {}</h3>",
        method.to_uppercase(),
        escaped(path)
    );
    match language {
        Language::English => {
            paragraph(page, &operation["summary"]);
            paragraph(page, &operation["description"]);
        }
        Language::Chinese => {
            paragraph(page, &operation[CHINESE_SUMMARY]);
        }
    }
    if let Some(scope) = operation["x-scope"].as_str() {
        put!(page, "<p>{} <code>{}</code></p>", words.scope, escaped(scope));
    }
    if let Some(parameters) = operation["parameters"].as_array() {
        put!(page, "<h4>{}</h4><table>", words.parameters);
        for parameter in parameters {
            let optional = if parameter["required"] == true { "" } else { "?" };
            put!(
                page,
                "<tr><td><code>{}{optional}</code></td><td>{}</td><td>{}</td></tr>",
                escaped(parameter["name"].as_str().unwrap_or_default()),
                form_in_words(&parameter["schema"]),
                escaped(parameter["description"].as_str().unwrap_or_default())
            );
        }
        page.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        put!(page, "<h4>{}</h4><p>{}</p>", words.body, form_in_words(body));
    }
    put!(page, "<h4>{}</h4><table>", words.answers);
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let (kind, content) = answer["content"]
            .as_object()
            .and_then(|content| content.iter().next())
            .map_or(("", &Value::Null), |(kind, content)| (kind.as_str(), content));
        put!(
            page,
            "<tr><td><code>{}</code></td><td>{} {}</td><td>{}</td></tr>",
            escaped(status),
            if kind == "application/json" { "" } else { kind },
            form_in_words(&content["schema"]),
            escaped(answer["description"].as_str().unwrap_or_default())
        );
    }
    page.push_str("</table></section>");
}

/// A schema in a few words, with a link if it has a name.
fn form_in_words(form: &Value) -> String {
    if let Some(name) = form["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escaped(name));
    }
    if let Some(choices) = form["oneOf"].as_array().or_else(|| form["anyOf"].as_array()) {
        let choices: Vec<_> = choices.iter().map(form_in_words).collect();
        return choices.join(" | ");
    }
    match &form["type"] {
        Value::String(kind) if kind == "array" => format!("[{}]", form_in_words(&form["items"])),
        Value::String(kind) => escaped(kind),
        Value::Array(kinds) => {
            let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).map(escaped).collect();
            kinds.join(" | ")
        }
        _ => String::new(),
    }
}

fn paragraph(page: &mut String, text: &Value) {
    if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
        put!(page, "<p>{}</p>", escaped(text));
    }
}

fn example(page: &mut String, example: &Value) {
    if !example.is_null() {
        put!(page, "<pre>{}</pre>", escaped(&format!("{example:#}")));
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
pub(super) fn assert_translated(openapi: &Value) {
    for (path, _, operation) in operations(openapi) {
        assert!(operation[CHINESE_SUMMARY].is_string(), "{path} in Chinese");
        assert!(operation["summary"].is_string(), "{path} in English");
        assert!(
            TAGS.iter().any(|(tag, ..)| operation["tags"][0] == *tag),
            "the tag of {path}"
        );
    }
}
