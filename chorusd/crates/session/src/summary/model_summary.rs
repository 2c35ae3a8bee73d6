//! Converts a model's summary of a conversation to plain text of bounded length, or rejects it.

use super::strip_markup::{strip_elements, strip_inline_markup, strip_marker};
use super::text_limit::{end_sentence, truncate_chars};

/// Length of the longest summary that is kept, in characters.
const MAX_SUMMARY_CHARS: usize = 1000;

/// Length of the longest title that is kept, in characters.
const MAX_TITLE_CHARS: usize = 72;

/// Length of the longest first line that may be a title, in characters.
const MAX_TITLE_LINE_CHARS: usize = 140;

/// A longer answer, in bytes, is rejected unread.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 10;

/// A summary that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSummary {
    pub title: Option<String>,
    pub summary: String,
}

/// Reason why an answer is rejected. It completes a sentence that begins with "the model's answer".
pub type RejectReason = &'static str;

/// Parses a model's answer about a conversation of `source` characters. `whole` means that the answer was not
/// truncated.
///
/// # Errors
/// Returns the reason if the answer is far too long, empty, a refusal, or longer than the conversation.
pub fn parse_summary(text: &str, source: u64, whole: bool) -> Result<ModelSummary, RejectReason> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err("is far too long");
    }
    let text = strip_elements(&strip_turn_markers(strip_thinking(text)));
    let mut lines: Vec<(bool, String)> = text.lines().filter_map(parse_line).collect();
    if lines.len() > 1 && is_preamble(&lines[0].1) {
        lines.remove(0);
    }
    let titled = lines.len() > 1
        && lines[0].1.chars().count() <= MAX_TITLE_LINE_CHARS
        && split_label(&lines[0].1).0 != LineLabel::Summary;
    let title = titled.then(|| lines.remove(0).1);
    let mut summary = String::new();
    for (item, line) in &lines {
        let line = split_label(line).1;
        if line.is_empty() {
            continue;
        }
        if !summary.is_empty() {
            summary.push(' ');
        }
        // An item of a list counts as a sentence.
        summary.push_str(&if *item { end_sentence(line) } else { line.to_owned() });
    }
    let shown = |text: &str| text.chars().any(char::is_alphanumeric);
    if !shown(&summary) {
        return Err("is empty");
    }
    if is_refusal(&summary) || title.as_deref().is_some_and(is_refusal) {
        return Err("is a refusal");
    }
    if summary.chars().count() as u64 > source {
        return Err("is longer than the conversation");
    }
    if !whole || summary.chars().count() > MAX_SUMMARY_CHARS {
        summary = whole_sentences(&summary);
    }
    let title = title.map(|line| {
        truncate_chars(
            split_label(&line).1.trim_matches(['"', '“', '”', ' ']).trim_end_matches(['.', ':']),
            MAX_TITLE_CHARS,
        )
    });
    Ok(ModelSummary { title: title.filter(|title| shown(title)), summary })
}

/// Returns the text after the model's thinking.
pub(super) fn strip_thinking(text: &str) -> &str {
    match text.rfind("</think>") {
        Some(at) => &text[at + "</think>".len()..],
        // The answer was truncated inside the thinking.
        None => text.find("<think>").map_or(text, |at| &text[..at]),
    }
}

/// Removes the turn markers of model templates, such as `<|im_end|>` and `[INST]`.
fn strip_turn_markers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<|") {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 2..];
        let end = tail.find("|>").filter(|end| *end <= 40 && !tail[..*end].contains('\n'));
        rest = end.map_or(tail, |end| &tail[end + 2..]);
    }
    out.push_str(rest);
    for marker in ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"] {
        out = out.replace(marker, " ");
    }
    out.retain(|c| !is_invisible(c));
    out
}

/// Returns whether a character is invisible and reorders or hides its neighbours. Joiners of scripts and emoji do not
/// count.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
        || matches!(c, '\u{E0000}'..='\u{E007F}')
}

/// Returns a line as plain text, and whether it was a list item. Returns `None` for fences and lines without any text.
fn parse_line(line: &str) -> Option<(bool, String)> {
    let line = line.trim();
    if line.starts_with("```") || line.starts_with("~~~") {
        return None;
    }
    let (item, rest) = strip_marker(line);
    let text = strip_inline_markup(rest);
    text.chars().any(char::is_alphanumeric).then_some((item, text))
}

/// Returns whether a line only announces the answer.
fn is_preamble(line: &str) -> bool {
    let start = line.to_lowercase();
    line.ends_with(':')
        && ["here is", "here's", "here are", "sure", "certainly", "of course"].iter().any(|s| start.starts_with(s))
}

#[derive(Debug, PartialEq, Eq)]
enum LineLabel {
    None,
    Title,
    Summary,
}

/// Splits off the label of a line.
fn split_label(line: &str) -> (LineLabel, &str) {
    for (word, label) in [("title:", LineLabel::Title), ("summary:", LineLabel::Summary)] {
        if line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)) {
            return (label, line[word.len()..].trim());
        }
    }
    (LineLabel::None, line)
}

