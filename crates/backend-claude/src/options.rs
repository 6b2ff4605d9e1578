//! The options of a session with Claude Code: their names and values, which of them a running CLI can change, and how
//! they become a command line.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tiller_agent::PermissionMode;
use tiller_agent::cli::Version;
use tiller_core::backend::{
    Grants, OptionChange, OptionInfo, OptionKind, OptionRefused, OptionRules, Options, SandboxView, Verdict,
    check_sandbox_option, sandbox_options,
};
use tiller_core::repeated;

use crate::inquiry::LastOffers;
use crate::sandbox::Sandboxing;

/// Comma-separated tools and rules that need no permission.
const ALLOWED_TOOLS: &str = "allowedTools";
/// The only tools that the agent has, which then need no permission.
const TOOLS: &str = "tools";
pub(crate) const MODEL: &str = "model";
pub(crate) const PERMISSION_MODE: &str = "permissionMode";
/// The effort of the model.
const EFFORT: &str = "effort";
/// The maximum number of model calls in one turn.
const MAX_TURNS: &str = "maxTurns";
/// The maximum cost of the conversation.
const MAX_BUDGET_USD: &str = "maxBudgetUsd";

/// What a CLI is given to spend at least: it takes no budget of nothing. A session without anything left gets no CLI.
const LEAST_BUDGET_USD: f64 = 0.0001;

/// The modes of a session. The CLI has others, which concern only the user and the CLI.
const MODES: &[PermissionMode] = &[
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::Plan,
    PermissionMode::Auto,
    PermissionMode::BypassPermissions,
];

/// The first release that is known to have the mode `auto`.
const WITH_AUTO: Version = Version::new(2, 1, 113);

/// The mode with this name, if a session can have it.
pub(crate) fn mode(name: &str) -> Option<PermissionMode> {
    MODES.iter().find(|mode| mode.as_str() == name).cloned()
}

/// The CLI's reported mode, as a change of the option.
pub(crate) fn mode_change(name: &str) -> Option<OptionChange> {
    let value = match mode(name)? {
        PermissionMode::Default => None,
        mode => Some(mode.as_str().into()),
    };
    Some(OptionChange {
        name: PERMISSION_MODE.to_owned(),
        value,
    })
}

/// The options of one session that are set.
pub(crate) struct Chosen<'a>(pub(crate) &'a Options);

