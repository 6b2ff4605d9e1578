//! One line of a transcript, and the fields that the rest of the crate reads.
//!
//! Only this module knows the names of the CLI's top-level keys. `type` alone determines what a line is (several types
//! have a `message`), it may be anywhere in the line, and unknown types are kept.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

use crate::read::gaps::{self, Gaps, Then};
use crate::read::json::{Raw, Walk};
use crate::read::scan::{Plain, Scan};

/// The type of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Kind<'a> {
    User,
    Assistant,
    System,
    Attachment,
    Summary,
    CustomTitle,
    AiTitle,
    LastPrompt,
    FileHistorySnapshot,
    FileHistoryDelta,
    /// Known, but not needed by the history.
    Bookkeeping,
    /// A type of a later release.
    Unknown(&'a [u8]),
    /// No `type` at all.
    #[default]
    Untyped,
}

impl Kind<'_> {
    /// Whether lines of this kind are links of the chain of messages.
    pub(crate) fn is_link(self) -> bool {
        matches!(
            self,
            Kind::User | Kind::Assistant | Kind::System | Kind::Attachment
        )
    }

    pub(crate) fn is_message(self) -> bool {
        matches!(self, Kind::User | Kind::Assistant)
    }
}

fn kind(name: &[u8]) -> Kind<'_> {
    match name {
        b"user" => Kind::User,
        b"assistant" => Kind::Assistant,
        b"system" => Kind::System,
        b"attachment" => Kind::Attachment,
        b"summary" => Kind::Summary,
        b"custom-title" => Kind::CustomTitle,
        b"ai-title" => Kind::AiTitle,
        b"last-prompt" => Kind::LastPrompt,
        b"file-history-snapshot" => Kind::FileHistorySnapshot,
        b"file-history-delta" => Kind::FileHistoryDelta,
        b"queue-operation"
        | b"progress"
        | b"tools-used"
        | b"cost-state"
        | b"api-request"
        | b"api-request-shape"
        | b"api-request-blob"
        | b"atis-latch"
        | b"agent-name"
        | b"agent-color"
        | b"agent-setting"
        | b"tag"
        | b"pr-link"
        | b"mode"
        | b"permission-mode"
        | b"worktree-state"
        | b"content-replacement"
        | b"task-summary"
        | b"attribution-snapshot" => Kind::Bookkeeping,
        other => Kind::Unknown(other),
    }
}

/// The keys of a line, as raw values of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) uuid: Option<Raw<'a>>,
    pub(crate) parent: Option<Raw<'a>>,
    pub(crate) logical_parent: Option<Raw<'a>>,
    pub(crate) timestamp: Option<Raw<'a>>,
    pub(crate) cwd: Option<Raw<'a>>,
    pub(crate) session: Option<Raw<'a>>,
    pub(crate) version: Option<Raw<'a>>,
    pub(crate) branch: Option<Raw<'a>>,
    pub(crate) agent: Option<Raw<'a>>,
    /// `message.id`, `message.model`, `message.content` and `message.usage`.
    pub(crate) message_id: Option<&'a [u8]>,
    pub(crate) model: Option<&'a [u8]>,
    /// A string, or an array of blocks.
    pub(crate) content: Option<Raw<'a>>,
    pub(crate) usage: Option<Raw<'a>>,
    /// The number of blocks in the content, if it is an array.
    pub(crate) content_blocks: u32,
    /// The file that a tool's structured result names, whether it is the result of an edit, and whether the tool
    /// failed.
    pub(crate) result_path: Option<Raw<'a>>,
    pub(crate) result_is_edit: bool,
    pub(crate) result_is_error: bool,
    /// The subagent that a tool's structured result names.
    pub(crate) result_agent: Option<Raw<'a>>,
    pub(crate) subtype: Option<Raw<'a>>,
    pub(crate) compact: Option<Raw<'a>>,
    pub(crate) leaf: Option<Raw<'a>>,
    pub(crate) snapshot: Option<Raw<'a>>,
    pub(crate) tracking_path: Option<Raw<'a>>,
    pub(crate) origin: Option<Raw<'a>>,
    /// `summary`, `customTitle` or `aiTitle`.
    pub(crate) title: Option<Raw<'a>>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_meta: bool,
    pub(crate) is_compact_summary: bool,
}

