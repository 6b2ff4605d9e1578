//! Reading fields that may have changed their type since this crate was written.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field that is `null`, or not what was expected, is as good as absent.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    if value.is_null() {
        return Ok(T::default());
    }
    Ok(T::deserialize(value).unwrap_or_else(|error| {
        tracing::debug!(%error, "a field has an unexpected type");
        T::default()
    }))
}