impl Chosen<'_> {
    pub(crate) fn mode(&self) -> PermissionMode {
        let name = self.0.text(PERMISSION_MODE);
        name.and_then(mode).unwrap_or(PermissionMode::Default)
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.0.text(MODEL)
    }

    fn allowed_tools(&self) -> Vec<String> {
        self.0
            .text(ALLOWED_TOOLS)
            .map(tiller_agent::message::split_rules)
            .unwrap_or_default()
    }

    fn tools(&self) -> Option<Vec<String>> {
        let tools = self.0.get(TOOLS)?.as_array()?;
        let names = tools.iter().filter_map(Value::as_str);
        Some(names.map(str::to_owned).collect())
    }

    fn effort(&self) -> Option<&str> {
        self.0.text(EFFORT)
    }

    fn max_turns(&self) -> Option<u32> {
        u32::try_from(self.0.get(MAX_TURNS)?.as_u64()?).ok()
    }

    fn max_budget_usd(&self) -> Option<f64> {
        self.0.get(MAX_BUDGET_USD)?.as_f64()
    }

    /// What a session that has spent so much may still spend.
    fn budget_left(&self, spent_usd: f64) -> Option<f64> {
        Some((self.max_budget_usd()? - spent_usd).max(LEAST_BUDGET_USD))
    }

    fn bypasses(&self) -> bool {
        self.mode() == PermissionMode::BypassPermissions
    }

    /// The CLI's options with these, for a session that has spent so much. The CLI counts what its own process spends.
    pub(crate) fn applied_to(
        &self,
        mut options: tiller_agent::Options,
        spent_usd: f64,
    ) -> tiller_agent::Options {
        options = options.permission_mode(self.mode());
        if let Some(model) = self.model() {
            options = options.model(model);
        }
        let mut granted = self.allowed_tools();
        if let Some(tools) = self.tools() {
            options = options
                .tools(&tools)
                // The CLI's list has only its own tools; those of MCP servers are added to it.
                .strict_mcp(!tools.iter().any(|tool| tool.starts_with("mcp__")));
            granted.extend(tools);
        }
        options = options.allowed_tools(granted);
        if let Some(effort) = self.effort() {
            options = options.effort(effort);
        }
        if let Some(budget) = self.budget_left(spent_usd) {
            options = options.max_budget_usd(budget);
        }
        if let Some(turns) = self.max_turns() {
            options = options.max_turns(turns);
        }
        if self.bypasses() && is_root() {
            // As root the CLI wants a confirmation of this mode. The user gave it by choosing the mode.
            options = options.env("IS_SANDBOX", "1");
        }
        options
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    {
        rustix::process::geteuid().is_root()
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// Checks options against what the CLI last reported to offer.
pub(crate) struct ClaudeOptions {
    offers: LastOffers,
    /// Of the CLI, once it is known.
    version: Arc<OnceLock<String>>,
    sandboxing: Sandboxing,
}

impl ClaudeOptions {
    pub(crate) fn new(offers: LastOffers, sandboxing: Sandboxing, version: Arc<OnceLock<String>>) -> Self {
        Self {
            offers,
            version,
            sandboxing,
        }
    }

    /// A mode that the CLI would not start with is refused with what to do about it.
    fn check_mode(&self, value: &Value) -> Result<(), OptionRefused> {
        let refused = |message: String| OptionRefused::new(PERMISSION_MODE, message);
        let Some(mode) = value.as_str().and_then(mode) else {
            return Err(refused(format!("There is no permission mode {value}.")));
        };
        let version = self
            .version
            .get()
            .and_then(|version| version.parse::<Version>().ok());
        match version {
            Some(version) if mode == PermissionMode::Auto && version < WITH_AUTO => Err(refused(format!(
                "Claude Code {version} does not have the permission mode 'auto'. Update it, or choose another mode."
            ))),
            _ => Ok(()),
        }
    }

    /// A name that can't be mistaken for anything else on a command line, and that the CLI knows, as far as it has
    /// reported.
    fn check_model(&self, value: &Value, before: Option<&Options>) -> Result<(), OptionRefused> {
        let in_name = |character: char| character.is_ascii_alphanumeric() || "._:/@[]-".contains(character);
        let is_name = |name: &str| {
            !name.is_empty() && name.len() <= 128 && !name.starts_with('-') && name.chars().all(in_name)
        };
        let refused = |name: &str| {
            OptionRefused::new(
                MODEL,
                format!("Unknown model '{}': the agent does not offer it.", repeated(name)),
            )
        };
        let Some(name) = value.as_str() else {
            return Err(OptionRefused::new(MODEL, "A model must be a string."));
        };
        if !is_name(name) {
            return Err(refused(name));
        }
        match self.offers.get() {
            // The first process decides whether it knows the model; a running one has already reported its list.
            Some(offers)
                if before.is_some_and(|before| before.text(MODEL) != Some(name))
                    && !offers.models.iter().any(|offered| offered == name)
                    // The CLI lists the newest model of each family; a full name selects another one on purpose.
                    && !name.starts_with("claude-") =>
            {
                Err(refused(name))
            }
            _ => Ok(()),
        }
    }

    fn check_effort(&self, value: &Value) -> Result<(), OptionRefused> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word.len() <= 32
                && word.chars().all(|character| character.is_ascii_lowercase())
        };
        let offers = self.offers.get();
        let levels = offers.as_ref().map_or(&[][..], |offers| &offers.efforts);
        let is_level =
            |level: &str| is_word(level) && (levels.is_empty() || levels.iter().any(|known| known == level));
        match value.as_str() {
            Some(level) if is_level(level) => Ok(()),
            Some(level) => {
                let message = format!(
                    "Unknown effort '{}': the agent does not offer it.",
                    repeated(level)
                );
                Err(OptionRefused::new(EFFORT, message))
            }
            None => Err(OptionRefused::new(EFFORT, "An effort must be a string.")),
        }
    }
}

impl std::fmt::Debug for ClaudeOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ClaudeOptions")
    }
}

