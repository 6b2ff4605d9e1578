//! From [`Options`] to the command line and environment of a process. Starts nothing itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tiller_message::PermissionMode;
use tiller_process::Launch;

use crate::discover::{Executable, Finder, NotFound};
use crate::options::{Conversation, Options, SystemPrompt, Thinking};

/// The CLI can't be started like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no executable.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The working directory can't be used.
    #[error("the working directory {} can't be used: {source}", path.display())]
    WorkingDirectory {
        /// The folder that was asked for.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An argument that the CLI would take for something else.
    #[error("`{name}` is not the name of an argument: use letters, digits and dashes, without a value")]
    Argument {
        /// The name that was given.
        name: String,
    },
    /// The settings can't be read, which is needed to add the sandbox to them.
    #[error("the settings `{settings}` can't be combined with a sandbox: {reason}")]
    Settings {
        /// The settings that were given.
        settings: String,
        /// Why not.
        reason: String,
    },
}

/// How the CLI and we talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel<'a> {
    /// Over standard input and output.
    Stdio,
    /// The CLI connects to this WebSocket URL.
    SdkUrl(&'a str),
}

/// Finds the executable and works out its command line and environment from ours.
pub fn prepare(options: &Options, channel: Channel<'_>) -> Result<Launch, LaunchError> {
    let executable = executable(options)?;
    prepare_with(&executable, options, channel)
}

/// The executable that the options name, or the one that is installed.
pub(crate) fn executable(options: &Options) -> Result<Executable, NotFound> {
    let finder = Finder::from_env();
    match &options.executable {
        Some(path) => finder.resolve(path),
        None => finder.find(),
    }
}

/// The same, for an executable that is known already.
pub fn prepare_with(
    executable: &Executable,
    options: &Options,
    channel: Channel<'_>,
) -> Result<Launch, LaunchError> {
    if let Some(path) = &options.cwd {
        let usable = path.metadata().and_then(|metadata| {
            if metadata.is_dir() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        });
        usable.map_err(|source| LaunchError::WorkingDirectory {
            path: path.clone(),
            source,
        })?;
    }
    let mut args = executable.leading_args();
    args.extend(arguments(options, channel)?);
    Ok(Launch {
        program: executable.program().to_owned(),
        args,
        env: environment_of(options),
        cwd: options.cwd.clone(),
        exact_cwd: options.exact_cwd,
        open_files: tiller_process::given_open_files(),
        sandbox: options.confinement.clone(),
    })
}

/// The command line. Every value is glued to its flag, so that a value that begins with a dash stays a value.
fn arguments(options: &Options, channel: Channel<'_>) -> Result<Vec<OsString>, LaunchError> {
    let mut args = Arguments::default();
    args.flag("print");
    args.value("input-format", "stream-json");
    args.value("output-format", "stream-json");
    args.flag("verbose");
    match channel {
        Channel::Stdio if options.ask => args.value("permission-prompt-tool", "stdio"),
        Channel::Stdio => {}
        Channel::SdkUrl(url) => args.value("sdk-url", url),
    }
    args.flag_if(options.partial_messages, "include-partial-messages");
    args.flag_if(options.hook_events, "include-hook-events");
    args.flag_if(options.replay_user_messages, "replay-user-messages");
    args.flag_if(options.prompt_suggestions, "prompt-suggestions");

    match &options.conversation {
        Conversation::New => {}
        Conversation::NewWithId(id) => args.value("session-id", id),
        Conversation::Resume(id) => args.value("resume", id),
        Conversation::Latest => args.flag("continue"),
    }
    args.flag_if(options.fork, "fork-session");
    args.optional("resume-session-at", options.resume_at.as_ref());
    args.flag_if(!options.persist, "no-session-persistence");
    #[cfg(feature = "history")]
    args.flag_if(options.session_store.is_some(), "session-mirror");
    args.optional("name", options.title.as_ref());

    args.optional("model", options.model.as_ref());
    args.optional("fallback-model", options.fallback_model.as_ref());
    args.optional("effort", options.effort.as_ref());
    match options.thinking {
        None => {}
        Some(Thinking::Adaptive) => args.value("thinking", "adaptive"),
        Some(Thinking::Tokens(tokens)) => args.value("max-thinking-tokens", tokens.to_string()),
        Some(Thinking::Disabled) => args.value("thinking", "disabled"),
    }
    args.list("betas", &options.betas);

    args.optional(
        "permission-mode",
        options.permission_mode.as_ref().map(PermissionMode::as_str),
    );
    args.flag_if(options.allow_bypass, "allow-dangerously-skip-permissions");
    if let Some(tools) = &options.tools {
        args.value("tools", tools.join(","));
    }
    args.list("allowedTools", &options.allowed_tools);
    args.list("disallowedTools", &options.disallowed_tools);
    for folder in &options.add_dirs {
        args.value("add-dir", folder);
    }

    match &options.system_prompt {
        SystemPrompt::ClaudeCode => {}
        SystemPrompt::Append(text) => args.value("append-system-prompt", text),
        SystemPrompt::Replace(text) => args.value("system-prompt", text),
    }
    args.optional("max-turns", options.max_turns.map(|turns| turns.to_string()));
    args.optional(
        "max-budget-usd",
        options.max_budget_usd.map(|budget| budget.to_string()),
    );
    if !options.mcp_servers.is_empty() {
        args.value(
            "mcp-config",
            json!({ "mcpServers": options.mcp_servers }).to_string(),
        );
    }
    args.flag_if(options.strict_mcp, "strict-mcp-config");
    args.optional("agent", options.agent.as_ref());
    if !options.agents.is_empty() {
        args.value("agents", json!(options.agents).to_string());
    }
    for folder in &options.plugin_dirs {
        args.value("plugin-dir", folder);
    }
    args.optional("settings", settings(options)?);
    if let Some(sources) = &options.setting_sources {
        args.value("setting-sources", sources.join(","));
    }
    args.optional(
        "json-schema",
        options.output_schema.as_ref().map(Value::to_string),
    );

    for (name, value) in &options.extra_args {
        let name = name.trim_start_matches('-');
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Err(LaunchError::Argument {
                name: name.to_owned(),
            });
        }
        match value {
            Some(value) => args.value(name, value),
            None => args.flag(name),
        }
    }
    let mut args = args.0;
    if let Channel::SdkUrl(_) = channel {
        // The empty prompt keeps the CLI from waiting for one on its standard input.
        args.push("-p".into());
        args.push("".into());
    }
    Ok(args)
}

