//! Claude Code's configuration on this machine for one folder: skills, commands, agents, MCP servers, plugins and
//! hooks. Read from the user's and the project's files, never written. Values that may be secret (environment variables
//! and headers of servers) are left out; only their names are shown.

mod front_matter;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::{Extension, Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_core::redact::{redacted_address, redacted_arguments, redacted_words};
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::{ErrorBody, Refusals};

use self::front_matter::FrontMatter;

/// Larger files are not read: no configuration file that a person writes is this large.
const LARGEST_FILE: u64 = 4 << 20;
/// Folders with more entries than this are cut off: a wrong folder must not keep the server busy.
const MOST_ENTRIES: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct Folder {
    cwd: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "inventory.ts")]
enum Scope {
    User,
    Project,
    Local,
    Plugin,
}

#[derive(Debug, Default, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "inventory.ts", optional_fields)]
pub(crate) struct Inventory {
    /// The folder whose files are read beside the user's own.
    cwd: String,
    claude_home: String,
    /// How Claude Code would sign in: `subscription`, `apiKey`, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<&'static str>,
    skills: Vec<Described>,
    commands: Vec<Described>,
    agents: Vec<Described>,
    mcp_servers: Vec<McpServer>,
    plugins: Vec<Plugin>,
    hooks: Vec<Hook>,
    /// Files that can't be parsed.
    problems: Vec<String>,
}

/// Something that the front matter of a Markdown file describes.
#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "inventory.ts", optional_fields)]
struct Described {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    scope: Scope,
    path: String,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "inventory.ts", optional_fields)]
struct McpServer {
    name: String,
    scope: Scope,
    /// `stdio`, `http`, `sse`, …
    transport: String,
    /// The command with its arguments, or the URL.
    target: String,
    environment: Vec<String>,
    headers: Vec<String>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "inventory.ts", optional_fields)]
