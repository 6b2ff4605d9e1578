//! Rights beyond reading: grants, which need the scope `approve`, and the ceilings of keys. All doors go through
//! [`Sessions`](crate::Sessions), which checks the rights here; no door decides by itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::{
    Grants, OptionRules, Options, SANDBOX, SANDBOX_FOLDERS, SANDBOX_HOSTS, SandboxLevel, SandboxLists,
    loosens,
};
use crate::credentials::Viewer;
use crate::event::{DecisionRequest, Event, EventBody};
use crate::ids::SessionId;
use crate::json::RawJson;
use crate::registry::CommandError;
use crate::session::{Approval, DecisionAnswer, SessionRecord, Settings};
use crate::store::{DamagedSession, Owners};

/// Tools whose calls are questions to a person. Answering them grants nothing.
const QUESTIONS: [&str; 2] = ["AskUserQuestion", "Elicitation"];

/// Which sessions a key sees. Its own are always among them.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sees {
    /// Sessions that were started with the key.
    #[default]
    Own,
    /// These, too.
    Sessions(Vec<SessionId>),
    /// Those that work in these folders or beneath them, too. The folders are resolved.
    Folders(Vec<PathBuf>),
    /// The sessions of all owners.
    All,
}

/// Where a session comes from: all that decides who may see it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Provenance {
    pub session: SessionId,
    /// The id of the key that started it. `None`: the person at the machine did.
    pub owner: Option<String>,
    pub cwd: String,
}

impl Provenance {
    pub fn of(record: &SessionRecord) -> Self {
        Self {
            session: record.id,
            owner: record.owner.clone(),
            cwd: record.cwd.clone(),
        }
    }

    pub(crate) fn of_damaged(damaged: &DamagedSession) -> Self {
        Self {
            session: damaged.id,
            owner: damaged.owner.clone(),
            cwd: damaged.cwd.clone(),
        }
    }
}

/// The limits of a key, whatever its scopes are. An absent field sets no limit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ceiling {
    /// The permission modes that the key may choose, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<String>>,
    /// The tools and rules that the key may grant. A tool's name covers all of its rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The folders beneath which the key's agents may work, resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<PathBuf>>,
    /// The maximum cost of each of its sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Its agents run shielded only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shield: bool,
    /// The key's agents run only in a sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sandbox: bool,
    /// Where they can write beside their working directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_folders: Vec<PathBuf>,
    /// The hosts that they can reach beside what the agent itself needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_hosts: Vec<String>,
    pub sees: Sees,
}

impl Ceiling {
    fn sandbox_lists(&self) -> SandboxLists {
        SandboxLists {
            folders: self.sandbox_folders.clone(),
            hosts: self
                .sandbox_hosts
                .iter()
                .filter_map(|host| host.parse().ok())
                .collect(),
        }
    }

    /// The options with the key's sandbox: what is not said is as the key has it, and nothing exceeds that.
    fn in_sandbox(&self, mut options: Options) -> Result<Options, CommandError> {
        match SandboxLevel::chosen(&options) {
            None => options.set(SANDBOX, SandboxLevel::On.name()),
            Some(SandboxLevel::On) => {}
            Some(SandboxLevel::Files | SandboxLevel::Off) => return Err(CommandError::Forbidden),
        }
        let unset = |name: &str, list: bool| list && options.get(name).is_none();
        let (folders, hosts) = (
            unset(SANDBOX_FOLDERS, !self.sandbox_folders.is_empty()),
            unset(SANDBOX_HOSTS, !self.sandbox_hosts.is_empty()),
        );
        if folders {
            let list = self.sandbox_folders.iter().map(|folder| folder.to_string_lossy());
            options.set(SANDBOX_FOLDERS, list.collect::<Vec<_>>());
        }
        if hosts {
            options.set(SANDBOX_HOSTS, self.sandbox_hosts.clone());
        }
        if self.sandbox_lists().includes(&SandboxLists::chosen(&options)) {
            Ok(options)
        } else {
            Err(CommandError::Forbidden)
        }
    }

