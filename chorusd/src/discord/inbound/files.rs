//! Files that came with a message: images are shown to the model, texts stand in the message, and the rest is named with the reason.
//! Nothing is left out in silence.

use chorus_proto::Attachment;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::heard::{Asked, File};
use super::text::size;
use crate::agent::Facts;
use crate::discord::bridge::Bridge;
use crate::ops::send::{longest, unfit};

/// Images of one message, and bytes of each.
const IMAGES: usize = 10;
const LARGEST_IMAGE: u64 = 5 << 20;
/// Bytes of a text.
const LARGEST_TEXT: u64 = 256 << 10;
/// Bytes of what stands around text and files in a kept message.
const AROUND: usize = 16 << 10;
/// Files that are fetched at once for one message.
const AT_ONCE: usize = 4;

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of this type.
    Image(&'static str),
    Text,
    Other,
}

/// Images by their type, and by how their names end.
const PICTURES: [(&str, &[&str]); 4] =
    [("image/png", &["png"]), ("image/jpeg", &["jpg", "jpeg"]), ("image/gif", &["gif"]), ("image/webp", &["webp"])];
/// Types of texts, besides `text/…`.
const TEXTS: &[&str] = &[
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
/// How the names of texts end.
#[rustfmt::skip]
const ENDS: &[&str] = &[
    "txt", "md", "markdown", "rst", "log", "csv", "tsv", "json", "jsonl", "ndjson", "yaml", "yml", "toml", "ini", "cfg", "conf",
    "env", "xml", "html", "htm", "css", "scss", "svg", "sh", "bash", "zsh", "fish", "bat", "ps1", "py", "rb", "pl", "lua", "js",
    "mjs", "ts", "tsx", "jsx", "vue", "svelte", "rs", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "scala", "swift",
    "hs", "ml", "clj", "ex", "exs", "erl", "php", "sql", "r", "jl", "dart", "zig", "nix", "tf", "proto", "graphql", "tex",
    "diff", "patch", "lock", "gradle", "cmake", "mk", "srt", "vtt", "ics",
];

impl Kind {
    /// What a file is by its type, or where that says nothing, by its name.
    #[must_use]
    pub fn of(file: &File) -> Self {
        let kind = file.kind.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let end = file.name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
        if kind.starts_with("text/") || TEXTS.contains(&&*kind) {
            return Self::Text;
        }
        let says_nothing = matches!(&*kind, "" | "application/octet-stream");
        for (is, ends) in PICTURES {
            if kind == is || (says_nothing && ends.contains(&&*end)) {
                return Self::Image(is);
            }
        }
        // A type that Discord does not know by its name may be a text all the same; its bytes say whether it is.
        let other = kind.starts_with("image/") || kind.starts_with("audio/") || kind.starts_with("video/");
        if ENDS.contains(&&*end) && !other { Self::Text } else { Self::Other }
    }
}

/// A file as the message has it.
#[derive(Debug, Clone, PartialEq)]
enum Taken {
    Image(Box<Attachment>),
    Text(String),
    /// Why.
    Left(String),
}

/// The message as the model gets it: its text, with the texts that came with it and the names of what is left out, and its images.
pub async fn bring(bridge: &Bridge, agent: &Facts, asked: &Asked) -> (String, Vec<Attachment>) {
    let mut images = 0;
    let mut coming = Vec::with_capacity(asked.files.len());
    for file in &asked.files {
        let wanted = wanted(file, &mut images);
        coming.push(async move {
            match wanted {
                Ok(kind) => (file, take(bridge, agent, file, kind).await),
                Err(why) => (file, Taken::Left(why)),
            }
        });
    }
    let taken = stream::iter(coming).buffered(AT_ONCE).collect().await;
    joined(&asked.whole(), taken, longest(&bridge.ops).saturating_sub(AROUND))
}

/// What a file is to be, before it is fetched.
fn wanted(file: &File, images: &mut usize) -> Result<Kind, String> {
    let kind = Kind::of(file);
    let most = match kind {
        Kind::Image(_) => LARGEST_IMAGE,
        Kind::Text => LARGEST_TEXT,
        Kind::Other => return Err("only images and texts can be read".into()),
    };
    if file.size > most {
        return Err(format!("larger than {}", size(most)));
    }
    if matches!(kind, Kind::Image(_)) {
        *images += 1;
        if *images > IMAGES {
            return Err(format!("more than {IMAGES} images"));
        }
    }
    Ok(kind)
}

async fn take(bridge: &Bridge, agent: &Facts, file: &File, kind: Kind) -> Taken {
    let most = if matches!(kind, Kind::Text) { LARGEST_TEXT } else { LARGEST_IMAGE };
    let bytes = match bridge.inbound.fetch.bytes(&file.url, most).await {
        Ok(bytes) => bytes,
        Err(why) => {
            tracing::info!(file = %file.name, why, "an attachment was not fetched");
            return Taken::Left(why);
        }
    };
    let Kind::Image(kind) = kind else { return text(bytes) };
    let image = Attachment {
        name: file.name.clone(),
        media_type: Some(kind.to_owned()),
        size: Some(bytes.len() as u64),
        path: None,
        url: None,
        data: Some(STANDARD.encode(bytes)),
    };
    match unfit(&bridge.ops, agent, &image) {
        Some(why) => Taken::Left(why),
        None => Taken::Image(Box::new(image)),
    }
}

fn text(bytes: Vec<u8>) -> Taken {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Taken::Text(text.trim_start_matches('\u{feff}').to_owned()),
        _ => Taken::Left("it is no text in UTF-8".into()),
    }
}

