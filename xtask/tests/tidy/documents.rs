//! The documents exist, and both languages agree.

use crate::{none, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[derive(Debug, PartialEq)]
enum Part {
    Heading {
        level: usize,
    },
    /// Code in a language: commands and settings are the same in every translation, except for comments.
    Code {
        language: String,
        lines: Vec<String>,
    },
    /// A drawing, whose words may be translated.
    Drawing,
}

fn outline(markdown: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let code: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !line.trim_start().starts_with("```"))
                .collect();
            parts.push(match language.trim() {
                "" | "text" | "mermaid" => Part::Drawing,
                language => Part::Code {
                    language: language.to_owned(),
                    lines: code
                        .iter()
                        .map(|line| without_comment(line))
                        .filter(|line| !line.is_empty())
                        .collect(),
                },
            });
        } else if line.starts_with('#') {
            parts.push(Part::Heading {
                level: line.chars().take_while(|character| *character == '#').count(),
            });
        }
    }
    parts
}

fn without_comment(line: &str) -> String {
    let code = if line.starts_with('#') {
        ""
    } else {
        line.split(" # ").next().unwrap_or_default()
    };
    code.trim().to_owned()
}

#[test]
fn both_readmes_have_the_same_headings_and_commands() {
    let (english, chinese) = (outline(&read("README.md")), outline(&read("README.zh-CN.md")));
    assert!(
        english.iter().any(|part| matches!(part, Part::Code { .. })),
        "README.md shows no command"
    );
    for (number, (english, chinese)) in english.iter().zip(&chinese).enumerate() {
        assert_eq!(english, chinese, "heading or code block {} differs", number + 1);
    }
    assert_eq!(english.len(), chinese.len(), "one of the READMEs goes on");
}

#[test]
fn all_documents_exist() {
    let missing: Vec<String> = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "LICENSE-APACHE",
        "LICENSE-MIT",
    ]
    .iter()
    .filter(|path| !root().join(path).is_file())
    .map(|path| (*path).to_owned())
    .collect();
    none(&missing, "documents that visitors look for");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut findings = Vec::new();
    for document in [
        "README.md",
        "README.zh-CN.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        for link in read(document).split("](").skip(1) {
            let path = link.split([')', '#']).next().unwrap_or_default();
            if !path.is_empty() && !path.contains(':') && !root().join(path).exists() {
                findings.push(format!("{document}: {path}"));
            }
        }
    }
    none(&findings, "links to files that are not there");
}

#[test]
fn an_outline_has_what_both_languages_share() {
    let english = "# One\n```sh\n# build it\ncargo run # now\n```\n## Two\n```text\na -> b\n```\n";
    let chinese = "# 一\n```sh\ncargo run\n```\n## 二\n```text\n甲 -> 乙\n```\n";
    assert_eq!(outline(english), outline(chinese));
    assert_ne!(
        outline(english),
        outline(&chinese.replace("cargo run", "cargo build"))
    );
    assert_ne!(outline(english), outline(&chinese.replace("## 二", "### 二")));
}
