//! Objects of the CLI as structs that lose nothing.
//!
//! Every release of the CLI adds fields, and some change their type. So a record takes from an object what it
//! understands and keeps the rest: unknown fields, fields with a value of an unexpected type, `null`s. Written out
//! again, the object is what it was.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Takes a field out of an object. What does not fit, or says no more than the default, stays where it is.
#[doc(hidden)]
pub fn take<T>(fields: &mut Map<String, Value>, name: &str) -> T
where
    T: DeserializeOwned + Default + PartialEq,
{
    let Some(value) = fields.get(name) else {
        return T::default();
    };
    match T::deserialize(value) {
        Ok(taken) if taken != T::default() => {
            fields.remove(name);
            taken
        }
        Ok(_) => T::default(),
        Err(error) => {
            if !value.is_null() {
                tracing::debug!(%error, name, "a field has an unexpected type");
            }
            T::default()
        }
    }
}

/// Puts a field back into an object, unless it says no more than the default.
#[doc(hidden)]
pub fn put<T, E>(fields: &mut Map<String, Value>, name: &str, value: &T) -> Result<(), E>
where
    T: Serialize + Default + PartialEq,
    E: serde::ser::Error,
{
    if *value != T::default() {
        fields.insert(name.to_owned(), serde_json::to_value(value).map_err(E::custom)?);
    }
    Ok(())
}

/// Defines structs whose fields come from a JSON object: `field: Type` or, where the CLI calls it differently,
/// `field = "name": Type`. Fields that are missing have their default.
#[doc(hidden)]
#[macro_export]
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident $(= $wire:literal)? : $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Default)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
                /// Everything that the other fields do not say, as the CLI wrote it.
                pub extra: serde_json::Map<String, serde_json::Value>,
            }

            impl From<serde_json::Map<String, serde_json::Value>> for $name {
                fn from(mut fields: serde_json::Map<String, serde_json::Value>) -> Self {
                    $(let $field = $crate::record::take(&mut fields, $crate::wire_name!($field $($wire)?));)*
                    Self { $($field,)* extra: fields }
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    serde_json::Map::deserialize(deserializer).map(Self::from)
                }
            }

            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    // A record of the caller's making may have no fields of its own.
                    #[allow(unused_mut)]
                    let mut fields = self.extra.clone();
                    $($crate::record::put::<_, S::Error>(
                        &mut fields,
                        $crate::wire_name!($field $($wire)?),
                        &self.$field,
                    )?;)*
                    fields.serialize(serializer)
                }
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! wire_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $wire:literal) => {
        $wire
    };
}

/// Defines an enum of records, told apart by the value of one field. An unknown value keeps the whole object.
#[doc(hidden)]
#[macro_export]
macro_rules! variants {
    ($(#[$doc:meta])* $name:ident by $tag:literal { $($(#[$variant_doc:meta])* $variant:ident = $wire:literal ($kind:ty),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant($kind),)*
            /// Something that this version of the crate does not know: the whole object.
            Other(serde_json::Map<String, serde_json::Value>),
        }

        impl From<serde_json::Map<String, serde_json::Value>> for $name {
            fn from(fields: serde_json::Map<String, serde_json::Value>) -> Self {
                match fields.get($tag).and_then(serde_json::Value::as_str) {
                    $(Some($wire) => Self::$variant(fields.into()),)*
                    _ => Self::Other(fields),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde_json::Map::deserialize(deserializer).map(Self::from)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(record) => record.serialize(serializer),)*
                    Self::Other(fields) => fields.serialize(serializer),
                }
            }
        }
    };
}
