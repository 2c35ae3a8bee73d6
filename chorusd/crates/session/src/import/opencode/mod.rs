//! Imports conversations of opencode, as `opencode export` writes them: a JSON object with the session and its messages,
//! each with its parts.

mod part;

use std::io::BufRead;

use chorus_proto::{Role, Usage};

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::json_values::{minify_value, parse_timestamp};
use super::line_reader::LINE_TOO_LONG;
use super::raw_object::{RawObject, list_entries};
use super::sink::ImportedMetadata;
use super::turn_entry::TurnEntry;
use super::writer::SessionWriter;
use crate::file::derived_id;

const PROGRAM: &str = "opencode";

/// Returns whether an object is the session of an export.
pub(super) fn is_session(info: &RawObject<'_>) -> bool {
    info.get_text("id").is_some_and(|id| id.starts_with("ses_")) && !info.has("role")
}

/// Imports one conversation.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ImportedMetadata::default();
    let mut value = Vec::new();
    let walked = Scanner::new(source).for_each_field(|scanner, key| match key {
        "messages" if scanner.peek()? == Some(b'[') => scanner.for_each_entry(|entry| {
            writer.sink.report_progress(entry.position);
            let number = entry.number;
            let parsed = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
            match parsed.and_then(|fields| parse_message(&fields, &mut about)) {
                Ok(Some(message)) => message.write(writer),
                Ok(None) => Ok(()),
                Err(reason) => {
                    writer.skip(number, reason);
                    Ok(())
                }
            }
        }),
        key => {
            if scanner.read_value(Some(&mut value))?
                && key == "info"
                && let Ok(info) = RawObject::from_bytes(&value)
            {
                read_session(&info, &mut about);
            }
            Ok(())
        }
    });
    if let Err(error) = walked {
        let (line, reason) = error.into_line_and_reason()?;
        if writer.message_count() == 0 {
            return Err(ImportError::Malformed { line, reason });
        }
        writer.skip(line, reason);
    }
    writer.end_session(about)?;
    Ok(())
}

fn read_session(info: &RawObject<'_>, about: &mut ImportedMetadata) {
    let id = |id: &str| derived_id(&format!("{PROGRAM}/{id}"));
    about.conversation = info.get_filled("id");
    about.id = about.conversation.as_deref().map(id);
    about.project = info.get_filled("directory");
    about.description = info.get_filled("title");
    about.started_at = time(info, "created");
    if let (Some(parent), Some(own)) = (info.get_filled("parentID"), &about.conversation) {
        about.parent_id = Some(id(&parent));
        about.conversation = Some(format!("{parent}/{own}"));
        about.side_chain = true;
        about.tags = vec!["side-chain".into()];
    }
}

fn time(info: &RawObject<'_>, name: &str) -> Option<jiff::Timestamp> {
    RawObject::from_value(info.get("time")?)?.get(name).and_then(parse_timestamp)
}

/// Parses a message. Returns `None` for one that says nothing.
fn parse_message(fields: &RawObject<'_>, about: &mut ImportedMetadata) -> Result<Option<TurnEntry>, String> {
    let info = fields.get("info").and_then(RawObject::from_value).ok_or("a message without `info`")?;
    let is_summary = info.is_true("summary");
    let role = match info.get_text("role").as_deref() {
        Some("user") => Role::User,
        // The summary of a compaction stands for everything before it.
        Some("assistant") if is_summary => Role::System,
        Some("assistant") => Role::Assistant,
        Some(other) => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        None => return Err("no role".into()),
    };
    let mut entry = TurnEntry::new(PROGRAM, role);
    entry.id = info.get_text("id").filter(|id| !id.is_empty()).map(String::from);
    entry.at = time(&info, "created");
    let parts = fields.get("parts").and_then(list_entries).ok_or("a message without `parts`")?;
    part::add_parts(&parts, &mut entry);
    if let Some(error) = info.get("error") {
        entry.extra.push(("error".into(), minify_value(error)));
    }
    if role != Role::User {
        entry.usage = Some(parse_usage(&info));
        let (provider, model) = (info.get_text("providerID"), info.get_text("modelID"));
        entry.model = provider.zip(model).map(|(provider, model)| format!("{provider}/{model}"));
        entry.cache_write = count_cached(&info, "write");
        if !is_summary {
            about.model = entry.model.clone().or(about.model.take());
        }
    }
    Ok(Some(entry))
}

/// Returns the tokens that were read from the cache, or written to it.
fn count_cached(info: &RawObject<'_>, name: &str) -> u64 {
    let tokens = info.get("tokens").and_then(RawObject::from_value);
    let cached = tokens.and_then(|tokens| RawObject::from_value(tokens.get("cache")?));
    cached.and_then(|cached| cached.get_u64(name)).unwrap_or(0)
}

/// Parses token counts. The input is without what was cached, and the output without reasoning.
fn parse_usage(info: &RawObject<'_>) -> Usage {
    let cost_usd = info.get_parsed("cost").filter(|cost| *cost > 0.0);
    let Some(tokens) = info.get("tokens").and_then(RawObject::from_value) else {
        return Usage { cost_usd, ..Usage::default() };
    };
    let count = |name: &str| tokens.get_u64(name).unwrap_or(0);
    let (read, written) = (count_cached(info, "read"), count_cached(info, "write"));
    let input = count("input").saturating_add(read).saturating_add(written);
    let output = count("output").saturating_add(count("reasoning"));
    if input == 0 && output == 0 {
        return Usage { cost_usd, ..Usage::default() };
    }
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cache_read_tokens: Some(read),
        cost_usd,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
