//! A key that someone wants to have, as it is asked for on the command line and by the page: one set of checks for both.

use std::path::{Path, PathBuf};

use tiller_process::HostPattern;

use super::{ApiKey, Scopes, Secret};
use crate::ids::Timestamp;
use crate::rights::{Ceiling, Sees};
use crate::session::Approval;
use crate::store::StoreError;

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The longest mode or tool, in characters.
const MAX_RULE: usize = 500;

/// How many modes, tools, folders or sessions a ceiling lists at most.
const MAX_LISTED: usize = 200;

/// What a new key is to be. Folders need not be resolved yet.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    pub approval: Option<Approval>,
    pub ceiling: Ceiling,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyRefused {
    #[error("a key needs a name of 1 to {MAX_NAME} visible characters")]
    Name,
    #[error("a key needs at least one of the scopes read, run and approve")]
    NoScope,
    #[error("a key whose sessions are approved automatically needs the scope approve")]
    AutoWithoutApprove,
    #[error(
        "a list of modes, tools, folders or sessions has between 1 and {MAX_LISTED} entries, none of them empty"
    )]
    List,
    #[error("a budget is a number above 0")]
    Budget,
    #[error("folders and hosts of a sandbox are for a key that runs agents in a sandbox")]
    NoSandbox,
    #[error("a host is a name such as packages.example.org, or a pattern such as *.example.com")]
    Host,
    #[error("there is no folder {0}")]
    Folder(String),
}

impl NewKey {
    /// The key and its secret, which is shown once. Looks at the folders, so it may block for a moment.
    pub fn make(self) -> Result<Result<(ApiKey, Secret), KeyRefused>, StoreError> {
        match self.checked() {
            Err(refused) => Ok(Err(refused)),
            Ok(new) => {
                let key = ApiKey {
                    id: ApiKey::new_id()?,
                    name: new.name,
                    ceiling: new.ceiling,
                    scopes: new.scopes,
                    approval: new.approval,
                    created_at: Timestamp::now(),
                    last_used_at: None,
                };
                Ok(Ok((key, Secret::generate("tiller_")?)))
            }
        }
    }

    fn checked(mut self) -> Result<Self, KeyRefused> {
        self.name = self.name.trim().to_owned();
        let length = self.name.chars().count();
        if length == 0 || length > MAX_NAME || self.name.chars().any(char::is_control) {
            return Err(KeyRefused::Name);
        }
        if !(self.scopes.read || self.scopes.run || self.scopes.approve) {
            return Err(KeyRefused::NoScope);
        }
        if self.approval == Some(Approval::Auto) && !self.scopes.approve {
            return Err(KeyRefused::AutoWithoutApprove);
        }
        let ceiling = &mut self.ceiling;
        for rules in [&mut ceiling.modes, &mut ceiling.tools].into_iter().flatten() {
            check_rules(rules)?;
        }
        if ceiling
            .budget_usd
            .is_some_and(|budget| !(budget.is_finite() && budget > 0.0))
        {
            return Err(KeyRefused::Budget);
        }
        if let Some(roots) = &mut ceiling.roots {
            resolve(roots)?;
        }
        let opens_sandbox = !ceiling.sandbox_folders.is_empty() || !ceiling.sandbox_hosts.is_empty();
        if opens_sandbox && !ceiling.sandbox {
            return Err(KeyRefused::NoSandbox);
        }
        if !ceiling.sandbox_folders.is_empty() {
            resolve(&mut ceiling.sandbox_folders)?;
        }
        if ceiling.sandbox_hosts.len() > MAX_LISTED {
            return Err(KeyRefused::List);
        }
        for host in &mut ceiling.sandbox_hosts {
            let pattern: HostPattern = host.trim().parse().map_err(|_| KeyRefused::Host)?;
            *host = pattern.to_string();
        }
        match &mut ceiling.sees {
            Sees::Folders(folders) => resolve(folders)?,
            Sees::Sessions(sessions) => check_length(sessions.len())?,
            Sees::Own | Sees::All => {}
        }
        Ok(self)
    }
}

