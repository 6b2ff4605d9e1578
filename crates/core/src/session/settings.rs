//! What the user chose for a session, and how that is changed.

use super::state::Approval;
use crate::backend::{OptionChange, Options};

/// What the user chose for a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub approval: Approval,
    /// The options of the session's agent, which only its backend understands.
    pub options: Options,
}

/// Changes of settings. What is not named stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsPatch {
    pub approval: Option<Approval>,
    pub options: Vec<OptionChange>,
}

impl SettingsPatch {
    /// The settings with these changes.
    pub fn applied(&self, before: &Settings) -> Settings {
        let mut settings = before.clone();
        settings.approval = self.approval.unwrap_or(before.approval);
        for change in &self.options {
            settings.options.apply(change);
        }
        settings
    }
}