/// The settings, with the sandbox added. A path is read, relative to the working directory.
fn settings(options: &Options) -> Result<Option<String>, LaunchError> {
    let Some(sandbox) = &options.sandbox else {
        return Ok(options.settings.clone());
    };
    let given = options.settings.as_deref().unwrap_or("{}");
    let failed = |reason: String| LaunchError::Settings {
        settings: given.to_owned(),
        reason,
    };
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        let path = options.cwd.as_deref().unwrap_or(Path::new("")).join(given);
        std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?
    };
    let mut settings: serde_json::Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    settings.insert("sandbox".to_owned(), json!(sandbox));
    Ok(Some(Value::Object(settings).to_string()))
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, name: &str) {
        self.0.push(format!("--{name}").into());
    }

    fn flag_if(&mut self, wanted: bool, name: &str) {
        if wanted {
            self.flag(name);
        }
    }

    fn value(&mut self, name: &str, value: impl AsRef<OsStr>) {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(value);
        self.0.push(argument);
    }

    fn optional(&mut self, name: &str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.value(name, values.join(","));
        }
    }
}

/// The environment of a CLI that is started with these options.
pub fn environment_of(options: &Options) -> BTreeMap<OsString, OsString> {
    environment(options, std::env::vars_os())
}

/// The environment: what we were given, less what must not reach the CLI, plus what the user's settings say where
/// nothing else does.
fn environment(
    options: &Options,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = inherited
        .into_iter()
        .filter(|(name, _)| {
            // With `CLAUDECODE` set the CLI believes that it runs inside another agent.
            name != "CLAUDECODE"
                && !options
                    .env_remove_prefixes
                    .iter()
                    .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        })
        .collect();
    for (name, value) in &options.env {
        match value {
            Some(value) => env.insert(name.clone(), value.clone()),
            None => env.remove(name),
        };
    }
    if let Some(home) = &options.claude_home {
        env.insert("CLAUDE_CONFIG_DIR".into(), home.clone().into_os_string());
    }
    if options.file_checkpointing {
        env.insert("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING".into(), "1".into());
    }
    if options.todos {
        // Newer versions offer no to-do tool unless told to, and then another one than older versions.
        for (name, value) in [
            ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
            ("CLAUDE_CODE_ENABLE_TASKS", "0"),
        ] {
            env.entry(name.into()).or_insert_with(|| value.into());
        }
    }
    let removed = |name: &OsStr| {
        options
            .env
            .iter()
            .any(|(candidate, value)| candidate == name && value.is_none())
            || options
                .env_remove_prefixes
                .iter()
                .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
    };
    if let Some(folder) = claude_home(&env) {
        for (name, value) in settings_env(&folder) {
            if name != "CLAUDECODE" && !removed(&name) {
                env.entry(name).or_insert(value);
            }
        }
    }
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let finder = match env.get(OsStr::new("HOME")) {
        Some(home) => Finder::new(home, path),
        None => Finder::from_env(),
    };
    env.insert("PATH".into(), finder.enriched_path());
    env
}

