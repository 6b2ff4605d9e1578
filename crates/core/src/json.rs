//! A JSON value as its original text, shared by all readers.

use std::fmt;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A valid JSON value as text, not parsed further. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(|value| Self(value.get().into()))
    }

    /// Text that was checked before, as every message of an agent is.
    pub fn checked(text: Arc<str>) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
        Self(text)
    }

    /// Serializes a value of our own.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are the same value, however they are written.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let value = |json: &Self| serde_json::from_str::<serde_json::Value>(json.as_str()).ok();
        self == other || value(self).is_some_and(|own| value(other) == Some(own))
    }

    /// The text, shared, not copied.
    pub fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        Self(value.get().into())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}
