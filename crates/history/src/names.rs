//! [`Names`]: a list of short texts in one piece of memory.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::bytes::{Input, push_text};

/// Names of tools, models or files, each once, in the order in which they were met.
///
/// A history has tens of thousands of them, and a list of sessions hands all of them out: a text of its own for each would
/// cost more than everything else about the list. To clone it costs nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Names(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<u32>,
    /// A fingerprint of each name, as far as they were needed: of the many names that are added again and again, hardly any
    /// has to be compared.
    prints: Vec<u32>,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

impl Eq for Inner {}

impl Names {
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let Inner { text, ends, .. } = &*self.0;
        let mut start = 0;
        ends.iter().map(move |end| {
            let name = &text[start..*end as usize];
            start = *end as usize;
            name
        })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    /// All of them in one text.
    pub fn join(&self, separator: &str) -> String {
        self.iter().collect::<Vec<_>>().join(separator)
    }

    /// Adds one that is not there yet.
    pub(crate) fn add(&mut self, name: &str) {
        let print = fingerprint(name);
        if self.0.prints.len() < self.0.ends.len() {
            let prints = self.iter().map(fingerprint).collect();
            Arc::make_mut(&mut self.0).prints = prints;
        }
        let candidates = self.0.prints.iter().enumerate();
        if candidates
            .filter(|(_, other)| **other == print)
            .any(|(place, _)| self.get(place) == Some(name))
        {
            return;
        }
        let inner = Arc::make_mut(&mut self.0);
        // Names are few and short; beyond four gigabytes of them there is nothing to be shown.
        if let Ok(end) = u32::try_from(inner.text.len() + name.len()) {
            inner.text.push_str(name);
            inner.ends.push(end);
            inner.prints.push(print);
        }
    }

    fn get(&self, place: usize) -> Option<&str> {
        let Inner { text, ends, .. } = &*self.0;
        let start = place.checked_sub(1).map_or(Some(&0), |before| ends.get(before))?;
        text.get(*start as usize..*ends.get(place)? as usize)
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.get(self.len().checked_sub(1)?)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend((self.0.ends.len() as u64).to_le_bytes());
        for end in &self.0.ends {
            out.extend(end.to_le_bytes());
        }
        push_text(out, &self.0.text);
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Option<Self> {
        let count = input.count(4)?;
        let mut ends = Vec::with_capacity(count);
        for _ in 0..count {
            ends.push(input.u32()?);
        }
        let text = input.text()?;
        let is_sound = ends.is_sorted()
            && ends.last().is_none_or(|last| *last as usize == text.len())
            && ends.iter().all(|end| text.is_char_boundary(*end as usize));
        is_sound.then(|| {
            Self(Arc::new(Inner {
                text: text.to_owned(),
                ends,
                prints: Vec::new(),
            }))
        })
    }
}

/// Names of one list often differ in their last letters only, and in their length.
fn fingerprint(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let end = bytes.last_chunk::<8>().map_or_else(
        || {
            let mut end = [0; 8];
            end[..bytes.len()].copy_from_slice(bytes);
            end
        },
        |end| *end,
    );
    let mixed = (u64::from_le_bytes(end) ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [.., a, b, c, d] = mixed.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl std::fmt::Debug for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Names {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut all = Self::default();
        for name in names {
            all.add(name.as_ref());
        }
        all
    }
}

impl<T: AsRef<str>, const N: usize> PartialEq<[T; N]> for Names {
    fn eq(&self, other: &[T; N]) -> bool {
        self.iter().eq(other.iter().map(AsRef::as_ref))
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Names;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a list of names")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Names, A::Error> {
                let mut names = Names::default();
                while let Some(name) = sequence.next_element::<String>()? {
                    names.add(&name);
                }
                Ok(names)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_list_for_everyone_else() {
        let names: Names = ["Bash", "", "读", "Bash"].into_iter().collect();
        assert_eq!(names, ["Bash", "", "读"]);
        assert_eq!(
            serde_json::to_value(&names).unwrap(),
            serde_json::json!(["Bash", "", "读"])
        );
        assert_eq!(
            serde_json::from_str::<Names>(r#"["Bash","","读"]"#).unwrap(),
            names
        );
        let mut bytes = Vec::new();
        names.write(&mut bytes);
        assert_eq!(Names::read(&mut Input(&bytes)), Some(names));
        // An end in the middle of a character, and one beyond the text.
        for wrong in [5u32, 99] {
            let mut damaged = bytes.clone();
            damaged[8..12].copy_from_slice(&wrong.to_le_bytes());
            assert_eq!(Names::read(&mut Input(&damaged)), None);
        }
    }
}