    fn covers_mode(&self, grants: &Grants) -> bool {
        let listed = |modes: &Vec<String>| modes.contains(&grants.mode);
        // A limit on tools would be void in a mode that does not ask about them.
        self.modes.as_ref().is_none_or(listed) && (self.tools.is_none() || grants.asks)
    }

    fn covers_tool(&self, rule: &str) -> bool {
        let tool = rule.split('(').next().unwrap_or(rule).trim();
        let covers = |granted: &String| granted == rule || granted == tool;
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(covers))
    }
}

impl Viewer {
    /// Whether the viewer sees all owners' sessions and transcripts.
    pub fn sees_all(&self) -> bool {
        let of_key = || {
            self.ceiling
                .as_ref()
                .is_some_and(|ceiling| ceiling.sees == Sees::All)
        };
        self.key.is_none() || of_key()
    }

    pub fn may_see(&self, session: &Provenance) -> bool {
        let Some(key) = &self.key else { return true };
        if session.owner.as_ref() == Some(key) {
            return true;
        }
        match self.ceiling.as_ref().map(|ceiling| &ceiling.sees) {
            None | Some(Sees::Own) => false,
            Some(Sees::Sessions(listed)) => listed.contains(&session.session),
            Some(Sees::Folders(folders)) => {
                let cwd = Path::new(&session.cwd);
                folders.iter().any(|folder| cwd.starts_with(folder))
            }
            Some(Sees::All) => true,
        }
    }

    /// The sessions that it may see, for a list.
    pub(crate) fn owners(&self) -> Owners {
        let Some(key) = &self.key else { return Owners::All };
        let seen = |sessions: Vec<SessionId>, folders: Vec<String>| Owners::Seen {
            key: key.clone(),
            sessions,
            folders,
        };
        match self.ceiling.as_ref().map(|ceiling| &ceiling.sees) {
            None | Some(Sees::Own) => seen(Vec::new(), Vec::new()),
            Some(Sees::Sessions(listed)) => seen(listed.clone(), Vec::new()),
            Some(Sees::Folders(folders)) => {
                let text = |folder: &PathBuf| folder.to_string_lossy().into_owned();
                seen(Vec::new(), folders.iter().map(text).collect())
            }
            Some(Sees::All) => Owners::All,
        }
    }

    /// Refuses to start an agent of a key that is to be shielded where nothing can be.
    pub(crate) fn check_shield(&self, not_shielded: impl FnOnce() -> bool) -> Result<(), CommandError> {
        let wants_shield = self.limits().is_some_and(|ceiling| ceiling.shield);
        if wants_shield && not_shielded() {
            return Err(CommandError::ShieldUnavailable);
        }
        Ok(())
    }

    /// The viewer has only the scope `approve`: it may see and answer pending decisions, and nothing else.
    pub(crate) fn only_decides(&self) -> bool {
        self.scopes.approve && !self.scopes.read && !self.scopes.run
    }

    /// Whether an event concerns a pending decision.
    pub(crate) fn may_hear(&self, event: &Event) -> bool {
        match event.body {
            EventBody::DecisionRequested(_) | EventBody::DecisionResolved { .. } | EventBody::Status(_) => {
                true
            }
            EventBody::Message { .. } | EventBody::Unreadable(_) | EventBody::UserPrompt { .. } => {
                !self.only_decides()
            }
        }
    }

    /// The ceiling of a key. `None` for the person at the machine, who has none.
    fn limits(&self) -> Option<Ceiling> {
        self.key.as_ref()?;
        Some(self.ceiling.as_deref().cloned().unwrap_or_default())
    }

