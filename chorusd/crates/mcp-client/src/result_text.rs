//! The result of a call as a text for a model.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub text: String,
    pub is_error: bool,
}

impl ToolResult {
    /// Joins the parts of a result. Images, sounds and other binary data are only named.
    pub(crate) fn new(result: CallToolResult) -> Self {
        let mut parts: Vec<String> = result.content.into_iter().map(part_text).collect();
        // Servers should repeat it as text; those that do not have nothing else to say.
        if let (true, Some(structured)) = (parts.is_empty(), result.structured_content) {
            parts.push(structured.to_string());
        }
        let text = parts.join("\n");
        let text = if text.trim().is_empty() { "(no output)".to_owned() } else { text };
        Self { text, is_error: result.is_error.unwrap_or(false) }
    }
}

fn part_text(part: ContentBlock) -> String {
    let omitted = |kind: &str, mime_type: &str, base64: &str| {
        format!("[{kind} omitted: {mime_type}, {} bytes]", base64.len() / 4 * 3)
    };
    match part {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => omitted("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => omitted("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("[{uri}]\n{}", omitted("data", mime_type.as_deref().unwrap_or("unknown type"), &blob))
            }
            _ => "[resource of an unknown kind omitted]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        _ => "[part of an unknown kind omitted]".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(result: Value) -> String {
        ToolResult::new(serde_json::from_value(result).unwrap()).text
    }

    #[test]
    fn texts_are_joined_and_binary_data_is_named() {
        let parts = json!([
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x://a", "text": "two"}},
            {"type": "resource_link", "uri": "x://b", "name": "b"},
        ]);
        let joined = "one\n[image omitted: image/png, 3 bytes]\n[x://a]\ntwo\n[resource b: x://b]";
        assert_eq!(text(json!({"content": parts, "structuredContent": {"a": 1}})), joined);
        assert_eq!(text(json!({"content": [], "structuredContent": {"a": 1}})), r#"{"a":1}"#);
        assert_eq!(text(json!({"content": []})), "(no output)");
    }
}
