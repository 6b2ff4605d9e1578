//! The settings of a session that have a field in the event API: one row each. The fields of `session.start`,
//! `session.configure` and the session's entry, their TypeScript types, their documentation and both translations come
//! from the row. The backend defines what a setting means; an option without a row is set by its own name in `options`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use tiller_core::{OptionChange, Options, Settings};
use ts_rs::{Config, TS, TypeVisitor};
use utoipa::ToSchema;

use super::wire::Approval;
use crate::options::PermissionMode;

/// The table: the field, the option that it sets, its type, and its description.
macro_rules! settings_table {
    ($then:ident { $($given:tt)* }) => {
        $crate::events::settings::$then! {
            { $($given)* }
            /// The name of a model, as the agent lists it.
            model = "model": String,
            /// What the agent may do without asking.
            permission_mode = "permissionMode": PermissionMode,
            /// The effort of the model, as the agent lists it with its models.
            effort = "effort": String,
            /// Comma-separated tools and rules that run without asking, such as `Read,Bash(git *)`.
            allowed_tools = "allowedTools": String,
            /// The maximum number of model calls in one turn.
            max_turns = "maxTurns": u32,
            /// The maximum cost of the conversation.
            max_budget_usd = "maxBudgetUsd": f64,
            /// Whether the agent runs in a sandbox: `off`, `files` (the file system is closed but for the working directory and
            /// listed folders) or `on` (the network, too, but for listed hosts).
            sandbox = "sandbox": SandboxLevel,
            /// Folders that a sandboxed agent can write to, beside its working directory and its own files.
            sandbox_folders = "sandboxFolders": TextList,
            /// Hosts that a sandboxed agent can reach, beside those of its model: `example.com`, `*.example.com`, each with or
            /// without a port.
            sandbox_hosts = "sandboxHosts": TextList,
        }
    };
}

/// Declares a payload with a field for every setting beside its own fields. An absent field means unchanged (or the
/// default, for a new session), `null` the default.
macro_rules! with_settings {
    ($($payload:tt)*) => {
        $crate::events::settings::settings_table! { payload_with_settings { $($payload)* } }
    };
}

