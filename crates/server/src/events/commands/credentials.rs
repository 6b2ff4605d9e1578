//! Keys and browsers that come while someone watches. Nothing can be asked here: `/api/keys` and `/api/sign-ins` list them.

use serde::Serialize;
use tiller_core::credentials::Scopes;
use ts_rs::TS;
use utoipa::ToSchema;

use crate::announcements::NewCredential;
use crate::auth::{Credential, Visitor};

#[derive(Clone, Copy, Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum CredentialKind {
    Key,
    Browser,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct CredentialCreated {
    pub kind: CredentialKind,
    /// The id of the key or of the sign-in.
    pub id: String,
    /// The key's name, or what the browser calls itself.
    pub name: String,
    /// A key's scopes, separated by commas; a browser may do everything.
    pub scopes: String,
    /// The address from which the browser signed in. Absent for a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub address: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

impl CredentialCreated {
    /// What a visitor is told. `None`: it is the visitor's own sign-in.
    pub(in crate::events) fn for_visitor(new: NewCredential, visitor: &Visitor) -> Option<Self> {
        Some(match new {
            NewCredential::Key(key) => Self {
                kind: CredentialKind::Key,
                id: key.id,
                name: key.name,
                scopes: key.scopes.to_string(),
                address: None,
                created_at: key.created_at.0,
            },
            NewCredential::Browser(sign_in)
                if visitor.credential == Credential::SignIn(sign_in.id.clone()) =>
            {
                return None;
            }
            NewCredential::Browser(sign_in) => Self {
                kind: CredentialKind::Browser,
                id: sign_in.id.as_str().to_owned(),
                name: sign_in.user_agent,
                scopes: Scopes::ALL.to_string(),
                address: Some(sign_in.address),
                created_at: sign_in.created_at.0,
            },
        })
    }
}
