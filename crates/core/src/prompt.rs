//! Prompts: text, images, and the context in which the user wrote them.
//!
//! A [`Prompt`] passes through events, queue and log without the bytes of its images. The store keeps the bytes beside
//! it; they are read again when the prompt is sent to an agent. Images are checked by their first bytes and their size,
//! never decoded.

use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::PromptId;

mod entry;

/// How large one image may be.
pub const MAX_IMAGE: usize = 5 << 20;

/// How many images one prompt may have.
pub const MAX_IMAGES: usize = 20;

/// How much of a selected element's text is sent to the agent.
const SELECTED_TEXT: usize = 50;

/// An accepted prompt. Created by [`NewPrompt::checked`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prompt {
    pub id: PromptId,
    pub text: String,
    pub attachments: Vec<Attachment>,
    pub context: Option<UiContext>,
    /// The tool call that the prompt replies to, if the client names one.
    pub parent_tool_use_id: Option<String>,
}

/// An image of a prompt, without its bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Derived from the bytes, so that a session stores the same image once.
    pub id: String,
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub size: u64,
}

/// What the user was looking at while writing the prompt.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UiContext {
    pub mode: String,
    pub current_view: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_element: Option<SelectedElement>,
    /// A file, or some of its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_file: Option<SelectedFile>,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectedElement {
    pub tag_name: String,
    pub selector: String,
    pub text_content: String,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectedFile {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
}

/// A prompt as a client sends it.
#[derive(Clone, Debug, Default)]
pub struct NewPrompt {
    /// The id that the client chose. `None`: the server chooses one.
    pub id: Option<PromptId>,
    pub text: String,
    pub images: Vec<NewImage>,
    pub context: Option<UiContext>,
    pub parent_tool_use_id: Option<String>,
    /// In a session that never had a conversation, this prompt begins one instead of being refused.
    pub afresh: bool,
}

#[derive(Clone, Debug)]
pub struct NewImage {
    /// The media type that the client sent.
    pub media_type: String,
    pub name: Option<String>,
    pub bytes: Vec<u8>,
}

/// The bytes of an attachment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    pub id: String,
    pub media_type: String,
    pub bytes: Arc<[u8]>,
}

/// Why a prompt was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PromptRefused {
    #[error("The prompt is empty: write what the agent should do.")]
    Empty,
    #[error("The prompt contains a NUL character. Remove it and send the prompt again.")]
    Nul,
    #[error("At most {MAX_IMAGES} images can be sent with one message.")]
    TooManyImages,
    #[error("The image '{0}' is larger than 5 MiB. Send a smaller one.")]
    ImageTooLarge(String),
    #[error(
        "The attachment '{0}' is not a PNG, JPEG, GIF or WebP image, or its content does not match its media type."
    )]
    NotAnImage(String),
}

impl From<&str> for NewPrompt {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for NewPrompt {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

#[cfg(test)]
impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(PromptId::random(), text.to_owned())
    }
}

impl NewPrompt {
    /// Checks a prompt. Returns the prompt and the bytes of its images. The text may be empty if there is an image.
    pub fn checked(self) -> Result<(Prompt, Vec<Image>), PromptRefused> {
        let text = self.text.trim().to_owned();
        if text.is_empty() && self.images.is_empty() {
            return Err(PromptRefused::Empty);
        }
        if text.contains('\0') {
            return Err(PromptRefused::Nul);
        }
        if self.images.len() > MAX_IMAGES {
            return Err(PromptRefused::TooManyImages);
        }
        let mut attachments = Vec::new();
        let mut images = Vec::new();
        for (number, image) in self.images.into_iter().enumerate() {
            let name = image.name.filter(|name| !name.trim().is_empty());
            let title = name.clone().unwrap_or_else(|| format!("{}", number + 1));
            if image.bytes.len() > MAX_IMAGE {
                return Err(PromptRefused::ImageTooLarge(title));
            }
            let media_type = image_type(&image.bytes)
                .filter(|found| *found == image.media_type)
                .ok_or(PromptRefused::NotAnImage(title))?;
            let id = digest(&image.bytes);
            attachments.push(Attachment {
                id: id.clone(),
                media_type: media_type.to_owned(),
                name,
                size: image.bytes.len() as u64,
            });
            images.push(Image {
                id,
                media_type: media_type.to_owned(),
                bytes: image.bytes.into(),
            });
        }
        let prompt = Prompt {
            id: self.id.unwrap_or_else(PromptId::random),
            text,
            attachments,
            context: self.context,
            parent_tool_use_id: self.parent_tool_use_id,
        };
        Ok((prompt, images))
    }
}

impl Prompt {
    /// A prompt with text only.
    pub fn new(id: PromptId, text: String) -> Self {
        Self {
            id,
            text,
            attachments: Vec::new(),
            context: None,
            parent_tool_use_id: None,
        }
    }