/// The folder in which a CLI with these options keeps its files.
#[cfg(feature = "history")]
pub(crate) fn home(options: &Options) -> Option<PathBuf> {
    claude_home(&environment_of(options))
}

/// The folder in which a CLI with this environment keeps its files.
fn claude_home(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    env.get(OsStr::new("CLAUDE_CONFIG_DIR"))
        .map(PathBuf::from)
        .or_else(|| {
            env.get(OsStr::new("HOME"))
                .map(|home| Path::new(home).join(".claude"))
        })
}

/// The `env` of the user's settings. Settings that can't be read are the CLI's to complain about.
fn settings_env(folder: &Path) -> Vec<(OsString, OsString)> {
    let path = folder.join("settings.json");
    let settings: Value = match std::fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "the settings are not JSON");
            Value::Null
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the settings can't be read");
            Value::Null
        }
    };
    let Some(entries) = settings.get("env").and_then(Value::as_object) else {
        return Vec::new();
    };
    entries
        .iter()
        .filter_map(|(name, value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((name.into(), value.into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(options: &Options) -> Vec<String> {
        let args = arguments(options, Channel::Stdio).unwrap();
        args.into_iter()
            .map(|argument| argument.into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_value_that_looks_like_a_flag_stays_a_value() {
        let options = Options::new()
            .model("--dangerously-skip-permissions")
            .system_prompt(SystemPrompt::Append("-p".into()))
            .tools(Vec::<String>::new());
        let line = line(&options);
        assert!(line.contains(&"--model=--dangerously-skip-permissions".to_owned()));
        assert!(line.contains(&"--append-system-prompt=-p".to_owned()));
        assert!(line.contains(&"--tools=".to_owned()));
        assert!(!line.contains(&"--dangerously-skip-permissions".to_owned()));
    }

    #[test]
    fn an_extra_argument_is_a_name_and_nothing_else() {
        let accepted = Options::new()
            .extra_arg("--brief", None)
            .extra_arg("debug-file", Some("/x y".into()));
        assert!(line(&accepted).ends_with(&["--brief".to_owned(), "--debug-file=/x y".to_owned()]));
        for name in ["", "--", "a b", "model=x"] {
            let refused = arguments(&Options::new().extra_arg(name, None), Channel::Stdio);
            assert!(matches!(refused, Err(LaunchError::Argument { .. })), "{name}");
        }
    }

    #[test]
    fn the_environment_is_inherited_cleaned_and_completed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".claude")).unwrap();
        std::fs::create_dir_all(home.path().join(".volta/bin")).unwrap();
        std::fs::create_dir_all(home.path().join(".nvm/versions/node/v9.11.2/bin")).unwrap();
        std::fs::create_dir_all(home.path().join(".nvm/versions/node/v20.1.0/bin")).unwrap();
        std::fs::write(
            home.path().join(".claude/settings.json"),
            r#"{"env":{"FROM_SETTINGS":"s","INHERITED":"s","NUMBER":3,"SECRET_A":"s","GONE":"s","CLAUDECODE":"1"}}"#,
        )
        .unwrap();
        let inherited = [
            ("HOME", home.path().to_str().unwrap()),
            ("PATH", "/usr/bin:/bin"),
            ("INHERITED", "i"),
            ("CLAUDECODE", "1"),
            ("SECRET_KEY", "k"),
            ("GONE", "g"),
        ];
        let options = Options::new()
            .env("GIVEN", "g")
            .env_remove("GONE")
            .env_remove_prefix("SECRET_")
            .file_checkpointing(true);
        let env = environment(
            &options,
            inherited.map(|(name, value)| (name.into(), value.into())),
        );
        let get = |name: &str| env.get(OsStr::new(name)).map(|value| value.to_str().unwrap());
        assert_eq!(get("INHERITED"), Some("i"));
        assert_eq!(get("FROM_SETTINGS"), Some("s"));
        assert_eq!(get("NUMBER"), Some("3"));
        assert_eq!(get("GIVEN"), Some("g"));
        assert_eq!(get("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"), Some("1"));
        for name in ["CLAUDECODE", "SECRET_KEY", "SECRET_A", "GONE"] {
            assert_eq!(get(name), None, "{name}");
        }
        let home = home.path().display();
        let path = get("PATH").unwrap();
        let newest_first = format!(
            "{home}/.nvm/versions/node/v20.1.0/bin:{home}/.nvm/versions/node/v9.11.2/bin:{home}/.volta/bin:"
        );
        assert!(path.starts_with(&newest_first), "{path}");
        assert!(path.ends_with("/usr/bin:/bin"), "{path}");
    }
}
