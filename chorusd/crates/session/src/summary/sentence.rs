//! Splits prose into sentences and analyses their words.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use chorus_base::parallel::run_parallel;
use unicode_segmentation::UnicodeSegmentation;

use super::lexicon;
use super::sample::split_at_char;
use super::sentence_bounds::split_sentence_bounds;
use super::strip_markup::{ProseUnit, split_prose};
use super::words::Words;

/// Size after which a sentence ends, regardless of its last word.
const MAX_SENTENCE_BYTES: usize = 1000;

/// Bytes of a sentence that are analysed. No person writes longer sentences.
const MAX_ANALYZED_BYTES: usize = 500;

/// Parsing a text takes about as many times as long as hashing it.
const PARSING_COST: usize = 32;

/// A sentence.
#[derive(Debug, Clone)]
pub(super) struct Sentence {
    pub text: String,
    /// The words in lower case, in order. Of a very long sentence, only the first ones.
    pub words: Words,
    /// Indices of the words that carry meaning, without duplicates. Cached; most sentences are only asked for a few of them.
    content: OnceLock<Vec<usize>>,
    /// Cached, because sentences are compared repeatedly.
    weight: OnceLock<f64>,
}

impl Sentence {
    pub(super) fn new(text: &str) -> Self {
        let words: Words = split_at_char(text, MAX_ANALYZED_BYTES).0.unicode_words().collect();
        Self { text: text.to_owned(), words, content: OnceLock::new(), weight: OnceLock::new() }
    }

    /// Finds the first words that carry meaning, without duplicates, at most so many. Returns their indices.
    fn find_content(&self, most: usize) -> Vec<usize> {
        let mut content: Vec<usize> = Vec::new();
        for (at, word) in self.words.iter().enumerate().filter(|(_, word)| carries_meaning(word)) {
            if content.len() == most {
                break;
            }
            if !content.iter().any(|known| self.words.get(*known) == Some(word)) {
                content.push(at);
            }
        }
        content
    }

    /// Iterates over the words that carry meaning, without duplicates.
    pub(super) fn content_words(&self) -> impl Iterator<Item = &str> {
        let content = self.content.get_or_init(|| self.find_content(usize::MAX));
        content.iter().filter_map(|at| self.words.get(*at))
    }

    /// Returns whether at least so many different words carry meaning.
    pub(super) fn has_content_words(&self, least: usize) -> bool {
        self.find_content(least).len() >= least
    }

    /// Returns the names, numbers and ids in the sentence.
    pub(super) fn distinctive_tokens(&self) -> HashSet<&str> {
        let bare = |token: &'_ str| -> bool { token.contains(|c: char| c.is_ascii_digit()) };
        let tokens = split_at_char(&self.text, MAX_ANALYZED_BYTES)
            .0
            .split(|c: char| c.is_whitespace() || c == '/')
            .map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()));
        let named = |token: &str| token.len() > 2 && token.starts_with(char::is_uppercase);
        // The first word of a sentence has a capital anyway.
        tokens
            .enumerate()
            .filter(|(at, token)| bare(token) || (*at > 0 && named(token)))
            .map(|(_, token)| token)
            .collect()
    }

    /// Returns how specific the sentence is to its conversation.
    pub(super) fn weight(&self) -> f64 {
        *self.weight.get_or_init(|| {
            self.distinctive_tokens().len().min(5) as f64 * 0.7 + self.find_content(12).len() as f64 * 0.5
        })
    }

    /// Returns whether it reads like speech, unlike lists of files or hashes.
    pub(super) fn is_fluent(&self) -> bool {
        self.text.len() <= MAX_ANALYZED_BYTES
            && !self.text.contains(['[', '{', '\\'])
            && self.text.split_whitespace().all(|token| !token.is_ascii() || token.len() <= 40)
    }

    /// Returns whether it adds nothing to `other`: that contains most of its words, and all its names and numbers.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let own = self.content_words().count();
        let shared = || self.content_words().filter(|word| other.content_words().any(|known| known == *word)).count();
        let new_mark = || self.distinctive_tokens().iter().any(|mark| !other.text.contains(mark));
        self.text == other.text || (own > 0 && shared() * 10 >= own * 7 && !new_mark())
    }
}

fn carries_meaning(word: &str) -> bool {
    word.len() > 1 && !lexicon::is_stop_word(word)
}

/// A unit of prose, split into sentences.
#[derive(Debug)]
pub(super) struct ParsedUnit {
    /// As in [`ProseUnit`].
    pub opens_section: bool,
    pub sentences: Vec<Arc<Sentence>>,
}

/// Cache of parsed texts. The last text of a conversation is examined for the outcome, for what was left open and, if
/// it is also the first, for the request.
#[derive(Debug, Default)]
pub(super) struct SentenceCache(RefCell<HashMap<String, Arc<[ParsedUnit]>>>);

