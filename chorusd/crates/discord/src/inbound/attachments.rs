//! Attachments of a message: images are passed to the model, texts become part of the message, and other files are
//! named there with the reason why they were left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_agent_core::AgentSettings;
use chorus_engine::ops::Ops;
use chorus_engine::ops::send::{attachment_problem, max_message_bytes};
use chorus_proto::Attachment;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::Inbound;
use super::message_text::format_size;
use super::request::{AttachedFile, MessageRequest};

/// Images of one message, and bytes of each.
const MAX_IMAGES: usize = 10;
const MAX_IMAGE_BYTES: u64 = 5 << 20;
/// Bytes of a text file.
const MAX_TEXT_BYTES: u64 = 256 << 10;
/// Bytes of a stored message that are not text or files.
const MESSAGE_OVERHEAD_BYTES: usize = 16 << 10;
/// Files of one message that are downloaded concurrently.
const MAX_CONCURRENT_PER_MESSAGE: usize = 4;

/// How a file is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// An image of this media type.
    Image(&'static str),
    Text,
    Other,
}

/// Media types of images, and their file name extensions.
const IMAGE_TYPES: [(&str, &[&str]); 4] =
    [("image/png", &["png"]), ("image/jpeg", &["jpg", "jpeg"]), ("image/gif", &["gif"]), ("image/webp", &["webp"])];
/// Media types of texts, in addition to `text/…`.
const TEXT_TYPES: &[&str] = &[
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-javascript",
    "application/typescript",
    "application/x-sh",
    "application/sql",
    "application/x-ndjson",
    "application/x-python",
    "image/svg+xml",
];
/// File name extensions of texts.
#[rustfmt::skip]
const TEXT_EXTENSIONS: &[&str] = &[
    "txt", "md", "markdown", "rst", "log", "csv", "tsv", "json", "jsonl", "ndjson", "yaml", "yml", "toml", "ini", "cfg", "conf",
    "env", "xml", "html", "htm", "css", "scss", "svg", "sh", "bash", "zsh", "fish", "bat", "ps1", "py", "rb", "pl", "lua", "js",
    "mjs", "ts", "tsx", "jsx", "vue", "svelte", "rs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "scala", "swift",
    "hs", "ml", "clj", "ex", "exs", "erl", "php", "sql", "r", "jl", "dart", "zig", "nix", "tf", "proto", "graphql", "tex",
    "diff", "patch", "lock", "gradle", "cmake", "mk", "srt", "vtt", "ics",
];

impl FileKind {
    /// Detects the kind of a file by its media type or, if that says nothing, by its name.
    #[must_use]
    pub(super) fn detect(file: &AttachedFile) -> Self {
        let kind = file.kind.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let end = file.name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
        if kind.starts_with("text/") || TEXT_TYPES.contains(&&*kind) {
            return Self::Text;
        }
        let says_nothing = matches!(&*kind, "" | "application/octet-stream");
        for (is, ends) in IMAGE_TYPES {
            if kind == is || (says_nothing && ends.contains(&&*end)) {
                return Self::Image(is);
            }
        }
        // A file whose media type Discord cannot tell from its name may still be a text; its bytes are checked later.
        let other = kind.starts_with("image/") || kind.starts_with("audio/") || kind.starts_with("video/");
        if TEXT_EXTENSIONS.contains(&&*end) && !other { Self::Text } else { Self::Other }
    }
}

/// A file as part of the message.
#[derive(Debug, Clone, PartialEq)]
enum LoadedFile {
    Image(Box<Attachment>),
    Text(String),
    /// The reason why the file was left out.
    Omitted(String),
}

