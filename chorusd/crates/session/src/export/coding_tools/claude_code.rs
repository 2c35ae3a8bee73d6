//! Writes a transcript of Claude Code: lines of JSON, each of which names the one before it as its parent.

use std::io::{self, Write};

use chorus_proto::methods::export::ExportTarget;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use super::entries::{CLAUDE_SUMMARY_START, Entry, ToolProgress};
use super::texts::Image;
use super::{EntryGroup, ToolFile, time_text, write_line};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    parent_uuid: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_parent_uuid: Option<Uuid>,
    is_sidechain: bool,
    user_type: &'static str,
    cwd: &'a str,
    session_id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: Body<'a>,
    uuid: Uuid,
    timestamp: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Message {
        message: ApiMessage<'a>,
    },
    /// Text that the program wrote in the user's name.
    #[serde(rename_all = "camelCase")]
    ProgramMessage {
        message: ApiMessage<'a>,
        is_meta: bool,
    },
    #[serde(rename_all = "camelCase")]
    Summary {
        message: ApiMessage<'a>,
        is_compact_summary: bool,
        is_visible_in_transcript_only: bool,
    },
    #[serde(rename_all = "camelCase")]
    Boundary {
        subtype: &'static str,
        content: &'static str,
        is_meta: bool,
        level: &'static str,
        compact_metadata: serde_json::Value,
    },
}

#[derive(Serialize)]
struct ApiMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// Writes the lines of a message.
pub(super) fn write_entries(
    out: &mut impl Write,
    file: ToolFile<'_>,
    progress: &mut ToolProgress,
    group: EntryGroup<'_>,
    entries: Vec<Entry>,
) -> io::Result<()> {
    let timestamp = time_text(group.at);
    let mut writer = LineWriter { out, file, progress, group, timestamp: &timestamp, written: 0 };
    let reply = format!("msg_{}", writer.line_id(0).simple());
    entries.iter().try_for_each(|entry| writer.write_entry(entry, &reply))
}

/// Writes the title.
pub(super) fn write_end(out: &mut impl Write, file: ToolFile<'_>) -> io::Result<()> {
    match file.title() {
        Some(title) => {
            write_line(out, &json!({"type": "custom-title", "customTitle": title, "sessionId": file.target.id}))
        }
        None => Ok(()),
    }
}

struct LineWriter<'a, W> {
    out: &'a mut W,
    file: ToolFile<'a>,
    progress: &'a mut ToolProgress,
    group: EntryGroup<'a>,
    timestamp: &'a str,
    /// Lines of this message so far.
    written: u64,
}

impl<W: Write> LineWriter<'_, W> {
    fn write_entry(&mut self, entry: &Entry, reply: &str) -> io::Result<()> {
        match entry {
            Entry::User { text, images, by_program } => {
                let message = user_message(text_and_images(text, images));
                let body = match by_program {
                    true => Body::ProgramMessage { message, is_meta: true },
                    false => Body::Message { message },
                };
                self.write(body, "user")
            }
            Entry::Assistant { text } => self.write_reply(Block::Text { text }, reply),
            Entry::Call { id, name, arguments } => {
                self.write_reply(Block::ToolUse { id, name, input: arguments }, reply)
            }
            Entry::Result { call, text, images, is_error } => {
                let content = text_and_images(text, images);
                let result = Block::ToolResult { tool_use_id: call, content, is_error: *is_error };
                self.write(Body::Message { message: user_message(Content::Blocks(vec![result])) }, "user")
            }
            Entry::Summary { text } => self.write_summary(text),
        }
    }

    fn write_reply(&mut self, block: Block<'_>, reply: &str) -> io::Result<()> {
        let model = self.file.header.model.as_deref();
        // The program would ask its provider for another provider's model.
        let model = model.map(|model| model.strip_prefix("anthropic/").unwrap_or(model));
        let message = ApiMessage {
            id: Some(reply),
            kind: Some("message"),
            role: "assistant",
            model: model.filter(|model| model.starts_with("claude")),
            content: Content::Blocks(vec![block]),
        };
        self.write(Body::Message { message }, "assistant")
    }

    /// Writes a boundary, from which on the program sends messages to the model, and the summary.
    fn write_summary(&mut self, text: &str) -> io::Result<()> {
        let boundary = Body::Boundary {
            subtype: "compact_boundary",
            content: "Conversation compacted",
            is_meta: false,
            level: "info",
            compact_metadata: json!({"trigger": "manual", "preTokens": 0}),
        };
        self.write(boundary, "system")?;
        let start = match text.trim_start().starts_with(CLAUDE_SUMMARY_START) {
            true => String::new(),
            false => format!("{CLAUDE_SUMMARY_START} The summary of it:\n\n"),
        };
        let text = start + text;
        let message = user_message(Content::Text(&text));
        self.write(Body::Summary { message, is_compact_summary: true, is_visible_in_transcript_only: true }, "user")
    }

    fn write(&mut self, body: Body<'_>, kind: &'static str) -> io::Result<()> {
        let ExportTarget { id, directory, .. } = self.file.target;
        let uuid = self.line_id(self.written);
        let before = self.progress.last_line.replace(uuid);
        let starts_anew = kind == "system";
        let line = Line {
            parent_uuid: before.filter(|_| !starts_anew),
            logical_parent_uuid: before.filter(|_| starts_anew),
            is_sidechain: false,
            user_type: "external",
            cwd: directory,
            session_id: id,
            kind,
            body,
            uuid,
            timestamp: self.timestamp,
        };
        self.written += 1;
        write_line(self.out, &line)
    }

    /// Returns the id of the message's line with this index: the first one has the id of the message, if that can be one.
    fn line_id(&self, index: u64) -> Uuid {
        let EntryGroup { number, id, .. } = self.group;
        let own = Uuid::try_parse(id).ok().filter(|_| index == 0 && id.len() == 36 && self.progress.is_unique(id));
        own.unwrap_or_else(|| {
            let hash = Sha256::digest(format!("{}/{number}/{index}", self.file.target.id));
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&hash[..16]);
            Builder::from_random_bytes(bytes).into_uuid()
        })
    }
}

fn user_message(content: Content<'_>) -> ApiMessage<'_> {
    ApiMessage { id: None, kind: None, role: "user", model: None, content }
}

fn text_and_images<'a>(text: &'a str, images: &'a [Image]) -> Content<'a> {
    if images.is_empty() {
        return Content::Text(text);
    }
    let said = (!text.trim().is_empty()).then_some(Block::Text { text });
    let images = images
        .iter()
        .map(|Image { media_type, data }| Block::Image { source: ImageSource { kind: "base64", media_type, data } });
    Content::Blocks(said.into_iter().chain(images).collect())
}
