//! The one file that the demo writes: `tiller-demo.md` in the session's folder. It never touches another file of that
//! name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::session::Session;

const FILE_NAME: &str = "tiller-demo.md";
/// The first line, by which the demo recognises its own file.
const TITLE: &str = "# Tiller demo";
/// The usual number of context lines in a diff.
const CONTEXT_LINES: usize = 3;
/// Far more than the demo writes; of a larger file only the beginning is read.
const LARGEST: u64 = 64 * 1024;

pub(super) struct Note {
    path: PathBuf,
}

/// The planned change, as it is shown to the user.
#[derive(Debug)]
pub(super) enum Plan {
    Create {
        content: String,
    },
    Append {
        original: String,
        old: String,
        new: String,
    },
}

impl Note {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            path: session.state().transcript.cwd().join(FILE_NAME),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn exists(&self) -> bool {
        self.read().is_ok_and(|content| content.is_some())
    }

    /// The change that adds `line` to the file, or why it is not possible.
    pub(super) fn plan(&self, body: &str, line: &str) -> Result<Plan, String> {
        match self.read()? {
            None => Ok(Plan::Create {
                content: format!("{TITLE}\n\n{body}\n\n{line}\n"),
            }),
            Some(original) => {
                let old = original.lines().last().unwrap_or(TITLE).to_owned();
                let new = format!("{old}\n{line}");
                Ok(Plan::Append { original, old, new })
            }
        }
    }

    /// Executes the plan, with the input that the user allowed, and returns the tool's structured result.
    pub(super) fn carry_out(&self, plan: &Plan, allowed: &Value) -> Result<Value, String> {
        match plan {
            Plan::Create { content: planned } => {
                let content = allowed["content"].as_str().unwrap_or(planned);
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&self.path)
                    .map_err(|error| error.to_string())?;
                file.write_all(content.as_bytes())
                    .map_err(|error| error.to_string())?;
                let lines: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
                Ok(json!({
                    "type": "create", "filePath": self.path, "content": content, "originalFile": null,
                    "structuredPatch": [{
                        "oldStart": 0, "oldLines": 0, "newStart": 1, "newLines": lines.len(), "lines": lines,
                    }],
                    "userModified": content != planned,
                }))
            }
            Plan::Append {
                original,
                old,
                new: planned,
            } => {
                // Only what was shown may be changed, not later changes.
                if self.read()?.as_ref() != Some(original) {
                    return Err(format!("{FILE_NAME} has changed in the meantime."));
                }
                let new = allowed["new_string"].as_str().unwrap_or(planned);
                let kept = original
                    .trim_end_matches('\n')
                    .strip_suffix(old.as_str())
                    .unwrap_or(original);
                let content = format!("{kept}{new}\n");
                fs::write(&self.path, content).map_err(|error| error.to_string())?;
                Ok(json!({
                    "filePath": self.path, "oldString": old, "newString": new, "originalFile": original,
                    "structuredPatch": [hunk(original, old, new)], "userModified": new != planned,
                    "replaceAll": false,
                }))
            }
        }
    }

    /// The file's content, or `None` if there is no such file. A file that is not the demo's own is an error.
    fn read(&self) -> Result<Option<String>, String> {
        let foreign = || format!("{FILE_NAME} exists already and is not the demo's own.");
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
            Ok(metadata) if !metadata.is_file() => return Err(foreign()),
            Ok(_) => {}
        }
        let mut content = String::new();
        File::open(&self.path)
            .and_then(|file| file.take(LARGEST).read_to_string(&mut content))
            .map_err(|error| error.to_string())?;
        if content.lines().next() == Some(TITLE) {
            Ok(Some(content))
        } else {
            Err(foreign())
        }
    }
}

/// The change of the last line `old` of `original` into `new`.
fn hunk(original: &str, old: &str, new: &str) -> Value {
    let before: Vec<&str> = original.lines().collect();
    let context = &before[before.len().saturating_sub(CONTEXT_LINES + 1)..before.len() - 1];
    let mut lines: Vec<String> = context.iter().map(|line| format!(" {line}")).collect();
    // An unchanged last line is context as well; an edited one was replaced.
    let unchanged = new.strip_prefix(old).and_then(|rest| rest.strip_prefix('\n'));
    let added = if let Some(added) = unchanged {
        lines.push(format!(" {old}"));
        added
    } else {
        lines.push(format!("-{old}"));
        new
    };
    lines.extend(added.lines().map(|line| format!("+{line}")));
    let count = |mark: char| lines.iter().filter(|line| !line.starts_with(mark)).count();
    json!({
        "oldStart": before.len() - context.len(), "oldLines": count('+'),
        "newStart": before.len() - context.len(), "newLines": count('-'),
        "lines": lines,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn note() -> (tempfile::TempDir, Note) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        (folder, Note { path })
    }

    #[test]
    fn a_new_note_then_a_line_more_gives_true_patches() {
        let (_folder, note) = note();
        let plan = note.plan("Body.", "- one").unwrap();
        let created = note.carry_out(&plan, &json!({})).unwrap();
        assert_eq!(created["structuredPatch"][0]["newLines"], 5);
        let plan = note.plan("Body.", "- two").unwrap();
        let edited = note.carry_out(&plan, &json!({})).unwrap();
        let content = fs::read_to_string(note.path()).unwrap();
        assert_eq!(content, "# Tiller demo\n\nBody.\n\n- one\n- two\n");
        assert_eq!(
            edited["structuredPatch"][0],
            json!({
                "oldStart": 2, "oldLines": 4, "newStart": 2, "newLines": 5,
                "lines": [" ", " Body.", " ", " - one", "+- two"],
            })
        );
    }

    #[test]
    fn the_users_changes_to_the_input_are_written() {
        let (_folder, note) = note();
        let plan = note.plan("Body.", "- one").unwrap();
        let content = "# Tiller demo\nmine\n";
        let created = note.carry_out(&plan, &json!({"content": content})).unwrap();
        assert_eq!(created["userModified"], true);
        assert_eq!(fs::read_to_string(note.path()).unwrap(), content);
        let plan = note.plan("Body.", "- two").unwrap();
        let edited = note.carry_out(&plan, &json!({"new_string": "yours"})).unwrap();
        assert_eq!(
            edited["structuredPatch"][0]["lines"],
            json!([" # Tiller demo", "-mine", "+yours"])
        );
    }

    #[test]
    fn a_file_of_another_program_is_left_alone() {
        let (folder, note) = note();
        fs::write(note.path(), "my own notes\n").unwrap();
        assert!(note.plan("Body.", "- one").is_err());
        fs::remove_file(note.path()).unwrap();
        let elsewhere = folder.path().join("elsewhere.md");
        fs::write(&elsewhere, "# Tiller demo\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, note.path()).unwrap();
        assert!(note.plan("Body.", "- one").is_err());
    }

    #[test]
    fn a_file_that_changed_after_it_was_shown_is_left_alone() {
        let (_folder, note) = note();
        fs::write(note.path(), "# Tiller demo\nold\n").unwrap();
        let plan = note.plan("Body.", "- one").unwrap();
        fs::write(note.path(), "# Tiller demo\nnew\n").unwrap();
        assert!(note.carry_out(&plan, &json!({})).is_err());
    }
}