/// Downloads the attachments of a request. Returns its text, with text files and the names of omitted files, and its
/// images.
pub(super) async fn load_attachments(
    ops: &Ops,
    inbound: &Inbound,
    agent: &AgentSettings,
    asked: &MessageRequest,
) -> (String, Vec<Attachment>) {
    let mut images = 0;
    let mut coming = Vec::with_capacity(asked.files.len());
    for file in &asked.files {
        let wanted = check_file(file, &mut images);
        coming.push(async move {
            match wanted {
                Ok(kind) => (file, load_file(ops, inbound, agent, file, kind).await),
                Err(why) => (file, LoadedFile::Omitted(why)),
            }
        });
    }
    let taken = stream::iter(coming).buffered(MAX_CONCURRENT_PER_MESSAGE).collect().await;
    assemble_message(&asked.full_text(), taken, max_message_bytes(&ops.config).saturating_sub(MESSAGE_OVERHEAD_BYTES))
}

/// Checks kind, size and number of the images before a file is downloaded.
fn check_file(file: &AttachedFile, images: &mut usize) -> Result<FileKind, String> {
    let kind = FileKind::detect(file);
    let most = match kind {
        FileKind::Image(_) => MAX_IMAGE_BYTES,
        FileKind::Text => MAX_TEXT_BYTES,
        FileKind::Other => return Err("only images and text files are supported".into()),
    };
    if file.size > most {
        return Err(format!("larger than {}", format_size(most)));
    }
    if matches!(kind, FileKind::Image(_)) {
        *images += 1;
        if *images > MAX_IMAGES {
            return Err(format!("more than {MAX_IMAGES} images"));
        }
    }
    Ok(kind)
}

async fn load_file(
    ops: &Ops,
    inbound: &Inbound,
    agent: &AgentSettings,
    file: &AttachedFile,
    kind: FileKind,
) -> LoadedFile {
    let most = if matches!(kind, FileKind::Text) { MAX_TEXT_BYTES } else { MAX_IMAGE_BYTES };
    let bytes = match inbound.downloader.download(&file.url, most).await {
        Ok(bytes) => bytes,
        Err(why) => {
            tracing::info!(file = %file.name, why, "cannot download an attachment");
            return LoadedFile::Omitted(why);
        }
    };
    let FileKind::Image(kind) = kind else { return decode_text(bytes) };
    let image = Attachment {
        name: file.name.clone(),
        media_type: Some(kind.to_owned()),
        size: Some(bytes.len() as u64),
        path: None,
        url: None,
        data: Some(STANDARD.encode(bytes)),
    };
    match attachment_problem(&ops.models, agent, &image) {
        Some(why) => LoadedFile::Omitted(why),
        None => LoadedFile::Image(Box::new(image)),
    }
}

fn decode_text(bytes: Vec<u8>) -> LoadedFile {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => LoadedFile::Text(text.trim_start_matches('\u{feff}').to_owned()),
        _ => LoadedFile::Omitted("not UTF-8 text".into()),
    }
}