    /// The settings, limited to the key's budget. Refuses settings that grant more than this viewer may grant, except
    /// what the session has already been granted.
    pub(crate) fn check_grants(
        &self,
        wanted: Settings,
        before: Option<&Settings>,
        rules: &dyn OptionRules,
    ) -> Result<Settings, CommandError> {
        let Some(ceiling) = self.limits() else {
            return Ok(wanted);
        };
        let grants = rules.grants(&wanted.options);
        let had = before.map(|before| rules.grants(&before.options));
        let (mut granting, mut covered) = (false, true);
        if had
            .as_ref()
            .is_none_or(|had| (&had.mode, had.asks) != (&grants.mode, grants.asks))
        {
            granting |= !grants.asks;
            covered &= ceiling.covers_mode(&grants);
        }
        if wanted.approval == Approval::Auto && before.is_none_or(|before| before.approval != Approval::Auto)
        {
            granting = true;
            covered &= ceiling.tools.is_none();
        }
        let had = had.map(|had| had.tools).unwrap_or_default();
        for tool in grants.tools.iter().filter(|tool| !had.contains(tool)) {
            granting = true;
            covered &= ceiling.covers_tool(tool);
        }
        granting |= before.is_some_and(|before| loosens(&before.options, &wanted.options));
        if (granting && !self.scopes.approve) || !covered {
            return Err(CommandError::Forbidden);
        }
        let wanted = if ceiling.sandbox {
            if !rules.has_sandbox() {
                return Err(CommandError::SandboxUnavailable);
            }
            let options = ceiling.in_sandbox(wanted.options)?;
            Settings { options, ..wanted }
        } else {
            wanted
        };
        match ceiling.budget_usd {
            None => Ok(wanted),
            Some(limit) => {
                let options = rules.within_budget(wanted.options, limit);
                let options = options.ok_or(CommandError::Forbidden)?;
                Ok(Settings { options, ..wanted })
            }
        }
    }

    /// The settings of a new session, with the sandbox that sessions of keys get by default. Who starts one without that
    /// sandbox grants more than the default.
    pub(crate) fn with_default_sandbox(
        &self,
        settings: Settings,
        default: SandboxLevel,
        rules: &dyn OptionRules,
    ) -> Result<Settings, CommandError> {
        if self.key.is_none() || default == SandboxLevel::Off {
            return Ok(settings);
        }
        if !rules.has_sandbox() {
            return Err(CommandError::SandboxUnavailable);
        }
        match SandboxLevel::chosen(&settings.options) {
            None => {
                let options = settings.options.with(SANDBOX, default.name());
                Ok(Settings { options, ..settings })
            }
            Some(chosen) if chosen < default && !self.scopes.approve => Err(CommandError::Forbidden),
            Some(_) => Ok(settings),
        }
    }

    /// Refuses folders outside of the key's roots.
    pub(crate) fn check_place(&self, cwd: &Path) -> Result<(), CommandError> {
        let Some(ceiling) = self.limits() else {
            return Ok(());
        };
        let beneath = |roots: &Vec<PathBuf>| roots.iter().any(|root| cwd.starts_with(root));
        if ceiling.roots.as_ref().is_none_or(beneath) {
            Ok(())
        } else {
            Err(CommandError::Forbidden)
        }
    }

    /// Refuses to continue a session that may do more without asking than this viewer may grant. In its own sessions a
    /// key may use what another viewer granted.
    pub(crate) fn check_going_on(
        &self,
        record: &SessionRecord,
        rules: &dyn OptionRules,
    ) -> Result<(), CommandError> {
        self.check_place(record.cwd.as_ref())?;
        if self.key.is_none() || self.key == record.owner {
            return Ok(());
        }
        let within = self.check_grants(record.settings.clone(), None, rules)?;
        // The session's budget is its owner's choice.
        if within == record.settings {
            Ok(())
        } else {
            Err(CommandError::Forbidden)
        }
    }

    /// The answer that this viewer may give. From a key, rules are accepted only as they were offered and only for the
    /// session, and tools only within its ceiling.
    pub(crate) fn check_answer(
        &self,
        asked: Option<&DecisionRequest>,
        answer: DecisionAnswer,
    ) -> Result<DecisionAnswer, CommandError> {
        let (Some(ceiling), DecisionAnswer::Allow { input, permissions }) = (self.limits(), &answer) else {
            return Ok(answer);
        };
        let Some(asked) = asked else {
            // No such decision is pending; the session reports the error.
            return Ok(answer);
        };
        if !QUESTIONS.contains(&asked.tool_name.as_str()) && !ceiling.covers_tool(&asked.tool_name) {
            return Err(CommandError::Forbidden);
        }
        let permissions = match permissions {
            Some(wanted) => {
                let offered = offered_for_session(wanted, asked.suggestions.as_ref());
                Some(offered.ok_or(CommandError::Forbidden)?)
            }
            None => None,
        };
        Ok(DecisionAnswer::Allow {
            input: input.clone(),
            permissions,
        })
    }
}

