//! Formats text for people in Discord.

use chorus_base::error::Error;
use chorus_proto::Session;
use chorus_proto::visible_text::make_visible;
use jiff::Timestamp;

use super::hint_rewrite::{mention_people, rewrite_hint, rewrite_message};
use super::invocation::{Caller, Invocation};
use crate::app::DiscordApp;

/// Redacts untrusted text. Do this before the text is truncated, escaped or shown: a truncated secret no longer matches
/// any pattern.
pub(super) trait Redact {
    /// Redacts the secrets in `text`.
    fn redact(&self, text: &str) -> String;
}

impl Redact for DiscordApp {
    fn redact(&self, text: &str) -> String {
        Self::redact(self, text)
    }
}

impl Redact for Caller {
    fn redact(&self, text: &str) -> String {
        self.app.redact(text)
    }
}

impl Redact for Invocation {
    fn redact(&self, text: &str) -> String {
        self.caller.redact(text)
    }
}

/// Formats an error: a sentence that says what happened, then its hint.
pub(super) fn error_text(clean: &impl Redact, failure: &Error) -> String {
    let message = mention_people(&rewrite_message(&clean.redact(&failure.message)));
    let what = end_sentence(&truncate(&message, 1200));
    // A message may begin with the name of an agent, for example, which keeps its first letter.
    let first = what.split_whitespace().next().unwrap_or_default();
    let what = if SENTENCE_STARTS.contains(&first) { capitalize(&what) } else { what };
    match &failure.hint {
        Some(hint) => format!("{what} {}", hint_text(clean, hint)),
        None => what,
    }
}

/// Words that begin an error message and are no name.
const SENTENCE_STARTS: [&str; 16] = [
    "a", "an", "cannot", "each", "it", "no", "not", "nothing", "only", "several", "that", "the", "there", "this",
    "unknown", "you",
];

/// Formats a hint as a sentence.
pub(super) fn hint_text(clean: &impl Redact, hint: &str) -> String {
    format_hint(&clean.redact(hint))
}

/// Formats a hint without secrets as a sentence that is true in Discord.
pub(crate) fn format_hint(hint: &str) -> String {
    end_sentence(&capitalize(&truncate(&rewrite_hint(hint), 600)))
}

