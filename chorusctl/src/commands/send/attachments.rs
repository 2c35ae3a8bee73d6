//! Reads the files that are attached to a message.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::Attachment;
use chorus_proto::frame::MAX_FRAME;

use crate::error::Error;

/// Maximum bytes of all attachments in base64, as in the daemon: the message must still fit into one frame when it is
/// shown again.
const MAX_ATTACHMENT_BYTES: usize = MAX_FRAME / 16 * 15;

/// Reads the files and encodes them in base64.
///
/// # Errors
/// A file cannot be read, or all together are longer than the limit.
pub fn read_attachments(paths: &[PathBuf]) -> Result<Vec<Attachment>, Error> {
    let mut left = MAX_ATTACHMENT_BYTES;
    let mut files = Vec::new();
    for path in paths {
        let shown = path.display().to_string();
        // Check the length first, so that a file that is too long or never ends is not read.
        let length = path.metadata().map_err(|error| Error::for_file(&shown, &error))?.len();
        let too_long = || {
            Error::usage(format!("{shown}: too large; the files of one message can have 11 MiB in total"))
                .with_hint("put it where the agent can read it, and give its path in the message")
        };
        if length > left as u64 {
            return Err(too_long());
        }
        let bytes = std::fs::read(path).map_err(|error| Error::for_file(&shown, &error))?;
        let data = STANDARD.encode(&bytes);
        left = left.checked_sub(data.len()).ok_or_else(too_long)?;
        files.push(Attachment {
            name: path.file_name().map_or(shown, |name| name.to_string_lossy().into_owned()),
            media_type: Some(media_type(path, &bytes).to_owned()),
            size: Some(bytes.len() as u64),
            path: None,
            url: None,
            data: Some(data),
        });
    }
    Ok(files)
}

/// First bytes of the image formats that models accept; the extension of the name may be wrong.
const IMAGE_SIGNATURES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Guesses the media type: images by their first bytes, other files by extension, the rest by whether they are UTF-8.
fn media_type(path: &Path, bytes: &[u8]) -> &'static str {
    let webp = |kind: &str| kind != "image/webp" || bytes.get(8..12) == Some(b"WEBP");
    let image = IMAGE_SIGNATURES.iter().find(|(begin, kind)| bytes.starts_with(begin) && webp(kind));
    if let Some((_, kind)) = image {
        return kind;
    }
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref().unwrap_or_default() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        "md" | "markdown" => "text/markdown",
        "txt" | "log" => "text/plain",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_their_names_say() {
        let kind = |name: &str, bytes: &[u8]| media_type(Path::new(name), bytes);
        assert_eq!(kind("a.PNG", b""), "image/png");
        assert_eq!(kind("b.tar.md", b"\xff"), "text/markdown");
        assert_eq!(kind("main.rs", b"fn main() {}"), "text/plain");
        assert_eq!(kind("noname", b"\xff\xfe"), "application/octet-stream");
        assert_eq!(kind("photo.png", b"\xff\xd8\xff\xe0"), "image/jpeg", "an image is what its bytes say");
        assert_eq!(kind("sound.riff", b"RIFF\x24\0\0\0WAVE"), "text/plain");
        assert_eq!(kind("shot", b"RIFF\x24\0\0\0WEBPVP8 "), "image/webp");
    }
}