fn check_length(length: usize) -> Result<(), KeyRefused> {
    if (1..=MAX_LISTED).contains(&length) {
        Ok(())
    } else {
        Err(KeyRefused::List)
    }
}

fn check_rules(rules: &mut [String]) -> Result<(), KeyRefused> {
    check_length(rules.len())?;
    for rule in rules {
        *rule = rule.trim().to_owned();
        if rule.is_empty() || rule.chars().count() > MAX_RULE || rule.chars().any(char::is_control) {
            return Err(KeyRefused::List);
        }
    }
    Ok(())
}

fn resolve(folders: &mut [PathBuf]) -> Result<(), KeyRefused> {
    check_length(folders.len())?;
    for folder in folders {
        let resolved = folder.canonicalize().ok().filter(|path| path.is_dir());
        // A relative path means one thing on the command line, and nothing in a page.
        *folder = resolved.ok_or_else(|| KeyRefused::Folder(shown(folder)))?;
    }
    Ok(())
}

/// As it was given, cut where it is long.
fn shown(folder: &Path) -> String {
    let text = folder.to_string_lossy();
    text.chars()
        .filter(|character| !character.is_control())
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> NewKey {
        NewKey {
            name: " ci ".to_owned(),
            scopes: Scopes::ALL,
            approval: None,
            ceiling: Ceiling::default(),
        }
    }

    fn refused(new: NewKey) -> KeyRefused {
        new.make().unwrap().unwrap_err()
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_folders_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let file = real.join("file");
        std::fs::write(&file, "").unwrap();
        let with = |ceiling| NewKey { ceiling, ..key() };
        let roots = |root: PathBuf| {
            with(Ceiling {
                roots: Some(vec![root]),
                ..Ceiling::default()
            })
        };
        let (made, secret) = roots(folder.path().join(".")).make().unwrap().unwrap();
        assert_eq!(
            (made.name.as_str(), made.ceiling.roots),
            ("ci", Some(vec![real.clone()]))
        );
        assert!(secret.expose().starts_with("tiller_"));
        for missing in [file, real.join("missing")] {
            assert!(matches!(refused(roots(missing)), KeyRefused::Folder(_)));
        }
        for name in ["", " ", "a\u{1b}b", &"x".repeat(101)] {
            let named = NewKey {
                name: name.to_owned(),
                ..key()
            };
            assert_eq!(refused(named), KeyRefused::Name);
        }
        let nothing = Scopes {
            read: false,
            run: false,
            approve: false,
        };
        assert_eq!(
            refused(NewKey {
                scopes: nothing,
                ..key()
            }),
            KeyRefused::NoScope
        );
        let auto = NewKey {
            scopes: Scopes::parse("read,run").unwrap(),
            approval: Some(Approval::Auto),
            ..key()
        };
        assert_eq!(refused(auto), KeyRefused::AutoWithoutApprove);
        for tools in [
            vec![],
            vec![" ".to_owned()],
            vec!["Bash\0".to_owned()],
            vec!["x".to_owned(); 201],
        ] {
            let ceiling = Ceiling {
                tools: Some(tools),
                ..Ceiling::default()
            };
            assert_eq!(refused(with(ceiling)), KeyRefused::List);
        }
        for budget in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let ceiling = Ceiling {
                budget_usd: Some(budget),
                ..Ceiling::default()
            };
            assert_eq!(refused(with(ceiling)), KeyRefused::Budget);
        }
        let hosts = |sandbox, host: &str| Ceiling {
            sandbox,
            sandbox_hosts: vec![host.to_owned()],
            ..Ceiling::default()
        };
        assert_eq!(refused(with(hosts(false, "example.com"))), KeyRefused::NoSandbox);
        assert_eq!(refused(with(hosts(true, "not a host"))), KeyRefused::Host);
        let (made, _) = with(hosts(true, "*.example.com")).make().unwrap().unwrap();
        assert_eq!(made.ceiling.sandbox_hosts, ["*.example.com"]);
        let ceiling = Ceiling {
            sees: Sees::Sessions(Vec::new()),
            ..Ceiling::default()
        };
        assert_eq!(refused(with(ceiling)), KeyRefused::List);
    }
}