    /// The text as the agent gets it: the context first, then the user's text.
    pub fn text_for_agent(&self) -> String {
        match &self.context {
            Some(context) => format!("{}\n\n{}", context.line(), self.text),
            None => self.text.clone(),
        }
    }
}

impl UiContext {
    fn line(&self) -> String {
        let element = self.selected_element.as_ref().map(|element| {
            let mut text: String = element.text_content.chars().take(SELECTED_TEXT).collect();
            if element.text_content.chars().nth(SELECTED_TEXT).is_some() {
                text.push_str("...");
            }
            format!(", selected: {}{} \"{text}\"", element.tag_name, element.selector)
        });
        let file = self.selected_file.as_ref().map(|file| {
            let lines = match (file.start_line, file.end_line) {
                (Some(start), Some(end)) if end > start => format!(" lines {start}-{end}"),
                (Some(start), _) => format!(" line {start}"),
                (None, _) => String::new(),
            };
            format!(", file: {}{lines}", file.path)
        });
        format!(
            "[Context: {}, view: {}{}{}]",
            self.mode,
            self.current_view,
            element.unwrap_or_default(),
            file.unwrap_or_default()
        )
    }
}

/// The media type, judged by the first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string can't fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn with_image(media_type: &str, bytes: Vec<u8>) -> NewPrompt {
        NewPrompt {
            images: vec![NewImage {
                media_type: media_type.to_owned(),
                name: Some("shot.png".to_owned()),
                bytes,
            }],
            ..NewPrompt::from(" look ")
        }
    }

    #[test]
    fn an_image_is_known_by_its_first_bytes() {
        let (prompt, images) = with_image("image/png", PNG.to_vec()).checked().unwrap();
        assert_eq!(prompt.text, "look");
        assert_eq!(prompt.attachments[0].id, images[0].id);
        assert_eq!(prompt.attachments[0].size, PNG.len() as u64);
        let cases: [(&str, &[u8]); 4] = [
            ("image/jpeg", b"\xff\xd8\xff\xe0"),
            ("image/gif", b"GIF89a"),
            ("image/webp", b"RIFF\0\0\0\0WEBP"),
            ("image/png", PNG),
        ];
        for (media_type, bytes) in cases {
            assert!(
                with_image(media_type, bytes.to_vec()).checked().is_ok(),
                "{media_type}"
            );
            let lie = with_image("image/svg+xml", bytes.to_vec()).checked().unwrap_err();
            assert_eq!(lie, PromptRefused::NotAnImage("shot.png".to_owned()));
        }
        let text = with_image("image/png", b"<svg onload=1>".to_vec());
        assert!(text.checked().is_err());
    }

    #[test]
    fn size_and_number_are_limited_and_words_may_be_missing() {
        let mut large = PNG.to_vec();
        large.resize(MAX_IMAGE + 1, 0);
        let refused = with_image("image/png", large).checked().unwrap_err();
        assert_eq!(refused, PromptRefused::ImageTooLarge("shot.png".to_owned()));
        let mut many = with_image("image/png", PNG.to_vec());
        many.images = vec![many.images[0].clone(); MAX_IMAGES + 1];
        assert_eq!(many.clone().checked().unwrap_err(), PromptRefused::TooManyImages);
        many.images.truncate(MAX_IMAGES);
        many.text.clear();
        assert!(many.checked().is_ok());
        assert_eq!(
            NewPrompt::from("  \n").checked().unwrap_err(),
            PromptRefused::Empty
        );
        assert_eq!(NewPrompt::from("a\0b").checked().unwrap_err(), PromptRefused::Nul);
    }

    #[test]
    fn context_goes_in_front_and_is_cut() {
        let mut prompt = Prompt::from("shorter");
        assert_eq!(prompt.text_for_agent(), "shorter");
        prompt.context = Some(UiContext {
            mode: "slides".to_owned(),
            current_view: "editor".to_owned(),
            selected_element: Some(SelectedElement {
                tag_name: "h1".to_owned(),
                selector: "#title".to_owned(),
                text_content: "字".repeat(51),
            }),
            selected_file: None,
        });
        let expected = format!(
            "[Context: slides, view: editor, selected: h1#title \"{}...\"]\n\nshorter",
            "字".repeat(50)
        );
        assert_eq!(prompt.text_for_agent(), expected);
        prompt.context = Some(UiContext {
            mode: "code".to_owned(),
            current_view: "diff".to_owned(),
            selected_element: None,
            selected_file: Some(SelectedFile {
                path: "src/a.rs".to_owned(),
                start_line: Some(3),
                end_line: Some(9),
            }),
        });
        assert_eq!(
            prompt.text_for_agent(),
            "[Context: code, view: diff, file: src/a.rs lines 3-9]\n\nshorter"
        );
    }
}
