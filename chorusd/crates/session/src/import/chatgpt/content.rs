//! Parses the content of a message, which has one of many types.

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::json_values::minify_value;
use super::super::raw_object::{RawObject, list_entries, string_value};

/// A parsed content.
#[derive(Debug, Default)]
pub(super) struct ParsedContent {
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// Values that a message has no field for, unchanged.
    pub others: Vec<(String, Box<RawValue>)>,
}

impl ParsedContent {
    /// Returns whether there is nothing to display.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.attachments.is_empty()
    }

    /// Adds the files that a message lists. Images are among the parts, too, but without a name there.
    pub(super) fn add_files(&mut self, files: Option<&RawValue>) {
        for file in files.and_then(list_entries).unwrap_or_default().into_iter().filter_map(RawObject::from_value) {
            let id = file.get_text("id").filter(|id| !id.is_empty());
            let name = file.get_text("name").filter(|name| !name.is_empty()).or(id.clone());
            let media_type = file.get_text("mimeType").or(file.get_text("mime_type")).map(String::from);
            let shown = id.as_ref().and_then(|id| {
                self.attachments.iter_mut().find(|shown| shown.name == *id && shown.media_type.is_none())
            });
            if let Some(shown) = shown {
                shown.media_type = media_type;
                shown.name = name.map_or_else(|| shown.name.clone(), String::from);
                continue;
            }
            let (name, size) = (name.map_or_else(|| "file".to_owned(), String::from), file.get_u64("size"));
            // The name of the file in the archive begins with the id.
            let url = id.map(|id| format!("file-service://{id}"));
            self.attachments.push(Attachment { name, media_type, size, path: None, url, data: None });
        }
    }
}

/// Parses a content. Returns the reason if it is not one.
pub(super) fn parse(raw: Option<&RawValue>) -> Result<ParsedContent, String> {
    let mut content = ParsedContent::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = string_value(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let fields = RawObject::from_value(raw).ok_or("content is not text or an object")?;
    let kind = fields.get_text("content_type").unwrap_or_default();
    let joined = |names: &[&str]| -> String {
        names
            .iter()
            .filter_map(|name| fields.get_text(name))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    };
    match kind.as_ref() {
        "thoughts" | "reasoning_recap" => content.others.push((kind.into_owned(), minify_value(raw))),
        "tether_quote" => content.text = joined(&["title", "url", "text"]),
        "user_editable_context" => content.text = joined(&["user_profile", "user_instructions"]),
        "model_editable_context" => content.text = joined(&["model_set_context"]),
        _ if fields.has("parts") => parse_parts(&fields, &mut content)?,
        known => {
            content.text = joined(&["text", "result"]);
            if content.text.is_empty()
                && !matches!(known, "text" | "code" | "execution_output" | "tether_browsing_display")
            {
                content.others.push(("content".into(), minify_value(raw)));
            }
        }
    }
    Ok(content)
}

fn parse_parts(fields: &RawObject<'_>, content: &mut ParsedContent) -> Result<(), String> {
    let mut texts: Vec<String> = Vec::new();
    for raw in fields.get("parts").and_then(list_entries).ok_or("parts is not a list")? {
        if let Some(text) = string_value(raw) {
            texts.push(text.into_owned());
            continue;
        }
        let Some(part) = RawObject::from_value(raw) else { continue };
        if let Some(pointer) = part.get_text("asset_pointer") {
            content.attachments.push(asset_attachment(&pointer, part.get_u64("size_bytes")));
        } else if let Some(text) = part.get_text("text") {
            texts.push(text.into_owned());
        } else {
            content.others.push(("part".into(), minify_value(raw)));
        }
    }
    texts.retain(|text| !text.is_empty());
    content.text = texts.join("\n");
    Ok(())
}

/// Builds the attachment for a file of the archive that contains the export.
fn asset_attachment(pointer: &str, size: Option<u64>) -> Attachment {
    let name = pointer.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file").to_owned();
    Attachment { name, media_type: None, size, path: None, url: Some(pointer.to_owned()), data: None }
}