impl OptionRules for ClaudeOptions {
    fn describe(&self) -> Vec<OptionInfo> {
        let offers = self.offers.get();
        let option = |name: &str, title: &str, kind| OptionInfo {
            name: name.to_owned(),
            title: title.to_owned(),
            kind,
            choices: Vec::new(),
            default: None,
            live: false,
            grants: false,
        };
        let modes = MODES.iter().map(|mode| mode.as_str().to_owned()).collect();
        let own = vec![
            OptionInfo {
                choices: offers
                    .as_ref()
                    .map(|offers| offers.models.clone())
                    .unwrap_or_default(),
                live: true,
                ..option(MODEL, "Model", OptionKind::String)
            },
            OptionInfo {
                choices: modes,
                default: Some(PermissionMode::Default.as_str().into()),
                live: true,
                grants: true,
                ..option(PERMISSION_MODE, "Permission mode", OptionKind::Choice)
            },
            OptionInfo {
                choices: offers
                    .as_ref()
                    .map(|offers| offers.efforts.clone())
                    .unwrap_or_default(),
                ..option(EFFORT, "Effort", OptionKind::String)
            },
            OptionInfo {
                grants: true,
                ..option(ALLOWED_TOOLS, "Allowed tools", OptionKind::String)
            },
            OptionInfo {
                grants: true,
                ..option(TOOLS, "Tools", OptionKind::List)
            },
            option(MAX_TURNS, "Turn limit", OptionKind::Number),
            option(MAX_BUDGET_USD, "Budget in US dollars", OptionKind::Number),
        ];
        own.into_iter().chain(sandbox_options()).collect()
    }

    fn check(&self, options: Options, before: Option<&Options>) -> Result<Options, OptionRefused> {
        for (name, value) in options.iter() {
            if let Some(outcome) = check_sandbox_option(name, value) {
                outcome?;
                continue;
            }
            let fits = match name {
                MODEL => {
                    self.check_model(value, before)?;
                    true
                }
                EFFORT => {
                    self.check_effort(value)?;
                    true
                }
                PERMISSION_MODE => {
                    self.check_mode(value)?;
                    true
                }
                ALLOWED_TOOLS => value.as_str().is_some_and(|rules| !rules.contains('\0')),
                TOOLS => value
                    .as_array()
                    .is_some_and(|tools| tools.iter().all(Value::is_string)),
                MAX_TURNS => {
                    if value
                        .as_u64()
                        .is_none_or(|turns| turns == 0 || turns > u64::from(u32::MAX))
                    {
                        let message =
                            "A turn needs at least one model call. Use a number above zero, or omit it.";
                        return Err(OptionRefused::new(name, message));
                    }
                    true
                }
                MAX_BUDGET_USD => {
                    if value
                        .as_f64()
                        .is_none_or(|budget| !budget.is_finite() || budget <= 0.0)
                    {
                        return Err(OptionRefused::new(
                            name,
                            "A budget must be an amount of dollars above zero.",
                        ));
                    }
                    true
                }
                _ => {
                    let message = format!("Claude Code does not have the option '{}'.", repeated(name));
                    return Err(OptionRefused::new(name, message));
                }
            };
            if !fits {
                let message = format!("Invalid value for the option '{name}'.");
                return Err(OptionRefused::new(name, message));
            }
        }
        let mut options = options;
        if Chosen(&options).mode() == PermissionMode::Default {
            options.set(PERMISSION_MODE, Value::Null);
        }
        Ok(options)
    }

    fn live_changes(&self, started: &Options, current: &Options, wanted: &Options) -> Vec<OptionChange> {
        // The CLI can change to this mode only if its process was started for it.
        let mode_possible = !Chosen(wanted).bypasses() || Chosen(started).bypasses();
        let mut changes = current.changes_to(wanted);
        changes.retain(|change| match change.name.as_str() {
            MODEL => true,
            PERMISSION_MODE => mode_possible,
            _ => false,
        });
        changes
    }

    fn grants(&self, options: &Options) -> Grants {
        let chosen = Chosen(options);
        let mode = chosen.mode();
        let mut tools = chosen.allowed_tools();
        tools.extend(chosen.tools().unwrap_or_default());
        Grants {
            asks: matches!(mode, PermissionMode::Default | PermissionMode::Plan),
            mode: mode.as_str().to_owned(),
            tools,
        }
    }

    fn sandbox(&self, options: &Options) -> Option<SandboxView> {
        self.sandboxing.view(options)
    }

    fn budget_usd(&self, options: &Options) -> Option<f64> {
        Chosen(options).max_budget_usd()
    }

    fn within_budget(&self, options: Options, limit: f64) -> Option<Options> {
        match Chosen(&options).max_budget_usd() {
            Some(budget) => (budget <= limit).then_some(options),
            None => Some(options.with(MAX_BUDGET_USD, limit)),
        }
    }

