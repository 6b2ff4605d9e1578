//! [`Names`]: a list of short texts in one allocation.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::list::shared::Text;

/// The terminator of every name. Paths can't contain it.
pub(crate) const END: char = '\0';

/// Names of tools, models or files, without duplicates, in order of their first occurrence.
///
/// A history has tens of thousands of names, and a list of sessions returns all of them: an allocation for each would
/// cost more than everything else about the list. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Names(Text);

impl Names {
    /// From a text in which every name is terminated.
    pub(crate) fn of(text: Text) -> Self {
        Self(text)
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        listed(&self.0)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    /// All names in one text.
    pub fn join(&self, separator: &str) -> String {
        self.iter().collect::<Vec<_>>().join(separator)
    }
}

/// The names in a text of terminated names.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator(END)
}

/// Whether a text consists of terminated names.
pub(crate) fn is_list(text: &str) -> bool {
    text.is_empty() || text.ends_with(END)
}

/// A name in which the terminator is replaced.
pub(crate) fn nameable(name: &str) -> Cow<'_, str> {
    if name.contains(END) {
        Cow::Owned(name.replace(END, "\u{fffd}"))
    } else {
        Cow::Borrowed(name)
    }
}

/// A list of names that is being built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    /// The names, as in [`Names`].
    text: String,
    /// The end of each name in `text`.
    ends: Vec<u32>,
    /// A fingerprint of each name: most names are added again and again, and hardly any has to be compared.
    prints: Vec<u32>,
}

impl PartialEq for Naming {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Naming {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Adds a name that is not in the list yet.
    pub(crate) fn add(&mut self, name: &str) {
        let print = fingerprint(name);
        let candidates = self.prints.iter().enumerate();
        if candidates
            .filter(|(_, other)| **other == print)
            .any(|(place, _)| self.get(place) == Some(name))
        {
            return;
        }
        if name.contains(END) {
            return self.add(&nameable(name));
        }
        // Names are few and short; more than four gigabytes are not shown.
        if let Ok(end) = u32::try_from(self.text.len() + name.len() + 1) {
            self.text.push_str(name);
            self.text.push(END);
            self.ends.push(end);
            self.prints.push(print);
        }
    }

    fn get(&self, place: usize) -> Option<&str> {
        let start = place
            .checked_sub(1)
            .map_or(Some(&0), |before| self.ends.get(before))?;
        let end = self.ends.get(place)?.checked_sub(1)?;
        self.text.get(*start as usize..end as usize)
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.get(self.len().checked_sub(1)?)
    }
}

impl<T: AsRef<str>> FromIterator<T> for Naming {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut all = Self::default();
        for name in names {
            all.add(name.as_ref());
        }
        all
    }
}

/// Names of one list often differ only in their last letters and in their length.
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
        Self(names.into_iter().collect::<Naming>().text.into())
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
                let mut names = Naming::default();
                while let Some(name) = sequence.next_element::<String>()? {
                    names.add(&name);
                }
                Ok(Names(names.text.into()))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_serialize_as_a_list() {
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
        assert_eq!((names.len(), names.join("+")), (3, "Bash++读".to_owned()));
    }

    #[test]
    fn a_name_with_the_mark_in_it_is_one_name() {
        let names: Names = ["a\0b", "c", "a\0b", "\0"].into_iter().collect();
        assert_eq!(names, ["a\u{fffd}b", "c", "\u{fffd}"]);
    }
}