/// Ends a sentence with a period, unless it ends with another mark or a command.
fn end_sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    if text.ends_with(['?', '!', '…', '`']) { text.to_owned() } else { format!("{text}.") }
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Truncates `text` to `most` characters, the last of which is an ellipsis if something is missing.
pub(super) fn truncate(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Formats untrusted text for use within a line: on one line, with invisible characters made visible and Markdown
/// escaped.
pub(super) fn inline_text(clean: &impl Redact, text: &str, most: usize) -> String {
    let line = clean.redact(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    escape_markdown(&truncate(&make_visible(&line), most))
}

fn escape_markdown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '>' | '[' | ']' | '(' | ')' | '#' | '@' | ':') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// Formats untrusted text like [`inline_text`], with the characters in the ranges `marks` in bold. `text` must be without secrets:
/// a text that redaction would change is shown without marks.
pub(super) fn marked_text(clean: &impl Redact, text: &str, marks: &[(u64, u64)], most: usize) -> String {
    let is_marked = |at: u64| marks.iter().any(|(start, end)| (*start..*end).contains(&at));
    let chars: Vec<(char, bool)> = (0..).zip(text.chars()).map(|(at, c)| (c, is_marked(at))).take(most).collect();
    if chars.len() < text.chars().count() || clean.redact(text) != text {
        return inline_text(clean, text, most);
    }
    let piece = |part: &[(char, bool)]| {
        let text: String = part.iter().map(|(c, _)| if c.is_whitespace() { ' ' } else { *c }).collect();
        let text = escape_markdown(&make_visible(&text));
        if part.first().is_some_and(|(c, marked)| *marked && !c.is_whitespace()) { format!("**{text}**") } else { text }
    };
    chars.chunk_by(|(_, one), (_, two)| one == two).map(piece).collect()
}

/// Formats untrusted text as inline code.
pub(super) fn inline_code(clean: &impl Redact, text: &str, most: usize) -> String {
    let line = clean.redact(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", truncate(&make_visible(&line), most).replace('`', "ˋ"))
}

/// Formats untrusted text as a code block, without truncating it.
pub(super) fn code_block(clean: &impl Redact, text: &str) -> String {
    // A zero-width joiner would be invisible; a look-alike can be seen.
    format!("```\n{}\n```", make_visible(&clean.redact(text)).replace("␤\n", "\n").replace("```", "ˋˋˋ"))
}

/// Formats a time as a Discord timestamp, which each client shows as "5 minutes ago".
pub(super) fn relative_time(at: Timestamp) -> String {
    format!("<t:{}:R>", at.as_second())
}

/// Returns the topic of a session on one line.
pub(super) fn session_title(clean: &impl Redact, session: &Session, most: usize) -> String {
    let header = &session.header;
    let said =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let about =
        said(&header.description).or_else(|| said(&header.summary)).unwrap_or_else(|| header.session_id.clone());
    truncate(&clean.redact(&about).split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Formats warnings, each on a line of its own.
pub(super) fn warning_lines(clean: &impl Redact, warnings: &[String]) -> String {
    warnings
        .iter()
        .map(|warning| format!("\nNote: {}", truncate(&rewrite_message(&clean.redact(warning)), 400)))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use chorus_proto::ErrorKind;

    use super::*;

    /// Treats one word as a secret.
    pub(crate) struct StarRedactor;

    impl Redact for StarRedactor {
        fn redact(&self, text: &str) -> String {
            text.replace("a_secret", "*")
        }
    }

    #[test]
    fn secrets_go_before_anything_is_cut_or_escaped() {
        assert_eq!(inline_text(&StarRedactor, "an a_secret", 8), r"an \*");
        assert_eq!(inline_code(&StarRedactor, "an a_secret", 8), "`an *`");
        assert_eq!(code_block(&StarRedactor, "a_secret"), "```\n*\n```");
        let failure =
            Error::invalid(format!("{}a_secret", "x".repeat(1195))).hint(format!("{}a_secret", "y".repeat(596)));
        let said = error_text(&StarRedactor, &failure);
        assert!(said.contains("x*.") && said.ends_with("y*."), "{said}");
        assert_eq!(
            warning_lines(&StarRedactor, &[format!("{}a_secret", "z".repeat(396))]),
            format!("\nNote: {}*", "z".repeat(396))
        );
    }

    #[test]
    fn text_of_others_stays_text() {
        assert_eq!(
            inline_text(&StarRedactor, "**a**\n@everyone <@1> [x](http://y)", 80),
            r"\*\*a\*\* \@everyone \<\@1\> \[x\]\(http\://y\)"
        );
        assert_eq!(inline_text(&StarRedactor, "abcdef", 4), "abc…");
        assert_eq!(marked_text(&StarRedactor, "a *b*\n@c", &[(3, 4), (6, 8)], 9), r"a \***b**\* **\@c**");
        assert_eq!(marked_text(&StarRedactor, "a_secret of b", &[(12, 13)], 20), r"\* of b");
        assert_eq!(marked_text(&StarRedactor, "abcdef", &[(0, 1)], 4), "abc…");
        assert_eq!(marked_text(&StarRedactor, "ab", &[(9, 3), (1, u64::MAX)], 4), "a**b**");
        assert_eq!(inline_code(&StarRedactor, "a`b\u{202e}\nc", 40), "`aˋb<U+202E> c`");
        assert_eq!(code_block(&StarRedactor, "a\n```\nb"), "```\na\nˋˋˋ\nb\n```");
    }

    #[test]
    fn a_failure_says_what_happened_and_what_to_do() {
        let failure = Error::new(ErrorKind::Denied, "this approval is for someone else").hint("ask an approver");
        assert_eq!(error_text(&StarRedactor, &failure), "This approval is for someone else. Ask an approver.");
        assert_eq!(error_text(&StarRedactor, &Error::invalid("No.")), "No.");
        assert_eq!(
            error_text(&StarRedactor, &Error::invalid("several agents: which one?")),
            "Several agents: which one?"
        );
        assert_eq!(error_text(&StarRedactor, &Error::invalid("api is empty")), "api is empty.", "a name");
        let failure = Error::invalid("no task t7").hint("list tasks: `chorusctl tasks list --all-agents`");
        assert_eq!(error_text(&StarRedactor, &failure), "No task t7. List tasks: `/tasks list`");
    }
}
