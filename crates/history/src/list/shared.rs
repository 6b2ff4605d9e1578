//! [`Text`]: a slice of a shared text.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::read::typed::shortened;

/// A text that may be a slice of a larger one. Cloning and slicing copy nothing: a list of thousands of sessions has
/// tens of thousands of texts, and an allocation for each would cost more than everything else about it.
#[derive(Clone, Default)]
pub struct Text {
    whole: Arc<str>,
    /// Both at character boundaries of `whole`.
    start: u32,
    end: u32,
}

impl Text {
    /// A slice of a text; empty if the ends are not at character boundaries.
    pub(crate) fn part(whole: &Arc<str>, start: u32, end: u32) -> Self {
        if whole.get(start as usize..end as usize).is_none() {
            return Self::default();
        }
        Self {
            whole: Arc::clone(whole),
            start,
            end,
        }
    }

    /// The first characters.
    pub(crate) fn first(&self, characters: usize) -> Self {
        let length = u32::try_from(shortened(self, characters).len());
        Self {
            end: length.map_or(self.end, |length| self.start + length),
            ..self.clone()
        }
    }

    pub fn as_str(&self) -> &str {
        let place = self.start as usize..self.end as usize;
        self.whole.get(place).unwrap_or_default()
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        // Text beyond four gigabytes is cut off.
        let length = text.floor_char_boundary(u32::MAX as usize);
        Self {
            whole: Arc::from(&text[..length]),
            start: 0,
            end: u32::try_from(length).unwrap_or_default(),
        }
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for Text {
    fn eq(&self, other: &T) -> bool {
        self.as_str() == other.as_ref()
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self.as_str(), formatter)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_characters_are_cut_between_characters() {
        for (text, short) in [
            ("", ""),
            ("标题", "标题"),
            ("一个长标题", "一个长"),
            ("a🌱bc", "a🌱b"),
        ] {
            let whole: Arc<str> = format!("é{text}é").into();
            let end = u32::try_from(whole.len() - 2).unwrap();
            assert_eq!(Text::part(&whole, 2, end).first(3), *short);
        }
    }

    #[test]
    fn a_part_is_never_half_a_character() {
        let whole: Arc<str> = "a登b".into();
        assert_eq!(Text::part(&whole, 1, 4), *"登");
        for (start, end) in [(2, 4), (1, 3), (4, 1), (0, 6), (9, 9)] {
            assert_eq!(Text::part(&whole, start, end), *"", "{start}..{end}");
        }
    }

    #[test]
    fn a_text_serializes_as_a_string() {
        let text = Text::from("say \"登录\"");
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, r#""say \"登录\"""#);
        assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        let (first, second) = (Text::from("a"), Text::from("b"));
        assert!(first < second);
    }
}
