//! JSON objects as structs that lose nothing.
//!
//! Every release of an agent adds fields, and some change their type. So a record takes the fields that it understands
//! and keeps the rest in `extra`: unknown fields, fields with a value of an unexpected type, `null`s. A record that is
//! serialised equals the object that it was made from.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Fields of a record that were written although they have their default value. Most records have none.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Defaults(Option<Box<Map<String, Value>>>);

impl Defaults {
    fn take(&mut self, fields: &mut Map<String, Value>, name: &str) {
        if let Some((name, value)) = fields.remove_entry(name) {
            self.0.get_or_insert_default().insert(name, value);
        }
    }

    #[doc(hidden)]
    pub fn put(&self, fields: &mut Map<String, Value>) {
        if let Some(defaults) = &self.0 {
            fields.extend(defaults.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
}

/// Takes a field out of an object. A value of an unexpected type stays where it is. A value that equals the default
/// moves to `defaults`, so that the object can be written again as it was.
#[doc(hidden)]
pub fn take<T>(fields: &mut Map<String, Value>, defaults: &mut Defaults, name: &str) -> T
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
        Ok(_) => {
            defaults.take(fields, name);
            T::default()
        }
        Err(_) if value.is_null() => {
            defaults.take(fields, name);
            T::default()
        }
        Err(error) => {
            tracing::debug!(%error, name, "a field has an unexpected type");
            T::default()
        }
    }
}

/// Puts a field back into an object, unless it has its default value.
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

/// Defines structs whose fields come from a JSON object: `field: Type` or, where the JSON has another name,
/// `field = "name": Type`. Missing fields have their default value.
#[doc(hidden)]
#[macro_export]
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident $(= $wire:literal)? : $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Default)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
                /// The object's other fields, as the agent wrote them: fields that this struct does not have, and
                /// fields with a value of an unexpected type.
                pub extra: serde_json::Map<String, serde_json::Value>,
                /// Fields of this struct that were written although they have their default value.
                #[doc(hidden)]
                pub defaults: $crate::record::Defaults,
            }

            impl From<serde_json::Map<String, serde_json::Value>> for $name {
                fn from(
                    #[allow(unused_mut)] mut fields: serde_json::Map<String, serde_json::Value>,
                ) -> Self {
                    // A record may have no fields of its own.
                    #[allow(unused_mut)]
                    let mut defaults = $crate::record::Defaults::default();
                    $(let $field =
                        $crate::record::take(&mut fields, &mut defaults, $crate::wire_name!($field $($wire)?));)*
                    Self { $($field,)* extra: fields, defaults }
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    serde_json::Map::deserialize(deserializer).map(Self::from)
                }
            }

            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let mut fields = self.extra.clone();
                    self.defaults.put(&mut fields);
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

        impl Default for $name {
            fn default() -> Self {
                Self::Other(serde_json::Map::new())
            }
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

/// Records of the message language: structs, and their TypeScript.
macro_rules! message_records {
    ($($tokens:tt)*) => {
        $crate::records! { $($tokens)* }
        #[cfg(feature = "ts")]
        $crate::types::record_types! { $($tokens)* }
    };
}

/// Variants of the message language: enums, and their TypeScript.
macro_rules! message_variants {
    ($($tokens:tt)*) => {
        $crate::variants! { $($tokens)* }
        #[cfg(feature = "ts")]
        $crate::types::variant_types! { $($tokens)* }
    };
}

pub(crate) use {message_records, message_variants};
