//! The scope that each route needs, from its description (`x-scope`): checked in one place, before any handler.

use std::collections::HashMap;
use std::sync::OnceLock;

use axum::http::Method;
use serde_json::Value;
use tiller_core::credentials::Scopes;

use crate::app::described_routes;
use crate::auth::Visitor;

/// The right that a route needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Needed {
    /// Any credential.
    Any,
    Read,
    Run,
    Approve,
    ReadOrApprove,
    ReadAndRun,
    /// The person at the machine; no API key, whatever its scopes.
    Person,
}

impl Needed {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "any" => Self::Any,
            "read" => Self::Read,
            "run" => Self::Run,
            "approve" => Self::Approve,
            "read or approve" => Self::ReadOrApprove,
            "read and run" => Self::ReadAndRun,
            "person" => Self::Person,
            _ => return None,
        })
    }

    fn is_given(self, visitor: &Visitor) -> bool {
        let Scopes { read, run, approve } = visitor.viewer.scopes;
        match self {
            Self::Any => true,
            Self::Read => read,
            Self::Run => run,
            Self::Approve => approve,
            Self::ReadOrApprove => read || approve,
            Self::ReadAndRun => read && run,
            Self::Person => visitor.is_person(),
        }
    }
}

/// Whether the caller may use the route. A route without a scope is open to the person only.
pub(crate) fn may_use(visitor: &Visitor, method: &Method, route: &str) -> bool {
    // The handler of GET answers HEAD.
    let method = if *method == Method::HEAD {
        Method::GET
    } else {
        method.clone()
    };
    let needed = table().get(&(method, route.to_owned())).copied();
    needed.unwrap_or(Needed::Person).is_given(visitor)
}

fn table() -> &'static HashMap<(Method, String), Needed> {
    static TABLE: OnceLock<HashMap<(Method, String), Needed>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // Only strings and lists, which can always be serialized.
        let description = serde_json::to_value(described_routes()).unwrap_or_default();
        let paths = description["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            operations.filter_map(move |(method, operation)| entry(path, method, operation))
        });
        operations.collect()
    })
}

fn entry(path: &str, method: &str, operation: &Value) -> Option<((Method, String), Needed)> {
    let needed = operation["x-scope"].as_str().and_then(Needed::parse)?;
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).ok()?;
    Some(((method, path.to_owned()), needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_with_a_credential_says_what_it_needs() {
        let description = serde_json::to_value(described_routes()).unwrap();
        for (path, operations) in description["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let is_open = operation["security"] == serde_json::json!([{}]);
                assert_eq!(
                    entry(path, method, operation).is_none(),
                    is_open,
                    "{method} {path}"
                );
            }
        }
    }
}