struct Plugin {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    enabled: bool,
    path: String,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[ts(export_to = "inventory.ts", optional_fields)]
struct Hook {
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<String>,
    kind: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
    scope: Scope,
    path: String,
}

// Only for the person at the machine: a key sees only its own sessions.
/// Claude Code's configuration: skills, commands, agents, MCP servers, plugins, hooks
#[utoipa::path(
    get, operation_id = "claude", path = "/api/claude", tag = "machine", params(("cwd" = Option<String>, Query)),
    extensions(("x-summary-zh-CN" = json!("Claude Code 的技能、命令、智能体、MCP 服务器、插件和钩子")), ("x-scope" = json!("person"))),
    responses(
    (status = 200, body = Inventory), (status = 400, body = ErrorBody), (status = 422, body = ErrorBody), Refusals,
))]
pub(crate) async fn inventory(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    query: Result<Query<Folder>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Inventory>, ApiError> {
    if visitor.viewer.key.is_some() {
        return Err(ApiError::Forbidden);
    }
    let Query(Folder { cwd }) = query.map_err(|_| ApiError::WrongForm)?;
    tokio::task::spawn_blocking(move || {
        let cwd = app
            .sessions
            .paths()
            .resolve(cwd.as_deref())
            .map_err(|_| ApiError::WorkingDirInvalid)?;
        Ok(Json(Inventory::read(app.history.claude_home(), &cwd)))
    })
    .await
    .map_err(|error| ApiError::internal(&error))?
}

impl Inventory {
    fn read(claude_home: &Path, cwd: &Path) -> Self {
        let mut found = Self {
            cwd: cwd.display().to_string(),
            claude_home: claude_home.display().to_string(),
            ..Self::default()
        };
        let project = cwd.join(".claude");
        let settings = [
            (Scope::User, claude_home.join("settings.json")),
            (Scope::Project, project.join("settings.json")),
            (Scope::Local, project.join("settings.local.json")),
        ]
        .map(|(scope, path)| (scope, found.json(&path), path));

        let own = [(Scope::User, claude_home), (Scope::Project, project.as_path())];
        for (scope, folder) in own {
            found.described(scope, folder);
        }
        found.add_plugins(claude_home, &settings);
        for (scope, value, path) in &settings {
            found.hooks.extend(hooks_of(*scope, value, path));
        }
        found.add_mcp_servers(claude_home, cwd);
        found.login = login(claude_home, &settings[0].1);
        found
    }

    /// The file's content, or null if there is no such file. A file that can't be read is reported as a problem.
    fn json(&mut self, path: &Path) -> Value {
        let Some(text) = read_text(path) else {
            return Value::Null;
        };
        serde_json::from_str(&text).unwrap_or_else(|_| {
            self.problems.push(path.display().to_string());
            Value::Null
        })
    }

    fn described(&mut self, scope: Scope, folder: &Path) {
        for entry in entries(&folder.join("skills")) {
            let path = entry.join("SKILL.md");
            self.skills.extend(describe(scope, &path, &file_name(&entry)));
        }
        for path in entries(&folder.join("commands")) {
            self.commands.extend(describe_markdown(scope, &path));
        }
        for path in entries(&folder.join("agents")) {
            self.agents.extend(describe_markdown(scope, &path));
        }
    }

    fn add_plugins(&mut self, claude_home: &Path, settings: &[(Scope, Value, PathBuf)]) {
        let installed = self.json(&claude_home.join("plugins/installed_plugins.json"));
        let Some(plugins) = installed.get("plugins").and_then(Value::as_object) else {
            return;
        };
        for (name, installs) in plugins {
            // Newer versions have a list for each plugin, older ones a single entry.
            let install = installs.get(0).unwrap_or(installs);
            let path = text(install, "installPath").unwrap_or_default();
            let enabled = settings
                .iter()
                .rev()
                .find_map(|(_, value, _)| value.get("enabledPlugins")?.get(name)?.as_bool())
                .unwrap_or(false);
            let folder = PathBuf::from(&path);
            let manifest = self.json(&folder.join(".claude-plugin/plugin.json"));
            if enabled && folder.is_absolute() {
                self.described(Scope::Plugin, &folder);
                let file = folder.join("hooks/hooks.json");
                let hooks = self.json(&file);
                self.hooks.extend(hooks_of(Scope::Plugin, &hooks, &file));
            }
            self.plugins.push(Plugin {
                name: name.clone(),
                version: text(install, "version").or_else(|| text(&manifest, "version")),
                description: text(&manifest, "description"),
                enabled,
                path,
            });
        }
    }

    fn add_mcp_servers(&mut self, claude_home: &Path, cwd: &Path) {
        // The file is beside the folder, or in it if `CLAUDE_CONFIG_DIR` chose the folder.
        let inside = claude_home.join(".claude.json");
        let path = if inside.is_file() {
            inside
        } else {
            claude_home.with_extension("json")
        };
        let user = self.json(&path);
        let project = self.json(&cwd.join(".mcp.json"));
        let local = user
            .get("projects")
            .and_then(|projects| projects.get(cwd.to_str()?));
        let sources = [
            (Scope::User, Some(&user)),
            (Scope::Local, local),
            (Scope::Project, Some(&project)),
        ];
        for (scope, source) in sources {
            let servers = source
                .and_then(|source| source.get("mcpServers"))
                .and_then(Value::as_object);
            for (name, server) in servers.into_iter().flatten() {
                self.mcp_servers.push(mcp_server(name, scope, server));
            }
        }
    }
}

fn mcp_server(name: &str, scope: Scope, server: &Value) -> McpServer {
    let keys = |field| -> Vec<String> {
        let object = server.get(field).and_then(Value::as_object);
        object
            .into_iter()
            .flat_map(|object| object.keys().cloned())
            .collect()
    };
    let url = text(server, "url");
    let command = text(server, "command").map(|command| {
        let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let words = std::iter::once(command.as_str()).chain(arguments.filter_map(Value::as_str));
        redacted_arguments(words).join(" ")
    });
    let usual = if url.is_some() { "http" } else { "stdio" };
    McpServer {
        name: name.to_owned(),
        scope,
        transport: text(server, "type").unwrap_or_else(|| usual.to_owned()),
        target: url
            .map(|url| redacted_address(&url))
            .or(command)
            .unwrap_or_default(),
        environment: keys("env"),
        headers: keys("headers"),
    }
}

fn hooks_of(scope: Scope, settings: &Value, path: &Path) -> Vec<Hook> {
    let events = settings.get("hooks").and_then(Value::as_object);
    let mut hooks = Vec::new();
    for (event, groups) in events.into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = text(group, "matcher").filter(|matcher| !matcher.is_empty());
            for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                let command = ["command", "prompt", "url"]
                    .into_iter()
                    .find_map(|field| text(hook, field));
                hooks.push(Hook {
                    event: event.clone(),
                    matcher: matcher.clone(),
                    kind: text(hook, "type").unwrap_or_else(|| "command".to_owned()),
                    command: command
                        .map(|command| redacted_words(&command))
                        .unwrap_or_default(),
                    timeout: hook.get("timeout").and_then(Value::as_f64),
                    scope,
                    path: path.display().to_string(),
                });
            }
        }
    }
    hooks
}

