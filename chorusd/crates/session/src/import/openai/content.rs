//! Parses the content of a message: a text or a list of parts.

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::json_values::{linked_attachment, minify_value};
use super::super::raw_object::{RawObject, list_entries, string_value};

/// A parsed content.
#[derive(Debug, Default)]
pub(super) struct ParsedContent {
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// Parts that a message has no field for, unchanged.
    pub others: Vec<Box<RawValue>>,
}

/// Parses a content. A missing one is an empty text.
pub(super) fn parse(raw: Option<&RawValue>) -> Result<ParsedContent, String> {
    let mut content = ParsedContent::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = string_value(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let mut texts: Vec<String> = Vec::new();
    for raw in list_entries(raw).ok_or("content is not text or a list of parts")? {
        if let Some(text) = string_value(raw) {
            texts.push(text.into_owned());
            continue;
        }
        let part = RawObject::from_value(raw);
        match part.as_ref().and_then(text_of_part) {
            Some(text) => texts.push(text),
            None => match part.as_ref().and_then(image_url) {
                Some(url) => content.attachments.push(linked_attachment(content.attachments.len() + 1, "image", &url)),
                None => content.others.push(minify_value(raw)),
            },
        }
    }
    content.text = texts.join("\n");
    Ok(content)
}

/// Returns whether a part is a text, even an empty one.
pub(super) fn is_text(raw: &RawValue) -> bool {
    RawObject::from_value(raw).as_ref().and_then(text_of_part).is_some()
}

fn text_of_part(part: &RawObject<'_>) -> Option<String> {
    let field = match part.get_text("type")?.as_ref() {
        "text" | "input_text" | "output_text" => "text",
        "refusal" => "refusal",
        _ => return None,
    };
    part.get_text(field).map(Into::into)
}

fn image_url(part: &RawObject<'_>) -> Option<String> {
    if !matches!(part.get_text("type")?.as_ref(), "image_url" | "input_image") {
        return None;
    }
    let raw = part.get("image_url")?;
    string_value(raw).or_else(|| RawObject::from_value(raw)?.get_text("url")).map(Into::into)
}
