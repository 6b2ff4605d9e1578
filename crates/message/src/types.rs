//! The messages as TypeScript, for readers in the browser.
//!
//! The types describe what agents write, not what we wish they wrote: every field may be missing or `null`. A union has
//! a last member with the tag `unknown`, which no agent sends: it stands for everything that this version does not
//! know, so that a `switch` over the tag needs a default case.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use ts_rs::{Config, TypeVisitor};

use crate::message::{Block, Content, StructuredResult, ToolUseResult};
use crate::mode::PermissionMode;

/// The file that all of them are written to.
pub(crate) const FILE: &str = "messages.ts";

/// Implements `TS` for a type of this crate by its declaration.
macro_rules! declare {
    ($kind:ty as $name:expr, [$($doc:literal)*], |$config:ident| $inline:expr, |$visitor:ident| $visits:block) => {
        impl ts_rs::TS for $kind {
            type WithoutGenerics = Self;
            type OptionInnerType = Self;

            fn docs() -> Option<String> {
                Some(ts_rs::format_docs(&[$($doc),*]))
            }
            fn name(_: &ts_rs::Config) -> String {
                $name.to_owned()
            }
            fn inline($config: &ts_rs::Config) -> String {
                $inline
            }
            fn decl(config: &ts_rs::Config) -> String {
                format!("type {} = {};", <Self as ts_rs::TS>::name(config), Self::inline(config))
            }
            fn decl_concrete(config: &ts_rs::Config) -> String {
                Self::decl(config)
            }
            fn visit_dependencies($visitor: &mut impl ts_rs::TypeVisitor) $visits
            fn output_path() -> Option<std::path::PathBuf> {
                Some($crate::types::FILE.into())
            }
        }

        impl $crate::types::FieldType for $kind {
            fn name(config: &ts_rs::Config) -> String {
                <Self as ts_rs::TS>::name(config)
            }
            fn visit(visitor: &mut impl ts_rs::TypeVisitor) {
                visitor.visit::<Self>();
            }
        }
    };
}

/// A type of a message's field.
pub(crate) trait FieldType {
    fn name(config: &Config) -> String;
    fn visit(visitor: &mut impl TypeVisitor);
}

macro_rules! named {
    ($($kind:ty => $name:literal),* $(,)?) => { $(
        impl FieldType for $kind {
            fn name(_: &Config) -> String { $name.to_owned() }
            fn visit(_: &mut impl TypeVisitor) {}
        }
    )* };
}

named! {
    String => "string",
    bool => "boolean",
    u16 => "number",
    u32 => "number",
    u64 => "number",
    i64 => "number",
    f64 => "number",
    PermissionMode => "string",
    Value => "unknown",
    Map<String, Value> => "Record<string, unknown>",
}

impl FieldType for StructuredResult {
    fn name(_: &Config) -> String {
        "ToolUseResult | string".to_owned()
    }
    fn visit(visitor: &mut impl TypeVisitor) {
        visitor.visit::<ToolUseResult>();
    }
}

impl FieldType for Content {
    fn name(_: &Config) -> String {
        "string | Array<Block>".to_owned()
    }
    fn visit(visitor: &mut impl TypeVisitor) {
        visitor.visit::<Block>();
    }
}

/// What every message may have.
#[derive(Debug)]
pub struct MessageHead;

declare! {
    MessageHead as "MessageHead", [" What every message may have."],
    |_config| object(&[
        Field { docs: &[" The message's own id."], name: "uuid", kind: "string".to_owned() },
        Field { docs: &[" The conversation."], name: "session_id", kind: "string".to_owned() },
        Field {
            docs: &[" Set on a subagent's messages: the tool call that started it."],
            name: "parent_tool_use_id",
            kind: "string".to_owned(),
        },
        Field { docs: &[" Set on messages that the user did not write."], name: "isMeta", kind: "boolean".to_owned() },
    ]),
    |_visitor| {}
}

