//! The directions of dependencies from ARCHITECTURE.md.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use serde_json::Value;

use crate::{files, none, output, root};

/// Each workspace crate with those that it may use. Tests may use any.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("tiller-message", &[]),
    ("tiller-process", &[]),
    ("tiller-agent", &["tiller-message", "tiller-process"]),
    ("tiller-history", &["tiller-message"]),
    ("tiller-keeper", &["tiller-process"]),
    ("tiller-testkit", &[]),
    ("tiller-core", &["tiller-message", "tiller-process"]),
    ("tiller-acp", &[]),
    (
        "tiller-backend-acp",
        &["tiller-acp", "tiller-core", "tiller-keeper", "tiller-process"],
    ),
    (
        "tiller-backend-claude",
        &["tiller-agent", "tiller-core", "tiller-keeper", "tiller-process"],
    ),
    ("tiller-store", &["tiller-core", "tiller-message"]),
    ("tiller-store-suite", &["tiller-core", "tiller-message"]),
    (
        "tiller-server",
        &["tiller-core", "tiller-history", "tiller-message"],
    ),
    (
        "tiller",
        &[
            "tiller-agent",
            "tiller-backend-acp",
            "tiller-backend-claude",
            "tiller-core",
            "tiller-history",
            "tiller-keeper",
            "tiller-message",
            "tiller-process",
            "tiller-server",
            "tiller-store",
            "tiller-testkit",
        ],
    ),
    ("xtask", &[]),
];

const HTTP: &[&str] = &["axum", "hyper", "reqwest", "tower-http", "tungstenite"];
const SQL: &[&str] = &["diesel", "libsqlite3-sys", "rusqlite", "sqlx", "tokio-postgres"];

/// What a crate must not contain, not even indirectly.
const FREE_OF: &[(&str, &[&[&str]])] = &[
    ("tiller-message", &[HTTP, SQL]),
    ("tiller-process", &[HTTP, SQL]),
    ("tiller-agent", &[HTTP, SQL]),
    ("tiller-core", &[HTTP, SQL]),
    ("tiller-store-suite", &[HTTP, SQL]),
];

/// What a crate must not use directly. The server contains the history, whose index is its own.
const DOES_NOT_USE: &[(&str, &[&str])] = &[
    ("tiller-server", SQL),
    ("tiller-history", HTTP),
    ("tiller-keeper", HTTP),
    ("tiller-store", HTTP),
];

/// Cargo's metadata of the workspace and its dependencies on this platform.
pub(crate) fn metadata() -> Value {
    let host = output(Command::new("rustc").arg("-vV"));
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let json = output(Command::new(cargo).args([
        "metadata",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        host,
    ]));
    serde_json::from_str(&json).unwrap()
}

/// Package ids with their names and their dependencies outside of tests.
struct Graph {
    names: HashMap<String, String>,
    uses: HashMap<String, Vec<String>>,
    members: HashSet<String>,
}

impl Graph {
    fn read() -> Self {
        let metadata = metadata();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let names = list(&metadata["packages"])
            .iter()
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let uses = list(&metadata["resolve"]["nodes"])
            .iter()
            .map(|node| {
                let used = list(&node["deps"]).into_iter().filter(|used| {
                    // A build script may use anything: it is not part of the program.
                    list(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
                });
                (text(&node["id"]), used.map(|used| text(&used["pkg"])).collect())
            })
            .collect();
        let members = list(&metadata["workspace_members"]).iter().map(text).collect();
        Self { names, uses, members }
    }

    fn member(&self, name: &str) -> &str {
        self.members
            .iter()
            .find(|id| self.names[*id] == name)
            .unwrap_or_else(|| panic!("there is no crate {name}"))
    }

    fn direct(&self, id: &str) -> impl Iterator<Item = &str> {
        self.uses[id].iter().map(String::as_str)
    }

    fn everything_in(&self, id: &str) -> HashSet<&str> {
        let mut found = HashSet::new();
        let mut pending: Vec<&str> = self.direct(id).collect();
        while let Some(id) = pending.pop() {
            if found.insert(self.names[id].as_str()) {
                pending.extend(self.direct(id));
            }
        }
        found
    }
}

#[test]
fn crates_use_each_other_only_in_the_directions_of_the_architecture() {
    let graph = Graph::read();
    let mut findings = Vec::new();
    for id in &graph.members {
        let name = graph.names[id].as_str();
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(listed, _)| *listed == name) else {
            findings.push(format!("{name} is not listed: decide what it may use"));
            continue;
        };
        let used = graph
            .direct(id)
            .filter(|used| graph.members.contains(*used))
            .map(|used| graph.names[used].as_str());
        findings.extend(
            used.filter(|used| !allowed.contains(used))
                .map(|used| format!("{name} uses {used}")),
        );
    }
    none(&findings, "dependencies against the direction of ARCHITECTURE.md");
}

