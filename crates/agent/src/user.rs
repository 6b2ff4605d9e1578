//! What the user says to the agent.

use serde::Serialize;
use serde_json::{Value, json};

/// A message to the agent: text, images, documents.
///
/// ```
/// use tiller_agent::UserMessage;
///
/// let message = UserMessage::text("What is in this picture?").with_image("image/png", "iVBORw0KGgo=");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserMessage {
    r#type: &'static str,
    message: Inner,
    parent_tool_use_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Inner {
    role: &'static str,
    content: Vec<Value>,
}

/// What the user is looking at, to be told to the agent together with what they say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UiContext {
    /// What the user works in.
    pub mode: String,
    /// What is shown.
    pub current_view: String,
    /// What is selected.
    pub selected: Option<SelectedElement>,
}

/// An element that the user has selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelectedElement {
    /// The element's tag, such as `h1`.
    pub tag_name: String,
    /// What finds it.
    pub selector: String,
    /// The element's text.
    pub text: String,
}

impl UiContext {
    /// How much of a selected element's text is told.
    const TEXT_LIMIT: usize = 50;

    fn line(&self) -> String {
        let selected = self.selected.as_ref().map_or_else(String::new, |element| {
            let mut text: String = element.text.chars().take(Self::TEXT_LIMIT).collect();
            if element.text.chars().nth(Self::TEXT_LIMIT).is_some() {
                text.push_str("...");
            }
            format!(", selected: {}{} \"{text}\"", element.tag_name, element.selector)
        });
        format!("[Context: {}, view: {}{selected}]", self.mode, self.current_view)
    }
}

impl UserMessage {
    /// A message from content blocks of the Messages API.
    pub fn blocks(content: Vec<Value>) -> Self {
        Self {
            r#type: "user",
            message: Inner {
                role: "user",
                content,
            },
            parent_tool_use_id: None,
            session_id: None,
            uuid: None,
        }
    }

    /// A message of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![json!({ "type": "text", "text": text.into() })])
    }

    /// A message of text, with what the user is looking at in front.
    pub fn text_in_context(context: &UiContext, text: &str) -> Self {
        Self::text(format!("{}\n\n{text}", context.line()))
    }

    /// Adds an image, as base64.
    pub fn with_image(mut self, media_type: impl Into<String>, base64: impl Into<String>) -> Self {
        self.message.content.push(json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type.into(), "data": base64.into() },
        }));
        self
    }

    /// Adds a document, as base64.
    pub fn with_document(mut self, media_type: impl Into<String>, base64: impl Into<String>) -> Self {
        self.message.content.push(json!({
            "type": "document",
            "source": { "type": "base64", "media_type": media_type.into(), "data": base64.into() },
        }));
        self
    }

    /// Gives the message an id, which must be a UUID. With
    /// [`Options::replay_user_messages`](crate::Options::replay_user_messages) it comes back when the CLI has taken
    /// the message, and it is what [`RewindFiles`](crate::control::RewindFiles) wants.
    pub fn with_uuid(mut self, uuid: impl Into<String>) -> Self {
        self.uuid = Some(uuid.into());
        self
    }

    /// The message's uuid; one is made up if it has none.
    pub(crate) fn identify(&mut self) -> String {
        self.uuid
            .get_or_insert_with(|| uuid::Uuid::new_v4().to_string())
            .clone()
    }

    /// Says which tool call the message is a reply to, by the id of its `tool_use` block.
    pub fn in_reply_to(mut self, tool_use_id: impl Into<String>) -> Self {
        self.parent_tool_use_id = Some(tool_use_id.into());
        self
    }

    /// Names the session that the message is for.
    pub fn with_session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_goes_in_front_and_is_cut() {
        let context = UiContext {
            mode: "slides".into(),
            current_view: "editor".into(),
            selected: Some(SelectedElement {
                tag_name: "h1".into(),
                selector: "#title".into(),
                text: "字".repeat(51),
            }),
        };
        let message = serde_json::to_value(UserMessage::text_in_context(&context, "shorter")).unwrap();
        let expected = format!(
            "[Context: slides, view: editor, selected: h1#title \"{}...\"]\n\nshorter",
            "字".repeat(50)
        );
        assert_eq!(message["message"]["content"][0]["text"], expected);
    }
}
