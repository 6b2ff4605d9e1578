//! The meaning of a row of the protocol's tables, and the two macros that turn the tables into code.
//!
//! `table` has the rows. From a row come the variant of the enum, parsing, dispatch, the TypeScript type and the entry in
//! the reference at `/api/docs`. This module knows no event by name.

use std::fmt;

use serde::{Serialize, Serializer};
use tiller_core::credentials::Scopes;
use ts_rs::{Config, TS};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::table::ServerKind;
use crate::underway::Order;

/// The file from which the page imports the event API's types.
pub(super) const TYPESCRIPT: &str = "events.ts";

/// The id that a client gave a frame. Each answer to the frame and each error that it caused carries the same id.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
pub(crate) struct CommandId(String);

impl CommandId {
    /// In characters.
    pub(super) const LONGEST: usize = 64;

    /// `None` if the text is too long.
    pub(super) fn new(text: String) -> Option<Self> {
        (text.chars().count() <= Self::LONGEST).then_some(Self(text))
    }
}

/// The scope that a client event needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    Read,
    /// `read` or `approve`: answering decisions needs to see them.
    See,
    Run,
    Approve,
}

impl Scope {
    pub(super) fn is_in(self, scopes: Scopes) -> bool {
        match self {
            Self::Read => scopes.read,
            Self::See => scopes.read || scopes.approve,
            Self::Run => scopes.run,
            Self::Approve => scopes.approve,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "read",
            Self::See => "read or approve",
            Self::Run => "run",
            Self::Approve => "approve",
        })
    }
}

/// When a client event is executed, relative to the others of its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ordering {
    /// At once; later frames wait for it.
    InLoop,
    /// In parallel; nothing waits for it.
    Beside,
    /// After the commands of its session that came before it; later ones wait for it.
    Command,
    /// After the commands of its session that came before it; nothing waits for it.
    Question,
}

impl Ordering {
    /// The order of an event among those that name the same session. A text that is not a session id waits for nothing.
    pub(super) fn with(self, session: &str) -> Order {
        match (self, session.parse()) {
            (Self::InLoop | Self::Beside, _) | (_, Err(_)) => Order::Beside,
            (Self::Command, Ok(session)) => Order::Command(session),
            (Self::Question, Ok(session)) => Order::Question(session),
        }
    }
}

/// One client event, as the table describes it.
#[derive(Debug)]
pub(crate) struct ClientRow {
    pub(crate) name: &'static str,
    /// Each line of the row's doc comment.
    pub(crate) english: &'static [&'static str],
    pub(crate) chinese: &'static str,
    pub(crate) scope: Scope,
    pub(crate) order: Ordering,
    /// The events that may answer it, beside `runner.error`.
    pub(crate) answers: &'static [ServerKind],
    pub(crate) schemas: fn() -> Schemas,
}

/// One server event, as the table describes it.
#[derive(Debug)]
pub(crate) struct ServerRow {
    pub(crate) name: &'static str,
    /// Each line of the row's doc comment.
    pub(crate) english: &'static [&'static str],
    pub(crate) chinese: &'static str,
    /// Whether the payload has the session's `seq`.
    pub(crate) has_seq: bool,
    pub(crate) schemas: fn() -> Schemas,
}

/// The JSON schema of a payload, and those of the types in it, each by its name.
pub(crate) struct Schemas {
    pub(crate) payload: String,
    pub(crate) all: Vec<(String, RefOr<Schema>)>,
}

pub(super) fn schemas_of<P: ToSchema>() -> Schemas {
    let payload = P::name().into_owned();
    let mut all = vec![(payload.clone(), P::schema())];
    P::schemas(&mut all);
    Schemas { payload, all }
}

/// A server event as the text of a frame.
pub(super) struct Frame<'a, E> {
    pub(super) event: &'a E,
    pub(super) command: Option<&'a CommandId>,
}

