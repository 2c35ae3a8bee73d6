//! Text attachments, whose contents are shown to the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Attachment;

/// Limit of the bytes that are shown of one file.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Media types of text files that do not begin with `text/`.
const OTHER_TEXT_TYPES: [&str; 4] = ["application/json", "application/xml", "application/yaml", "application/toml"];

/// Returns whether files of this media type are shown as text.
#[must_use]
pub fn is_text(media_type: Option<&str>) -> bool {
    let plain = media_type.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    plain.is_some_and(|kind| kind.starts_with("text/") || OTHER_TEXT_TYPES.contains(&kind))
}

/// Estimates how many bytes of a text file of `encoded` bytes in base64 are shown to a model.
#[must_use]
pub(crate) fn shown_bytes(encoded: usize) -> u64 {
    (encoded / 4 * 3).min(MAX_SHOWN_BYTES) as u64
}

/// Returns the text of an attachment up to the limit; `None` if it is no text or comes without its bytes.
#[must_use]
pub fn shown_text(attachment: &Attachment) -> Option<String> {
    let text = full_text(attachment)?;
    let text = text.trim_start_matches('\u{feff}').trim_end();
    if text.len() <= MAX_SHOWN_BYTES {
        return Some(text.to_owned());
    }
    let cut = (0..=MAX_SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Some(format!("{}\n[… showing {} of {} bytes]", &text[..cut], cut, text.len()))
}

/// Returns the complete text; `None` as for [`shown_text`].
#[must_use]
pub fn full_text(attachment: &Attachment) -> Option<String> {
    let data = attachment.data.as_deref().filter(|_| is_text(attachment.media_type.as_deref()))?;
    let bytes = STANDARD.decode(data).ok()?;
    // A file with a NUL is no text, whatever its media type.
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Replaces the text of an attachment.
pub fn replace_text(attachment: &mut Attachment, text: &str) {
    attachment.data = Some(STANDARD.encode(text));
}

/// Estimates how many bytes of an attachment are shown as text.
#[must_use]
pub fn shown_bytes_of(attachment: &Attachment) -> u64 {
    let encoded = attachment.data.as_ref().map_or(0, String::len);
    if is_text(attachment.media_type.as_deref()) { shown_bytes(encoded) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(media_type: &str, bytes: &[u8]) -> Attachment {
        Attachment {
            name: "a".into(),
            media_type: Some(media_type.into()),
            size: None,
            path: None,
            url: None,
            data: Some(STANDARD.encode(bytes)),
        }
    }

    #[test]
    fn texts_are_shown_up_to_a_bound_and_nothing_else_is() {
        assert_eq!(shown_text(&attached("text/plain; charset=utf-8", "ä\nb\n".as_bytes())).as_deref(), Some("ä\nb"));
        assert_eq!(shown_text(&attached("application/json", b"{}")).as_deref(), Some("{}"));
        assert_eq!(shown_text(&attached("text/plain", b"\xff\xfe")), None);
        assert_eq!(shown_text(&attached("text/plain", b"a\0b")), None);
        assert_eq!(shown_text(&attached("application/pdf", b"%PDF")), None);
        assert_eq!(shown_text(&Attachment { data: None, ..attached("text/plain", b"") }), None);
        let long = shown_text(&attached("text/csv", "é".repeat(MAX_SHOWN_BYTES).as_bytes())).unwrap();
        assert!(long.len() < MAX_SHOWN_BYTES + 100 && long.ends_with(" of 131072 bytes]"), "{}", long.len());
        assert_eq!(shown_bytes(STANDARD.encode("x".repeat(300)).len()), 300);
    }
}
