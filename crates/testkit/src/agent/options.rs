//! The command line: the CLI's flags that matter here, and two of our own.

use std::env;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) version: bool,
    pub(crate) stream_json: bool,
    pub(crate) start: Start,
    pub(crate) fork: bool,
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: String,
    /// Whether the mode may be changed to `bypassPermissions` later.
    pub(crate) may_bypass: bool,
    /// Whether permission prompts can be sent to the other side.
    pub(crate) asks_on_stdio: bool,
    pub(crate) partial_messages: bool,
    pub(crate) replay_user_messages: bool,
    /// Tools or rules such as `Bash(ls)` that need no permission.
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) script: Option<PathBuf>,
    pub(crate) speed: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    New,
    Resume(String),
    /// `--continue`: the newest session of the folder.
    Newest,
}

/// Flags without a value. Other unknown flags may have a value, so the next argument is skipped unless it looks like a
/// flag.
const SWITCHES: [&str; 12] = [
    "--print",
    "-p",
    "--verbose",
    "--debug",
    "--strict-mcp-config",
    "--include-hook-events",
    "--session-mirror",
    "--no-session-persistence",
    "--ide",
    "--bare",
    "--chrome",
    "--disable-slash-commands",
];

impl Options {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            version: false,
            stream_json: false,
            start: Start::New,
            fork: false,
            session_id: None,
            model: None,
            permission_mode: "default".to_owned(),
            may_bypass: false,
            asks_on_stdio: false,
            partial_messages: false,
            replay_user_messages: false,
            allowed_tools: Vec::new(),
            script: env::var_os("SCRIPTED_CLI").map(PathBuf::from),
            speed: 1.0,
        };
        if let Ok(speed) = env::var("DEMO_AGENT_SPEED") {
            options.speed = parse_speed(&speed)?;
        }
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let (flag, inline) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            match flag.as_str() {
                "--version" | "-v" => options.version = true,
                "--continue" | "-c" => options.start = Start::Newest,
                "--fork-session" => options.fork = true,
                "--include-partial-messages" => options.partial_messages = true,
                "--replay-user-messages" => options.replay_user_messages = true,
                "--allow-dangerously-skip-permissions" => options.may_bypass = true,
                "--dangerously-skip-permissions" => {
                    options.may_bypass = true;
                    "bypassPermissions".clone_into(&mut options.permission_mode);
                }
                switch if SWITCHES.contains(&switch) || !switch.starts_with('-') => {}
                _ => {
                    let value = inline
                        .or_else(|| arguments.next_if(|next| !next.starts_with('-')))
                        .unwrap_or_default();
                    options.set(&flag, value)?;
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: String) -> Result<(), String> {
        match flag {
            "--output-format" | "--input-format" => self.stream_json = value == "stream-json",
            "--resume" | "-r" => self.start = Start::Resume(value),
            "--session-id" => self.session_id = Some(value),
            "--model" => self.model = Some(value),
            "--permission-mode" => {
                self.may_bypass |= value == "bypassPermissions";
                self.permission_mode = value;
            }
            "--permission-prompt-tool" => self.asks_on_stdio = value == "stdio",
            "--allowedTools" | "--allowed-tools" => {
                self.allowed_tools = value.split(',').map(|rule| rule.trim().to_owned()).collect();
            }
            "--script" => self.script = Some(PathBuf::from(value)),
            "--demo-speed" => self.speed = parse_speed(&value)?,
            _ => {}
        }
        Ok(())
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if speed > 0.0 => Ok(speed),
        _ => Err(format!(
            "The demo's speed must be a factor above 0, such as 2 or inf, not {text:?}"
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Options {
        Options::parse(arguments.iter().map(|&argument| argument.to_owned())).unwrap()
    }

    #[test]
    fn both_spellings_of_a_value_are_understood() {
        let options = parse(&["--resume=abc", "--model", "opus", "--demo-speed", "inf"]);
        assert_eq!(options.start, Start::Resume("abc".to_owned()));
        assert_eq!(options.model.as_deref(), Some("opus"));
        assert!(options.speed.is_infinite());
    }

    #[test]
    fn unknown_flags_take_their_value_along_and_nothing_else() {
        let options = parse(&[
            "--system-prompt",
            "",
            "--from-the-future",
            "value",
            "--also-new",
            "--include-partial-messages",
            "--print",
            "--output-format",
            "stream-json",
        ]);
        assert!(options.partial_messages);
        assert!(options.stream_json);
    }

    #[test]
    fn a_speed_that_would_stand_still_is_refused() {
        for speed in ["0", "-1", "fast", "NaN"] {
            let arguments = ["--demo-speed".to_owned(), speed.to_owned()];
            // "-1" looks like a flag in the two-word form and must be refused there as well.
            assert!(Options::parse(arguments).is_err(), "{speed}");
        }
    }
}