impl<E> Frame<'_, E>
where
    Self: Serialize,
{
    pub(super) fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// `{ "type": …, "commandId"?: …, "payload": … }` in TypeScript.
pub(super) fn typescript_frame<P: TS>(name: &str, needs_payload: bool, config: &Config) -> String {
    let optional = if needs_payload { "" } else { "?" };
    let payload = P::name(config);
    format!("{{ type: \"{name}\", commandId?: string, payload{optional}: {payload} }}")
}

/// A doc comment in TypeScript.
pub(super) fn typescript_comment(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
    format!("/** {} */", lines.join(" "))
}

/// Serializes the fields of a frame; the macro passes the payload.
pub(super) fn serialize_frame<S: Serializer>(
    serializer: S,
    name: &'static str,
    command: Option<&CommandId>,
    payload: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeStruct as _;
    let mut frame = serializer.serialize_struct("Frame", 3)?;
    frame.serialize_field("type", name)?;
    if let Some(command) = command {
        frame.serialize_field("commandId", command)?;
    }
    frame.serialize_field("payload", payload)?;
    frame.end()
}

/// The table of what clients send. A row is
///
/// ```text
/// /// What it does, in English.
/// Variant(Payload) = "wire.name" {
///     chinese: "What it does, in Chinese",
///     session: the payload's field that names the session, or none,
///     scope: Read | Run | Approve,
///     order: InLoop | Beside | Command | Question [by a function that looks at the payload],
///     answers: [server events that may answer it],
///     handler: beside the connection's loop, `async fn(Context, Payload) -> Result<Reply, Refused>`
///  or connection: in the loop, `fn(&mut Connection, Request, Payload) -> Handled`
/// }
/// ```
macro_rules! client_events {
    ($(
        $(#[doc = $english:literal])+
        $variant:ident($payload:ty) = $name:literal {
            chinese: $chinese:literal,
            session: $session:ident,
            scope: $scope:ident,
            order: $order:ident $(by $by:path)?,
            answers: [$($answer:ident),*],
            $place:ident: $handler:path $(,)?
        }
    )+) => {
        /// What a client may send.
        #[derive(Debug)]
        #[expect(clippy::large_enum_variant, reason = "one at a time, from its frame to its handler")]
        pub enum ClientEvent {
            $($(#[doc = $english])+ $variant($payload)),+
        }

        impl ClientEvent {
            /// Every row of the table, in its order.
            pub(crate) const ROWS: &'static [ClientRow] = &[$(ClientRow {
                name: $name,
                english: &[$($english),+],
                chinese: $chinese,
                scope: Scope::$scope,
                order: Ordering::$order,
                answers: &[$(ServerKind::$answer),*],
                schemas: schemas_of::<$payload>,
            }),+];

            /// Reads the payload of the event with this name. `None` if no event has it.
            pub(super) fn read(name: &str, payload: Option<&RawValue>) -> Option<Result<Self, String>> {
                match name {
                    $($name => Some(parse::payload(payload).map(Self::$variant)),)+
                    _ => None,
                }
            }

            pub(super) fn row(&self) -> &'static ClientRow {
                let name = match self { $(Self::$variant(_) => $name),+ };
                let row = Self::ROWS.iter().find(|row| row.name == name);
                // Every variant has a row: both come from the same line of the table.
                row.unwrap_or(&Self::ROWS[0])
            }

            /// The session that the event names.
            pub(super) fn session(&self) -> Option<&str> {
                match self {
                    $(Self::$variant(payload) => client_events!(@session payload, $session)),+
                }
            }

            /// Executes the event, or begins to execute it beside the connection's loop.
            pub(super) fn dispatch(
                self,
                connection: &mut Connection,
                request: Request,
            ) -> Handled {
                match self {
                    $(Self::$variant(payload) => client_events!(
                        @$place connection, request, payload, $handler, $order $(by $by)?
                    )),+
                }
            }
        }

        impl TS for ClientEvent {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn docs() -> Option<String> {
                Some("/**\n * What a client may send.\n */\n".to_owned())
            }

            fn name(_: &Config) -> String {
                "ClientEvent".to_owned()
            }

            fn inline(config: &Config) -> String {
                let rows = [$(format!(
                    "\n  {}\n  | {}",
                    typescript_comment(&[$($english),+]),
                    typescript_frame::<$payload>($name, parse::payload::<$payload>(None).is_err(), config),
                )),+];
                rows.concat()
            }

            fn decl(config: &Config) -> String {
                format!("type ClientEvent ={};", Self::inline(config))
            }

            fn decl_concrete(config: &Config) -> String {
                Self::decl(config)
            }

            fn visit_dependencies(visitor: &mut impl TypeVisitor) {
                $(
                    visitor.visit::<$payload>();
                    <$payload as TS>::visit_dependencies(visitor);
                )+
            }

            fn output_path() -> Option<std::path::PathBuf> {
                Some(std::path::PathBuf::from(TYPESCRIPT))
            }
        }
    };

    (@session $payload:ident, none) => {{
        let _: &_ = $payload;
        None
    }};
    (@session $payload:ident, $field:ident) => { Some($payload.$field.as_str()) };

    (@handler $connection:ident, $request:ident, $payload:ident, $handler:path, $order:ident by $by:path) => {{
        let order = $by(&$payload);
        let work = $handler($connection.context(&$request.origin), $payload);
        $connection.begin(order, $request, work);
        Handled::Underway
    }};
    (@handler $connection:ident, $request:ident, $payload:ident, $handler:path, $order:ident) => {{
        let order = Ordering::$order.with(&$payload.session_id);
        let work = $handler($connection.context(&$request.origin), $payload);
        $connection.begin(order, $request, work);
        Handled::Underway
    }};
    (@connection $connection:ident, $request:ident, $payload:ident, $handler:path, $order:ident $(by $by:path)?) => {
        Handled::from($handler($connection, $request, $payload))
    };
}

