//! The arrangement of the list of sessions: each viewer has one, which all of their clients share.

use super::{CommandError, Sessions, allowed};
use crate::arrangement::{
    Arrange, Arrangement, ArrangementRefused, Choice, MAX_GROUPS, check_place, checked_group, checked_tags,
};

impl Sessions {
    /// How this viewer has arranged their sessions.
    pub async fn arrangement(&self) -> Result<Arrangement, CommandError> {
        allowed(self.viewer.scopes.read)?;
        let mut arrangement = self.shared.store.arrangement(self.viewer.key.clone()).await?;
        // What a key may not see any more, it is not told of either.
        if !self.viewer.sees_all() {
            let mut seen = Vec::with_capacity(arrangement.sessions.len());
            for placed in arrangement.sessions {
                if self.exists(placed.0).await? {
                    seen.push(placed);
                }
            }
            arrangement.sessions = seen;
        }
        Ok(arrangement)
    }

    /// Changes this viewer's arrangement. All of their clients hear of it as [`Notice::Arranged`](crate::Notice).
    pub async fn arrange(&self, change: Arrange) -> Result<(), CommandError> {
        allowed(self.viewer.scopes.run)?;
        let change = self.checked(change).await?;
        let viewer = self.viewer.key.clone();
        let arranged = self.shared.store.arrange(viewer.clone(), change).await?;
        // The session was deleted a moment ago.
        let arranged = arranged.ok_or(CommandError::UnknownSession)?;
        self.shared.hub.publish_arranged(viewer, arranged);
        Ok(())
    }

    async fn checked(&self, change: Arrange) -> Result<Arrange, CommandError> {
        match change {
            Arrange::Session(session, mut patch) => {
                if !self.exists(session).await? {
                    return Err(CommandError::UnknownSession);
                }
                check_place(patch.pinned)?;
                check_place(patch.place)?;
                patch.tags = patch.tags.map(checked_tags).transpose()?;
                if let Choice::Set(group) = patch.group {
                    let groups = self.groups().await?;
                    if !groups.iter().any(|known| known.id == group) {
                        return Err(ArrangementRefused::UnknownGroup.into());
                    }
                }
                Ok(Arrange::Session(session, patch))
            }
            Arrange::Group(group) => {
                let group = checked_group(group)?;
                let groups = self.groups().await?;
                if groups.len() >= MAX_GROUPS && !groups.iter().any(|known| known.id == group.id) {
                    return Err(ArrangementRefused::TooManyGroups.into());
                }
                Ok(Arrange::Group(group))
            }
            Arrange::RemoveGroup(_) | Arrange::Sort(_) => Ok(change),
        }
    }

    async fn groups(&self) -> Result<Vec<crate::SessionGroup>, CommandError> {
        let arrangement = self.shared.store.arrangement(self.viewer.key.clone()).await?;
        Ok(arrangement.groups)
    }
}
