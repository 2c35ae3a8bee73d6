//! Writes a conversation of Gemini CLI: a header and the messages, each a line of JSON. A reply holds its calls together
//! with their results.

use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::entries::{Entry, ToolProgress};
use super::texts::Image;
use super::{EntryGroup, ToolFile, time_text, write_line};

/// The answer that the program itself puts behind a summary.
const SUMMARY_ANSWER: &str = "Got it. Thanks for the additional context!";

/// Writes the header. Without a title the program lists the first message.
pub(super) fn write_start(out: &mut impl Write, file: ToolFile<'_>) -> io::Result<()> {
    let hash = Sha256::digest(&file.target.directory);
    let mut header = json!({
        "sessionId": file.target.id,
        "projectHash": hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "startTime": time_text(file.began_at),
        "lastUpdated": time_text(file.target.written_at.unwrap_or(file.header.saved_at)),
        "kind": "main",
    });
    if let Some(title) = file.title() {
        header["summary"] = title.into();
    }
    write_line(out, &header)
}

/// Writes the lines of a message. The results of calls come with the reply.
pub(super) fn write_entries(
    out: &mut impl Write,
    progress: &ToolProgress,
    group: EntryGroup<'_>,
    entries: Vec<Entry>,
) -> io::Result<()> {
    let timestamp = time_text(group.at);
    let mut count = 0;
    let mut next_id = || {
        count += 1;
        match count {
            1 if !group.id.is_empty() && progress.is_unique(group.id) => group.id.to_owned(),
            _ => format!("{}-{count}", group.number),
        }
    };
    let (mut reply, mut calls) = (None, Vec::new());
    for entry in entries {
        match entry {
            Entry::User { text, images, .. } => {
                let content = content_parts(&text, &images);
                write_line(out, &json!({"id": next_id(), "timestamp": timestamp, "type": "user", "content": content}))?;
            }
            Entry::Assistant { text } => reply = Some(text),
            Entry::Call { id, name, arguments } => {
                let arguments: Value = serde_json::from_str(arguments.get())?;
                calls.push(json!({"id": id, "name": name, "args": arguments, "timestamp": timestamp}));
            }
            Entry::Result { call, text, is_error, .. } => {
                let Some(of) = calls.iter_mut().find(|of| of["id"] == call) else { continue };
                let (status, field) = if is_error { ("error", "error") } else { ("success", "output") };
                let response = json!({"id": call, "name": of["name"], "response": {field: text}});
                of["status"] = status.into();
                of["result"] = json!([{"functionResponse": response}]);
            }
            Entry::Summary { text } => {
                let text = format!("<state_snapshot>\n{text}\n</state_snapshot>");
                let messages = json!([
                    {"id": next_id(), "timestamp": timestamp, "type": "user", "content": [{"text": text}]},
                    {"id": next_id(), "timestamp": timestamp, "type": "gemini", "content": SUMMARY_ANSWER},
                ]);
                write_line(out, &json!({"$set": {"messages": messages}}))?;
            }
        }
    }
    if reply.is_none() && calls.is_empty() {
        return Ok(());
    }
    let content = reply.unwrap_or_default();
    let mut line = json!({"id": next_id(), "timestamp": timestamp, "type": "gemini", "content": content});
    if !calls.is_empty() {
        line["toolCalls"] = calls.into();
    }
    write_line(out, &line)
}

fn content_parts(text: &str, images: &[Image]) -> Value {
    let said = (!text.trim().is_empty()).then(|| json!({"text": text}));
    let images =
        images.iter().map(|Image { media_type, data }| json!({"inlineData": {"data": data, "mimeType": media_type}}));
    said.into_iter().chain(images).collect()
}
