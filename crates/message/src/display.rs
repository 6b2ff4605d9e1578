//! The input of a tool as a person reads it before a decision: every field, whole, with nothing invisible in it.
//!
//! The terminal uses this module; the page has a twin in TypeScript (`web/src/session/inputFields.ts`). Both pass the cases of
//! `fixtures/display.json`.

use std::fmt::Write as _;

use serde_json::Value;

/// One field of an input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InputField {
    /// Where it is: `command`, `edits[0].old_string`. Empty for an input that is not an object.
    pub name: String,
    pub text: String,
}

/// All fields of a tool's input, those of nested objects and lists, too, sorted by name.
pub fn input_fields(input: &Value) -> Vec<InputField> {
    let mut fields = Vec::new();
    collect(String::new(), input, &mut fields);
    fields
}

fn collect(name: String, value: &Value, fields: &mut Vec<InputField>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            // Sorted whatever order the map keeps, which depends on the features of serde_json.
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            for (key, value) in entries {
                let key = visible(key);
                let separator = if name.is_empty() { "" } else { "." };
                collect(format!("{name}{separator}{key}"), value, fields);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                collect(format!("{name}[{index}]"), value, fields);
            }
        }
        Value::String(text) => fields.push(InputField {
            name,
            text: visible(text),
        }),
        other => fields.push(InputField {
            name,
            text: other.to_string(),
        }),
    }
}

/// The text with every character made visible that a terminal or a browser would obey or hide: control characters, marks that
/// change the direction of writing, characters without a width. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            // Writing to a string can't fail.
            write!(shown, "\\u{{{:x}}}", u32::from(character)).ok();
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a terminal or a browser obeys or hides the character instead of showing it.
pub fn is_invisible(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Soft hyphen, Arabic letter mark, Hangul and Khmer fillers, Mongolian vowel separator.
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
        // Zero width, marks of direction, separators of lines and paragraphs, embeddings, overrides, isolates.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Byte order mark, interlinear annotations, tags.
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_there_whole_and_visible() {
        let cases: Value = serde_json::from_str(include_str!("../fixtures/display.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let fields: Vec<Value> = input_fields(&case["input"])
                .into_iter()
                .map(|field| serde_json::json!([field.name, field.text]))
                .collect();
            assert_eq!(Value::Array(fields), case["fields"], "{}", case["name"]);
        }
    }
}
