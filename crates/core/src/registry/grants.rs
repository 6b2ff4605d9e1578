//! What a session may do unasked, for the audit log, and whether a key's agent can be shielded as its ceiling says.

use super::{CommandError, Sessions};
use crate::audit::{Action, Actor, AuditEntry};
use crate::backend::{Grants, OptionRules};
use crate::ids::{SessionId, Timestamp};
use crate::session::{Approval, Settings};

impl Sessions {
    /// Refuses if this viewer's agents are to be shielded and can't be.
    pub(super) fn check_shield(&self) -> Result<(), CommandError> {
        self.viewer.check_shield(|| self.not_shielded().is_some())
    }

    /// Notes in the audit log what settings grant that the session did not have before. They are in force already, so an
    /// entry that can't be written is only logged.
    pub(super) async fn audit_grant(
        &self,
        session: SessionId,
        before: Option<&Settings>,
        after: &Settings,
        rules: &dyn OptionRules,
    ) {
        let entry = AuditEntry::new(
            Actor::of(self.viewer.key.as_deref()),
            Action::Grant,
            Timestamp::now(),
        );
        if let Some(entry) = granted(entry, before, after, rules) {
            self.audit(entry.in_session(session)).await;
        }
    }

    /// Notes that someone is called back for these events and may answer for the user.
    pub(super) async fn audit_hooks(&self, session: SessionId, events: &[String]) {
        if events.is_empty() {
            return;
        }
        let actor = Actor::of(self.viewer.key.as_deref());
        let entry = AuditEntry::new(actor, Action::Grant, Timestamp::now())
            .in_session(session)
            .with("hooks", events.to_vec());
        self.audit(entry).await;
    }

    async fn audit(&self, entry: AuditEntry) {
        if let Err(error) = self.shared.store.audit(entry).await {
            tracing::warn!(%error, "the audit log lacks an entry about a grant");
        }
    }
}

/// The entry with what is granted. `None`: nothing is.
fn granted(
    mut entry: AuditEntry,
    before: Option<&Settings>,
    after: &Settings,
    rules: &dyn OptionRules,
) -> Option<AuditEntry> {
    let had = before.map_or_else(Grants::default, |before| rules.grants(&before.options));
    let has = rules.grants(&after.options);
    if !has.asks && (before.is_none() || had.mode != has.mode) {
        entry = entry.with("mode", has.mode);
    }
    let new_tools: Vec<String> = has
        .tools
        .into_iter()
        .filter(|tool| !had.tools.contains(tool))
        .collect();
    if !new_tools.is_empty() {
        entry = entry.with("tools", new_tools);
    }
    let was_auto = before.is_some_and(|before| before.approval == Approval::Auto);
    if after.approval == Approval::Auto && !was_auto {
        entry = entry.with("approval", Approval::Auto.as_str());
    }
    (!entry.detail.is_empty()).then_some(entry)
}
