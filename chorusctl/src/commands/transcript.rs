//! Prints the messages of a conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use chorus_proto::{Message, Role, tool_gist};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::ui::{Stdout, Style, sanitize, text, units};

/// Messages per request, so that the first lines of a long conversation appear at once.
pub const PAGE_SIZE: u64 = 500;

const INDENT: usize = 4;
/// Longer lines are hard to read on a wide terminal.
const MAX_WIDTH: usize = 100;
/// Lines of a tool result, and of a call's parameters, that are printed on a terminal.
const MAX_RESULT_LINES: usize = 12;
const MAX_CALL_LINES: usize = 3;

/// Prints messages one after the other, with numbers and dates.
#[derive(Debug)]
pub struct TranscriptPrinter {
    number: u64,
    date: String,
    /// True if long tool calls and results are printed in full on a terminal, too.
    in_full: bool,
    /// Number of the message whose number is marked.
    marked: Option<u64>,
    /// Tool names by call id of the last calls, for results without a name.
    tool_names: HashMap<String, String>,
}

impl TranscriptPrinter {
    /// Creates a printer whose first message has the number `before` + 1.
    #[must_use]
    pub fn new(before: u64) -> Self {
        Self { number: before, date: String::new(), in_full: false, marked: None, tool_names: HashMap::new() }
    }

    /// Prints long tool calls and results in full on a terminal, too.
    #[must_use]
    pub fn in_full(self) -> Self {
        Self { in_full: true, ..self }
    }

    /// Marks the message `number`.
    #[must_use]
    pub fn marking(self, number: u64) -> Self {
        Self { marked: Some(number), ..self }
    }

    /// Prints one message.
    pub fn print_message(&mut self, out: &mut Stdout, message: &Message) -> Result<(), Error> {
        self.number += 1;
        let date = out.clock().local_date(message.timestamp);
        if date != self.date {
            writeln!(out, "\n{}", out.style(Style::Faint, &format!("── {date} ──")))?;
            self.date = date;
        }
        self.print_heading(out, message)?;
        if message.role == Role::ToolResult {
            let most = (!self.in_full).then_some(MAX_RESULT_LINES);
            self.print_result(out, &message.content, most)?;
        } else if message.role == Role::Assistant && out.width().is_some() {
            print_markdown(out, &message.content)?;
        } else {
            print_body(out, &message.content, "")?;
        }
        for attachment in &message.attachments {
            let size = attachment.size.map(|size| format!(" ({})", units::format_bytes(size))).unwrap_or_default();
            print_body(out, &format!("+ {}{size}", attachment.name), "")?;
        }
        if !message.tool_calls.is_empty() {
            self.tool_names.clear();
        }
        for call in &message.tool_calls {
            self.tool_names.insert(call.id.clone(), call.name.clone());
            if out.width().is_some() && !self.in_full {
                let gist = Some(tool_gist::gist(call)).filter(|gist| !gist.is_empty());
                let gist = gist.map(|gist| format!("  {}", sanitize::one_line(&gist))).unwrap_or_default();
                let name = sanitize::one_line(tool_gist::display_name(&call.name));
                print_styled_body(out, &format!("→ {name}{gist}"), Style::Tool, MAX_CALL_LINES)?;
                continue;
            }
            let params = sanitize::one_line(&unescape_unicode(call.params.get()));
            let params = if params == "{}" { String::new() } else { format!(" {params}") };
            let name = sanitize::one_line(&call.name);
            print_styled_body(out, &format!("→ {name}{params}"), Style::Tool, usize::MAX)?;
        }
        Ok(())
    }

    /// Prints a tool result; on a terminal at most `most` lines, and then the option that shows the others.
    fn print_result(&self, out: &mut Stdout, content: &str, most: Option<usize>) -> Result<(), Error> {
        let hint = format!("--at {}", self.number);
        print_folded(out, content, "│ ", most.map(|most| (most, hint.as_str())))
    }

