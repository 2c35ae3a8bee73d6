//! What people read.

use chorus_proto::Session;
use chorus_proto::visible::visible;
use jiff::Timestamp;

use super::call::{Asker, Call};
use super::wording::{here, mentions};
use crate::discord::bridge::Bridge;
use crate::failure::Failure;

/// What text of others goes through before anything of it is cut, escaped or shown: a secret of which half is left is not known for one.
pub trait Clean {
    /// `text` without secrets.
    fn clean(&self, text: &str) -> String;
}

impl Clean for Bridge {
    fn clean(&self, text: &str) -> String {
        Self::clean(self, text)
    }
}

impl Clean for Asker {
    fn clean(&self, text: &str) -> String {
        self.bridge.clean(text)
    }
}

impl Clean for Call {
    fn clean(&self, text: &str) -> String {
        self.by.clean(text)
    }
}

/// A failure: what happened, then what to do.
pub fn sorry(clean: &impl Clean, failure: &Failure) -> String {
    let message = mentions(&here(&clean.clean(&failure.message)));
    // It begins as it was written: with the name of an agent, for example.
    let what = cut(message.trim_end_matches('.'), 1200);
    let end = if what.ends_with(['?', '!', '…']) { "" } else { "." };
    match &failure.hint {
        Some(hint) => format!("Not done: {what}{end}\nHint: {}", cut(&here(&clean.clean(hint)), 600)),
        None => format!("Not done: {what}{end}"),
    }
}

/// At most so many characters, with a sign where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Text of others as part of a line: one line, nothing unseen, and nothing that Discord would take for more than text.
pub fn plain(clean: &impl Clean, text: &str, most: usize) -> String {
    let line = clean.clean(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = String::with_capacity(line.len() + 8);
    for c in cut(&visible(&line), most).chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '>' | '[' | ']' | '(' | ')' | '#' | '@' | ':') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// Text of others as code within a line.
pub fn code(clean: &impl Clean, text: &str, most: usize) -> String {
    let line = clean.clean(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", cut(&visible(&line), most).replace('`', "ˋ"))
}

/// Text of others as a block of code, whole.
pub fn block(clean: &impl Clean, text: &str) -> String {
    // A zero-width joiner would be invisible; a look-alike is seen for what it is.
    format!("```\n{}\n```", visible(&clean.clean(text)).replace("␤\n", "\n").replace("```", "ˋˋˋ"))
}

/// A time, as everybody's own Discord shows it: how long ago.
pub fn ago(at: Timestamp) -> String {
    format!("<t:{}:R>", at.as_second())
}

/// `1 message`, `2 messages`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What a session is about, in a line.
pub fn title(clean: &impl Clean, session: &Session, most: usize) -> String {
    let header = &session.header;
    let said =
        |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let about =
        said(&header.description).or_else(|| said(&header.summary)).unwrap_or_else(|| header.session_id.clone());
    cut(&clean.clean(&about).split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Warnings, each on a line of its own.
pub fn warnings(clean: &impl Clean, warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("\nNote: {}", cut(&here(&clean.clean(warning)), 400))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use chorus_proto::ErrorKind;

    use super::*;

    /// Takes one word for a secret.
    pub struct Star;

    impl Clean for Star {
        fn clean(&self, text: &str) -> String {
            text.replace("a_secret", "*")
        }
    }

    #[test]
    fn secrets_go_before_anything_is_cut_or_escaped() {
        assert_eq!(plain(&Star, "an a_secret", 8), r"an \*");
        assert_eq!(code(&Star, "an a_secret", 8), "`an *`");
        assert_eq!(block(&Star, "a_secret"), "```\n*\n```");
        let failure =
            Failure::invalid(format!("{}a_secret", "x".repeat(1195))).hint(format!("{}a_secret", "y".repeat(596)));
        let said = sorry(&Star, &failure);
        assert!(said.contains("x*.") && said.ends_with("y*"), "{said}");
        assert_eq!(warnings(&Star, &[format!("{}a_secret", "z".repeat(396))]), format!("\nNote: {}*", "z".repeat(396)));
    }

    #[test]
    fn text_of_others_stays_text() {
        assert_eq!(
            plain(&Star, "**a**\n@everyone <@1> [x](http://y)", 80),
            r"\*\*a\*\* \@everyone \<\@1\> \[x\]\(http\://y\)"
        );
        assert_eq!(plain(&Star, "abcdef", 4), "abc…");
        assert_eq!(code(&Star, "a`b\u{202e}\nc", 40), "`aˋb<U+202E> c`");
        assert_eq!(block(&Star, "a\n```\nb"), "```\na\nˋˋˋ\nb\n```");
    }

    #[test]
    fn a_failure_says_what_happened_and_what_to_do() {
        let failure = Failure::new(ErrorKind::Denied, "that is not yours").hint("ask somebody");
        assert_eq!(sorry(&Star, &failure), "Not done: that is not yours.\nHint: ask somebody");
        assert_eq!(sorry(&Star, &Failure::invalid("no.")), "Not done: no.");
        assert_eq!(sorry(&Star, &Failure::invalid("which one?")), "Not done: which one?");
        let failure = Failure::invalid("none").hint("`chorusctl tasks list --all-agents` shows them");
        assert_eq!(sorry(&Star, &failure), "Not done: none.\nHint: `/tasks list` shows them");
    }
}