macro_rules! payload_with_settings {
    (
        { $(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } }
        $( $(#[doc = $doc:literal])+ $field:ident = $option:literal: $type:ident, )+
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($own)*
            /// Who answers when the agent asks for permission.
            #[serde(default)]
            #[schema(value_type = Option<Approval>)]
            pub approval: $crate::events::settings::Change<Approval>,
            $(
                $(#[doc = $doc])+
                #[serde(default)]
                #[schema(value_type = Option<$type>)]
                pub $field: $crate::events::settings::Change<$type>,
            )+
            /// Further options of the agent, by the names that `GET /api/backends` lists. `null` is the default.
            #[serde(default)]
            #[ts(optional, type = "Record<string, unknown>")]
            #[schema(value_type = Option<Object>)]
            pub options: Option<serde_json::Map<String, serde_json::Value>>,
        }

        impl $name {
            /// Takes the settings out of the payload.
            pub(in crate::events) fn take_settings(&mut self) -> tiller_core::SettingsPatch {
                let fields = [$( std::mem::take(&mut self.$field).of($option) ),+];
                let others = self.options.take().unwrap_or_default().into_iter();
                let others = others.map(|(name, value)| tiller_core::OptionChange::new(name, value));
                tiller_core::SettingsPatch {
                    approval: std::mem::take(&mut self.approval).approval(),
                    options: fields.into_iter().flatten().chain(others).collect(),
                }
            }
        }
    };
}

macro_rules! settings_info {
    (
        { }
        $( $(#[doc = $doc:literal])+ $field:ident = $option:literal: $type:ident, )+
    ) => {
        /// The settings of a session.
        #[derive(Debug, Serialize, TS, ToSchema)]
        #[serde(rename_all = "camelCase")]
        #[ts(export_to = "events.ts", optional_fields)]
        pub struct SettingsInfo {
            /// Who answers when the agent asks for permission.
            pub approval: Approval,
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Shown::is_absent")]
                #[schema(value_type = Option<$type>)]
                pub $field: <$type as Setting>::Shown,
            )+
            /// Other options that are set, by the agent's names.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[ts(optional, type = "Record<string, unknown>")]
            #[schema(value_type = Option<Object>)]
            pub options: Option<Map<String, Value>>,
        }

        impl From<&Settings> for SettingsInfo {
            fn from(settings: &Settings) -> Self {
                let named = [$( $option ),+];
                let others = settings.options.iter().filter(|(name, _)| !named.contains(name));
                let others: Map<_, _> = others.map(|(name, value)| (name.to_owned(), value.clone())).collect();
                Self {
                    approval: settings.approval.into(),
                    $( $field: Shown::shown(&settings.options, $option), )+
                    options: (!others.is_empty()).then_some(others),
                }
            }
        }
    };
}

pub(in crate::events) use {payload_with_settings, settings_info, settings_table, with_settings};

settings_table! { settings_info { } }

/// What a payload says about one setting.
#[derive(Clone, Debug, Default)]
pub enum Change<T> {
    /// Absent: the setting is unchanged.
    #[default]
    Keep,
    /// `null`: the setting is reset to its default.
    Reset,
    Set(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::<T>::deserialize(deserializer)?;
        Ok(value.map_or(Self::Reset, Self::Set))
    }
}

impl<T: Setting> Change<T> {
    pub(in crate::events) fn of(self, option: &str) -> Option<OptionChange> {
        match self {
            Self::Keep => None,
            Self::Reset => Some(OptionChange::new(option, Value::Null)),
            Self::Set(value) => Some(OptionChange::new(option, value.into_option())),
        }
    }
}

impl Change<Approval> {
    pub(in crate::events) fn approval(self) -> Option<tiller_core::Approval> {
        match self {
            Self::Keep => None,
            Self::Reset => Some(tiller_core::Approval::Ask),
            Self::Set(approval) => Some(approval.into()),
        }
    }
}

/// An optional field that may be null.
impl<T: TS> TS for Change<T> {
    type WithoutGenerics = Option<T>;
    type OptionInnerType = Option<T>;
    const IS_OPTION: bool = true;

    fn name(config: &Config) -> String {
        Option::<T>::name(config)
    }

    fn inline(config: &Config) -> String {
        Option::<T>::inline(config)
    }

    fn visit_dependencies(visitor: &mut impl TypeVisitor)
    where
        Self: 'static,
    {
        Option::<T>::visit_dependencies(visitor);
    }

    fn visit_generics(visitor: &mut impl TypeVisitor)
    where
        Self: 'static,
    {
        Option::<T>::visit_generics(visitor);
    }
}

/// The type of a setting's value, and its conversion to and from the backend's option.
pub trait Setting: Sized {
    /// Its type in the session's entry.
    type Shown: Shown;

    /// Null stands for the default.
    fn into_option(self) -> Value;

    fn from_option(value: &Value) -> Option<Self>;
}

/// An empty text stands for the default.
impl Setting for String {
    type Shown = Option<Self>;

    fn into_option(self) -> Value {
        if self.trim().is_empty() {
            Value::Null
        } else {
            self.into()
        }
    }

    fn from_option(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Setting for u32 {
    type Shown = Option<Self>;

    fn into_option(self) -> Value {
        self.into()
    }

    fn from_option(value: &Value) -> Option<Self> {
        value.as_u64()?.try_into().ok()
    }
}

impl Setting for f64 {
    type Shown = Option<Self>;

    fn into_option(self) -> Value {
        self.into()
    }

    fn from_option(value: &Value) -> Option<Self> {
        value.as_f64()
    }
}

/// A list of texts. An empty one is the default.
#[derive(Clone, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(transparent)]
#[ts(export_to = "events.ts")]
pub struct TextList(Vec<String>);

impl Setting for TextList {
    type Shown = Option<Self>;

    fn into_option(self) -> Value {
        if self.0.is_empty() {
            Value::Null
        } else {
            self.0.into()
        }
    }

    fn from_option(value: &Value) -> Option<Self> {
        let texts = value.as_array()?.iter().filter_map(Value::as_str);
        Some(Self(texts.map(str::to_owned).collect()))
    }
}

/// How far a sandbox goes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum SandboxLevel {
    Off,
    Files,
    On,
}

/// `off` is a choice: a key's sessions may have a sandbox by default.
impl Setting for SandboxLevel {
    type Shown = Option<Self>;

    fn into_option(self) -> Value {
        let level = match self {
            Self::Off => tiller_core::backend::SandboxLevel::Off,
            Self::Files => tiller_core::backend::SandboxLevel::Files,
            Self::On => tiller_core::backend::SandboxLevel::On,
        };
        level.name().into()
    }

    fn from_option(value: &Value) -> Option<Self> {
        use tiller_core::backend::{SANDBOX, SandboxLevel as Level};
        let chosen = Level::chosen(&Options::default().with(SANDBOX, value.clone()))?;
        Some(match chosen {
            Level::Off => Self::Off,
            Level::Files => Self::Files,
            Level::On => Self::On,
        })
    }
}

/// The default mode is not stored as an option, so that agents without such modes accept it, too.
impl Setting for PermissionMode {
    type Shown = Self;

    fn into_option(self) -> Value {
        self.change().value.unwrap_or_default()
    }

    fn from_option(value: &Value) -> Option<Self> {
        value.as_str().and_then(Self::parse)
    }
}

/// A setting in the session's entry.
pub trait Shown {
    fn shown(options: &Options, name: &str) -> Self;

    /// Whether the entry omits it.
    fn is_absent(&self) -> bool;
}

impl<T: Setting> Shown for Option<T> {
    fn shown(options: &Options, name: &str) -> Self {
        options.get(name).and_then(T::from_option)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl Shown for PermissionMode {
    fn shown(options: &Options, _name: &str) -> Self {
        Self::of(options)
    }

    fn is_absent(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::commands::steer::SessionConfigure;

    #[test]
    fn absent_null_and_a_value_are_distinguished() {
        let payload = json!({
            "sessionId": "s", "model": null, "effort": " ", "maxTurns": 3, "permissionMode": "default",
            "options": { "mode": "plan" },
        });
        let mut configure: SessionConfigure = serde_json::from_value(payload).unwrap();
        let patch = configure.take_settings();
        assert_eq!(patch.approval, None);
        let expected = [
            OptionChange::new("model", Value::Null),
            OptionChange::new("permissionMode", Value::Null),
            OptionChange::new("effort", Value::Null),
            OptionChange::new("maxTurns", 3),
            OptionChange::new("mode", "plan"),
        ];
        assert_eq!(patch.options, expected);
    }

    #[test]
    fn an_entry_shows_every_option() {
        let settings = Settings {
            options: Options::default()
                .with("model", "opus")
                .with("maxBudgetUsd", 0.5)
                .with("mode", "plan"),
            ..Settings::default()
        };
        assert_eq!(
            serde_json::to_value(SettingsInfo::from(&settings)).unwrap(),
            json!({
                "approval": "ask", "model": "opus", "permissionMode": "default", "maxBudgetUsd": 0.5,
                "options": { "mode": "plan" },
            })
        );
    }
}