    fn print_heading(&mut self, out: &mut Stdout, message: &Message) -> Result<(), Error> {
        let (style, mut who) = match message.role {
            Role::User => (Style::User, "user".to_owned()),
            Role::Assistant => (Style::Assistant, "assistant".to_owned()),
            Role::System => (Style::Strong, "system".to_owned()),
            Role::ToolResult => {
                let called = message.tool_call_id.as_ref().and_then(|id| self.tool_names.get(id));
                let name = message.name.as_ref().or(called).map(|name| format!(" of {}", sanitize::one_line(name)));
                (Style::Tool, format!("result{}", name.unwrap_or_default()))
            }
        };
        let author = message.author.as_ref().map(|author| &*author.name);
        if let Some(name) = author.or_else(|| message.imported_from()) {
            who = format!("{who} ({})", sanitize::one_line(name));
        }
        let mut more = out.clock().local_time(message.timestamp);
        if message.generated {
            more.push_str(" · written by Chorus");
        }
        if message.interrupted {
            more.push_str(" · cut off");
        }
        let failed = if message.is_error { format!(" {}", out.style(Style::Bad, "failed")) } else { String::new() };
        let (number_style, number) = match self.marked {
            Some(marked) if marked == self.number => (Style::Strong, format!("▸{}", self.number)),
            _ => (Style::Faint, self.number.to_string()),
        };
        let line = format!(
            "\n{} {}{failed} {}",
            out.style(number_style, &format!("{number:>3}")),
            out.style(style, &who),
            out.style(Style::Faint, &format!("· {more}")),
        );
        writeln!(out, "{line}")
    }
}

/// Replaces the `\uXXXX` of a JSON text by the characters that they stand for, except those that JSON has to escape. The text is
/// unchanged if it is not valid.
fn unescape_unicode(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return json.into();
    }
    let value = serde_json::from_str::<Box<RawValue>>(json).ok();
    let mut shown = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\').filter(|_| value.is_some()) {
        let (before, escape) = rest.split_at(at);
        shown.push_str(before);
        let length = match escape.as_bytes() {
            // The two halves of a character outside the basic plane.
            [_, b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, b'\\', b'u', ..] => 12,
            [_, b'u', ..] => 6,
            _ => 2,
        };
        let Some(escape) = escape.get(..length) else { break };
        let decoded = serde_json::from_str::<String>(&format!("\"{escape}\"")).ok();
        let plain = decoded.filter(|text| length > 2 && !text.contains(|c: char| c.is_control() || "\"\\".contains(c)));
        shown.push_str(plain.as_deref().unwrap_or(escape));
        rest = &rest[at + length..];
    }
    shown.push_str(rest);
    shown.into()
}

/// Prints Markdown rendered for the terminal, indented.
fn print_markdown(out: &mut Stdout, content: &str) -> Result<(), Error> {
    let width = out.width().map_or(MAX_WIDTH, text_width);
    let rendered = out.markdown(&sanitize::multi_line(content.trim_end()), width);
    rendered.lines().try_for_each(|line| match line {
        "" => writeln!(out),
        line => writeln!(out, "{:INDENT$}{line}", ""),
    })
}

/// Prints an indented text.
pub fn print_body(out: &mut Stdout, content: &str, mark: &str) -> Result<(), Error> {
    print_folded(out, content, mark, None)
}

