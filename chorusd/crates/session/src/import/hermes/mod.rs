//! Imports sessions of Hermes, as `hermes sessions export` writes them: JSON objects with the columns of its database, one
//! for each session.

mod message;
mod totals;

use std::io::BufRead;

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::json_values::parse_timestamp;
use super::line_reader::LINE_TOO_LONG;
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use crate::file::derived_id;
use message::MessageReader;
use totals::SessionTotals;

const PROGRAM: &str = "hermes";

/// Returns whether an object is a session.
pub(super) fn is_session(fields: &RawObject<'_>) -> bool {
    ["id", "source", "started_at", "messages"].iter().all(|key| fields.has(key))
}

/// Imports all sessions.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut scanner = Scanner::new(source);
    while scanner.peek()?.is_some() {
        let mut about = ImportedMetadata::default();
        let mut messages = MessageReader::default();
        let (mut is_subagent, mut parent) = (false, None);
        let mut totals = SessionTotals::default();
        writer.reports_calls = true;
        let mut value = Vec::new();
        let walked = scanner.for_each_field(|scanner, key| match key {
            "messages" if scanner.peek()? == Some(b'[') => scanner.for_each_entry(|entry| {
                writer.sink.report_progress(entry.position);
                let number = entry.number;
                let parsed = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
                let conversation = about.conversation.as_deref().unwrap_or_default();
                match parsed.and_then(|fields| messages.parse(&fields, conversation)) {
                    Ok(Some(message)) => message.write(writer),
                    Ok(None) => Ok(()),
                    Err(reason) => {
                        writer.skip(number, reason);
                        Ok(())
                    }
                }
            }),
            key => {
                if !scanner.read_value(Some(&mut value))? {
                    return Ok(());
                }
                let value = std::str::from_utf8(&value).unwrap_or_default();
                let text = || serde_json::from_str::<String>(value).ok().filter(|text| !text.trim().is_empty());
                match key {
                    "id" => about.conversation = text(),
                    "source" => is_subagent = text().is_some_and(|source| source == "subagent"),
                    "parent_session_id" => parent = text(),
                    "model" => about.model = text(),
                    "cwd" => about.project = text(),
                    "git_branch" => about.branch = text(),
                    "title" => about.description = text(),
                    "started_at" => about.started_at = serde_json::from_str(value).ok().and_then(parse_timestamp),
                    key => totals.set(key, value),
                }
                Ok(())
            }
        });
        writer.report_calls(&mut totals.into_call(&about, writer.now).into_iter().collect());
        let id = |id: &str| derived_id(&format!("{PROGRAM}/{id}"));
        about.id = about.conversation.as_deref().map(id);
        about.parent_id = parent.as_deref().map(id);
        if let (true, Some(parent), Some(own)) = (is_subagent, parent, about.conversation.take_if(|_| is_subagent)) {
            about.conversation = Some(format!("{parent}/{own}"));
            about.side_chain = true;
            about.tags = vec!["side-chain".into()];
        }
        writer.end_session(about)?;
        if let Err(error) = walked {
            let (line, reason) = error.into_line_and_reason()?;
            if writer.message_count() == 0 {
                return Err(ImportError::Malformed { line, reason });
            }
            writer.skip(line, reason);
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
