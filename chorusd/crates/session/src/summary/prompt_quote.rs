//! Quotes messages for a prompt.

use std::fmt::Write as _;

use chorus_proto::{Message, Role, SourceKind};

use super::sample::split_at_char;

/// Length of the longest name of a tool, or of a member of a channel, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Marks the place where text was left out.
const OMISSION_MARK: &str = "[...]";

/// Quotes a message, with its number if given, in about `most` bytes and at most twice as many. Returns an empty text
/// for messages that Chorus generated.
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
    // The quotation marks make short lines longer, and there may be any number of tool calls.
    if text.len() > most * 2 {
        text.truncate(split_at_char(&text, most * 2).0.len());
        text.push('\n');
    }
    text
}

/// Quotes a text by `who`, with a mark before each line, so that none of its text is at the start of a line.
pub(super) fn quote_text(out: &mut String, who: &str, text: &str, most: usize) {
    if text.trim().is_empty() {
        return;
    }
    // Writing to a String cannot fail.
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

/// Returns a name on one line, without the brackets that mark the speaker.
pub(super) fn sanitize_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && !matches!(c, '[' | ']')).take(MAX_NAME_CHARS).collect()
}
