//! Which files an agent has changed.

use std::path::Path;

use crate::message::StructuredResult;

/// Tools whose structured result names the file that they changed.
const EDITING_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Whether a tool of this name changes files and says which.
pub fn is_editing_tool(name: &str) -> bool {
    EDITING_TOOLS.contains(&name)
}

/// The file that an editing tool has changed, relative to `cwd` if it is inside.
pub fn changed_file(result: &StructuredResult, cwd: &str) -> Option<String> {
    let result = result.typed();
    let path = result.file_path.or(result.notebook_path)?;
    let inside = Path::new(&path)
        .strip_prefix(cwd)
        .ok()
        .filter(|_| !cwd.is_empty())
        .and_then(Path::to_str);
    Some(inside.unwrap_or(&path).to_owned())
}

/// The text file that a call of an editing tool would change, as its input names it. `input` is the call's JSON.
pub fn file_to_change(tool: &str, input: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Edit {
        file_path: String,
    }
    let edit: Edit = is_editing_tool(tool).then(|| serde_json::from_str(input).ok())??;
    Some(edit.file_path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_relative_to_the_working_directory() {
        let changed = |result| changed_file(&StructuredResult(result), "/srv");
        assert_eq!(
            changed(json!({ "filePath": "/srv/src/a.rs" })).as_deref(),
            Some("src/a.rs")
        );
        assert_eq!(
            changed(json!({ "filePath": "/srvs/a.rs" })).as_deref(),
            Some("/srvs/a.rs")
        );
        assert_eq!(
            changed(json!({ "notebook_path": "/srv/n.ipynb" })).as_deref(),
            Some("n.ipynb")
        );
        assert_eq!(changed(json!({ "filePath": 1 })), None);
        assert_eq!(changed(json!("Error")), None);
    }

    #[test]
    fn only_edits_name_a_file_to_change() {
        let input = r#"{ "file_path": "/srv/a.rs", "old_string": "a" }"#;
        assert_eq!(file_to_change("Edit", input).as_deref(), Some("/srv/a.rs"));
        assert_eq!(file_to_change("Read", input), None);
        assert_eq!(file_to_change("Write", r#"{ "file_path": 1 }"#), None);
        assert_eq!(
            file_to_change("NotebookEdit", r#"{ "notebook_path": "/n.ipynb" }"#),
            None
        );
    }
}