/// Assembles text and files within `room` bytes.
fn assemble_message(text: &str, files: Vec<(&AttachedFile, LoadedFile)>, room: usize) -> (String, Vec<Attachment>) {
    // The length when stored as JSON, escapes included.
    let length = |text: &str| serde_json::to_string(text).map_or(text.len(), |json| json.len());
    let mut room = room.saturating_sub(length(text));
    let (mut text, mut images) = (text.to_owned(), Vec::new());
    for (file, taken) in files {
        let AttachedFile { name, size: bytes, .. } = file;
        let said = format!("[attachment {name}, {}", format_size(*bytes));
        let needs = match &taken {
            LoadedFile::Image(image) => image.data.as_ref().map_or(0, String::len),
            LoadedFile::Text(text) => length(text),
            LoadedFile::Omitted(_) => 0,
        };
        let part = match taken {
            LoadedFile::Omitted(why) => format!("{said}: {why}]"),
            _ if needs > room => format!("{said}: too large for this message]"),
            LoadedFile::Image(image) => {
                room -= needs;
                images.push(*image);
                continue;
            }
            LoadedFile::Text(content) => {
                room -= needs;
                format!("{said}]\n{}\n[end of {name}]", content.trim_end_matches('\n'))
            }
        };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part);
    }
    (text, images)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, kind: Option<&str>, size: u64) -> AttachedFile {
        AttachedFile { name: name.into(), size, kind: kind.map(str::to_owned), url: String::new(), answered: false }
    }

    #[test]
    fn a_file_is_what_its_type_says_or_its_name() {
        for (name, kind, due) in [
            ("a.png", Some("image/png"), FileKind::Image("image/png")),
            ("a", Some("image/JPEG"), FileKind::Image("image/jpeg")),
            ("a.webp", None, FileKind::Image("image/webp")),
            ("a.gif", Some("application/octet-stream"), FileKind::Image("image/gif")),
            ("a.bmp", Some("image/bmp"), FileKind::Other),
            ("a.svg", Some("image/svg+xml"), FileKind::Text),
            ("a", Some("text/plain; charset=utf-8"), FileKind::Text),
            ("a.py", Some("text/x-python"), FileKind::Text),
            ("Main.RS", None, FileKind::Text),
            ("a.ts", Some("video/mp2t"), FileKind::Other),
            ("a.toml", Some("application/x-what"), FileKind::Text),
            ("a.zip", Some("application/zip"), FileKind::Other),
            ("a.pdf", Some("application/pdf"), FileKind::Other),
            ("png", None, FileKind::Other),
        ] {
            assert_eq!(FileKind::detect(&file(name, kind, 1)), due, "{name} {kind:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_left_out_before_it_is_fetched() {
        let mut images = 0;
        let mut wanted = |name: &str, size| check_file(&file(name, None, size), &mut images);
        assert_eq!(wanted("a.txt", MAX_TEXT_BYTES), Ok(FileKind::Text));
        assert_eq!(wanted("a.txt", MAX_TEXT_BYTES + 1), Err("larger than 256.0 KiB".into()));
        assert_eq!(wanted("a.png", MAX_IMAGE_BYTES + 1), Err("larger than 5.0 MiB".into()));
        assert_eq!(wanted("a.mp3", 1), Err("only images and text files are supported".into()));
        for _ in 0..10 {
            assert_eq!(wanted("a.png", MAX_IMAGE_BYTES), Ok(FileKind::Image("image/png")));
        }
        assert_eq!(wanted("a.png", 1), Err("more than 10 images".into()));
    }

    #[test]
    fn every_file_is_in_the_message_or_named_there() {
        let (notes, photo, song) =
            (file("notes.txt", None, 6), file("photo.png", None, 100), file("song.mp3", None, 2048));
        let image = Attachment {
            name: "photo.png".into(),
            media_type: Some("image/png".into()),
            size: Some(100),
            path: None,
            url: None,
            data: Some("A".repeat(136)),
        };
        let files = || {
            vec![
                (&notes, decode_text(b"\xef\xbb\xbfa\n\"b\"\n".to_vec())),
                (&photo, LoadedFile::Image(Box::new(image.clone()))),
                (&song, LoadedFile::Omitted("only images and text files are supported".into())),
            ]
        };
        let (text, images) = assemble_message("Look!", files(), 10_000);
        assert_eq!(
            text,
            "Look!\n\n[attachment notes.txt, 6 bytes]\na\n\"b\"\n[end of notes.txt]\n\n\
             [attachment song.mp3, 2.0 KiB: only images and text files are supported]"
        );
        assert_eq!(images, std::slice::from_ref(&image));
        let (text, images) = assemble_message("", files(), 100);
        assert!(text.starts_with("[attachment notes.txt, 6 bytes]\na"), "{text}");
        assert!(text.contains("[attachment photo.png, 100 bytes: too large for this message]"), "{text}");
        assert!(images.is_empty());
    }

    #[test]
    fn a_text_is_utf_8() {
        for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
            assert_eq!(decode_text(bytes.to_vec()), LoadedFile::Omitted("not UTF-8 text".into()));
        }
    }
}