/// Prints an indented text; on a terminal at most a number of lines, if given with what shows the others.
fn print_folded(out: &mut Stdout, content: &str, mark: &str, fold: Option<(usize, &str)>) -> Result<(), Error> {
    let content = sanitize::multi_line(content.trim_end());
    if content.is_empty() {
        return Ok(());
    }
    let Some(width) = out.width() else {
        return content.lines().try_for_each(|line| {
            let line = format!("{:INDENT$}{mark}{line}", "");
            writeln!(out, "{}", line.trim_end())
        });
    };
    let lines = text::wrap(&content, text_width(width).saturating_sub(mark.chars().count()));
    let fold = fold.filter(|(most, _)| lines.len() > most + 1);
    for line in &lines[..fold.map_or(lines.len(), |(most, _)| most)] {
        let line = format!("{:INDENT$}{mark}{line}", "");
        writeln!(out, "{}", line.trim_end())?;
    }
    if let Some((most, hint)) = fold {
        let rest = format!("… {} more lines (show with {hint})", lines.len() - most);
        writeln!(out, "{:INDENT$}{mark}{}", "", out.style(Style::Faint, &rest))?;
    }
    Ok(())
}

fn print_styled_body(out: &mut Stdout, content: &str, style: Style, most: usize) -> Result<(), Error> {
    let Some(width) = out.width() else { return writeln!(out, "{:INDENT$}{content}", "") };
    let room = text_width(width);
    let mut lines = text::wrap(content, room);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = text::truncate(&format!("{last}…"), room).into_owned().into();
        }
    }
    for line in lines {
        writeln!(out, "{:INDENT$}{}", "", out.style(style, &line))?;
    }
    Ok(())
}

fn text_width(width: usize) -> usize {
    width.min(MAX_WIDTH).saturating_sub(INDENT).max(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>, messages: &[serde_json::Value]) -> Result<String, Error> {
        let mut out = Stdout::captured(width);
        let mut transcript = TranscriptPrinter::new(6);
        for message in messages {
            let message = serde_json::from_value(message.clone()).map_err(|error| Error::failed(error.to_string()))?;
            transcript.print_message(&mut out, &message)?;
        }
        Ok(out.captured_text().to_owned())
    }

    fn conversation() -> [serde_json::Value; 2] {
        let lines: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
        [
            serde_json::json!({"id": "a", "role": "assistant", "content": "Let me look.\u{1b}[2J", "timestamp": "2026-11-21T09:00:00Z",
                "tool_calls": [{"id": "c", "name": "Bash", "params": {"command": "ls"}}]}),
            serde_json::json!({"id": "b", "role": "tool_result", "content": lines.join("\n"), "tool_call_id": "c",
                "is_error": true, "timestamp": "2026-11-22T10:00:00Z"}),
        ]
    }

    #[test]
    fn a_terminal_is_shown_the_beginning_of_long_results() -> Result<(), Error> {
        let text = shown(Some(40), &conversation())?;
        let beginning = "\n── 2026-11-21 ──\n\n  7 assistant · 09:00\n    Let me look.␛[2J\n    → Bash  ls\n\
                         \n── 2026-11-22 ──\n\n  8 result of Bash failed · 10:00\n    │ line 1\n";
        assert!(text.starts_with(beginning), "{text}");
        assert!(text.contains("│ line 12\n    │ … 8 more lines") && !text.contains("line 13"), "{text}");
        Ok(())
    }

    #[test]
    fn escaped_characters_of_a_call_are_shown() {
        for (json, shown) in [
            (r#"{"q":"caf\u00e9 \u6570\u636e \ud83d\ude00"}"#, r#"{"q":"café 数据 😀"}"#),
            (r#"{"q":"\u001b[2J \u0022 \\u00e9 \n \u005c"}"#, r#"{"q":"\u001b[2J \u0022 \\u00e9 \n \u005c"}"#),
            (r#"{"q":"\ud83d"}"#, r#"{"q":"\ud83d"}"#),
            (r#"{"q":"\ud83d\u0041"}"#, r#"{"q":"\ud83d\u0041"}"#),
            (r#"{"q":"é"}"#, r#"{"q":"é"}"#),
        ] {
            assert_eq!(unescape_unicode(json), shown);
        }
    }

    #[test]
    fn a_pipe_is_shown_everything() -> Result<(), Error> {
        let text = shown(None, &conversation())?;
        assert!(text.ends_with("    │ line 19\n    │ line 20\n"), "{text}");
        Ok(())
    }
}
