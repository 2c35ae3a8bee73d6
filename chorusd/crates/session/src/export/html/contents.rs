//! The table of contents: the messages of the user, each with a link.

use std::io::{self, Write};

use chorus_proto::{Role, SessionHeader, SourceKind};
use pulldown_cmark::{Event, Parser, TagEnd};

use super::text::{escape, truncate_line};
use crate::stored_message::StoredMessage;

/// A longer table is folded.
const MAX_UNFOLDED: u64 = 12;

/// Number of characters of a message that its entry shows.
const ENTRY_CHARS: usize = 120;

/// Number of characters of a message that are read for its entry.
const MAX_READ_CHARS: usize = 2000;

/// Returns whether the page has a table. One question needs none.
fn has_contents(header: &SessionHeader) -> bool {
    header.query_count > 1
}

/// Writes the part before the entries.
pub(super) fn write_start(out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
    if !has_contents(header) {
        return Ok(());
    }
    let open = if header.query_count <= MAX_UNFOLDED { " open" } else { "" };
    writeln!(out, "<nav class=\"contents\">\n<details{open}><summary><b>Contents</b></summary>\n<ol>")
}

/// Writes the entry of a message if it is the user's. `number` counts all messages from 1.
pub(in super::super) fn write_entry(
    out: &mut impl Write,
    header: &SessionHeader,
    number: u64,
    message: &StoredMessage,
) -> io::Result<()> {
    if message.role() != Role::User || !has_contents(header) {
        return Ok(());
    }
    let message = message.to_message()?;
    // Notices of another program in the user's name are no questions.
    if message.source.as_ref().is_some_and(|source| source.kind == SourceKind::Agent) {
        return Ok(());
    }
    let line = match entry_text(&message.content) {
        text if !text.is_empty() => text,
        _ => message.attachments.first().map_or_else(|| "(empty)".to_owned(), |file| file.name.clone()),
    };
    let line = escape(&truncate_line(&line, ENTRY_CHARS));
    writeln!(out, "<li value=\"{number}\"><a href=\"#m{number}\">{line}</a></li>")
}

/// Writes the part after the entries.
pub(super) fn write_end(out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
    if !has_contents(header) {
        return Ok(());
    }
    out.write_all(b"</ol>\n</details>\n</nav>\n")
}

/// Returns the text of the first paragraph, heading or item, without Markdown.
fn entry_text(content: &str) -> String {
    let end = content.char_indices().nth(MAX_READ_CHARS).map_or(content.len(), |(at, _)| at);
    let mut line = String::new();
    for event in Parser::new(&content[..end]) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => line.push_str(&text),
            Event::SoftBreak | Event::HardBreak => line.push(' '),
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::CodeBlock | TagEnd::HtmlBlock,
            ) if !line.trim().is_empty() => break,
            _ => {}
        }
    }
    if line.trim().is_empty() { content[..end].trim().to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::entry_text;

    #[test]
    fn an_entry_is_the_first_words() {
        for (content, text) in [
            ("## **Why** `x`?\n\nmore", "Why x?"),
            ("\n- *a*\n- b", "a"),
            ("one\ntwo", "one two"),
            ("---\n\n```rs\nfn a() {}\n```", "fn a() {}\n"),
            ("<b>x</b>", "<b>x</b>"),
            ("***", "***"),
            ("", ""),
        ] {
            assert_eq!(entry_text(content), text);
        }
    }
}
