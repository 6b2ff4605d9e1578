//! The YAML between two `---` at the top of a Markdown file.

use serde::Deserialize;

/// The fields of a skill's, command's or agent's front matter. Other fields are not read.
#[derive(Debug, Default, Deserialize, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
}

impl FrontMatter {
    /// Reads the front matter of a file. A file without one, or with invalid front matter, has no fields.
    pub(super) fn of(text: &str) -> Self {
        let Some(yaml) = block(text) else {
            return Self::default();
        };
        // People write `description: Use it when: …` without quotes, which is not YAML, but Claude Code accepts it.
        let read = serde_saphyr::from_str::<Self>(&yaml)
            .or_else(|_| serde_saphyr::from_str(&quoted(&yaml)))
            .unwrap_or_default();
        let given = |value: Option<String>| {
            value
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        Self {
            name: given(read.name),
            description: given(read.description),
        }
    }
}

/// The lines between the two marks.
fn block(text: &str) -> Option<String> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let block: Vec<&str> = lines.take_while(|line| line.trim_end() != "---").collect();
    Some(block.join("\n") + "\n")
}

/// The same text with quotes around each plain value at the top level.
fn quoted(yaml: &str) -> String {
    yaml.lines()
        .map(|line| match line.split_once(": ") {
            Some((key, value))
                if !key.starts_with([' ', '\t', '#', '-'])
                    && !value.trim_start().starts_with(['"', '\'', '|', '>', '[', '{']) =>
            {
                // Every JSON string is a double-quoted YAML scalar.
                format!("{key}: {}\n", serde_json::Value::from(value.trim()))
            }
            _ => format!("{line}\n"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(yaml: &str) -> (Option<String>, Option<String>) {
        let read = FrontMatter::of(&format!("---\n{yaml}\n---\n# Body\nname: not this\n"));
        (read.name, read.description)
    }

    fn both(name: &str, description: &str) -> (Option<String>, Option<String>) {
        (Some(name.to_owned()), Some(description.to_owned()))
    }

    #[test]
    fn yaml_is_read_as_yaml() {
        let cases = [
            (
                "name: a\ndescription: >-\n  Cut a\n  release",
                both("a", "Cut a release"),
            ),
            ("name: a\ndescription: |\n  one\n  two", both("a", "one\ntwo")),
            (
                "name: 'it''s'\ndescription: \"a \\\"b\\\" \\u767b\"",
                both("it's", "a \"b\" 登"),
            ),
            ("name: a # what it is called\ndescription: b", both("a", "b")),
            (
                "description: b\nname: a\ntools: [Read, \"Bash(git *)\"]\nhooks:\n  Stop:\n    - x: 1",
                both("a", "b"),
            ),
            ("name: 7\ndescription: true", both("7", "true")),
        ];
        for (yaml, expected) in cases {
            assert_eq!(fields(yaml), expected, "{yaml}");
        }
    }

    #[test]
    fn values_that_need_quotes_may_go_without_them() {
        assert_eq!(
            fields("name: a\ndescription: Use it when: a test fails. Examples: <example>\"no\"</example>"),
            both(
                "a",
                "Use it when: a test fails. Examples: <example>\"no\"</example>"
            )
        );
        assert_eq!(
            fields("name: @scope/a\ndescription: *all* of it"),
            both("@scope/a", "*all* of it")
        );
    }

    #[test]
    fn what_is_no_front_matter_has_no_fields() {
        for text in [
            "",
            "# Title\n",
            "---",
            "name: a\n",
            "---\n- a\n- b\n---\n",
            "---\n\t{\n---\n",
        ] {
            assert_eq!(FrontMatter::of(text), FrontMatter::default(), "{text:?}");
        }
        assert_eq!(fields("name:\ndescription: ''"), (None, None));
    }

    #[test]
    fn a_file_that_wants_to_fill_the_memory_does_not() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let line = format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
            bomb.push_str(&line);
        }
        // Refused as YAML, and then read as the plain text that it is.
        assert_eq!(
            fields(&format!("{bomb}name: *a11")),
            (Some("*a11".to_owned()), None)
        );
        assert_eq!(fields(&format!("name: a\nx: {}", "[".repeat(100_000))).1, None);
    }
}
