//! Access for `benches/against`, which measures other libraries on the same files, texts and words. Not part of the
//! API.

use std::path::Path;

use crate::error::Result;
use crate::read::json::Raw;
use crate::read::lines::{Buffer, Line, read_lines};
use crate::read::place::Projects;
use crate::read::record::Record;
use crate::search::text;

/// The keys of a line that lists and search need, as raw bytes of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    pub uuid: Option<&'a [u8]>,
    pub timestamp: Option<&'a [u8]>,
    pub cwd: Option<&'a [u8]>,
    pub model: Option<&'a [u8]>,
    pub content: Option<&'a [u8]>,
    pub result_path: Option<&'a [u8]>,
    pub is_sidechain: bool,
}

/// Reads the keys of a line with the crate's own scanner. `None` if the line is not a JSON object.
pub fn fields(line: &[u8]) -> Option<Fields<'_>> {
    fn raw<'a>(value: Option<Raw<'a>>) -> Option<&'a [u8]> {
        value.map(|value| value.0)
    }
    let record = Record::read(line)?;
    Some(Fields {
        uuid: raw(record.uuid),
        timestamp: raw(record.timestamp),
        cwd: raw(record.cwd),
        model: record.model,
        content: raw(record.content),
        result_path: raw(record.result_path),
        is_sidechain: record.is_sidechain,
    })
}

/// Everything in a line that can be searched.
pub fn searchable(line: &[u8], out: &mut Vec<u8>) {
    if let Some(record) = Record::read(line) {
        text::searchable(&record, out);
    }
}

/// The words of a text.
pub fn words(text: &str, each: impl FnMut(&str)) {
    text::words(text, each);
}

/// One term of a query.
pub struct Term {
    /// Words that follow each other.
    pub words: Vec<String>,
    /// The last word may continue.
    pub is_prefix: bool,
}

/// The terms of a query.
pub fn terms(query: &str) -> Vec<Term> {
    let terms = text::terms(query).into_iter().map(|term| Term {
        words: term.words,
        is_prefix: term.is_prefix,
    });
    terms.collect()
}

/// Every whole line of every transcript.
pub fn each_line(home: &Path, mut each: impl FnMut(&[u8])) -> Result<()> {
    let projects = Projects::new(home);
    let mut buffer = Buffer::default();
    for transcript in projects.all_transcripts()? {
        let (mut file, _) = projects.open(&transcript.path)?;
        read_lines(&mut file, 0, &mut buffer, |line| {
            if let Line::Whole { bytes, .. } = line {
                each(bytes);
            }
            true
        })?;
    }
    Ok(())
}
