//! The options of an agent. They belong to the backend, which names, describes and checks them, and says which of them
//! a running agent can change. The domain only stores and passes them on.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::sandbox::{SANDBOX, SandboxView};

/// The options of a session, by name. An option that is not set, or is set to its default, is absent. Cheap to clone.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Options(Arc<Map<String, Value>>);

impl Options {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Sets an option; null is the same as not setting it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let value = Some(value.into()).filter(|value| !value.is_null());
        self.apply(&OptionChange {
            name: name.into(),
            value,
        });
    }

    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    pub fn apply(&mut self, change: &OptionChange) {
        // Only if something changes: the map may be shared.
        if self.0.get(&change.name) == change.value.as_ref() {
            return;
        }
        let options = Arc::make_mut(&mut self.0);
        match &change.value {
            Some(value) => options.insert(change.name.clone(), value.clone()),
            None => options.remove(&change.name),
        };
    }

    /// The changes that lead from these options to `wanted`.
    pub fn changes_to(&self, wanted: &Self) -> Vec<OptionChange> {
        let removed = self.0.keys().filter(|name| !wanted.0.contains_key(*name));
        let removed = removed.map(|name| OptionChange {
            name: name.clone(),
            value: None,
        });
        let set = wanted
            .0
            .iter()
            .filter(|(name, value)| self.0.get(*name) != Some(*value));
        let set = set.map(|(name, value)| OptionChange {
            name: name.clone(),
            value: Some(value.clone()),
        });
        removed.chain(set).collect()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromIterator<(String, Value)> for Options {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(options: T) -> Self {
        let set = options.into_iter().filter(|(_, value)| !value.is_null());
        Self(Arc::new(set.collect()))
    }
}

/// A new value for one option.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionChange {
    pub name: String,
    /// `None`: the default.
    pub value: Option<Value>,
}

impl OptionChange {
    /// Null stands for the default.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.into()).filter(|value| !value.is_null()),
        }
    }
}

/// The description of an option, for clients that offer it to a user.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionInfo {
    pub name: String,
    pub title: String,
    pub kind: OptionKind,
    /// The values to choose from, if the backend knows them.
    pub choices: Vec<String>,
    pub default: Option<Value>,
    /// A running agent can change the option; otherwise it takes effect with the next turn.
    pub live: bool,
    /// The option lets the agent do more without asking, so setting it needs the scope `approve`.
    pub grants: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OptionKind {
    String,
    Number,
    Bool,
    /// One of the choices.
    Choice,
    /// Strings.
    List,
}

/// Why options were not accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct OptionRefused {
    /// The option's name.
    pub option: String,
    pub message: String,
}

impl OptionRefused {
    pub fn new(option: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            option: option.into(),
            message: message.into(),
        }
    }
}

/// Who decides about a tool that an agent asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// A person, or the session's approval mode.
    Ask,
    /// The options allow it.
    Allow,
    /// The options rule it out, for this reason.
    Deny(&'static str),
}

/// What options allow an agent to do without asking.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Grants {
    /// The name of the permission mode.
    pub mode: String,
    /// In this mode the agent asks before it changes anything.
    pub asks: bool,
    /// Tools and rules that need no permission.
    pub tools: Vec<String>,
}

/// What a backend's options mean for a session. Pure, because the state machine calls it.
pub trait OptionRules: fmt::Debug + Send + Sync + 'static {
    fn describe(&self) -> Vec<OptionInfo>;

    /// The options in canonical form, without those that are set to their defaults. `before`: the session's current
    /// options; `None` for a new session.
    fn check(&self, options: Options, before: Option<&Options>) -> Result<Options, OptionRefused>;

    /// The changes that a running agent can make to get closer to `wanted`. `started`: the options that its process was
    /// started with; `current`: the options that it has now.
    fn live_changes(&self, started: &Options, current: &Options, wanted: &Options) -> Vec<OptionChange>;

    /// What the options allow an agent to do without asking. The default implementation names no tools, and assumes
    /// that the agent no longer asks once an option that grants something is set.
    fn grants(&self, options: &Options) -> Grants {
        let described = self.describe();
        let is_set = |option: &OptionInfo| option.grants && options.get(&option.name).is_some();
        Grants {
            mode: "default".to_owned(),
            asks: !described.iter().any(is_set),
            tools: Vec::new(),
        }
    }

    /// The options with a budget of at most `limit` dollars. `None` if they ask for more, or if this kind of agent has
    /// no budget.
    fn within_budget(&self, _options: Options, _limit: f64) -> Option<Options> {
        None
    }

    /// How many dollars a session with these options may spend. `None`: as many as it likes.
    fn budget_usd(&self, _options: &Options) -> Option<f64> {
        None
    }

    /// The sandbox that an agent with these options gets. `None`: it gets none.
    fn sandbox(&self, _options: &Options) -> Option<SandboxView> {
        None
    }

    /// Whether this kind of agent can run in a sandbox.
    fn has_sandbox(&self) -> bool {
        self.describe().iter().any(|option| option.name == SANDBOX)
    }

    /// What the options say about a tool that the agent wants to use.
    fn verdict(&self, options: &Options, tool: &str) -> Verdict;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_set_to_null_is_not_set() {
        let options = Options::default().with("a", 1).with("b", Value::Null);
        assert_eq!(options.iter().collect::<Vec<_>>(), [("a", &Value::from(1))]);
        assert_eq!(options.with("a", Value::Null), Options::default());
    }

    #[test]
    fn changes_lead_from_one_to_the_other() {
        let (mut from, to) = (
            Options::default()
                .with("gone", true)
                .with("same", 1)
                .with("other", 1),
            Options::default()
                .with("same", 1)
                .with("other", 2)
                .with("new", "x"),
        );
        let changes = from.changes_to(&to);
        assert_eq!(changes.len(), 3);
        for change in &changes {
            from.apply(change);
        }
        assert_eq!(from, to);
    }
}
