//! The sandbox as options of a session, the same for every kind of agent that has one: how far it goes, which further folders
//! can be written to and which further hosts can be reached.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tiller_process::HostPattern;

use super::{OptionInfo, OptionKind, OptionRefused, Options};

/// How far the sandbox goes.
pub const SANDBOX: &str = "sandbox";
/// Folders that can be written to beside the working directory and what the agent itself needs.
pub const SANDBOX_FOLDERS: &str = "sandboxFolders";
/// Hosts that can be reached beside those that the agent itself needs.
pub const SANDBOX_HOSTS: &str = "sandboxHosts";

/// How many folders, or hosts, can be listed.
const MAX_ENTRIES: usize = 64;

/// How far a sandbox goes, the weakest first.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum SandboxLevel {
    #[default]
    Off,
    /// The file system is closed, the network is as usual.
    Files,
    /// The file system is closed, and the network but for listed hosts.
    On,
}

impl SandboxLevel {
    pub const NAMES: [&str; 3] = ["off", "files", "on"];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Files => "files",
            Self::On => "on",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "files" => Some(Self::Files),
            "on" => Some(Self::On),
            _ => None,
        }
    }

    /// A yes or no is as good as a name.
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(true) => Some(Self::On),
            Value::Bool(false) => Some(Self::Off),
            value => Self::parse(value.as_str()?),
        }
    }

    /// What a session's options say. `None`: nothing.
    pub fn chosen(options: &Options) -> Option<Self> {
        options.get(SANDBOX).and_then(Self::read)
    }
}

/// What a sandboxed agent can write to and reach, in addition to what is always so.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SandboxLists {
    pub folders: Vec<PathBuf>,
    pub hosts: Vec<HostPattern>,
}

impl SandboxLists {
    /// What a session's options list. Entries that can't be read were never accepted.
    pub fn chosen(options: &Options) -> Self {
        let list = |name: &str| options.get(name).and_then(Value::as_array).into_iter().flatten();
        let texts = |name: &'static str| list(name).filter_map(Value::as_str);
        Self {
            folders: texts(SANDBOX_FOLDERS).map(PathBuf::from).collect(),
            hosts: texts(SANDBOX_HOSTS)
                .filter_map(|text| text.parse().ok())
                .collect(),
        }
    }

    /// Whether this lists everything that `other` does.
    pub fn includes(&self, other: &Self) -> bool {
        let folder = |wanted: &PathBuf| self.folders.iter().any(|folder| wanted.starts_with(folder));
        let host = |wanted: &HostPattern| self.hosts.iter().any(|host| host.includes(wanted));
        other.folders.iter().all(folder) && other.hosts.iter().all(host)
    }

    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for folder in &other.folders {
            if !self.folders.contains(folder) {
                self.folders.push(folder.clone());
            }
        }
        for host in &other.hosts {
            if !self.hosts.contains(host) {
                self.hosts.push(host.clone());
            }
        }
        self
    }
}

/// The sandbox that a session's agent gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SandboxView {
    /// Beside the working directory and a `/tmp` of its own.
    pub folders: Vec<PathBuf>,
    /// The hosts that can be reached. `None`: the network is open.
    pub hosts: Option<Vec<HostPattern>>,
}

impl SandboxView {
    /// The sandbox of a session with these options, if it has one. `always` is for every sandbox of that kind of agent.
    pub fn of(options: &Options, always: impl FnOnce() -> SandboxLists) -> Option<Self> {
        let level = SandboxLevel::chosen(options).unwrap_or_default();
        if level == SandboxLevel::Off {
            return None;
        }
        let lists = always().and(&SandboxLists::chosen(options));
        Some(Self {
            folders: lists.folders,
            hosts: (level == SandboxLevel::On).then_some(lists.hosts),
        })
    }
}

/// The three options, for a backend that has them.
pub fn sandbox_options() -> Vec<OptionInfo> {
    let option = |name: &str, title: &str, kind| OptionInfo {
        name: name.to_owned(),
        title: title.to_owned(),
        kind,
        choices: Vec::new(),
        default: None,
        live: false,
        grants: false,
    };
    vec![
        OptionInfo {
            choices: SandboxLevel::NAMES.map(str::to_owned).into(),
            default: Some(SandboxLevel::Off.name().into()),
            ..option(SANDBOX, "Sandbox", OptionKind::Choice)
        },
        option(
            SANDBOX_FOLDERS,
            "Folders that a sandboxed agent can write to",
            OptionKind::List,
        ),
        option(
            SANDBOX_HOSTS,
            "Hosts that a sandboxed agent can reach",
            OptionKind::List,
        ),
    ]
}

