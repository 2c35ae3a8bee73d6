//! Reads the text of a query.

use tantivy::tokenizer::{Language, TextAnalyzer};

use crate::analysis;
use crate::index::Shared;
use crate::stop_words;

/// Words beyond these are not looked for.
const MAX_WORDS: usize = 64;

/// Shortest begin of a word in characters for which all words are looked up.
const MIN_PREFIX: usize = 2;

/// A query as it is carried out. All words are as the index has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Words of which at least one must be there, unless there is another part.
    pub(crate) words: Vec<String>,
    /// Words that are worth more next to each other, such as those of `foo_bar`.
    pub(crate) compounds: Vec<Vec<String>>,
    /// Words that must be next to each other.
    pub(crate) phrases: Vec<Vec<String>>,
    /// Begins of words.
    pub(crate) prefixes: Vec<String>,
    /// Words that must not be there, next to each other.
    pub(crate) excluded: Vec<Vec<String>>,
}

impl Parsed {
    /// Returns true if there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.phrases.is_empty() && self.prefixes.is_empty()
    }
}

impl Parsed {
    /// Returns true if a single word is all there is.
    pub(crate) fn is_one_word(&self) -> bool {
        self.words.len() == 1
            && self.compounds.is_empty()
            && self.phrases.is_empty()
            && self.prefixes.is_empty()
            && self.excluded.is_empty()
    }
}

/// A part of the text between spaces or quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_phrase: bool,
    pub(crate) is_excluded: bool,
}

/// Parses any text.
pub(crate) fn parse(shared: &Shared, text: &str) -> Parsed {
    let (mut analyzer, mut plain) = (shared.analyzer.clone(), shared.prefix_analyzer.clone());
    let mut parsed = Parsed::default();
    let mut words: Vec<(String, bool)> = Vec::new();
    for part in split(text) {
        let found = analysis::words(&mut analyzer, part.text);
        let found: Vec<String> = found.into_iter().take(MAX_WORDS).map(|token| token.text).collect();
        if found.is_empty() {
            continue;
        }
        if part.is_excluded {
            parsed.excluded.push(found);
        } else if part.is_phrase && found.len() > 1 {
            parsed.phrases.push(found);
        } else if let Some(prefix) = prefix(&mut plain, &part) {
            // The index has words without their endings.
            words.extend(found.into_iter().map(|word| (word, false)));
            parsed.prefixes.push(prefix);
        } else {
            let is_stop_word = is_stop_word(&mut plain, shared.options.language, part.text) && !part.is_phrase;
            if found.len() > 1 {
                parsed.compounds.push(found.clone());
            }
            words.extend(found.into_iter().map(|word| (word, is_stop_word)));
        }
    }
    let has_others = !parsed.phrases.is_empty() || !parsed.prefixes.is_empty() || words.iter().any(|(_, stop)| !stop);
    for (word, is_stop_word) in words {
        if (!is_stop_word || !has_others) && !parsed.words.contains(&word) && parsed.words.len() < MAX_WORDS {
            parsed.words.push(word);
        }
    }
    parsed
}

/// Splits a text at spaces, keeping what is between quotes together. A quote that has no other is none.
pub(crate) fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let after_sign =
            rest.strip_prefix('-').filter(|after| after.starts_with(|c: char| c == '"' || c.is_alphanumeric()));
        let is_excluded = after_sign.is_some();
        let begin = after_sign.unwrap_or(rest);
        let phrase = begin.strip_prefix('"').and_then(|inner| inner.split_once('"'));
        let (text, next) = match phrase {
            Some((inner, next)) => (inner, next),
            None => {
                let end = begin.find(char::is_whitespace).unwrap_or(begin.len());
                begin.split_at(end)
            }
        };
        parts.push(Part { text, is_phrase: phrase.is_some(), is_excluded });
        rest = next.trim_start();
    }
    parts
}

/// Returns the begin of a word, if the part is one with a `*` behind it.
fn prefix(plain: &mut TextAnalyzer, part: &Part<'_>) -> Option<String> {
    let begin = part.text.strip_suffix('*').filter(|_| !part.is_phrase)?;
    let [word] = &analysis::words(plain, begin)[..] else { return None };
    (word.text.chars().count() >= MIN_PREFIX).then(|| word.text.clone())
}

fn is_stop_word(plain: &mut TextAnalyzer, language: Option<Language>, text: &str) -> bool {
    let is_stop_word = match language {
        None | Some(Language::English) => stop_words::is_stop_word,
        Some(Language::German) => stop_words::is_german_stop_word,
        Some(_) => return false,
    };
    // "what's" is two words.
    analysis::words(plain, text).iter().all(|token| is_stop_word(&token.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(&str, bool, bool)> {
        split(text).into_iter().map(|part| (part.text, part.is_phrase, part.is_excluded)).collect()
    }

    #[test]
    fn quotes_and_signs_are_read_and_everything_else_is_words() {
        assert_eq!(
            parts("a \"b c\" -d -\"e f\""),
            [("a", false, false), ("b c", true, false), ("d", false, true), ("e f", true, true)]
        );
        assert_eq!(parts("\"open quote"), [("\"open", false, false), ("quote", false, false)]);
        assert_eq!(
            parts("- -- a-b --x"),
            [("-", false, false), ("--", false, false), ("a-b", false, false), ("--x", false, false)]
        );
        assert_eq!(parts("  "), []);
    }
}
