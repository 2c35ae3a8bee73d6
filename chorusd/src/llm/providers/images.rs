//! Attachments: images that a model can look at, and a word about everything else.

use chorus_proto::Attachment;

/// What every provider looks at.
const SEEN: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// An attachment as a model gets it.
pub enum Shown<'a> {
    /// Its type and its bytes in base64.
    Data(&'a str, &'a str),
    Url(&'a str),
    /// Told of only. A path is not followed here: what may be read is decided elsewhere.
    Note(String),
}

/// How `attachment` is shown.
#[must_use]
pub fn shown(attachment: &Attachment) -> Shown<'_> {
    let kind = attachment.media_type.as_deref().unwrap_or_default();
    if SEEN.contains(&kind) {
        match (&attachment.data, &attachment.url) {
            (Some(data), _) if !data.is_empty() => return Shown::Data(kind, data),
            (_, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => return Shown::Url(url),
            _ => {}
        }
    }
    let mut note = format!("[attached: {}", attachment.name);
    if !kind.is_empty() {
        note.push_str(&format!(", {kind}"));
    }
    if let Some(size) = attachment.size {
        note.push_str(&format!(", {size} bytes"));
    }
    note.push(']');
    Shown::Note(note)
}