#[test]
fn http_and_sql_stay_where_they_belong() {
    let graph = Graph::read();
    let mut findings = Vec::new();
    for (name, forbidden) in FREE_OF {
        let contained = graph.everything_in(graph.member(name));
        let found = forbidden
            .iter()
            .copied()
            .flatten()
            .filter(|package| contained.contains(**package));
        findings.extend(found.map(|package| format!("{name} contains {package}")));
    }
    for (name, forbidden) in DOES_NOT_USE {
        let used = graph
            .direct(graph.member(name))
            .map(|used| graph.names[used].as_str());
        findings.extend(
            used.filter(|used| forbidden.contains(used))
                .map(|used| format!("{name} uses {used}")),
        );
    }
    none(&findings, "what these crates are to be kept free of");
    // The rules above would also hold for an empty graph.
    assert!(
        graph
            .everything_in(graph.member("tiller-server"))
            .contains("axum")
    );
    assert!(
        graph
            .everything_in(graph.member("tiller-store"))
            .iter()
            .any(|package| SQL.contains(package))
    );
}

/// A front door is a folder of the server that has the types of a contract.
#[test]
fn no_front_door_imports_another() {
    let sources = root().join("crates/server/src");
    let doors: Vec<String> = std::fs::read_dir(&sources)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("wire.rs").is_file() || entry.path().join("translate.rs").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(
        doors.iter().any(|door| door == "events"),
        "the event API's door is not found"
    );

    let mut findings = Vec::new();
    for file in files() {
        let Some(door) = doors.iter().find(|door| {
            let path = file.path.strip_prefix("crates/server/src/").unwrap_or_default();
            path.starts_with(&format!("{door}/")) || path == format!("{door}.rs")
        }) else {
            continue;
        };
        for module in modules_from_the_root(&code_of(&file.text)) {
            if module != *door && doors.contains(&module) {
                findings.push(format!("{} uses {module}", file.path));
            }
        }
    }
    none(
        &findings,
        "front doors share what is outside of all doors, not each other's",
    );
}

/// The first names after `crate::` (also in braces) and after a chain of `super::`, which may lead to the root.
fn modules_from_the_root(code: &str) -> Vec<String> {
    let mut modules = Vec::new();
    for start in ["crate::", "super::"] {
        for (position, _) in code.match_indices(start) {
            let rest = &code[position + start.len()..];
            match rest.strip_prefix('{') {
                Some(group) => modules.extend(names_in_group(group)),
                None => modules.push(first_name(rest)),
            }
        }
    }
    modules
}

fn first_name(path: &str) -> String {
    path.trim_start()
        .chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}

/// The first name of each path in `{a::b, c::{d, e}}`, whose opening brace was already read.
fn names_in_group(group: &str) -> Vec<String> {
    let mut names = vec![first_name(group)];
    let mut depth = 0;
    for (position, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(first_name(&group[position + 1..])),
            _ => {}
        }
    }
    names
}

fn code_of(source: &str) -> String {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn imports_are_found_in_every_form() {
    let code = "use crate::chat::wire;\nuse crate::{error::Error, task::{a, b}, history};\nlet x = super::super::events::X;";
    let mut found = modules_from_the_root(code);
    found.sort();
    assert_eq!(found, ["chat", "error", "events", "history", "super", "task"]);
    assert!(!code_of("// crate::chat\ncrate::task::x()").contains("chat"));
}