/// The table of what the server sends. A row is
///
/// ```text
/// /// What it tells, in English.
/// Variant(Payload) = "wire.name" { chinese: "What it tells, in Chinese", seq: true | false }
/// ```
macro_rules! server_events {
    ($(
        $(#[doc = $english:literal])+
        $variant:ident($payload:ty) = $name:literal { chinese: $chinese:literal, seq: $seq:literal $(,)? }
    )+) => {
        /// What the server sends.
        #[derive(Debug)]
        pub enum ServerEvent {
            $($(#[doc = $english])+ $variant($payload)),+
        }

        /// The kind of an event, without its payload.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum ServerKind { $($variant),+ }

        impl ServerKind {
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl ServerEvent {
            /// Every row of the table, in its order.
            pub(crate) const ROWS: &'static [ServerRow] = &[$(ServerRow {
                name: $name,
                english: &[$($english),+],
                chinese: $chinese,
                has_seq: $seq,
                schemas: schemas_of::<$payload>,
            }),+];

            pub(super) fn kind(&self) -> ServerKind {
                match self { $(Self::$variant(_) => ServerKind::$variant),+ }
            }
        }

        $(impl From<$payload> for ServerEvent {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })+

        impl Serialize for Frame<'_, ServerEvent> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.event {
                    $(ServerEvent::$variant(payload) => serialize_frame(serializer, $name, self.command, payload)),+
                }
            }
        }

        impl TS for ServerEvent {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn docs() -> Option<String> {
                Some("/**\n * What the server sends.\n */\n".to_owned())
            }

            fn name(_: &Config) -> String {
                "ServerEvent".to_owned()
            }

            fn inline(config: &Config) -> String {
                let rows = [$(format!(
                    "\n  {}\n  | {}",
                    typescript_comment(&[$($english),+]),
                    typescript_frame::<$payload>($name, true, config),
                )),+];
                rows.concat()
            }

            fn decl(config: &Config) -> String {
                format!("type ServerEvent ={};", Self::inline(config))
            }

            fn decl_concrete(config: &Config) -> String {
                Self::decl(config)
            }

            fn visit_dependencies(visitor: &mut impl TypeVisitor) {
                $(
                    visitor.visit::<$payload>();
                    <$payload as TS>::visit_dependencies(visitor);
                )+
            }

            fn output_path() -> Option<std::path::PathBuf> {
                Some(std::path::PathBuf::from(TYPESCRIPT))
            }
        }
    };
}

pub(super) use {client_events, server_events};