impl<'a> Record<'a> {
    /// Reads a line; `None` if it is torn, spliced, or not a JSON object.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let mut record = Self::default();
        let end = Gaps::with(|gaps| record.begin(line, gaps))?;
        line[end..].iter().all(u8::is_ascii_whitespace).then_some(record)
    }

    /// Reads the record at the beginning of `bytes` into an empty one, and returns its length. All fields are collected
    /// in one pass: most bytes are text and should be read only once.
    pub(crate) fn begin(&mut self, bytes: &'a [u8], gaps: &mut Gaps) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if crate::read::scan::has_avx2() {
            // SAFETY: `has_avx2` has checked that the machine supports it.
            return unsafe { begin_wide(self, bytes, gaps) };
        }
        self.walk::<Plain>(bytes, gaps)
    }

    #[inline(always)]
    fn walk<S: Scan>(&mut self, bytes: &'a [u8], gaps: &mut Gaps) -> Option<usize> {
        let mut walk = Walk::<S>::new(bytes);
        let mut node = gaps::START;
        let mut inside = Inside::Line;
        loop {
            let rest = bytes.get(walk.at()..)?;
            let (length, then) = match gaps.pass::<S>(node, rest, self) {
                Some(passed) => passed,
                None => gaps.learn(node, inside, rest, self)?,
            };
            walk.skip(length);
            let Then::Value {
                key,
                inside: of,
                node: next,
            } = then
            else {
                return Some(walk.at());
            };
            let value = walk.value()?;
            if key == Key::Content {
                self.content_blocks = walk.children();
            }
            self.set(key, value);
            inside = of;
            node = next;
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, key: Key, value: Raw<'a>) {
        match key {
            Key::Other => {}
            Key::Type => {
                if let Some(name) = value.escaped() {
                    self.kind = kind(name);
                }
            }
            Key::Uuid => self.uuid = Some(value),
            Key::Parent => self.parent = Some(value),
            Key::LogicalParent => self.logical_parent = Some(value),
            Key::Timestamp => self.timestamp = Some(value),
            Key::Cwd => self.cwd = Some(value),
            Key::Session => self.session = Some(value),
            Key::Version => self.version = Some(value),
            Key::Branch => self.branch = Some(value),
            Key::Agent => self.agent = Some(value),
            Key::Origin => self.origin = Some(value),
            Key::Subtype => self.subtype = Some(value),
            Key::Title => self.title = Some(value),
            Key::Leaf => self.leaf = Some(value),
            Key::Snapshot => self.snapshot = Some(value),
            Key::TrackingPath => self.tracking_path = Some(value),
            Key::Compact => self.compact = Some(value),
            Key::IsMeta => self.is_meta = value.is_true(),
            Key::IsSidechain => self.is_sidechain = value.is_true(),
            Key::IsCompactSummary => self.is_compact_summary = value.is_true(),
            Key::MessageId => self.message_id = value.escaped(),
            Key::Model => self.model = value.escaped(),
            Key::Content => self.content = Some(value),
            Key::Usage => self.usage = Some(value),
            Key::ResultPath => self.result_path = Some(value),
            Key::ResultEdit => self.result_is_edit = true,
            Key::ResultError => self.result_is_error = value.0.len() > 2,
            Key::ResultAgent => self.result_agent = Some(value),
        }
    }

    pub(crate) fn is_compact_boundary(&self) -> bool {
        self.kind == Kind::System && self.subtype.and_then(Raw::escaped) == Some(b"compact_boundary")
    }
}

/// The object of a line that a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    Line,
    Message,
    Result,
}

/// The keys that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Type,
    Uuid,
    Parent,
    LogicalParent,
    Timestamp,
    Cwd,
    Session,
    Version,
    Branch,
    Agent,
    Origin,
    Subtype,
    Title,
    Leaf,
    Snapshot,
    TrackingPath,
    Compact,
    IsMeta,
    IsSidechain,
    IsCompactSummary,
    MessageId,
    Model,
    Content,
    Usage,
    ResultPath,
    ResultEdit,
    ResultError,
    ResultAgent,
    Other,
}