impl SentenceCache {
    /// Creates a cache that has these texts, which it parses in parallel if they are long.
    pub(super) fn with_texts(texts: &[&str]) -> Self {
        let parse_all =
            |texts: &[&str]| -> Vec<_> { texts.iter().map(|text| ((*text).to_owned(), parse_text(text))).collect() };
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let (here, other) = texts.split_at(texts.len() / 2);
        let (other, here) = run_parallel(bytes * PARSING_COST, || parse_all(other), || parse_all(here));
        Self(RefCell::new(here.into_iter().chain(other).collect()))
    }

    /// Returns the units of a text.
    pub(super) fn parse(&self, text: &str) -> Arc<[ParsedUnit]> {
        if let Some(pieces) = self.0.borrow().get(text) {
            return pieces.clone();
        }
        let pieces = parse_text(text);
        self.0.borrow_mut().insert(text.to_owned(), pieces.clone());
        pieces
    }

    /// Returns all sentences of a text in order.
    pub(super) fn sentences(&self, text: &str) -> Vec<Arc<Sentence>> {
        self.parse(text).iter().flat_map(|piece| &piece.sentences).cloned().collect()
    }
}

/// Parses a text without caching it. Returns all its sentences in order.
pub(super) fn parse_sentences(text: &str) -> Vec<Sentence> {
    split_prose(text).iter().flat_map(|unit| split_sentences(&unit.text)).map(|text| Sentence::new(&text)).collect()
}

fn parse_text(text: &str) -> Arc<[ParsedUnit]> {
    split_prose(text).iter().map(parse_unit).collect()
}

fn parse_unit(unit: &ProseUnit) -> ParsedUnit {
    let sentences = split_sentences(&unit.text).iter().map(|text| Arc::new(Sentence::new(text))).collect();
    ParsedUnit { opens_section: unit.opens_section, sentences }
}

/// Splits by the rules of Unicode, except that a sentence continues after an abbreviation or a leading number.
pub(super) fn split_sentences(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = String::new();
    for mut part in split_sentence_bounds(text) {
        while let Some(at) = missing_space_end(part) {
            open.push_str(&part[..at]);
            push_sentence(&mut found, &open);
            open.clear();
            part = &part[at..];
        }
        open.push_str(part);
        if open.len() > MAX_SENTENCE_BYTES || !is_unfinished(open.trim_end()) {
            push_sentence(&mut found, &open);
            open.clear();
        }
    }
    push_sentence(&mut found, &open);
    found
}

fn push_sentence(found: &mut Vec<String>, text: &str) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        found.push(text.to_owned());
    }
}

/// Returns the end of a sentence without a space after it: `… it works.Then we …`. Names such as `io.Reader` or
/// `fields.Field` are on their own or continue in another way.
fn missing_space_end(text: &str) -> Option<usize> {
    text.match_indices('.').map(|(at, _)| at + 1).take(20).find(|end| {
        let (before, after) = (&text[..end - 1], &text[*end..]);
        let last = before.rsplit(' ').next().unwrap_or_default();
        let next = after.split(' ').next().unwrap_or_default();
        before.split(' ').count() > 3
            && last.len() > 1
            && last.bytes().all(|b| b.is_ascii_lowercase())
            && next.len() < after.len()
            && next
                .bytes()
                .enumerate()
                .all(|(at, b)| if at == 0 { b.is_ascii_uppercase() } else { b.is_ascii_lowercase() })
            && !next.is_empty()
    })
}

fn is_unfinished(text: &str) -> bool {
    let Some(body) = text.strip_suffix('.') else { return false };
    let last = body.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    // An initial, an abbreviation, or the number of a list item.
    let initial = last.chars().count() == 1 && last.chars().all(|c| c.is_ascii_uppercase()) && last != "I";
    let number = last == body && last.len() <= 3 && last.bytes().all(|b| b.is_ascii_digit());
    initial || number || lexicon::is_abbreviation(&last.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        assert_eq!(
            split_sentences("Use e.g. Tokio or J. Doe's. Then stop! Really?"),
            ["Use e.g. Tokio or J. Doe's.", "Then stop!", "Really?"]
        );
        assert_eq!(
            split_sentences("It took 3.5 s in v1.2.3 of main.py. Fine."),
            ["It took 3.5 s in v1.2.3 of main.py.", "Fine."]
        );
        assert_eq!(split_sentences("请帮我修复登录。现在可以了！谢谢"), ["请帮我修复登录。", "现在可以了！", "谢谢"]);
        assert_eq!(
            split_sentences("We run it on the server.Then we look at fields.Field and more.py")[0],
            "We run it on the server."
        );
        assert_eq!(split_sentences("🎉"), [""; 0]);
    }

    #[test]
    fn the_same_in_other_words_is_seen() {
        let a = Sentence::new("The rounding issue has been fixed in fields.py.");
        assert!(Sentence::new("Rounding issue fixed in fields.py").repeats(&a));
        assert!(!Sentence::new("Rounding issue fixed in schema.py and Field").repeats(&a));
        assert!(!a.repeats(&Sentence::new("The login page is broken.")));
    }
}