/// Returns whether the model refused to answer.
pub(super) fn is_refusal(text: &str) -> bool {
    let text: String = text.chars().take(200).collect::<String>().to_lowercase().replace('’', "'");
    let starts = [
        "i'm sorry",
        "i am sorry",
        "sorry,",
        "i cannot",
        "i can't",
        "i can not",
        "i'm unable",
        "i am unable",
        "i'm not able",
        "i am not able",
        "i won't",
        "i will not",
        "as an ai",
        "unfortunately, i",
    ];
    let about =
        ["help", "assist", "comply", "summar", "provide", "fulfil", "with that", "with this", "do that", "do this"];
    starts.iter().any(|start| text.starts_with(start)) && about.iter().any(|word| text.contains(word))
}

/// Returns the whole sentences that fit, or as much as fits of the first.
fn whole_sentences(text: &str) -> String {
    let end = text.char_indices().nth(MAX_SUMMARY_CHARS).map_or(text.len(), |(at, _)| at);
    let ends = |(at, c): &(usize, char)| {
        matches!(c, '。' | '！' | '？')
            || (matches!(c, '.' | '!' | '?') && text[at + 1..].starts_with([' ', '"', ')']))
            || (matches!(c, '.' | '!' | '?') && at + 1 == text.len())
    };
    let last = text[..end].char_indices().rfind(ends);
    last.map_or_else(|| truncate_chars(text, MAX_SUMMARY_CHARS), |(at, c)| text[..at + c.len_utf8()].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<String>, String), RejectReason> {
        parse_summary(text, 10_000, true).map(|answer| (answer.title, answer.summary))
    }

    fn ok(title: &str, summary: &str) -> Result<(Option<String>, String), RejectReason> {
        Ok(((!title.is_empty()).then(|| title.to_owned()), summary.to_owned()))
    }

    #[test]
    fn a_title_line_and_a_summary() {
        for text in [
            "Moving the cents\n\nWe moved the cents. The back-fill is open.",
            "Title: Moving the cents.\nSummary: We moved the cents. The back-fill is open.",
            "## \"Moving the cents\"\n\n- We moved the cents\n- The back-fill is open",
            "```text\nMoving the cents\n\nWe moved the cents.\nThe back-fill is open.\n```",
            "Here is the summary:\n\n**Moving the cents**\n\nWe `moved` the cents. The back-fill is open.<|im_end|>",
            "<think>What was it?\nCents.</think>\nMoving the cents\n\nWe moved the \u{202e}cents. The back-fill is open.</s>",
            "\u{1b}[1mMoving the cents\u{1b}[0m\r\n\r\nWe moved\u{7} the cents. [INST]The back-fill is open.[/INST]",
        ] {
            assert_eq!(read(text), ok("Moving the cents", "We moved the cents. The back-fill is open."), "{text}");
        }
    }

    #[test]
    fn without_a_title_line_there_is_none() {
        assert_eq!(read("We moved the cents."), ok("", "We moved the cents."));
        assert_eq!(read("Summary: We moved the cents.\nAll is well."), ok("", "We moved the cents. All is well."));
        let long = format!("{}end.", "word ".repeat(30));
        assert_eq!(read(&format!("{long}\nMore.")), ok("", &format!("{long} More.")));
    }

    #[test]
    fn nothing_a_refusal_and_what_is_too_long_are_thrown_away() {
        for text in ["", " \n\t", "```\n```", "<think>only thoughts", "<think>a</think>", "…!?"] {
            assert_eq!(read(text), Err("is empty"), "{text:?}");
        }
        for text in [
            "I'm sorry, but I can't help with that.",
            "I cannot assist with this request.",
            "Refusal\n\nI’m sorry, I can’t summarize this.",
            "As an AI, I cannot do that.",
        ] {
            assert_eq!(read(text), Err("is a refusal"), "{text}");
        }
        assert!(read("Login\n\nThe user cannot log in. It is open.").is_ok());
        assert_eq!(parse_summary("T\n\nWe moved the cents.", 18, true), Err("is longer than the conversation"));
        assert!(parse_summary("T\n\nWe moved the cents.", 19, true).is_ok());
        assert_eq!(parse_summary(&"x. ".repeat(400_000), u64::MAX, true), Err("is far too long"));
    }

    #[test]
    fn long_ones_and_ones_that_were_cut_off_end_with_a_sentence() {
        let long = format!("T\n\n{}", "We moved it. ".repeat(200));
        let kept = read(&long).unwrap().1;
        assert!(
            kept.chars().count() <= MAX_SUMMARY_CHARS
                && kept.chars().count() > MAX_SUMMARY_CHARS - 20
                && kept.ends_with("it."),
            "{kept}"
        );
        assert_eq!(read(&format!("T\n\n{}", "日本".repeat(600))).unwrap().1.chars().count(), MAX_SUMMARY_CHARS);
        let cut = parse_summary("T\n\nWe moved version 1.5. And then we", 10_000, false).unwrap();
        assert_eq!(cut.summary, "We moved version 1.5.");
    }

    #[test]
    fn odd_input_does_no_harm() {
        for text in ["<|", "<|x", "|>", "<think>", "</think>", "title:", "Summary:\nx", "é\n\né", "[INST", "- \n- "] {
            let _ = read(text);
        }
    }
}
