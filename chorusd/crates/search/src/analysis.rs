//! Words of texts: the same of messages and of queries.

use std::collections::HashSet;
use std::str::CharIndices;

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager,
};

use crate::fields::TOKENIZER;
use crate::options::IndexOptions;

/// Longest word in bytes; the rest of a longer one is not indexed.
const MAX_WORD_BYTES: usize = 64;

/// Returns the analyzer of an index.
pub(crate) fn analyzer(options: IndexOptions) -> TextAnalyzer {
    let plain = TextAnalyzer::builder(Words::default()).filter(LowerCaser).filter(AsciiFoldingFilter).dynamic();
    match options.language {
        Some(language) => plain.filter_dynamic(Stemmer::new(language)).build(),
        None => plain.build(),
    }
}

/// The analyzer without word endings, for the beginnings of words.
pub(crate) fn prefix_analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build()
}

pub(crate) fn tokenizers(options: IndexOptions) -> TokenizerManager {
    let tokenizers = TokenizerManager::default();
    tokenizers.register(TOKENIZER, analyzer(options));
    tokenizers
}

/// Splits a text at everything that is no letter or digit. Scripts without spaces between words are split into overlapping
/// pairs of characters.
#[derive(Debug, Clone, Default)]
struct Words {
    token: Token,
}

struct WordStream<'a> {
    text: &'a str,
    chars: std::iter::Peekable<CharIndices<'a>>,
    /// The last character of the pairs, with its place, if the next one forms another pair with it.
    before: Option<(usize, char)>,
    token: &'a mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, chars: text.char_indices().peekable(), before: None, token: &mut self.token }
    }
}

impl WordStream<'_> {
    fn set(&mut self, from: usize, to: usize) {
        let word = self.text.get(from..to).unwrap_or_default();
        self.token.text.clear();
        self.token.text.extend(begin_of(word, MAX_WORD_BYTES).chars().filter(|c| !is_accent(*c)));
        (self.token.offset_from, self.token.offset_to) = (from, to);
    }

    /// Finds the next pair behind `first`, or takes it alone if it has no neighbour at all.
    fn next_pair(&mut self, (from, first): (usize, char), is_continued: bool) -> bool {
        match self.chars.next_if(|(_, c)| is_unspaced(*c)) {
            Some((at, second)) => {
                self.set(from, at + second.len_utf8());
                self.before = Some((at, second));
                true
            }
            None if is_continued => false,
            None => {
                self.set(from, from + first.len_utf8());
                true
            }
        }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        self.token.position = self.token.position.wrapping_add(1);
        if let Some(before) = self.before.take()
            && self.next_pair(before, true)
        {
            return true;
        }
        while let Some((from, c)) = self.chars.next() {
            if is_unspaced(c) {
                return self.next_pair((from, c), false);
            }
            if c.is_alphanumeric() {
                let mut to = from + c.len_utf8();
                while let Some((at, c)) =
                    self.chars.next_if(|(_, c)| is_accent(*c) || c.is_alphanumeric() && !is_unspaced(*c))
                {
                    to = at + c.len_utf8();
                }
                self.set(from, to);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Returns the begin of a text, of at most that many bytes.
pub(crate) fn begin_of(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns true for letters of scripts that put no spaces between words.
fn is_unspaced(c: char) -> bool {
    chorus_base::scripts::is_unspaced(c) && c.is_alphanumeric()
}

/// Returns true for the accent of the letter before it: some programs write "é" as two characters. Letters lose theirs anyway.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns the words of a text with their places.
pub(crate) fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    analyzer.token_stream(text).process(&mut |token| {
        if !token.text.is_empty() {
            found.push(token.clone());
        }
    });
    found
}

/// Letters of a word without its ending from which on it has the same first letters as with it, and their number.
const LONG_WORD: usize = 5;
const SAME_LETTERS: usize = 3;

/// Returns the words of a text that are among `wanted` without their endings, with their places. `plain` leaves endings alone.
pub(crate) fn find_words(
    analyzer: &mut TextAnalyzer,
    plain: &mut TextAnalyzer,
    text: &str,
    wanted: &HashSet<&str>,
) -> Vec<Token> {
    // To remove an ending takes longest. It leaves the first letters as they are: three of a longer word, and one of a short one ("die",
    // "dying").
    let begins: Vec<&[u8]> = wanted
        .iter()
        .map(|word| word.as_bytes())
        .map(|word| word.get(..if word.len() < LONG_WORD { 1 } else { SAME_LETTERS }).unwrap_or(word))
        .collect();
    let may_be_wanted = |word: &str| !word.is_ascii() || begins.iter().any(|begin| word.as_bytes().starts_with(begin));
    let mut found = Vec::new();
    plain.token_stream(text).process(&mut |token| {
        if !may_be_wanted(&token.text) {
            return;
        }
        if let Some(word) = words(analyzer, &token.text).pop().filter(|word| wanted.contains(&*word.text)) {
            found.push(Token { text: word.text, ..token.clone() });
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(language: &str, text: &str) -> Vec<String> {
        words(&mut analyzer(IndexOptions::new(language, false)), text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_are_folded_and_lose_their_endings() {
        assert_eq!(split("english", "Migrating the CAFÉS"), ["migrat", "the", "cafe"]);
        assert_eq!(split("none", "Migrating"), ["migrating"]);
        assert_eq!(split("german", "Häuser"), ["haus"]);
        assert_eq!(split("german", "Ha\u{308}user \u{301} re\u{301}sume\u{301}s"), ["haus", "resum"]);
    }

    #[test]
    fn punctuation_splits_and_pairs_overlap() {
        assert_eq!(split("none", "src/main.rs foo_bar"), ["src", "main", "rs", "foo", "bar"]);
        assert_eq!(split("none", "東京都 a京b"), ["東京", "京都", "a", "京", "b"]);
        assert_eq!(split("none", "「日本語」です。"), ["日本", "本語", "です"]);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "Ünïcode 東京都!";
        let found = words(&mut analyzer(IndexOptions::new("none", false)), text);
        let places: Vec<&str> = found.iter().map(|token| &text[token.offset_from..token.offset_to]).collect();
        assert_eq!(places, ["Ünïcode", "東京", "京都"]);
        assert_eq!(found.iter().map(|token| token.position).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(split("none", &"é".repeat(100))[0].len(), 32);
    }

    #[test]
    fn the_same_words_are_found_as_in_the_whole_text() {
        let text = "He was dying to die; only skies, lying, tied, gently. Migrations of cafés: CAFÉ cafe, migrating 東京都, Häuser Straßen Öl 42nd άνθρωποι migrants";
        for language in ["none", "english", "german", "greek"] {
            let options = IndexOptions::new(language, false);
            let (mut analyzer, mut plain) = (analyzer(options), prefix_analyzer());
            let all = words(&mut analyzer, text);
            for word in &all {
                let places = |tokens: &[Token]| {
                    let same = tokens.iter().filter(|token| token.text == word.text);
                    same.map(|token| (token.offset_from, token.offset_to)).collect::<Vec<_>>()
                };
                let found = find_words(&mut analyzer, &mut plain, text, &HashSet::from([&*word.text]));
                assert_eq!(places(&found), places(&all), "{language} {}", word.text);
                assert_eq!(found.len(), places(&all).len());
            }
        }
    }
}
