//! The settings of a session, and changes to them.

use super::state::Approval;
use crate::backend::{OptionChange, Options};

/// The settings that the user chose for a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub approval: Approval,
    /// The agent's options, which only its backend understands.
    pub options: Options,
}

/// Changes of settings. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsPatch {
    pub approval: Option<Approval>,
    pub options: Vec<OptionChange>,
}

impl SettingsPatch {
    /// The settings after these changes.
    pub fn applied(&self, before: &Settings) -> Settings {
        let mut settings = before.clone();
        settings.approval = self.approval.unwrap_or(before.approval);
        for change in &self.options {
            settings.options.apply(change);
        }
        settings
    }
}
