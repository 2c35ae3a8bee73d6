//! Attachments as a model gets them: supported images, and notes about everything else. A provider refuses a whole
//! conversation because of one invalid image, so images with wrong bytes or that are too large are not sent.

use chorus_config::ProviderKind;
use chorus_proto::{Attachment, Message};
use chorus_session::attachment_text;

/// Image types that every provider supports, and the beginning of their base64.
const SUPPORTED_TYPES: [(&str, &str); 4] =
    [("image/jpeg", "/9j/"), ("image/png", "iVBORw0KGgo"), ("image/gif", "R0lGOD"), ("image/webp", "UklGR")];

/// An attachment as a model gets it.
pub(crate) enum RenderedAttachment<'a> {
    /// Media type and bytes in base64.
    Data(&'a str, &'a str),
    Url(&'a str),
    /// A note about the attachment. Paths are not opened here, because access to files is decided elsewhere.
    Note(String),
}

/// Limit of the base64 of an image in bytes: Anthropic's documented limit, and the strictest one of the others.
fn max_base64_bytes(kind: ProviderKind) -> usize {
    match kind {
        ProviderKind::Anthropic => 5 << 20,
        ProviderKind::Openai => 20 << 20,
    }
}

/// Converts `attachment` for a provider of this kind.
#[must_use]
pub(crate) fn render_attachment(attachment: &Attachment, kind: ProviderKind) -> RenderedAttachment<'_> {
    let why = match (check_image(attachment, kind), &attachment.url) {
        (Some(Ok(shown)), _) => return shown,
        (Some(Err(why)), _) => Some(why),
        (None, Some(url)) if is_image(attachment) && is_web(url) => return RenderedAttachment::Url(url),
        _ => None,
    };
    let mut note = format!("[attached: {}", attachment.name);
    if let Some(kind) = attachment.media_type.as_deref().filter(|kind| !kind.is_empty()) {
        note.push_str(&format!(", {kind}"));
    }
    if let Some(size) = attachment.size {
        note.push_str(&format!(", {size} bytes"));
    }
    if let Some(why) = why {
        note.push_str(&format!("; not shown: {why}"));
    }
    note.push(']');
    if let Some(text) = attachment_text::shown_text(attachment) {
        note.push_str(&format!("\n{text}\n[end of {}]", attachment.name));
    }
    RenderedAttachment::Note(note)
}

/// Returns the reason why a provider of this kind would not accept an image; `None` if the attachment is no image or
/// acceptable.
#[must_use]
pub(crate) fn image_problem(attachment: &Attachment, kind: ProviderKind) -> Option<String> {
    check_image(attachment, kind)?.err()
}

/// Returns whether the attachment is an image with its bytes.
#[must_use]
pub(crate) fn has_bytes(attachment: &Attachment) -> bool {
    is_image(attachment) && attachment.data.as_deref().is_some_and(|data| !data.is_empty())
}

/// Replaces each image by a line of text, for models that accept no images; returns the number of images. The lines
/// follow the text, whose first line may name the author.
pub fn describe_images(message: &mut Message) -> usize {
    let (images, others): (Vec<_>, Vec<_>) = std::mem::take(&mut message.attachments).into_iter().partition(is_image);
    message.attachments = others;
    for image in &images {
        if !message.content.is_empty() {
            message.content.push('\n');
        }
        message.content.push_str(&describe_image(image));
    }
    images.len()
}

/// Describes an image in words.
fn describe_image(image: &Attachment) -> String {
    let decoded = |data: &String| (data.len() / 4 * 3) as u64;
    let size = match image.size.or_else(|| image.data.as_ref().map(decoded)) {
        None => String::new(),
        Some(size @ ..1_000) => format!(", {size} bytes"),
        Some(size @ ..1_000_000) => format!(", {} kB", size.div_ceil(1_000)),
        Some(size) => format!(", {:.1} MB", size as f64 / 1e6),
    };
    let name: String = image.name.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    format!("[image {name}{size}: this model does not accept images]")
}

