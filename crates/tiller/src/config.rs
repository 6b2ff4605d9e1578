//! `config.toml` in the data folder. Everything in it is optional, and so is the file.

use anyhow::Context;
use serde::Deserialize;

use crate::data_dir::DataDir;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Names, with or without a port, under which the server may be reached beside its address.
    pub(crate) allowed_hosts: Vec<String>,
    /// Where the titles of sessions come from: `model` (the default), or `prompt`, which costs nothing.
    pub(crate) titles: Titles,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Titles {
    #[default]
    Model,
    Prompt,
}

impl Config {
    pub(crate) fn read(data_dir: &DataDir) -> anyhow::Result<Self> {
        let path = data_dir.config_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
        };
        toml::from_str(&text).with_context(|| format!("{} is not right", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Titles};

    #[test]
    fn what_is_written_is_read_and_mistakes_are_named() {
        let config: Config = toml::from_str("allowed_hosts = [\"tiller.example\"]").unwrap();
        assert_eq!(config.allowed_hosts, ["tiller.example"]);
        assert_eq!(config.titles, Titles::Model);
        let config: Config = toml::from_str("titles = \"prompt\"").unwrap();
        assert_eq!(config.titles, Titles::Prompt);
        let error = toml::from_str::<Config>("allowed_host = []")
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field `allowed_host`"), "{error}");
    }
}