/// Puts it together within `room` bytes.
fn joined(text: &str, files: Vec<(&File, Taken)>, room: usize) -> (String, Vec<Attachment>) {
    // As it is kept: escapes and all.
    let length = |text: &str| serde_json::to_string(text).map_or(text.len(), |json| json.len());
    let mut room = room.saturating_sub(length(text));
    let (mut text, mut images) = (text.to_owned(), Vec::new());
    for (file, taken) in files {
        let File { name, size: bytes, .. } = file;
        let said = format!("[attachment {name}, {}", size(*bytes));
        let needs = match &taken {
            Taken::Image(image) => image.data.as_ref().map_or(0, String::len),
            Taken::Text(text) => length(text),
            Taken::Left(_) => 0,
        };
        let part = match taken {
            Taken::Left(why) => format!("{said}: {why}]"),
            _ if needs > room => format!("{said}: the message has no room for it]"),
            Taken::Image(image) => {
                room -= needs;
                images.push(*image);
                continue;
            }
            Taken::Text(content) => {
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

    fn file(name: &str, kind: Option<&str>, size: u64) -> File {
        File { name: name.into(), size, kind: kind.map(str::to_owned), url: String::new(), answered: false }
    }

    #[test]
    fn a_file_is_what_its_type_says_or_its_name() {
        for (name, kind, due) in [
            ("a.png", Some("image/png"), Kind::Image("image/png")),
            ("a", Some("image/JPEG"), Kind::Image("image/jpeg")),
            ("a.webp", None, Kind::Image("image/webp")),
            ("a.gif", Some("application/octet-stream"), Kind::Image("image/gif")),
            ("a.bmp", Some("image/bmp"), Kind::Other),
            ("a.svg", Some("image/svg+xml"), Kind::Text),
            ("a", Some("text/plain; charset=utf-8"), Kind::Text),
            ("a.py", Some("text/x-python"), Kind::Text),
            ("Main.RS", None, Kind::Text),
            ("a.ts", Some("video/mp2t"), Kind::Other),
            ("a.toml", Some("application/x-what"), Kind::Text),
            ("a.zip", Some("application/zip"), Kind::Other),
            ("a.pdf", Some("application/pdf"), Kind::Other),
            ("png", None, Kind::Other),
        ] {
            assert_eq!(Kind::of(&file(name, kind, 1)), due, "{name} {kind:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_left_out_before_it_is_fetched() {
        let mut images = 0;
        let mut wanted = |name: &str, size| wanted(&file(name, None, size), &mut images);
        assert_eq!(wanted("a.txt", LARGEST_TEXT), Ok(Kind::Text));
        assert_eq!(wanted("a.txt", LARGEST_TEXT + 1), Err("larger than 256.0 KiB".into()));
        assert_eq!(wanted("a.png", LARGEST_IMAGE + 1), Err("larger than 5.0 MiB".into()));
        assert_eq!(wanted("a.mp3", 1), Err("only images and texts can be read".into()));
        for _ in 0..10 {
            assert_eq!(wanted("a.png", LARGEST_IMAGE), Ok(Kind::Image("image/png")));
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
                (&notes, text(b"\xef\xbb\xbfa\n\"b\"\n".to_vec())),
                (&photo, Taken::Image(Box::new(image.clone()))),
                (&song, Taken::Left("only images and texts can be read".into())),
            ]
        };
        let (text, images) = joined("Look!", files(), 10_000);
        assert_eq!(
            text,
            "Look!\n\n[attachment notes.txt, 6 bytes]\na\n\"b\"\n[end of notes.txt]\n\n\
             [attachment song.mp3, 2.0 KiB: only images and texts can be read]"
        );
        assert_eq!(images, std::slice::from_ref(&image));
        let (text, images) = joined("", files(), 100);
        assert!(text.starts_with("[attachment notes.txt, 6 bytes]\na"), "{text}");
        assert!(text.contains("[attachment photo.png, 100 bytes: the message has no room for it]"), "{text}");
        assert!(images.is_empty());
    }

    #[test]
    fn a_text_is_utf_8() {
        for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
            assert_eq!(text(bytes.to_vec()), Taken::Left("it is no text in UTF-8".into()));
        }
    }
}
