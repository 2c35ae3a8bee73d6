//! Extracts the prose of messages: drops code, tables, tags and the output of tools, and converts Markdown to plain
//! text.

/// A paragraph, a list item or a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProseUnit {
    pub text: String,
    /// The unit is a line in capitals that opens a section, such as `INSTRUCTIONS:`.
    pub opens_section: bool,
}

/// Splits the prose of a text into units.
pub(super) fn split_prose(text: &str) -> Vec<ProseUnit> {
    let text = strip_elements(text);
    let mut units: Vec<ProseUnit> = Vec::new();
    let mut paragraph = String::new();
    let mut last = "";
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        let fence = line.matches("```").count() + line.matches("~~~").count();
        if fence > 0 || fenced {
            fenced ^= fence % 2 == 1;
            // Text may precede a fence on the same line.
            let before = line.split("```").next().unwrap_or_default();
            if fenced && fence > 0 && before != line && !before.is_empty() {
                paragraph.push_str(before);
            }
            flush_paragraph(&mut paragraph, &mut units);
            continue;
        }
        if line.is_empty() || is_noise(line) {
            flush_paragraph(&mut paragraph, &mut units);
            continue;
        }
        let (item, rest) = strip_marker(line);
        if item || starts_paragraph(&paragraph, last, rest) {
            flush_paragraph(&mut paragraph, &mut units);
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(rest);
        last = rest;
    }
    flush_paragraph(&mut paragraph, &mut units);
    units
}

fn flush_paragraph(paragraph: &mut String, units: &mut Vec<ProseUnit>) {
    let text = strip_inline_markup(paragraph);
    paragraph.clear();
    if text.chars().any(char::is_alphanumeric) {
        let opens_section = is_section_heading(&text);
        units.push(ProseUnit { text, opens_section });
    }
}

/// Returns whether a line begins a new paragraph, because the line before it was a title.
fn starts_paragraph(paragraph: &str, last: &str, line: &str) -> bool {
    let short = !paragraph.is_empty() && last.chars().count() < 72;
    let open = !paragraph.ends_with(['.', ',', ';', '!', '?', '…', '。', '、', '，', '！', '？']);
    let ends = paragraph.ends_with(':');
    ends || (short && open && line.chars().next().is_some_and(|first| !first.is_lowercase()))
}

fn is_section_heading(text: &str) -> bool {
    text.ends_with(':')
        && text.chars().filter(|c| c.is_alphabetic()).count() >= 4
        && !text.chars().any(char::is_lowercase)
        && text.chars().any(char::is_uppercase)
}

/// Strips the marker of a heading, quotation or list item. Returns whether there was one that begins a unit.
pub(super) fn strip_marker(line: &str) -> (bool, &str) {
    let rest = line.trim_start_matches('>').trim_start();
    let heading = rest.trim_start_matches('#');
    if heading.len() < rest.len() && heading.starts_with(' ') {
        return (true, heading.trim().trim_end_matches('#'));
    }
    for bullet in ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• ", "– "] {
        if let Some(item) = rest.strip_prefix(bullet) {
            return (true, item.trim_start());
        }
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits)
        && let Some(item) = rest[digits..].strip_prefix([')', '.']).and_then(|item| item.strip_prefix(' '))
    {
        return (true, item.trim_start());
    }
    (rest.len() < line.len(), rest)
}

/// Returns whether a line is not a sentence that a person wrote.
fn is_noise(line: &str) -> bool {
    let prompt = line.ends_with('$') || line.starts_with("$ ") || line.starts_with(">>> ");
    let frame = line.starts_with('|') && line.ends_with('|');
    let status = (line.starts_with('(') && line.ends_with(')') || line.starts_with('[') && line.ends_with(']'))
        && line.contains(": ");
    let code = line.ends_with([';', '{', '}']) || line.starts_with(['{', '}', '<', '@', '\\', '/']);
    let numbered = {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && line[digits..].starts_with(':')
    };
    let length = line.chars().count();
    let envelopes = line.chars().filter(|c| c.is_alphanumeric()).count();
    let symbols = line.chars().filter(|c| "{}[]<>=;|\\^~&@_$".contains(*c)).count();
    let unspoken = envelopes * 10 < length * 3 || symbols * 5 > length;
    prompt || frame || status || code || numbered || unspoken
}

