//! Redacts secrets in users' configuration: environment variables, headers, arguments, URLs. Names stay, values are
//! replaced.

use serde_json::Value;

use crate::json::RawJson;

/// Replaces a secret.
pub const HIDDEN: &str = "•••";

/// Parts of names whose values are usually secret.
const SECRET_NAMES: [&str; 9] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "auth",
    "credential",
    "cookie",
    "bearer",
];

/// Prefixes of well-known kinds of secrets.
const SECRET_BEGINNINGS: [&str; 9] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "eyJ",
];

/// The same JSON without secrets. JSON that can't be parsed is hidden as a whole.
pub fn redacted(raw: &RawJson) -> RawJson {
    let mut value: Value = serde_json::from_str(raw.as_str()).unwrap_or_else(|_| HIDDEN.into());
    redact(&mut value);
    RawJson::of(&value).unwrap_or_else(|_| RawJson::checked("null".into()))
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "env" | "environment" | "headers" => hide(value),
                    "args" | "arguments" if value.is_array() => redact_list(value),
                    name if is_secret_name(name) && value.is_string() => hide(value),
                    _ => redact(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(redact),
        Value::String(text) => *text = redacted_words(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Hides all values and keeps the names.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Null => {}
        said => *said = HIDDEN.into(),
    }
}

fn redact_list(value: &mut Value) {
    let Value::Array(values) = value else { return };
    let words: Vec<&str> = values
        .iter()
        .map(|value| value.as_str().unwrap_or_default())
        .collect();
    let shown = redacted_arguments(words);
    for (value, shown) in values.iter_mut().zip(shown) {
        if value.is_string() {
            *value = shown.into();
        } else {
            redact(value);
        }
    }
}

/// A command line with its secrets hidden.
pub fn redacted_words(text: &str) -> String {
    redacted_arguments(text.split(' ')).join(" ")
}

/// Arguments with their secrets hidden: `--token=…`, `--token …`, `NAME_KEY=…`, URLs with passwords or keys.
pub fn redacted_arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hide_next = false;
    let shown = arguments.into_iter().map(|argument| {
        let bare = argument.trim_matches(|character| matches!(character, '"' | '\''));
        if hide_next && !bare.is_empty() {
            // `Authorization: Bearer …`: the word after the scheme is the secret.
            hide_next = bare.eq_ignore_ascii_case("bearer") || bare.eq_ignore_ascii_case("basic");
            return if hide_next {
                argument.to_owned()
            } else {
                HIDDEN.to_owned()
            };
        }
        if bare.contains("://") {
            return redacted_address(argument);
        }
        if let Some((name, value)) = bare.split_once('=')
            && is_secret_name(name)
            && !value.is_empty()
        {
            return format!("{name}={HIDDEN}");
        }
        if let Some((name, value)) = bare.split_once(':')
            && is_secret_name(name)
        {
            hide_next = value.trim().is_empty();
            return if hide_next {
                argument.to_owned()
            } else {
                format!("{name}:{HIDDEN}")
            };
        }
        hide_next = bare.starts_with('-') && is_secret_name(bare) && !bare.contains('=');
        if is_secret_value(bare) {
            HIDDEN.to_owned()
        } else {
            argument.to_owned()
        }
    });
    shown.collect()
}

/// A URL without its password and the values of its query.
pub fn redacted_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (rest, query) = rest
        .split_once('?')
        .map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let user = if host.len() < authority.len() {
        format!("{HIDDEN}@")
    } else {
        String::new()
    };
    let path: Vec<_> = path
        .split('/')
        .map(|part| if is_secret_value(part) { HIDDEN } else { part })
        .collect();
    let query = query.map_or(String::new(), |query| {
        let pairs = query.split('&').map(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            format!("{name}={HIDDEN}")
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{user}{host}{}{query}", path.join("/"))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name != "author" && SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// A long word that looks random.
fn is_secret_value(word: &str) -> bool {
    const LONG: usize = 32;
    let is_random = || {
        word.len() >= LONG
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_+=.".contains(&byte))
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let is_known = |beginning: &&str| word.starts_with(*beginning) && word.len() >= 12;
    SECRET_BEGINNINGS.iter().any(is_known) || is_random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_and_names_stay() {
        let raw = RawJson::parse(
            r#"{"env":{"DB_PASSWORD":"hunter2"},"apiKey":"abc","model":"opus","mcp":[{"url":"https://me:pw@example.com/mcp?key=1",
                "headers":{"Authorization":"Bearer x"},"args":["--token","t0p","--fast"]}],"hooks":[{"command":"curl -H 'X-Auth: abc' x"}]}"#,
        );
        let shown = redacted(&raw.unwrap());
        for secret in ["hunter2", "abc", "pw", "Bearer x", "t0p", "key=1"] {
            assert!(!shown.as_str().contains(secret), "{secret}: {}", shown.as_str());
        }
        for name in [
            "DB_PASSWORD",
            "apiKey",
            "opus",
            "example.com/mcp",
            "--token",
            "--fast",
            "Authorization",
        ] {
            assert!(shown.as_str().contains(name), "{name}: {}", shown.as_str());
        }
    }

    #[test]
    fn arguments_and_addresses() {
        for (said, shown) in [
            ("npx -y server /home/me/notes", "npx -y server /home/me/notes"),
            ("--api-key=abc --port=80", "--api-key=••• --port=80"),
            ("--password hunter2 --fast", "--password ••• --fast"),
            ("GITHUB_TOKEN=abc run", "GITHUB_TOKEN=••• run"),
            (
                "--header Authorization: Bearer abc x",
                "--header Authorization: Bearer ••• x",
            ),
            ("ghp_0123456789abcdef", "•••"),
            ("https://u:p@h:80/a/b?x=1&y=2", "https://•••@h:80/a/b?x=•••&y=•••"),
            (
                "https://h/0123456789abcdef0123456789abcdef/sse",
                "https://h/•••/sse",
            ),
        ] {
            assert_eq!(redacted_words(said), shown);
        }
    }
}
