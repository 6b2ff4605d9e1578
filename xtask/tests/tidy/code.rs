//! Rules that make code readable.

use crate::{SourceFile, files, none, root};

const LONGEST_FILE: usize = 800;

/// Longer files, each with the reason why it is not split.
const LONG_FOR_A_REASON: &[(&str, &str)] = &[];

const CODE: &[&str] = &["rs", "ts", "tsx", "mjs", "css", "py", "sql"];

fn is_generated(file: &SourceFile) -> bool {
    file.path.starts_with("web/src/gen/")
}

#[test]
fn no_file_is_longer_than_can_be_read() {
    let files = files();
    let findings: Vec<String> = files
        .iter()
        .filter(|file| file.has_extension(CODE) && !is_generated(file))
        .filter(|file| LONG_FOR_A_REASON.iter().all(|(path, _)| *path != file.path))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(file, lines)| format!("{}: {lines} lines", file.path))
        .collect();
    none(&findings, "split these by what they are about");
    let gone = LONG_FOR_A_REASON
        .iter()
        .filter(|(path, _)| files.iter().all(|file| file.path != *path));
    none(
        &gone.map(|(path, _)| (*path).to_owned()).collect::<Vec<_>>(),
        "listed as long but not there",
    );
}

/// A disabled test proves nothing, and a sleeping one is either slow or wrong.
#[test]
fn no_test_is_skipped_alone_or_asleep() {
    // Assembled here, so that this file does not match itself.
    let rust = [concat!("#[", "ignore")];
    let web = [".skip(", ".only(", ".fixme(", "waitForTimeout("];
    let mut findings = Vec::new();
    for file in files() {
        let is_web_test = file.path.starts_with("web/e2e/")
            || file.path.starts_with("web/")
                && (file.path.contains(".test.") || file.path.contains(".spec."));
        let forbidden: &[&str] = if file.has_extension(&["rs"]) {
            &rust
        } else if is_web_test {
            &web
        } else {
            continue;
        };
        for (number, line) in file.text.lines().enumerate() {
            let found = forbidden.iter().filter(|word| line.contains(**word));
            findings.extend(found.map(|word| format!("{}:{}: {word}", file.path, number + 1)));
        }
    }
    none(
        &findings,
        "every test runs, and waits for the state that its next action needs",
    );
}

/// Paths of a developer's machine mean nothing elsewhere.
#[test]
fn no_file_names_a_place_on_the_developers_machine() {
    let mut places = Vec::new();
    // A clone right below the root, as in a container's `/src`, has a name that is used for other things, too.
    if root().components().count() > 2 {
        places.push(root().display().to_string());
    }
    if let Some(home) = std::env::home_dir() {
        places.extend(
            ["/.cache", "/.cargo", "/.config", "/.local"].map(|folder| format!("{}{folder}", home.display())),
        );
    }
    let mut findings = Vec::new();
    for file in files() {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(place) = places.iter().find(|place| names_place(line, place)) {
                findings.push(format!("{}:{}: {place}", file.path, number + 1));
            }
        }
    }
    none(&findings, "paths that exist on this machine only");
}

/// Whether the line contains this absolute path, and not only a longer or relative one that contains it.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(position, _)| {
        let before = line[..position].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "._-~".contains(character))
    })
}

#[test]
fn text_files_end_with_a_line_end_and_have_no_windows_line_ends() {
    let findings: Vec<String> = files()
        .iter()
        .filter(|file| !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.contains("\r\n")))
        .filter(|file| file.has_extension(CODE) || file.has_extension(&["md", "toml", "json", "html"]))
        .map(|file| file.path.clone())
        .collect();
    none(&findings, "line ends");
}
