//! What was said, as quoted text for a model that is asked about it.

use std::fmt::Write as _;

use chorus_proto::{Message, Role, SourceKind};

use super::sample::split_at_char;

/// The longest name of a tool, or of somebody in a channel, that is passed on.
const MAX_NAME_CHARS: usize = 64;

/// What stands where something was left out.
const OMISSION_MARK: &str = "[...]";

/// One message with its number, where it has one, in about `most` bytes, at the most twice as many; empty for what Chorus wrote itself.
pub(super) fn quote_message(message: &Message, number: Option<usize>, most: usize) -> String {
    let mut text = String::new();
    if message.generated {
        return text;
    }
    let name = || sanitize_name(message.name.as_deref().unwrap_or("a tool"));
    let who = match message.role {
        Role::ToolResult => format!("result of {}", name()),
        Role::User if message.source.as_ref().is_some_and(|source| source.kind == SourceKind::Discord) => message
            .author
            .as_ref()
            .map_or_else(|| "user".to_owned(), |author| format!("user {}", sanitize_name(&author.name))),
        role => role.as_str().to_owned(),
    };
    let number = number.map(|number| format!("{number} ")).unwrap_or_default();
    quote_text(&mut text, &format!("{number}{who}"), &message.content, most);
    for call in &message.tool_calls {
        quote_text(
            &mut text,
            &format!("{number}assistant calls {}", sanitize_name(&call.name)),
            call.params.get(),
            most / 4,
        );
    }
    // Short lines grow by their marks, and there may be any number of calls.
    if text.len() > most * 2 {
        text.truncate(split_at_char(&text, most * 2).0.len());
        text.push('\n');
    }
    text
}

/// A text that `who` said, each line behind a mark: none of it stands at the beginning of a line.
pub(super) fn quote_text(out: &mut String, who: &str, text: &str, most: usize) {
    if text.trim().is_empty() {
        return;
    }
    // Writing to a text cannot fail.
    let _ = writeln!(out, "[{who}]");
    let mut lines = |text: &str| {
        for line in text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).filter(|line| !line.trim().is_empty()) {
            let _ = writeln!(out, "> {}", line.replace(|c: char| c.is_control() && c != '\t', " "));
        }
    };
    if text.len() <= most {
        return lines(text);
    }
    let (start, rest) = split_at_char(text, most * 2 / 3);
    let (_, end) = split_at_char(rest, rest.len().saturating_sub(most / 3));
    lines(start);
    lines(OMISSION_MARK);
    lines(end);
}

/// A name, in one line and without what marks who speaks.
pub(super) fn sanitize_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && !matches!(c, '[' | ']')).take(MAX_NAME_CHARS).collect()
}
