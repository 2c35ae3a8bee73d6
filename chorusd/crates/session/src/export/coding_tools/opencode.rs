//! Writes a conversation of opencode, as `opencode import` takes it: one JSON document, in which a reply holds its calls
//! together with their results.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::entries::{Entry, ToolProgress};
use super::texts::Image;
use super::{EntryGroup, ToolFile};

/// The release whose format this is.
const FORMAT_VERSION: &str = "1.18.33";

/// The model that is named if none is known. The program requires one, and asks it unless it is given another.
const DEFAULT_MODEL: (&str, &str) = ("anthropic", "claude-sonnet-4-5");

const BASE_62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Writes everything before the messages.
pub(super) fn write_start(out: &mut impl Write, file: ToolFile<'_>) -> io::Result<()> {
    let info = json!({
        "id": file.target.id,
        "slug": "imported-conversation",
        "projectID": "global",
        "directory": file.target.directory,
        "title": file.title().unwrap_or_else(|| file.header.session_id.clone()),
        "version": FORMAT_VERSION,
        "time": {"created": file.began_at.as_millisecond(), "updated": file.header.saved_at.as_millisecond()},
    });
    write!(out, "{{\"info\":{info},\"messages\":[")
}

/// Writes everything after the messages.
pub(super) fn write_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\n]}\n")
}

/// Writes what a message says. The results of calls come with the reply.
pub(super) fn write_entries(
    out: &mut impl Write,
    file: ToolFile<'_>,
    progress: &mut ToolProgress,
    group: EntryGroup<'_>,
    entries: Vec<Entry>,
) -> io::Result<()> {
    let mut writer = MessageWriter { out, file, progress, at: group.at };
    let mut reply = Vec::new();
    for entry in entries {
        match entry {
            Entry::User { text, images, by_program } => writer.write_user(&text, &images, by_program)?,
            Entry::Assistant { text } => reply.push(json!({"type": "text", "text": text})),
            Entry::Call { id, name, arguments } => {
                let input: Value = serde_json::from_str(arguments.get())?;
                reply.push(json!({"type": "tool", "tool": name, "callID": id, "state": {"input": input}}));
            }
            Entry::Result { call, text, is_error, .. } => {
                let at = group.at.as_millisecond();
                let Some(part) = reply.iter_mut().find(|part| part["callID"] == call) else { continue };
                let state = &mut part["state"];
                state["time"] = json!({"start": at, "end": at});
                if is_error {
                    state["status"] = "error".into();
                    state["error"] = text.into();
                } else {
                    state["status"] = "completed".into();
                    state["output"] = text.into();
                    state["title"] = "".into();
                    state["metadata"] = json!({});
                }
            }
            Entry::Summary { text } => writer.write_summary(&text)?,
        }
    }
    if reply.is_empty() { Ok(()) } else { writer.write_reply(reply, false) }
}

struct MessageWriter<'a, W> {
    out: &'a mut W,
    file: ToolFile<'a>,
    progress: &'a mut ToolProgress,
    at: Timestamp,
}

impl<W: Write> MessageWriter<'_, W> {
    fn write_user(&mut self, text: &str, images: &[Image], by_program: bool) -> io::Result<()> {
        let mut parts = Vec::new();
        if !text.trim().is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        if by_program {
            parts.iter_mut().for_each(|part| part["synthetic"] = true.into());
        }
        parts.extend(images.iter().map(|Image { media_type, data }| {
            let url = format!("data:{media_type};base64,{data}");
            json!({"type": "file", "mime": media_type, "filename": "image", "url": url})
        }));
        self.write_question(parts)
    }

    fn write_question(&mut self, parts: Vec<Value>) -> io::Result<()> {
        let id = self.next_id("msg");
        self.progress.last_question = Some(id.clone());
        let (provider, model) = self.model();
        let info = json!({
            "role": "user",
            "time": {"created": self.at.as_millisecond()},
            "agent": "build",
            "model": {"providerID": provider, "modelID": model},
        });
        self.write(&id, info, parts)
    }

    /// Writes a compaction: the program sends the summary and what follows it.
    fn write_summary(&mut self, text: &str) -> io::Result<()> {
        self.write_question(vec![json!({"type": "compaction", "auto": false})])?;
        self.write_reply(vec![json!({"type": "text", "text": text})], true)
    }

    fn write_reply(&mut self, parts: Vec<Value>, is_summary: bool) -> io::Result<()> {
        let id = self.next_id("msg");
        let (provider, model) = self.model();
        let at = self.at.as_millisecond();
        let has_calls = parts.iter().any(|part| part["type"] == "tool");
        let mode = if is_summary { "compaction" } else { "build" };
        let directory = &self.file.target.directory;
        let mut info = json!({
            "role": "assistant",
            "parentID": self.progress.last_question,
            "mode": mode,
            "agent": mode,
            "path": {"cwd": directory, "root": directory},
            "cost": 0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "providerID": provider,
            "modelID": model,
            "time": {"created": at, "completed": at},
            "finish": if has_calls { "tool-calls" } else { "stop" },
        });
        if is_summary {
            info["summary"] = true.into();
        }
        self.write(&id, info, parts)
    }

    fn write(&mut self, id: &str, mut info: Value, mut parts: Vec<Value>) -> io::Result<()> {
        let session = &self.file.target.id;
        info["id"] = id.into();
        info["sessionID"] = session.as_str().into();
        for part in &mut parts {
            part["id"] = self.next_id("prt").into();
            part["sessionID"] = session.as_str().into();
            part["messageID"] = id.into();
        }
        let comma = if self.progress.has_messages { "," } else { "" };
        self.progress.has_messages = true;
        write!(self.out, "{comma}\n{}", json!({"info": info, "parts": parts}))
    }

    /// Returns the provider and the name of the model.
    fn model(&self) -> (&str, &str) {
        let named = self.file.target.model.as_deref().or(self.file.header.model.as_deref());
        named.and_then(|model| model.split_once('/')).unwrap_or(DEFAULT_MODEL)
    }

    /// Returns the next id. They ascend, as older releases expect.
    fn next_id(&mut self, kind: &str) -> String {
        self.progress.last_number += 1;
        let time = self.file.header.saved_at.as_millisecond().wrapping_mul(0x1000);
        let number = time.wrapping_add_unsigned(self.progress.last_number) & 0xffff_ffff_ffff;
        let hash = Sha256::digest(format!("{}/{}", self.file.target.id, self.progress.last_number));
        let digits = hash.iter().take(14).map(|byte| char::from(BASE_62[usize::from(*byte) % BASE_62.len()]));
        format!("{kind}_{number:012x}{}", digits.collect::<String>())
    }
}
