//! How viewers have arranged their sessions.

use std::collections::{BTreeMap, HashMap};

use tiller_core::{Arrange, Arranged, Arrangement, GroupId, Placement, SessionGroup, SessionId, Sorting};

/// By viewer; the person at the machine is nobody's key.
#[derive(Clone, Default)]
pub(super) struct Arrangements(HashMap<String, Chosen>);

#[derive(Clone, Default)]
struct Chosen {
    sorting: Sorting,
    groups: BTreeMap<GroupId, SessionGroup>,
    sessions: BTreeMap<SessionId, Placement>,
}

impl Arrangements {
    pub(super) fn of(&self, viewer: Option<&str>) -> Arrangement {
        let Some(chosen) = self.0.get(viewer.unwrap_or_default()) else {
            return Arrangement::default();
        };
        let mut groups: Vec<_> = chosen.groups.values().cloned().collect();
        groups.sort_by(|a, b| a.place.total_cmp(&b.place));
        Arrangement {
            sorting: chosen.sorting,
            groups,
            sessions: chosen.sessions.clone().into_iter().collect(),
        }
    }

    pub(super) fn has(&self, viewer: Option<&str>, session: SessionId) -> bool {
        self.0
            .get(viewer.unwrap_or_default())
            .is_some_and(|chosen| chosen.sessions.contains_key(&session))
    }

    /// The session, if one is named, exists.
    pub(super) fn change(&mut self, viewer: Option<String>, change: Arrange) -> Arranged {
        let chosen = self.0.entry(viewer.unwrap_or_default()).or_default();
        match change {
            Arrange::Session(session, patch) => {
                let before = chosen.sessions.remove(&session).unwrap_or_default();
                let mut placement = before.with(patch);
                placement.group = placement.group.filter(|group| chosen.groups.contains_key(group));
                if !placement.is_default() {
                    chosen.sessions.insert(session, placement.clone());
                }
                Arranged::Session(session, placement)
            }
            Arrange::Group(group) => {
                chosen.groups.insert(group.id, group.clone());
                Arranged::Group(group)
            }
            Arrange::RemoveGroup(group) => {
                chosen.groups.remove(&group);
                for placement in chosen.sessions.values_mut() {
                    placement.group = placement.group.filter(|of| *of != group);
                }
                chosen.sessions.retain(|_, placement| !placement.is_default());
                Arranged::GroupRemoved(group)
            }
            Arrange::Sort(sorting) => {
                chosen.sorting = sorting;
                Arranged::Sorted(sorting)
            }
        }
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        for chosen in self.0.values_mut() {
            chosen.sessions.remove(&session);
        }
    }
}