impl<T: FieldType> FieldType for Option<T> {
    fn name(config: &Config) -> String {
        T::name(config)
    }
    fn visit(visitor: &mut impl TypeVisitor) {
        T::visit(visitor);
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    fn name(config: &Config) -> String {
        format!("Array<{}>", T::name(config))
    }
    fn visit(visitor: &mut impl TypeVisitor) {
        T::visit(visitor);
    }
}

impl<T: FieldType> FieldType for BTreeMap<String, T> {
    fn name(config: &Config) -> String {
        format!("Record<string, {}>", T::name(config))
    }
    fn visit(visitor: &mut impl TypeVisitor) {
        T::visit(visitor);
    }
}

/// A field of an object.
pub(crate) struct Field {
    pub(crate) docs: &'static [&'static str],
    pub(crate) name: &'static str,
    pub(crate) kind: String,
}

pub(crate) fn object(fields: &[Field]) -> String {
    let mut object = String::from("{ ");
    for Field { docs, name, kind } in fields {
        let docs = ts_rs::format_docs(docs);
        let null = if kind == "unknown" { "" } else { " | null" };
        for part in ["\n", &docs, name, "?: ", kind, null, ","] {
            object.push_str(part);
        }
    }
    object + " }"
}

/// A member of a union: the tag's value and the type of the rest.
pub(crate) struct Member {
    pub(crate) tag: &'static str,
    pub(crate) kind: String,
}

/// `shared` is a type that all members extend.
pub(crate) fn union(tag: &str, shared: Option<&str>, members: &[Member]) -> String {
    let shared = shared.map(|shared| format!(" & {shared}")).unwrap_or_default();
    let known = members
        .iter()
        .map(|Member { tag: value, kind }| format!("\n  | ({{ {tag}: \"{value}\" }}{shared} & {kind})"));
    let unknown = format!("\n  | ({{ {tag}: \"unknown\" }}{shared})");
    known.chain([unknown]).collect()
}

/// The TypeScript of what [`records!`](crate::records) defines.
macro_rules! record_types {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident $(= $wire:literal)? : $kind:ty,)* })*) => { $(
        $crate::types::declare! {
            $name as stringify!($name), [$($doc)*],
            |_config| $crate::types::object(&[$($crate::types::Field {
                docs: &[$($field_doc),*],
                name: $crate::wire_name!($field $($wire)?),
                kind: <$kind as $crate::types::FieldType>::name(_config),
            }),*]),
            |_visitor| { $(<$kind as $crate::types::FieldType>::visit(_visitor);)* }
        }
    )* };
}

/// The TypeScript of what [`variants!`](crate::variants) defines. With `@as`: under another name, each member extending
/// a shared type, with more members.
macro_rules! variant_types {
    (@as $ts_name:literal, $shared:ty, [$($more_tag:literal ($more:ty)),*];
     $(#[doc = $doc:literal])* $name:ident by $tag:literal { $($(#[doc = $variant_doc:literal])* $variant:ident = $wire:literal ($kind:ty),)* }) => {
        $crate::types::declare! {
            $name as $ts_name, [$($doc)*],
            |config| {
                let shared = <$shared as $crate::types::FieldType>::name(config);
                $crate::types::union($tag, Some(&shared), &[
                    $($crate::types::Member { tag: $wire, kind: <$kind as $crate::types::FieldType>::name(config) },)*
                    $($crate::types::Member { tag: $more_tag, kind: <$more as $crate::types::FieldType>::name(config) },)*
                ])
            },
            |visitor| {
                <$shared as $crate::types::FieldType>::visit(visitor);
                $(<$kind as $crate::types::FieldType>::visit(visitor);)*
                $(<$more as $crate::types::FieldType>::visit(visitor);)*
            }
        }
    };
    ($(#[doc = $doc:literal])* $name:ident by $tag:literal { $($(#[doc = $variant_doc:literal])* $variant:ident = $wire:literal ($kind:ty),)* }) => {
        $crate::types::declare! {
            $name as stringify!($name), [$($doc)*],
            |config| $crate::types::union($tag, None, &[$($crate::types::Member {
                tag: $wire,
                kind: <$kind as $crate::types::FieldType>::name(config),
            }),*]),
            |visitor| { $(<$kind as $crate::types::FieldType>::visit(visitor);)* }
        }
    };
}

pub(crate) use {declare, record_types, variant_types};
