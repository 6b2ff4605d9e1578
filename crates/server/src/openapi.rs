//! The description of the HTTP API, for programs (`/api/openapi.json`) and for people (`/api/docs`).
//!
//! Operations and types are described where they are: at the handlers and at the wire types. This module adds what all
//! of them share; `events` adds the reference of the event API to the page.

mod events;
mod page;
mod refusals;

use std::sync::OnceLock;

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LANGUAGE, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::app::all_routes;
use crate::error::{ApiError, Language};
use crate::task::TOOLS;

pub(crate) use refusals::{BodyRefusals, ErrorBody, Refusals, ServerSentEvent};

/// What all operations share.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tiller",
        description = "Start coding agents, watch them, decide what they may do, and find again what they did. \
                       Every call but /health needs a key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; \
                       a page on the same origin uses its cookie, together with the page's own secret in `X-Tiller-Page`."
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "task", description = "One prompt, one result"),
        (name = "sessions", description = "WebSockets on which sessions live"),
        (name = "history", description = "Every conversation that Claude Code keeps a transcript of"),
        (name = "machine", description = "The machine and its folders"),
    ),
    security(("bearer" = []), ("key" = [])),
    modifiers(&Keys),
)]
struct Shared;

/// The ways to authenticate.
struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A key from `tiller key create`."));
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        let header = ApiKeyValue::with_description("X-API-Key", "The same key, as a header of its own.");
        components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(header)));
    }
}

fn description() -> serde_json::Result<&'static Value> {
    static DESCRIPTION: OnceLock<Value> = OnceLock::new();
    if let Some(description) = DESCRIPTION.get() {
        return Ok(description);
    }
    let described = describe()?;
    Ok(DESCRIPTION.get_or_init(|| described))
}

fn describe() -> serde_json::Result<Value> {
    let mut described = Shared::openapi();
    described.merge(all_routes().describe());
    let mut description = serde_json::to_value(described)?;
    // What attributes can't express.
    let task = &mut description["components"]["schemas"]["TaskRequest"];
    task["properties"]["tools"]["items"] = json!({
        "anyOf": [
            { "type": "string", "enum": TOOLS },
            { "type": "string", "pattern": "^mcp__[A-Za-z0-9_.-]{1,200}$" },
        ],
    });
    task["not"] = json!({
        "required": ["continue_conversation", "resume"],
        "properties": { "continue_conversation": { "const": true }, "resume": { "type": "string" } },
    });
    description["x-events"] = events::table();
    Ok(description)
}

/// This description
#[utoipa::path(
    get, operation_id = "openapi", path = "/api/openapi.json", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("本描述（JSON）")), ("x-scope" = json!("any"))),
    responses((status = 200, body = Value), Refusals))]
pub(crate) async fn document() -> Result<Response, ApiError> {
    let description = description().map_err(|error| ApiError::internal(&error))?;
    Ok(axum::Json(description).into_response())
}

#[derive(Deserialize)]
pub(crate) struct Options {
    lang: Option<String>,
}

/// This description, as a page
#[utoipa::path(
    get, operation_id = "docs", path = "/api/docs", tag = "machine", params(
    ("lang" = Option<String>, Query, pattern = "^(en|zh|zh-CN)$", description = "`en` or `zh`; otherwise `Accept-Language` decides."),
),
    extensions(("x-summary-zh-CN" = json!("本描述（页面）")), ("x-scope" = json!("any"))),
    responses(
    (status = 200, content_type = "text/html", body = String), (status = 422, body = ErrorBody), Refusals,
))]
pub(crate) async fn docs(
    options: Result<Query<Options>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(options) = options.map_err(|_| ApiError::WrongForm)?;
    let language = match options.lang.as_deref() {
        Some("en") => Language::English,
        Some("zh" | "zh-CN") => Language::Chinese,
        Some(_) => return Err(ApiError::WrongForm),
        None => Language::of(&headers),
    };
    let openapi = description().map_err(|error| ApiError::internal(&error))?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_LANGUAGE, page::tag(language)),
    ];
    Ok((headers, page::render(openapi, language)).into_response())
}

// The page may load only files of this server.
/// The style sheet of that page
#[utoipa::path(
    get, operation_id = "docs_style", path = "/api/docs/style.css", tag = "machine",
    extensions(("x-summary-zh-CN" = json!("页面样式")), ("x-scope" = json!("any"))),
    responses(
    (status = 200, content_type = "text/css", body = String), Refusals,
))]
pub(crate) async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn described() -> BTreeSet<String> {
        let openapi = description().unwrap();
        let paths = openapi["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        });
        operations.collect()
    }

    /// A route that is registered with `.route` is in the router but not in the description.
    #[test]
    fn every_route_is_registered_with_its_description() {
        fn look(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, found);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                // Tests have routes of their own.
                let source = source.split("#[cfg(test)]").next().unwrap();
                let routes = source.split(".route(\"").skip(1);
                found.extend(routes.map(|rest| rest.split('"').next().unwrap().to_owned()));
            }
        }
        let mut found = Vec::new();
        look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        // The page itself is not an API.
        assert_eq!(found, ["/"]);
        assert!(described().len() > 30, "{:?}", described());
    }

    #[test]
    fn every_operation_can_be_read_in_both_languages() {
        let openapi = description().unwrap();
        for language in [Language::English, Language::Chinese] {
            let page = page::render(openapi, language);
            for operation in described() {
                let (method, path) = operation.split_once(' ').unwrap();
                assert!(page.contains(&format!("<b>{method}</b> {path}")), "{operation}");
            }
            assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains("http://cdn"));
        }
        page::assert_translated(openapi);
    }

    #[test]
    fn the_description_changes_knowingly() {
        let mut openapi = description().unwrap().clone();
        openapi["info"]["version"] = "[version]".into();
        insta::assert_json_snapshot!(openapi);
    }
}
