//! The content of a message: a text, or a list of parts.

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::{linked, one_line};

/// What a content holds.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// Parts that have no place in a message, as they came.
    pub others: Vec<Box<RawValue>>,
}

/// Reads a content; none is an empty text.
pub(super) fn read(raw: Option<&RawValue>) -> Result<Content, String> {
    let mut content = Content::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = text(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let mut texts: Vec<String> = Vec::new();
    for raw in list(raw).ok_or("content is neither text nor a list of parts")? {
        if let Some(text) = text(raw) {
            texts.push(text.into_owned());
            continue;
        }
        let part = Fields::of(raw);
        match part.as_ref().and_then(words) {
            Some(text) => texts.push(text),
            None => match part.as_ref().and_then(picture) {
                Some(url) => content.attachments.push(linked(content.attachments.len() + 1, "image", &url)),
                None => content.others.push(one_line(raw)),
            },
        }
    }
    content.text = texts.join("\n");
    Ok(content)
}

/// Whether a part is a text, even an empty one.
pub(super) fn is_text(raw: &RawValue) -> bool {
    Fields::of(raw).as_ref().and_then(words).is_some()
}

fn words(part: &Fields<'_>) -> Option<String> {
    let field = match part.text("type")?.as_ref() {
        "text" | "input_text" | "output_text" => "text",
        "refusal" => "refusal",
        _ => return None,
    };
    part.text(field).map(Into::into)
}

fn picture(part: &Fields<'_>) -> Option<String> {
    if !matches!(part.text("type")?.as_ref(), "image_url" | "input_image") {
        return None;
    }
    let raw = part.get("image_url")?;
    text(raw).or_else(|| Fields::of(raw)?.text("url")).map(Into::into)
}
