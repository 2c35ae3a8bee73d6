//! Writes a rollout of Codex: lines of JSON, in which each text is an item for the model and an event for the list of
//! conversations.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::entries::Entry;
use super::texts::Image;
use super::{EntryGroup, ToolFile, time_text, write_line};

/// The release whose format this is.
const FORMAT_VERSION: &str = "0.63.0";

#[derive(Serialize)]
struct Line<'a> {
    timestamp: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    payload: Value,
}

/// Writes the first line. It names no provider: the program refuses to continue with another one.
pub(super) fn write_start(out: &mut impl Write, file: ToolFile<'_>) -> io::Result<()> {
    let timestamp = &time_text(file.began_at);
    let payload = json!({
        "id": file.target.id,
        "timestamp": timestamp,
        "cwd": file.target.directory,
        "originator": "codex_cli_rs",
        "cli_version": FORMAT_VERSION,
        "source": "cli",
    });
    write_line(out, &Line { timestamp, kind: "session_meta", payload })
}

/// Writes the lines of a message.
pub(super) fn write_entries(out: &mut impl Write, group: EntryGroup<'_>, entries: Vec<Entry>) -> io::Result<()> {
    let timestamp = &time_text(group.at);
    let mut write = |kind, payload| write_line(out, &Line { timestamp, kind, payload });
    for entry in entries {
        match entry {
            Entry::User { text, images, .. } => {
                let content = content_parts(&text, &images);
                write("response_item", json!({"type": "message", "role": "user", "content": content}))?;
                write("event_msg", json!({"type": "user_message", "message": text}))?;
            }
            Entry::Assistant { text } => {
                let content = json!([{"type": "output_text", "text": text}]);
                write("response_item", json!({"type": "message", "role": "assistant", "content": content}))?;
                write("event_msg", json!({"type": "agent_message", "message": text}))?;
            }
            Entry::Call { id, name, arguments } => {
                // Arguments that are not JSON are a string in the session.
                let arguments = match serde_json::from_str::<String>(arguments.get()) {
                    Ok(text) => text,
                    Err(_) => arguments.get().to_owned(),
                };
                let call = json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id});
                write("response_item", call)?;
            }
            Entry::Result { call, text, images, .. } => {
                let output = if images.is_empty() { text.into() } else { content_parts(&text, &images) };
                write("response_item", json!({"type": "function_call_output", "call_id": call, "output": output}))?;
            }
            Entry::Summary { text } => write("compacted", json!({"message": text}))?,
        }
    }
    Ok(())
}

fn content_parts(text: &str, images: &[Image]) -> Value {
    let said = (!text.trim().is_empty()).then(|| json!({"type": "input_text", "text": text}));
    let images = images.iter().map(|Image { media_type, data }| {
        json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")})
    });
    said.into_iter().chain(images).collect()
}