/// Checks one of the three options. `None`: it is another.
pub fn check_sandbox_option(name: &str, value: &Value) -> Option<Result<(), OptionRefused>> {
    let outcome = match name {
        SANDBOX => match SandboxLevel::read(value) {
            Some(_) => Ok(()),
            None => Err(format!("A sandbox is one of {}.", SandboxLevel::NAMES.join(", "))),
        },
        SANDBOX_FOLDERS => check_list(value, |text| {
            if is_folder(Path::new(text)) {
                Ok(())
            } else {
                Err("A folder is an absolute path without '..', and not the root.".to_owned())
            }
        }),
        SANDBOX_HOSTS => check_list(value, |text| {
            let host = text.parse::<HostPattern>();
            host.map(drop).map_err(|error| error.to_string())
        }),
        _ => return None,
    };
    Some(outcome.map_err(|message| OptionRefused::new(name, message)))
}

fn check_list(value: &Value, check: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    let list = value.as_array().filter(|list| list.len() <= MAX_ENTRIES);
    let list = list.ok_or_else(|| format!("A list of at most {MAX_ENTRIES} texts is needed."))?;
    for entry in list {
        check(entry.as_str().ok_or("An entry is a text.")?)?;
    }
    Ok(())
}

fn is_folder(path: &Path) -> bool {
    let plain = |component: Component<'_>| matches!(component, Component::RootDir | Component::Normal(_));
    path.is_absolute()
        && path.components().all(plain)
        && path.components().count() > 1
        && !path.as_os_str().as_encoded_bytes().contains(&0)
}

/// Whether options let an agent do more than these: `before` are those of the session, or of a new one if nothing is chosen.
pub(crate) fn loosens(before: &Options, wanted: &Options) -> bool {
    let level = |options: &Options| SandboxLevel::chosen(options).unwrap_or_default();
    let had = level(before);
    had != SandboxLevel::Off
        && (level(wanted) < had || !SandboxLists::chosen(before).includes(&SandboxLists::chosen(wanted)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_not_be_a_sandbox_is_refused() {
        let check = |name: &str, value: Value| check_sandbox_option(name, &value).expect("one of ours");
        for (name, value) in [
            (SANDBOX, json!("strict")),
            (SANDBOX, json!(1)),
            (SANDBOX_FOLDERS, json!("/a")),
            (SANDBOX_FOLDERS, json!(["relative"])),
            (SANDBOX_FOLDERS, json!(["/a/../etc"])),
            (SANDBOX_FOLDERS, json!(["/"])),
            (SANDBOX_FOLDERS, json!(["/a\0b"])),
            (SANDBOX_HOSTS, json!(["http://example.com"])),
            (SANDBOX_HOSTS, json!(vec!["a.test"; MAX_ENTRIES + 1])),
        ] {
            let refused = check(name, value.clone()).expect_err(&format!("{name}: {value}"));
            assert_eq!(refused.option, name);
        }
        for (name, value) in [
            (SANDBOX, json!(true)),
            (SANDBOX, json!("files")),
            (SANDBOX_FOLDERS, json!(["/var/cache/x"])),
            (SANDBOX_HOSTS, json!(["*.example.com", "localhost:8080"])),
        ] {
            check(name, value).expect("fine");
        }
        assert_eq!(check_sandbox_option("model", &json!(1)), None);
    }

    #[test]
    fn what_opens_a_sandbox_is_told_from_what_does_not() {
        let sandbox = |level: &str, folders: &[&str], hosts: &[&str]| {
            Options::default()
                .with(SANDBOX, level)
                .with(SANDBOX_FOLDERS, folders)
                .with(SANDBOX_HOSTS, hosts)
        };
        let before = sandbox("on", &["/cache"], &["*.example.com"]);
        for stricter in [
            before.clone(),
            sandbox("on", &["/cache/npm"], &[]),
            sandbox("on", &[], &["www.example.com"]),
        ] {
            assert!(!loosens(&before, &stricter), "{stricter:?}");
        }
        for looser in [
            sandbox("files", &["/cache"], &[]),
            sandbox("off", &[], &[]),
            Options::default(),
            sandbox("on", &["/cached"], &[]),
            sandbox("on", &[], &["example.org"]),
        ] {
            assert!(loosens(&before, &looser), "{looser:?}");
        }
        assert!(!loosens(
            &Options::default(),
            &sandbox("on", &["/x"], &["a.test"])
        ));
    }

    #[test]
    fn a_sandbox_has_what_is_always_there_and_what_was_chosen() {
        let always = || SandboxLists {
            folders: vec!["/home/me/.agent".into()],
            hosts: vec!["api.example.com".parse().unwrap()],
        };
        let options = Options::default()
            .with(SANDBOX, true)
            .with(SANDBOX_HOSTS, json!(["a.test"]));
        let view = SandboxView::of(&options, always).expect("a sandbox");
        assert_eq!(view.folders, [PathBuf::from("/home/me/.agent")]);
        let hosts: Vec<_> = view
            .hosts
            .expect("closed")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(hosts, ["api.example.com", "a.test"]);
        let files = SandboxView::of(&options.clone().with(SANDBOX, "files"), always).expect("a sandbox");
        assert_eq!(files.hosts, None);
        assert_eq!(SandboxView::of(&options.with(SANDBOX, false), always), None);
    }
}