/// Returns whether the contents of an element were not written by the speaker.
fn is_foreign_element(name: &str) -> bool {
    let prefixes = [
        "command",
        "local-command",
        "system",
        "ide_",
        "task-",
        "environment",
        "user_instructions",
        "bash-",
        "tool",
        "function",
        "think",
        "antml",
        "file",
        "code",
        "pre",
    ];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Removes all tags, and foreign elements with their contents.
pub(super) fn strip_elements(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let closing = tag.starts_with("</");
        let name_at = if closing { 2 } else { 1 };
        let name_length =
            tag[name_at..].bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':')).count();
        let name = &tag[name_at..name_at + name_length];
        let end = tag.bytes().take(200).position(|b| b == b'>');
        let glued = !closing && before.ends_with(|c: char| c.is_alphanumeric());
        let Some(end) = end.filter(|_| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !glued) else {
            out.push('<');
            rest = &tag[1..];
            continue;
        };
        rest = &tag[end + 1..];
        if !closing && is_foreign_element(name) {
            let close = format!("</{name}>");
            if let Some(at) = rest.find(&close) {
                rest = &rest[at + close.len()..];
            }
        }
        out.push(if closing { '\n' } else { ' ' });
    }
    out + rest
}

/// Converts to plain text on one line: removes emphasis, links and control characters, and collapses white space.
pub(super) fn strip_inline_markup(text: &str) -> String {
    let text = strip_links(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A colour or cursor sequence of a terminal.
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                    chars.next();
                }
            }
            '`' | '*' => {}
            '#' if chars.peek() == Some(&'#') => {
                // A word between rows of `#` is a signal between programs.
                while chars.next_if_eq(&'#').is_some() {}
                let word: String = std::iter::from_fn(|| chars.next_if(|c| c.is_alphanumeric())).collect();
                if chars.peek() != Some(&'#') {
                    out.push_str(&word);
                }
                while chars.next_if_eq(&'#').is_some() {}
            }
            '_' if chars.peek() == Some(&'_') => {
                chars.next();
            }
            c if c.is_whitespace() || c.is_control() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
    }
    out.trim().trim_start_matches(['-', '–', '—', ':', ' ']).to_owned()
}

/// Replaces `[text](address)` by its text, and a bare address by its host.
fn strip_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](").into_iter().chain(rest.find("http")).min() {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        if let Some(address) = tail.strip_prefix("](") {
            if let Some(open) = out.rfind('[') {
                out.remove(open);
                if out[..open].ends_with('!') {
                    out.remove(open - 1);
                }
            }
            rest = address.find(')').map_or("", |end| &address[end + 1..]);
        } else if let Some((_, address)) =
            tail.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
        {
            let whole = address.find(|c: char| c.is_whitespace() || ")]>\"'`".contains(c)).unwrap_or(address.len());
            let host = address[..whole].split(['/', '?', '#']).next().unwrap_or_default();
            out.push_str(host);
            rest = &address[whole..];
        } else {
            out.push_str("http");
            rest = &tail[4..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split_prose(text).into_iter().map(|unit| unit.text).collect()
    }

    #[test]
    fn markdown_becomes_plain() {
        assert_eq!(
            texts(
                "## A **bold** plan\nSee [the `docs`](https://x.y/z), please\nand go on.\n\n1. First\n- Second\n\n| a | b |\n---"
            ),
            ["A bold plan", "See the docs, please and go on.", "First", "Second"]
        );
        assert_eq!(texts("Look at https://a.example/b/c?d now"), ["Look at a.example now"]);
    }

    #[test]
    fn code_tags_and_signals_go() {
        assert_eq!(texts("Run it:\n```sh\nrm -rf x\n```\nDone. ###STOP###\n```\nopen"), ["Run it:", "Done."]);
        assert_eq!(
            texts("<system-reminder>Be nice\n</system-reminder><b>Hi</b> a Vec<u8> here"),
            ["Hi a Vec<u8> here"]
        );
        assert_eq!(texts("<command-name>/x</command-name><command-args>y</command-args>"), [""; 0]);
        assert_eq!(
            texts("Say\u{1b}[33;21m it\u{1b}[0m\n(Open file: n/a)\nbash-$\n12: let x\nfoo(1, [2]);"),
            ["Say it"]
        );
    }

    #[test]
    fn a_title_line_stands_alone() {
        assert_eq!(
            texts("ISSUE:\nRounding is off\nHi there! I saw\nthis."),
            ["ISSUE:", "Rounding is off", "Hi there! I saw this."]
        );
        assert!(split_prose("ISSUE:")[0].opens_section && !split_prose("Issue:")[0].opens_section);
    }

    #[test]
    fn odd_input_does_no_harm() {
        for text in [
            "<", "</", "<a", "](", "![", "](x", "http", "http://", "#", "###", "```", "\u{1b}", "\u{1b}[", "🎉", "<é>",
            "<a é",
        ] {
            split_prose(text);
        }
        assert_eq!(texts("🎉🚀"), [""; 0]);
    }
}