    fn verdict(&self, options: &Options, tool: &str) -> Verdict {
        let chosen = Chosen(options);
        let listed = chosen.tools();
        if listed.is_some_and(|tools| !tools.iter().any(|listed| listed == tool)) {
            Verdict::Deny("This session may not use this tool.")
        } else if chosen.bypasses() {
            Verdict::Allow
        } else {
            Verdict::Ask
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> ClaudeOptions {
        ClaudeOptions::new(LastOffers::default(), Sandboxing::default(), Arc::default())
    }

    #[test]
    fn a_version_without_the_mode_auto_is_named() {
        let auto = Options::default().with(PERMISSION_MODE, "auto");
        for (version, fits) in [("2.1.325", true), ("2.1.113", true), ("2.1.49", false)] {
            let known = Arc::new(OnceLock::from(version.to_owned()));
            let checked = ClaudeOptions::new(LastOffers::default(), Sandboxing::default(), known)
                .check(auto.clone(), None);
            assert_eq!(checked.is_ok(), fits, "{version}: {checked:?}");
        }
        assert!(
            rules().check(auto.clone(), None).is_ok(),
            "a version that is not known"
        );
        assert!(!rules().grants(&auto).asks);
    }

    #[test]
    fn a_budget_is_what_the_session_has_left() {
        let options = Options::default().with(MAX_BUDGET_USD, 0.5);
        let left = |spent| Chosen(&options).budget_left(spent);
        assert_eq!(left(0.0), Some(0.5));
        assert_eq!(left(0.375), Some(0.125));
        assert_eq!(left(0.75), Some(LEAST_BUDGET_USD));
        assert_eq!(Chosen(&Options::default()).budget_left(0.75), None);
    }

    fn check(name: &str, value: Value) -> Result<Options, OptionRefused> {
        rules().check(Options::default().with(name, value), None)
    }

    #[test]
    fn values_on_a_command_line_are_checked() {
        for (name, value) in [
            (MODEL, json!("--dangerous")),
            (MODEL, json!("a b")),
            (MODEL, json!(1)),
            (EFFORT, json!("High")),
            (PERMISSION_MODE, json!("dontAsk")),
            (MAX_TURNS, json!(0)),
            (MAX_TURNS, json!(-1)),
            (MAX_BUDGET_USD, json!(0.0)),
            (TOOLS, json!("Read")),
            (TOOLS, json!([1])),
            (ALLOWED_TOOLS, json!(["Read"])),
            (ALLOWED_TOOLS, json!("Read\0Bash")),
            ("temperature", json!(1)),
        ] {
            let refused = check(name, value.clone()).expect_err(&format!("{name}: {value}"));
            assert_eq!(refused.option, name);
        }
        for (name, value) in [
            (MODEL, json!("claude-opus-4-1[1m]")),
            (EFFORT, json!("high")),
            (PERMISSION_MODE, json!("plan")),
            (MAX_TURNS, json!(3)),
            (MAX_BUDGET_USD, json!(0.5)),
            (TOOLS, json!([])),
        ] {
            check(name, value.clone()).expect("fine");
        }
    }

    #[test]
    fn the_default_mode_is_no_choice() {
        assert_eq!(check(PERMISSION_MODE, json!("default")), Ok(Options::default()));
        assert_eq!(mode_change("default").map(|change| change.value), Some(None));
        assert_eq!(mode_change("dontAsk"), None);
    }

    #[test]
    fn only_a_process_that_was_started_for_it_can_be_told_to_allow_everything() {
        let (plain, all) = (
            Options::default(),
            Options::default().with(PERMISSION_MODE, "bypassPermissions"),
        );
        let wanted = all.clone().with(MODEL, "opus").with(EFFORT, "high");
        let names =
            |changes: Vec<OptionChange>| changes.into_iter().map(|change| change.name).collect::<Vec<_>>();
        assert_eq!(names(rules().live_changes(&plain, &plain, &wanted)), [MODEL]);
        assert_eq!(
            names(rules().live_changes(&all, &plain, &wanted)),
            [MODEL, PERMISSION_MODE]
        );
        assert_eq!(
            names(rules().live_changes(&plain, &all, &plain)),
            [PERMISSION_MODE]
        );
    }

    #[test]
    fn a_tool_that_was_not_listed_is_denied() {
        let options = Options::default().with(TOOLS, json!(["Read"]));
        assert_eq!(rules().verdict(&options, "Read"), Verdict::Ask);
        assert!(matches!(rules().verdict(&options, "Bash"), Verdict::Deny(_)));
        let options = Options::default().with(PERMISSION_MODE, "bypassPermissions");
        assert_eq!(rules().verdict(&options, "Bash"), Verdict::Allow);
    }
}
