//! The scope that each route needs, from its description (`x-scope`): checked in one place, before any handler.

use std::collections::HashMap;
use std::sync::OnceLock;

use axum::http::Method;
use tiller_core::credentials::Scopes;
use utoipa::openapi::path::Operation;

use crate::app::all_routes;
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
    /// Look, at everyone's sessions.
    ReadAll,
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
            "read all" => Self::ReadAll,
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
            Self::ReadAll => read && visitor.viewer.sees_all(),
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
        let needed = all_routes()
            .operations()
            .filter_map(|(method, path, operation)| Some(((method, path), needed_by(&operation)?)));
        needed.collect()
    })
}

fn needed_by(operation: &Operation) -> Option<Needed> {
    let scope = operation.extensions.as_ref()?.get("x-scope")?;
    Needed::parse(scope.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_with_a_credential_says_what_it_needs() {
        for (method, path, operation) in all_routes().operations() {
            let security = serde_json::to_value(&operation.security).unwrap();
            let is_open = security == serde_json::json!([{}]);
            assert_eq!(needed_by(&operation).is_none(), is_open, "{method} {path}");
        }
    }
}
