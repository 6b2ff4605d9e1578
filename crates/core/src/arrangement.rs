//! How a viewer has arranged the sessions of their list: pins, groups, tags, and an order of their own.
//!
//! An arrangement belongs to its viewer, not to the sessions: a key never sees or changes the person's. It does not know how a
//! list is drawn; it says where things are.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::ids::SessionId;

/// How many groups a viewer may have. More than anyone looks at, and little to keep.
pub(crate) const MAX_GROUPS: usize = 200;
/// In characters.
pub(crate) const MAX_GROUP_NAME: usize = 80;
pub(crate) const MAX_TAGS: usize = 20;
/// In characters.
pub(crate) const MAX_TAG: usize = 40;

/// A group that a viewer has made. The client chooses the id.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GroupId(Uuid);

impl fmt::Display for GroupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for GroupId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionGroup {
    pub id: GroupId,
    pub name: String,
    /// Its place among the groups, the smallest first.
    pub place: f64,
}

/// What a viewer has chosen for one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// Its place among the pinned sessions, the smallest first. `None`: it is not pinned.
    pub pinned: Option<f64>,
    pub group: Option<GroupId>,
    /// Its place in its group or folder in the viewer's own order, the largest first. `None`: when it was created, in
    /// milliseconds, so that new sessions come first and one can be put between any two.
    pub place: Option<f64>,
    /// Each once.
    pub tags: Vec<String>,
}

/// What is to become of something that may be chosen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Choice<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// Nothing is chosen any more.
    Reset,
    Set(T),
}

impl<T> Choice<T> {
    fn or(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Reset => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// A change of a placement. What it does not name stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementPatch {
    pub pinned: Choice<f64>,
    pub group: Choice<GroupId>,
    pub place: Choice<f64>,
    pub tags: Option<Vec<String>>,
}

impl Placement {
    #[must_use]
    pub fn with(self, patch: PlacementPatch) -> Self {
        Self {
            pinned: patch.pinned.or(self.pinned),
            group: patch.group.or(self.group),
            place: patch.place.or(self.place),
            tags: patch.tags.unwrap_or(self.tags),
        }
    }

    /// Nothing was chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// In which order the sessions of a folder or group stand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Sorting {
    /// The last changed first.
    #[default]
    Activity,
    /// By their places.
    Own,
}

impl Sorting {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Own => "own",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Activity, Self::Own]
            .into_iter()
            .find(|sorting| sorting.as_str() == text)
    }
}

/// All of one viewer's arrangement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrangement {
    pub sorting: Sorting,
    /// By place, then by id.
    pub groups: Vec<SessionGroup>,
    /// Those for which something was chosen, by id.
    pub sessions: Vec<(SessionId, Placement)>,
}

/// What a viewer wants to change.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrange {
    Session(SessionId, PlacementPatch),
    /// Makes a group, or gives one another name or place.
    Group(SessionGroup),
    /// The sessions in it are in no group then.
    RemoveGroup(GroupId),
    Sort(Sorting),
}

/// What has changed in a viewer's arrangement.
#[derive(Clone, Debug, PartialEq)]
pub enum Arranged {
    Session(SessionId, Placement),
    Group(SessionGroup),
    GroupRemoved(GroupId),
    Sorted(Sorting),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ArrangementRefused {
    #[error("There is no such group.")]
    UnknownGroup,
    #[error("A group's name has between 1 and {MAX_GROUP_NAME} characters.")]
    GroupName,
    #[error("There are {MAX_GROUPS} groups already. Remove one first.")]
    TooManyGroups,
    #[error("A session has at most {MAX_TAGS} tags, each with between 1 and {MAX_TAG} characters.")]
    Tags,
    #[error("A place is a finite number.")]
    Place,
}

/// The tags in the form in which they are kept: each on one line and once, whatever its case.
pub(crate) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, ArrangementRefused> {
    let mut kept: Vec<String> = Vec::new();
    for tag in tags {
        let tag = on_one_line(&tag);
        let tag = tag.strip_prefix('#').unwrap_or(&tag).trim();
        if tag.is_empty() || tag.chars().count() > MAX_TAG {
            return Err(ArrangementRefused::Tags);
        }
        let is_known = |known: &String| known.to_lowercase() == tag.to_lowercase();
        if !kept.iter().any(is_known) {
            kept.push(tag.to_owned());
        }
    }
    if kept.len() > MAX_TAGS {
        return Err(ArrangementRefused::Tags);
    }
    Ok(kept)
}

pub(crate) fn checked_group(group: SessionGroup) -> Result<SessionGroup, ArrangementRefused> {
    let name = on_one_line(&group.name);
    if name.is_empty() || name.chars().count() > MAX_GROUP_NAME {
        return Err(ArrangementRefused::GroupName);
    }
    if !group.place.is_finite() {
        return Err(ArrangementRefused::Place);
    }
    Ok(SessionGroup { name, ..group })
}

/// A place that can be compared with others.
pub(crate) fn check_place(place: Choice<f64>) -> Result<(), ArrangementRefused> {
    match place {
        Choice::Set(place) if !place.is_finite() => Err(ArrangementRefused::Place),
        Choice::Set(_) | Choice::Keep | Choice::Reset => Ok(()),
    }
}

fn on_one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(given: &[&str]) -> Result<Vec<String>, ArrangementRefused> {
        checked_tags(given.iter().map(|tag| (*tag).to_owned()).collect())
    }

    #[test]
    fn tags_are_kept_on_one_line_and_once() {
        assert_eq!(
            tags(&["#bug", " two \n words", "Bug", "缺陷"]).unwrap(),
            ["bug", "two words", "缺陷"]
        );
        assert_eq!(tags(&[" # "]), Err(ArrangementRefused::Tags));
        assert_eq!(tags(&["\u{0}"]), Err(ArrangementRefused::Tags));
        assert_eq!(tags(&["字".repeat(MAX_TAG).as_str()]).unwrap().len(), 1);
        assert_eq!(
            tags(&["字".repeat(MAX_TAG + 1).as_str()]),
            Err(ArrangementRefused::Tags)
        );
        let many: Vec<_> = (0..=MAX_TAGS).map(|number| number.to_string()).collect();
        assert_eq!(checked_tags(many), Err(ArrangementRefused::Tags));
    }

    #[test]
    fn a_patch_changes_only_what_it_names() {
        let group = "00000000-0000-4000-8000-00000000000a".parse().unwrap();
        let before = Placement {
            pinned: Some(1.0),
            group: Some(group),
            place: None,
            tags: vec!["bug".to_owned()],
        };
        let patch = PlacementPatch {
            pinned: Choice::Reset,
            place: Choice::Set(7.5),
            ..PlacementPatch::default()
        };
        let expected = Placement {
            pinned: None,
            place: Some(7.5),
            ..before.clone()
        };
        assert_eq!(before.with(patch), expected);
    }
}