/// The wanted rules for the session only. `None` if one of them was not offered.
fn offered_for_session(wanted: &RawJson, offered: Option<&RawJson>) -> Option<RawJson> {
    let parse = |raw: &RawJson| serde_json::from_str::<Vec<Value>>(raw.as_str()).ok();
    let offered: Vec<Value> = offered.map_or(Some(Vec::new()), parse)?;
    let offered_here: Vec<Value> = offered.iter().cloned().map(for_session).collect();
    let wanted = parse(wanted)?;
    let was_offered = |update: &Value| offered.contains(update) || offered_here.contains(update);
    if !wanted.iter().all(was_offered) {
        return None;
    }
    let kept: Vec<Value> = wanted.into_iter().map(for_session).collect();
    RawJson::of(&kept).ok()
}

fn for_session(mut update: Value) -> Value {
    if let Some(fields) = update.as_object_mut() {
        fields.insert("destination".to_owned(), "session".into());
    }
    update
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::{OptionChange, OptionInfo, OptionRefused, Verdict};
    use crate::credentials::Scopes;

    fn key(scopes: &str, ceiling: Ceiling) -> Viewer {
        Viewer {
            key: Some("key_1".to_owned()),
            scopes: Scopes::parse(scopes).unwrap(),
            approval: None,
            ceiling: Some(Arc::new(ceiling)),
        }
    }

    /// An agent with a mode, a list of tools and a budget.
    #[derive(Debug)]
    struct Rules;

    impl OptionRules for Rules {
        fn describe(&self) -> Vec<OptionInfo> {
            Vec::new()
        }

        fn check(&self, options: Options, _: Option<&Options>) -> Result<Options, OptionRefused> {
            Ok(options)
        }

        fn live_changes(&self, _: &Options, _: &Options, _: &Options) -> Vec<OptionChange> {
            Vec::new()
        }

        fn verdict(&self, _: &Options, _: &str) -> Verdict {
            Verdict::Ask
        }

        fn grants(&self, options: &Options) -> Grants {
            let mode = options.text("mode").unwrap_or("default").to_owned();
            let tools = options.text("tools");
            Grants {
                asks: mode == "default" || mode == "plan",
                mode,
                tools: tools
                    .into_iter()
                    .flat_map(|tools| tools.split(','))
                    .map(str::to_owned)
                    .collect(),
            }
        }

        fn within_budget(&self, options: Options, limit: f64) -> Option<Options> {
            match options.get("budget").and_then(Value::as_f64) {
                Some(budget) => (budget <= limit).then_some(options),
                None => Some(options.with("budget", limit)),
            }
        }
    }

    fn option(name: &str, value: impl Into<Value>) -> Settings {
        Settings {
            options: Options::default().with(name, value),
            ..Settings::default()
        }
    }

    fn mode(name: &str) -> Settings {
        option("mode", name)
    }

    fn tools(list: &str) -> Settings {
        option("tools", list)
    }

    fn budget(usd: f64) -> Settings {
        option("budget", usd)
    }

    fn may(viewer: &Viewer, wanted: &Settings) -> bool {
        viewer.check_grants(wanted.clone(), None, &Rules).is_ok()
    }

    fn granting() -> Vec<Settings> {
        let auto = Settings {
            approval: Approval::Auto,
            ..Settings::default()
        };
        vec![
            mode("acceptEdits"),
            mode("bypassPermissions"),
            auto,
            tools("Bash(git *)"),
        ]
    }

    #[test]
    fn a_key_sees_its_own_and_what_its_ceiling_says() {
        let [listed, other] = [(); 2].map(|()| SessionId::random());
        let from = |session, owner: Option<&str>, cwd: &str| Provenance {
            session,
            owner: owner.map(str::to_owned),
            cwd: cwd.to_owned(),
        };
        let sessions = [
            from(other, Some("key_1"), "/own"),
            from(listed, Some("key_2"), "/a"),
            from(other, None, "/home/me/code/deep"),
            from(other, None, "/home/me/coder"),
        ];
        let sees = |sees| {
            let viewer = key(
                "read",
                Ceiling {
                    sees,
                    ..Ceiling::default()
                },
            );
            sessions
                .iter()
                .map(|session| viewer.may_see(session))
                .collect::<Vec<_>>()
        };
        assert_eq!(sees(Sees::Own), [true, false, false, false]);
        assert_eq!(sees(Sees::Sessions(vec![listed])), [true, true, false, false]);
        assert_eq!(
            sees(Sees::Folders(vec!["/home/me/code".into()])),
            [true, false, true, false]
        );
        assert_eq!(sees(Sees::All), [true; 4]);
        assert!(sessions.iter().all(|session| Viewer::PERSON.may_see(session)));
        // As earlier versions have stored it.
        for (stored, meant) in [
            (r#"{"sees":"all"}"#, Sees::All),
            (r#"{"sees":"own"}"#, Sees::Own),
            ("{}", Sees::Own),
        ] {
            assert_eq!(serde_json::from_str::<Ceiling>(stored).unwrap().sees, meant);
        }
    }

    #[test]
    fn grants_need_the_scope_approve() {
        let (runs, approves) = (
            key("read,run", Ceiling::default()),
            key("run,approve", Ceiling::default()),
        );
        for wanted in granting() {
            assert!(!may(&runs, &wanted), "{wanted:?}");
            assert!(may(&approves, &wanted), "{wanted:?}");
            assert!(may(&Viewer::PERSON, &wanted), "{wanted:?}");
            // Existing grants may stay.
            let stays = runs.check_grants(wanted.clone(), Some(&wanted), &Rules);
            assert_eq!(stays.unwrap(), wanted);
        }
        assert!(may(&runs, &Settings::default()) && may(&runs, &mode("plan")));
    }

    #[test]
    fn a_key_stays_below_its_ceiling() {
        let ceiling = Ceiling {
            tools: Some(vec!["Read".to_owned(), "Bash(git *)".to_owned()]),
            ..Ceiling::default()
        };
        let limited = key("run,approve", ceiling);
        assert!(may(&limited, &tools("Read(src/**),Bash(git *)")));
        assert!(!may(&limited, &tools("Bash(git *),Bash")));
        for wanted in &granting()[..3] {
            assert!(
                !may(&limited, wanted),
                "tools would not be asked about: {wanted:?}"
            );
        }

        let ceiling = Ceiling {
            modes: Some(vec!["plan".to_owned()]),
            ..Ceiling::default()
        };
        let plans = key("run,approve", ceiling);
        assert!(may(&plans, &mode("plan")) && !may(&plans, &Settings::default()));

        let ceiling = Ceiling {
            budget_usd: Some(2.0),
            roots: Some(vec!["/home/me/code".into()]),
            ..Ceiling::default()
        };
        let thrifty = key("run", ceiling);
        assert!(may(&thrifty, &budget(1.0)) && !may(&thrifty, &budget(3.0)));
        let given = thrifty.check_grants(Settings::default(), None, &Rules).unwrap();
        assert_eq!(given, budget(2.0));
        assert!(thrifty.check_place("/home/me/code/x".as_ref()).is_ok());
        assert!(thrifty.check_place("/home/me/coder".as_ref()).is_err());

        let ceiling = Ceiling {
            sandbox: true,
            ..Ceiling::default()
        };
        let boxed = key("run", ceiling);
        assert!(boxed.check_place("/".as_ref()).is_ok());
        // This agent has no sandbox.
        let refused = boxed.check_grants(Settings::default(), None, &Rules);
        assert!(matches!(refused, Err(CommandError::SandboxUnavailable)));
    }

    /// The same agent, with a sandbox.
    #[derive(Debug)]
    struct Boxed;

    impl OptionRules for Boxed {
        fn describe(&self) -> Vec<OptionInfo> {
            crate::backend::sandbox_options()
        }

        fn check(&self, options: Options, _: Option<&Options>) -> Result<Options, OptionRefused> {
            Ok(options)
        }

        fn live_changes(&self, _: &Options, _: &Options, _: &Options) -> Vec<OptionChange> {
            Vec::new()
        }

        fn verdict(&self, _: &Options, _: &str) -> Verdict {
            Verdict::Ask
        }
    }

    #[test]
    fn a_key_gets_its_sandbox_and_nothing_beyond_it() {
        let ceiling = Ceiling {
            sandbox: true,
            sandbox_folders: vec!["/cache".into()],
            sandbox_hosts: vec!["*.example.com".to_owned()],
            ..Ceiling::default()
        };
        let boxed = key("run,approve", ceiling);
        let given = boxed.check_grants(Settings::default(), None, &Boxed).unwrap();
        assert_eq!(given.options.text(SANDBOX), Some("on"));
        assert_eq!(
            given.options.get(SANDBOX_FOLDERS),
            Some(&Value::from(vec!["/cache"]))
        );
        assert_eq!(
            given.options.get(SANDBOX_HOSTS),
            Some(&Value::from(vec!["*.example.com"]))
        );
        let may = |wanted: &Settings| boxed.check_grants(wanted.clone(), None, &Boxed).is_ok();
        assert!(may(&option(SANDBOX_HOSTS, vec!["www.example.com"])) && may(&option(SANDBOX, true)));
        for beyond in [
            option(SANDBOX, "off"),
            option(SANDBOX, false),
            option(SANDBOX, "files"),
            option(SANDBOX_HOSTS, vec!["example.org"]),
            option(SANDBOX_FOLDERS, vec!["/etc"]),
        ] {
            assert!(!may(&beyond), "{beyond:?}");
        }
    }

    #[test]
    fn opening_a_sandbox_needs_the_scope() {
        let (runs, approves) = (
            key("read,run", Ceiling::default()),
            key("run,approve", Ceiling::default()),
        );
        let before = option(SANDBOX, "on");
        for wanted in [option(SANDBOX, "off"), Settings::default()] {
            assert!(runs.check_grants(wanted.clone(), Some(&before), &Boxed).is_err());
            assert!(
                approves
                    .check_grants(wanted.clone(), Some(&before), &Boxed)
                    .is_ok()
            );
        }
        let default = |viewer: &Viewer, settings: Settings| {
            viewer.with_default_sandbox(settings, SandboxLevel::On, &Boxed)
        };
        let given = default(&runs, Settings::default()).unwrap();
        assert_eq!(given.options.text(SANDBOX), Some("on"));
        assert!(default(&runs, option(SANDBOX, "off")).is_err());
        assert_eq!(
            default(&approves, option(SANDBOX, "off")).unwrap(),
            option(SANDBOX, "off")
        );
        assert_eq!(
            default(&Viewer::PERSON, Settings::default()).unwrap(),
            Settings::default()
        );
        let refused = runs.with_default_sandbox(Settings::default(), SandboxLevel::On, &Rules);
        assert!(matches!(refused, Err(CommandError::SandboxUnavailable)));
    }

    #[test]
    fn only_what_was_offered_is_kept_and_only_for_the_session() {
        let raw = |text: &str| RawJson::parse(text).unwrap();
        let offered = raw(
            r#"[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"git *"}],"behavior":"allow","destination":"localSettings"}]"#,
        );
        let kept = offered_for_session(&offered, Some(&offered)).unwrap();
        assert!(
            kept.as_str().contains(r#""destination":"session""#),
            "{}",
            kept.as_str()
        );
        assert_eq!(offered_for_session(&kept, Some(&offered)), Some(kept.clone()));
        let wider = raw(
            r#"[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"session"}]"#,
        );
        assert_eq!(offered_for_session(&wider, Some(&offered)), None);
        assert_eq!(offered_for_session(&wider, None), None);
    }
}
