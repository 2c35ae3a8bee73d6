//! The content of a message, in one of many types.

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::one_line;

/// What a content holds.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// What has no place in a message, as it came.
    pub others: Vec<(String, Box<RawValue>)>,
}

impl Content {
    /// Whether there is nothing to show.
    pub fn is_silent(&self) -> bool {
        self.text.trim().is_empty() && self.attachments.is_empty()
    }

    /// Takes the list of files that a message came with. A picture is also among the parts, where it has no name.
    pub fn attach(&mut self, files: Option<&RawValue>) {
        for file in files.and_then(list).unwrap_or_default().into_iter().filter_map(Fields::of) {
            let id = file.text("id").filter(|id| !id.is_empty());
            let name = file.text("name").filter(|name| !name.is_empty()).or(id.clone());
            let media_type = file.text("mimeType").or(file.text("mime_type")).map(String::from);
            let shown = id.as_ref().and_then(|id| {
                self.attachments.iter_mut().find(|shown| shown.name == *id && shown.media_type.is_none())
            });
            if let Some(shown) = shown {
                shown.media_type = media_type;
                shown.name = name.map_or_else(|| shown.name.clone(), String::from);
                continue;
            }
            let (name, size) = (name.map_or_else(|| "file".to_owned(), String::from), file.count("size"));
            // The name of the file in the archive begins with the id.
            let url = id.map(|id| format!("file-service://{id}"));
            self.attachments.push(Attachment { name, media_type, size, path: None, url, data: None });
        }
    }
}

/// Reads a content; the reason, where it is none.
pub(super) fn read(raw: Option<&RawValue>) -> Result<Content, String> {
    let mut content = Content::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = text(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let fields = Fields::of(raw).ok_or("content is neither text nor an object")?;
    let kind = fields.text("content_type").unwrap_or_default();
    let joined = |names: &[&str]| -> String {
        names.iter().filter_map(|name| fields.text(name)).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    };
    match kind.as_ref() {
        "thoughts" | "reasoning_recap" => content.others.push((kind.into_owned(), one_line(raw))),
        "tether_quote" => content.text = joined(&["title", "url", "text"]),
        "user_editable_context" => content.text = joined(&["user_profile", "user_instructions"]),
        "model_editable_context" => content.text = joined(&["model_set_context"]),
        _ if fields.has("parts") => parts(&fields, &mut content)?,
        known => {
            content.text = joined(&["text", "result"]);
            if content.text.is_empty()
                && !matches!(known, "text" | "code" | "execution_output" | "tether_browsing_display")
            {
                content.others.push(("content".into(), one_line(raw)));
            }
        }
    }
    Ok(content)
}

fn parts(fields: &Fields<'_>, content: &mut Content) -> Result<(), String> {
    let mut texts: Vec<String> = Vec::new();
    for raw in fields.get("parts").and_then(list).ok_or("parts is not a list")? {
        if let Some(text) = text(raw) {
            texts.push(text.into_owned());
            continue;
        }
        let Some(part) = Fields::of(raw) else { continue };
        if let Some(pointer) = part.text("asset_pointer") {
            content.attachments.push(asset(&pointer, part.count("size_bytes")));
        } else if let Some(text) = part.text("text") {
            texts.push(text.into_owned());
        } else {
            content.others.push(("part".into(), one_line(raw)));
        }
    }
    texts.retain(|text| !text.is_empty());
    content.text = texts.join("\n");
    Ok(())
}

/// A file of the archive that the export came in.
fn asset(pointer: &str, size: Option<u64>) -> Attachment {
    let name = pointer.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file").to_owned();
    Attachment { name, media_type: None, size, path: None, url: Some(pointer.to_owned()), data: None }
}
