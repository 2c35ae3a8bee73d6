//! Texts of an exported conversation: attachments, and calls and results that can only be given as text.

use std::borrow::Cow;

use chorus_proto::{Attachment, Message, ToolCall};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::attachment_text;
use crate::stored_message::has_author_label;

/// Media types of the images that all models take.
const IMAGE_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// Largest image, in characters of base64.
const MAX_IMAGE_CHARS: usize = 5 << 20;

/// Longest text of a result, in bytes. No model had more of it in view.
const MAX_RESULT_BYTES: usize = 256 << 10;

/// Longest name of an author, in characters.
const MAX_NAME_CHARS: usize = 64;

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// Returns the text of a message with the name of its author, if the window of an agent would show that, and with what
/// is known of its attachments, except for `images`.
pub(super) fn message_text(message: &Message) -> String {
    let mut text = String::new();
    let kind = message.source.as_ref().map(|source| source.kind);
    if has_author_label(message.role, kind)
        && let Some(author) = &message.author
    {
        let name: String = author.name.chars().filter(|c| !c.is_control() && !"[]".contains(*c)).collect();
        text.push_str(&format!("[{}]\n", name.trim().chars().take(MAX_NAME_CHARS).collect::<String>()));
    }
    text.push_str(&message.content);
    without_nul(text)
}

/// Splits attachments into images, and a text for everything else. `takes_images` is false if all must become text.
pub(super) fn split_attachments(attachments: Vec<Attachment>, takes_images: bool) -> (Vec<Image>, String) {
    let (mut images, mut text) = (Vec::new(), String::new());
    for attachment in attachments {
        match to_image(attachment) {
            Ok(image) if takes_images => images.push(image),
            Ok(image) => text.push_str(&format!("\n\n[attached image, {}]", image.media_type)),
            Err(attachment) => text.push_str(&format!("\n\n{}", attachment_note(&attachment))),
        }
    }
    (images, without_nul(text))
}

fn to_image(attachment: Attachment) -> Result<Image, Box<Attachment>> {
    match attachment {
        Attachment { media_type: Some(media_type), data: Some(data), .. }
            if IMAGE_TYPES.contains(&media_type.as_str()) && !data.is_empty() && data.len() <= MAX_IMAGE_CHARS =>
        {
            Ok(Image { media_type, data })
        }
        other => Err(Box::new(other)),
    }
}

fn attachment_note(attachment: &Attachment) -> String {
    let Attachment { name, media_type, size, url, .. } = attachment;
    if let Some(text) = attachment_text::shown_text(attachment) {
        return format!("[attached file {name}]\n{text}");
    }
    let mut note = format!("[attached file {name}");
    media_type.iter().for_each(|kind| note.push_str(&format!(", {kind}")));
    size.iter().for_each(|size| note.push_str(&format!(", {size} bytes")));
    url.iter().for_each(|url| note.push_str(&format!(", {url}")));
    note + "]"
}

/// Returns the text that stands for a call whose result is not in the conversation.
pub(super) fn call_text(call: &ToolCall) -> String {
    without_nul(format!("[call of the tool {}]\n{}", call.name, call.params.get()))
}

/// Returns the text that stands for a result whose call is not in the conversation.
pub(super) fn result_text(name: Option<&str>, text: &str) -> String {
    format!("[result of the tool {}]\n{text}", name.unwrap_or("that was called"))
}

/// Shortens a result that is too long for every model in its middle.
pub(super) fn shorten_result(text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let head = (0..=MAX_RESULT_BYTES / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - MAX_RESULT_BYTES / 2..=text.len()).find(|at| text.is_char_boundary(*at));
    let tail = tail.unwrap_or(text.len());
    format!("{}\n[… {} bytes left out by Chorus …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Replaces NUL, which these programs and their databases do not take, by the symbol for it.
pub(super) fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{2400}") } else { text }
}

/// Replaces NUL in the strings of a JSON value.
pub(super) fn params_without_nul(params: Box<RawValue>) -> Box<RawValue> {
    if !params.get().contains("\\u0000") {
        return params;
    }
    let replaced = serde_json::from_str(params.get()).map(|value: Value| replace_nul(value));
    replaced.and_then(|value| serde_json::value::to_raw_value(&value)).unwrap_or(params)
}

fn replace_nul(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_nul(text)),
        Value::Array(values) => values.into_iter().map(replace_nul).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (without_nul(name), replace_nul(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// Returns a name that the APIs of all models take: letters, digits, `_` and `-`, at most 64.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(64).collect();
    Cow::Owned(if plain.is_empty() { "tool".to_owned() } else { plain })
}