/// Checks an image that comes with its bytes; `None` for anything else.
fn check_image(attachment: &Attachment, kind: ProviderKind) -> Option<Result<RenderedAttachment<'_>, String>> {
    let data = attachment.data.as_deref().filter(|_| has_bytes(attachment))?;
    let found = SUPPORTED_TYPES.iter().find(|(_, begin)| data.starts_with(begin));
    let most = max_base64_bytes(kind);
    Some(match found {
        None => Err("it is not a PNG, JPEG, GIF or WebP image".to_owned()),
        Some(_) if data.len() > most => {
            Err(format!("it is larger than {:.1} MiB", (most / 4 * 3) as f64 / f64::from(1 << 20)))
        }
        Some((kind, _)) => Ok(RenderedAttachment::Data(kind, data)),
    })
}

/// Returns whether [`describe_images`] describes the attachment.
#[must_use]
pub(crate) fn is_image(attachment: &Attachment) -> bool {
    SUPPORTED_TYPES.iter().any(|(kind, _)| Some(*kind) == attachment.media_type.as_deref())
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use chorus_proto::{NewMessage, Role};

    use super::*;

    fn attachment(media_type: &str, bytes: &[u8]) -> Attachment {
        Attachment {
            name: "a".into(),
            media_type: Some(media_type.into()),
            size: Some(bytes.len() as u64),
            path: None,
            url: None,
            data: Some(STANDARD.encode(bytes)),
        }
    }

    fn told(attachment: &Attachment, kind: ProviderKind) -> String {
        match render_attachment(attachment, kind) {
            RenderedAttachment::Data(kind, _) => kind.to_owned(),
            RenderedAttachment::Url(url) => url.to_owned(),
            RenderedAttachment::Note(note) => note,
        }
    }

    #[test]
    fn an_image_is_what_its_bytes_say() {
        let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 9]].concat();
        for (bytes, due) in [
            (&png[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"\xff\xd8\xff\xdb\0\x43", "image/jpeg"),
            (b"GIF89a\x01\0", "image/gif"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            assert_eq!(told(&attachment("image/png", bytes), ProviderKind::Openai), due);
        }
        let text = attachment("image/png", b"no image");
        assert!(
            told(&text, ProviderKind::Anthropic)
                .ends_with("8 bytes; not shown: it is not a PNG, JPEG, GIF or WebP image]")
        );
        assert!(image_problem(&text, ProviderKind::Anthropic).is_some());
        assert_eq!(image_problem(&attachment("text/plain", b"a text"), ProviderKind::Anthropic), None);
        assert_eq!(image_problem(&attachment("image/svg+xml", b"<svg/>"), ProviderKind::Anthropic), None, "a file");
    }

    #[test]
    fn an_image_in_words_stands_behind_what_was_said() {
        let mut message = NewMessage::text(Role::User, "Look!").complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH);
        let mut large = attachment("image/png", &[0; 48_000]);
        large.name = "x\n[Eve].png".into();
        let unknown =
            Attachment { size: None, data: None, url: Some("https://a/b.gif".into()), ..attachment("image/gif", b"") };
        message.attachments =
            vec![attachment("image/png", b"12345678"), attachment("text/plain", b"t"), large, unknown];
        assert_eq!(describe_images(&mut message), 3);
        let lines: Vec<_> = message.content.lines().collect();
        assert_eq!(
            lines,
            [
                "Look!",
                "[image a, 8 bytes: this model does not accept images]",
                "[image x [Eve].png, 48 kB: this model does not accept images]",
                "[image a: this model does not accept images]",
            ]
        );
        assert_eq!((message.attachments.len(), describe_images(&mut message)), (1, 0));
    }

    #[test]
    fn an_image_that_a_provider_refuses_is_not_sent_to_it() {
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        png.resize((5 << 20) / 4 * 3, 0);
        assert_eq!(image_problem(&attachment("image/png", &png), ProviderKind::Anthropic), None);
        png.push(0);
        let large = attachment("image/png", &png);
        assert_eq!(image_problem(&large, ProviderKind::Anthropic).as_deref(), Some("it is larger than 3.8 MiB"));
        assert!(
            told(&large, ProviderKind::Anthropic).contains("not shown")
                && told(&large, ProviderKind::Openai) == "image/png"
        );
    }
}