impl Key {
    pub(crate) fn of(inside: Inside, name: &[u8]) -> Self {
        match (inside, name) {
            (Inside::Line, b"type") => Self::Type,
            (Inside::Line, b"uuid") => Self::Uuid,
            (Inside::Line, b"parentUuid") => Self::Parent,
            (Inside::Line, b"logicalParentUuid") => Self::LogicalParent,
            (Inside::Line, b"timestamp") => Self::Timestamp,
            (Inside::Line, b"cwd") => Self::Cwd,
            (Inside::Line, b"sessionId") => Self::Session,
            (Inside::Line, b"version") => Self::Version,
            (Inside::Line, b"gitBranch") => Self::Branch,
            (Inside::Line, b"agentId") => Self::Agent,
            (Inside::Line, b"origin") => Self::Origin,
            (Inside::Line, b"subtype") => Self::Subtype,
            (Inside::Line, b"summary" | b"aiTitle" | b"customTitle") => Self::Title,
            (Inside::Line, b"leafUuid") => Self::Leaf,
            (Inside::Line, b"snapshot") => Self::Snapshot,
            (Inside::Line, b"trackingPath") => Self::TrackingPath,
            (Inside::Line, b"compactMetadata") => Self::Compact,
            (Inside::Line, b"isMeta") => Self::IsMeta,
            (Inside::Line, b"isSidechain") => Self::IsSidechain,
            (Inside::Line, b"isCompactSummary") => Self::IsCompactSummary,
            (Inside::Message, b"id") => Self::MessageId,
            (Inside::Message, b"model") => Self::Model,
            (Inside::Message, b"content") => Self::Content,
            (Inside::Message, b"usage") => Self::Usage,
            (Inside::Result, b"filePath" | b"notebook_path") => Self::ResultPath,
            (Inside::Result, b"structuredPatch" | b"edit_mode") => Self::ResultEdit,
            (Inside::Result, b"error") => Self::ResultError,
            (Inside::Result, b"agentId") => Self::ResultAgent,
            _ => Self::Other,
        }
    }
}

/// [`Record::walk`], compiled for machines with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn begin_wide<'a>(record: &mut Record<'a>, bytes: &'a [u8], gaps: &mut Gaps) -> Option<usize> {
    record.walk::<crate::read::scan::Avx2>(bytes, gaps)
}

/// The CLI's timestamps in milliseconds since 1970. The usual form `2026-11-15T22:14:20.809Z` is parsed here, others by
/// a library.
pub(crate) fn millis(timestamp: &[u8]) -> Option<i64> {
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        timestamp[range].iter().try_fold(0i64, |number, byte| {
            byte.is_ascii_digit()
                .then(|| number * 10 + i64::from(byte - b'0'))
        })
    };
    let plain =
        timestamp.len() == 24 && timestamp[10] == b'T' && timestamp[19] == b'.' && timestamp[23] == b'Z';
    if !plain {
        let text = std::str::from_utf8(timestamp).ok()?;
        return text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond);
    }
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    // Days since 1970 of a Gregorian date, with the year beginning in March so that leap days come last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    let seconds = days * 86_400 + digits(11..13)? * 3600 + digits(14..16)? * 60 + digits(17..19)?;
    Some(seconds * 1000 + digits(20..23)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_counts_wherever_it_stands() {
        let line = br#"{"parentUuid":null,"message":{"type":"message","role":"assistant"},"type":"user","uuid":"u"}"#;
        let record = Record::read(line).unwrap();
        assert_eq!(record.kind, Kind::User);
        assert_eq!(record.uuid, Some(Raw(b"\"u\"")));
        let blob = br#"{"type":"api-request-blob","message":{"role":"user","content":"x"}}"#;
        assert_eq!(Record::read(blob).unwrap().kind, Kind::Bookkeeping);
        assert_eq!(
            Record::read(br#"{"type":"of-tomorrow"}"#).unwrap().kind,
            Kind::Unknown(b"of-tomorrow")
        );
    }

    #[test]
    fn times_agree_with_the_calendar() {
        for text in [
            "2026-11-15T22:14:20.809Z",
            "1970-01-01T00:00:00.000Z",
            "2024-02-29T23:59:59.999Z",
            "2000-03-01T00:00:00.001Z",
        ] {
            let expected = text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            assert_eq!(millis(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(millis(b"2026-11-15T22:14:20Z"), Some(1_794_780_860_000));
        assert_eq!(millis(b"yesterday"), None);
    }
}