fn login(claude_home: &Path, settings: &Value) -> Option<&'static str> {
    const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];
    let in_settings = |name: &str| {
        settings
            .get("env")
            .and_then(|env| text(env, name))
            .is_some_and(|value| !value.is_empty())
    };
    let in_environment = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if KEYS
        .into_iter()
        .any(|name| in_environment(name) || in_settings(name))
        || settings.get("apiKeyHelper").is_some()
    {
        return Some("apiKey");
    }
    // On a Mac the keychain has it, which can't be read without bothering the user.
    claude_home
        .join(".credentials.json")
        .is_file()
        .then_some("subscription")
}

fn describe_markdown(scope: Scope, path: &Path) -> Option<Described> {
    let name = file_name(path);
    describe(scope, path, name.strip_suffix(".md")?)
}

fn describe(scope: Scope, path: &Path, fallback: &str) -> Option<Described> {
    let front = FrontMatter::of(&read_text(path)?);
    Some(Described {
        name: front.name.unwrap_or_else(|| fallback.to_owned()),
        description: front.description,
        scope,
        path: path.display().to_string(),
    })
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().map(str::to_owned)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The entries of a folder, by name. A missing folder is empty.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MOST_ENTRIES)
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// A regular file of reasonable length that is UTF-8.
fn read_text(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_FILE {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path)
        .ok()?
        .take(LARGEST_FILE)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn a_machine_without_claude_code_has_nothing_and_no_problems() {
        let folder = tempfile::tempdir().unwrap();
        let found = Inventory::read(&folder.path().join(".claude"), folder.path());
        assert!(found.skills.is_empty() && found.mcp_servers.is_empty() && found.hooks.is_empty());
        assert!(found.problems.is_empty());
    }

    #[test]
    fn everything_that_was_given_is_found_with_where_it_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join(".claude");
        let cwd = folder.path().join("project");
        let plugin = home.join("plugins/cache/tools");
        write(
            &home.join("skills/release/SKILL.md"),
            "---\nname: release\ndescription: >-\n  Cut a\n  release\n---\nbody",
        );
        write(&cwd.join(".claude/commands/check.md"), "Check it.");
        write(
            &cwd.join(".claude/agents/reviewer.md"),
            "---\ndescription: \"Reads: all of it\"\n---\n",
        );
        write(&plugin.join("skills/lint/SKILL.md"), "---\nname: lint\n---\n");
        write(
            &plugin.join(".claude-plugin/plugin.json"),
            r#"{"description":"Tools"}"#,
        );
        let installed = json!({"plugins": {"tools@shop": [{"installPath": plugin, "version": "1.2.0"}]}});
        write(
            &home.join("plugins/installed_plugins.json"),
            &installed.to_string(),
        );
        let settings = json!({
            "enabledPlugins": {"tools@shop": true},
            "env": {"ANTHROPIC_API_KEY": "sk-very-secret"},
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh", "timeout": 5}]}]},
        });
        write(&home.join("settings.json"), &settings.to_string());
        let servers = json!({
            "mcpServers": {"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer secret-token"}}},
            "projects": {cwd.to_str().unwrap(): {"mcpServers": {"db": {"command": "db-mcp", "args": ["--fast"], "env": {"DB_PASSWORD": "hunter2"}}}}},
        });
        write(&folder.path().join(".claude.json"), &servers.to_string());
        write(&cwd.join(".mcp.json"), "not json");

        let found = serde_json::to_value(Inventory::read(&home, &cwd)).unwrap();
        let skills = found["skills"].as_array().unwrap();
        assert_eq!(skills[0]["description"], "Cut a release");
        assert_eq!(
            (&skills[1]["name"], &skills[1]["scope"]),
            (&json!("lint"), &json!("plugin"))
        );
        assert_eq!(found["commands"][0]["name"], "check");
        assert_eq!(found["agents"][0]["description"], "Reads: all of it");
        assert_eq!(found["plugins"][0]["version"], "1.2.0");
        assert_eq!(found["plugins"][0]["enabled"], true);
        assert_eq!(found["hooks"][0]["command"], "guard.sh");
        assert_eq!(found["hooks"][0]["matcher"], "Bash");
        assert_eq!(found["mcpServers"][0]["headers"], json!(["Authorization"]));
        assert_eq!(found["mcpServers"][1]["target"], "db-mcp --fast");
        assert_eq!(found["mcpServers"][1]["scope"], "local");
        assert_eq!(found["login"], "apiKey");
        assert_eq!(found["problems"].as_array().unwrap().len(), 1);
        for secret in ["sk-very-secret", "secret-token", "hunter2"] {
            assert!(!found.to_string().contains(secret));
        }
    }
}
