//! The description of the HTTP API, for programs (`/api/openapi.json`) and for people (`/api/docs`).
//!
//! `paths` has every operation and `schemas` every form, both as utoipa reads them; `page` makes them readable. Tests
//! compare the paths with the routes of this crate, and schemathesis compares the forms with what the server does.

mod events;
mod page;
mod paths;
mod schemas;

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LANGUAGE, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::error::{ApiError, Language};
use crate::task::TOOLS;

/// How callers say who they are.
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

fn description() -> serde_json::Result<Value> {
    let mut description = serde_json::to_value(paths::Description::openapi())?;
    // What no attribute can say.
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
    Ok(description)
}

/// `GET /api/openapi.json`
pub(crate) async fn document() -> Result<Response, ApiError> {
    let description = description().map_err(|error| ApiError::internal(&error))?;
    Ok(axum::Json(description).into_response())
}

#[derive(Deserialize)]
pub(crate) struct Options {
    lang: Option<String>,
}

/// `GET /api/docs`
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
    Ok((headers, page::render(&openapi, language)).into_response())
}

/// `GET /api/docs/style.css`: the page may load nothing that is not a file of ours.
pub(crate) async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Every `.route("…", get(…))` of this crate, as `GET …`.
    fn routes(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes(&path, found);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            // Tests have routes of their own.
            let source = source.split("#[cfg(test)]").next().unwrap();
            // The part after `.route(` up to the next route or the end of the statement.
            for part in source.split(".route(").skip(1) {
                let Some(path) = part
                    .trim_start()
                    .strip_prefix('"')
                    .and_then(|rest| rest.split('"').next())
                else {
                    continue;
                };
                if !path.starts_with('/') {
                    continue;
                }
                let handlers = part.split(';').next().unwrap();
                for method in ["get", "post", "put", "patch", "delete"] {
                    if handlers.contains(&format!(" {method}(")) || handlers.contains(&format!(".{method}("))
                    {
                        found.insert(format!("{} {path}", method.to_uppercase()));
                    }
                }
            }
        }
    }

    fn described() -> BTreeSet<String> {
        let openapi = description().unwrap();
        let paths = openapi["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        });
        operations.collect()
    }

    #[test]
    fn every_route_is_described() {
        let mut routes_found = BTreeSet::new();
        routes(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut routes_found,
        );
        // The page itself is no API.
        routes_found.remove("GET /");
        assert!(routes_found.len() > 20, "{routes_found:?}");
        assert_eq!(described(), routes_found);
    }

    #[test]
    fn every_operation_can_be_read_in_both_languages() {
        let openapi = description().unwrap();
        for language in [Language::English, Language::Chinese] {
            let page = page::render(&openapi, language);
            for operation in described() {
                let (method, path) = operation.split_once(' ').unwrap();
                assert!(page.contains(&format!("<b>{method}</b> {path}")), "{operation}");
            }
            assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains("http://cdn"));
        }
        page::assert_translated(&openapi);
    }

    #[test]
    fn the_description_changes_knowingly() {
        let mut openapi = description().unwrap();
        openapi["info"]["version"] = "[version]".into();
        insta::assert_json_snapshot!(openapi);
    }
}
