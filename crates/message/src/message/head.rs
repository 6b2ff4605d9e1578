//! Reading a message's head: one pass that checks the whole line and borrows what it finds.
//!
//! Of a duplicate key the last value counts, and a field of the wrong type counts as absent: a release that changes a
//! field does not lose the message.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{DeltaHead, DeltaKind, StreamEventKind, Text};

#[derive(Default)]
pub(super) struct BorrowedHead<'a> {
    pub(super) name: Option<Piece<'a>>,
    pub(super) subtype: Option<Piece<'a>>,
    pub(super) uuid: Option<Piece<'a>>,
    pub(super) session_id: Option<Piece<'a>>,
    pub(super) parent_tool_use_id: Option<Piece<'a>>,
    pub(super) event: BorrowedEvent<'a>,
}

/// The `event` of a stream event, as far as it is a delta of text.
#[derive(Default)]
pub(super) struct BorrowedEvent<'a> {
    pub(super) kind: Option<StreamEventKind>,
    index: Option<u64>,
    delta: BorrowedDelta<'a>,
}

#[derive(Default)]
struct BorrowedDelta<'a> {
    added: Option<(DeltaKind, Piece<'a>)>,
}

impl BorrowedEvent<'_> {
    pub(super) fn keep(self, line: &str) -> Option<DeltaHead> {
        let (kind, piece) = self.delta.added?;
        Some(DeltaHead {
            index: u32::try_from(self.index?).ok()?,
            kind,
            text: piece.keep(line),
        })
    }
}

/// A string of the line: borrowed, unless it had escapes.
pub(super) enum Piece<'a> {
    Borrowed(&'a str),
    Owned(Box<str>),
}

impl Piece<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }

    pub(super) fn keep(self, line: &str) -> Text {
        match self {
            Self::Borrowed(text) => {
                let start = text.as_ptr() as usize - line.as_ptr() as usize;
                match (u32::try_from(start), u32::try_from(text.len())) {
                    (Ok(start), Ok(length)) => Text::At { start, length },
                    _ => Text::Unescaped(text.into()),
                }
            }
            Self::Owned(text) => Text::Unescaped(text),
        }
    }

    pub(super) fn keep_option(piece: Option<Self>, line: &str) -> Text {
        piece.map_or(Text::Absent, |piece| piece.keep(line))
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum HeadKey {
    Type,
    Subtype,
    Uuid,
    SessionId,
    ParentToolUseId,
    Event,
    #[serde(other)]
    Other,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum EventKey {
    Type,
    Index,
    Delta,
    #[serde(other)]
    Other,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DeltaKey {
    Text,
    Thinking,
    PartialJson,
    Signature,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for BorrowedHead<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = BorrowedHead<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut head = BorrowedHead::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        HeadKey::Type => head.name = any(&mut map)?,
                        HeadKey::Subtype => head.subtype = any(&mut map)?,
                        HeadKey::Uuid => head.uuid = any(&mut map)?,
                        HeadKey::SessionId => head.session_id = any(&mut map)?,
                        HeadKey::ParentToolUseId => head.parent_tool_use_id = any(&mut map)?,
                        HeadKey::Event => head.event = any(&mut map)?,
                        HeadKey::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(HeadVisitor)
    }
}

/// What can be made of some JSON values; the others make the default.
trait Shape<'de>: Default {
    fn from_text(_text: Piece<'de>) -> Self {
        Self::default()
    }

    fn from_number(_number: u64) -> Self {
        Self::default()
    }

    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl<'de> Shape<'de> for Option<Piece<'de>> {
    fn from_text(text: Piece<'de>) -> Self {
        Some(text)
    }
}

impl Shape<'_> for Option<u64> {
    fn from_number(number: u64) -> Self {
        Some(number)
    }
}

impl<'de> Shape<'de> for Option<StreamEventKind> {
    fn from_text(text: Piece<'de>) -> Self {
        Some(StreamEventKind::of(text.as_str()))
    }
}

impl<'de> Shape<'de> for BorrowedEvent<'de> {
    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut event = Self::default();
        while let Some(key) = object.next_key()? {
            match key {
                EventKey::Type => event.kind = any(&mut object)?,
                EventKey::Index => event.index = any(&mut object)?,
                EventKey::Delta => event.delta = any(&mut object)?,
                EventKey::Other => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }
}

impl<'de> Shape<'de> for BorrowedDelta<'de> {
    fn from_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut delta = Self::default();
        while let Some(key) = object.next_key()? {
            let kind = match key {
                DeltaKey::Text => DeltaKind::Text,
                DeltaKey::Thinking => DeltaKind::Thinking,
                DeltaKey::PartialJson => DeltaKind::InputJson,
                DeltaKey::Signature => DeltaKind::Signature,
                DeltaKey::Other => {
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if let Some(piece) = any(&mut object)? {
                delta.added = Some((kind, piece));
            }
        }
        Ok(delta)
    }
}

/// Reads a value whatever it is.
fn any<'de, T: Shape<'de>, A: MapAccess<'de>>(map: &mut A) -> Result<T, A::Error> {
    map.next_value_seed(Any(PhantomData))
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Shape<'de>> de::DeserializeSeed<'de> for Any<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Shape<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_text(Piece::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::from_text(Piece::Owned(text.into())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok(T::from_number(number))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::from_object(object)
    }
}
