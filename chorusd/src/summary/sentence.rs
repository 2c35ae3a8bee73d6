//! Sentences of a piece of prose, with the words that tell them apart.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use unicode_segmentation::UnicodeSegmentation;

use super::clean::{Unit, units};
use super::cues;
use super::digest::at_char;

/// Bytes after which a sentence is over, whatever its last word is.
const LONGEST: usize = 1000;

/// Bytes of a sentence whose words are looked at: what is longer is no sentence of a person.
const READ: usize = 500;

/// One sentence.
#[derive(Debug, Clone)]
pub(super) struct Sentence {
    pub text: String,
    /// In lower case, in order; of a very long sentence the first ones.
    pub words: Vec<String>,
    /// Where the words that carry meaning stand, each once.
    content: Vec<usize>,
    /// Asked for again and again while sentences are compared.
    weight: OnceCell<f64>,
}

impl Sentence {
    pub fn new(text: &str) -> Self {
        let words: Vec<String> = at_char(text, READ).0.unicode_words().map(lower).collect();
        let mut content: Vec<usize> = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            if word.len() > 1 && !cues::is_stop_word(word) && !content.iter().any(|known| words[*known] == *word) {
                content.push(at);
            }
        }
        Self { text: text.to_owned(), words, content, weight: OnceCell::new() }
    }

    /// The words that carry meaning, each once.
    pub fn content(&self) -> impl ExactSizeIterator<Item = &str> {
        self.content.iter().map(|at| self.words[*at].as_str())
    }

    /// Names, numbers and ids in it.
    pub fn marks(&self) -> HashSet<&str> {
        let bare = |token: &'_ str| -> bool { token.contains(|c: char| c.is_ascii_digit()) };
        let tokens = at_char(&self.text, READ)
            .0
            .split(|c: char| c.is_whitespace() || c == '/')
            .map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()));
        let named = |token: &str| token.len() > 2 && token.starts_with(char::is_uppercase);
        // Every sentence begins with a capital.
        tokens
            .enumerate()
            .filter(|(at, token)| bare(token) || (*at > 0 && named(token)))
            .map(|(_, token)| token)
            .collect()
    }

    /// How much it tells of this conversation alone.
    pub fn weight(&self) -> f64 {
        *self.weight.get_or_init(|| self.marks().len().min(5) as f64 * 0.7 + self.content.len().min(12) as f64 * 0.5)
    }

    /// Whether it reads like speech: no lists of files, no hashes.
    pub fn is_fluent(&self) -> bool {
        self.text.len() <= READ
            && !self.text.contains(['[', '{', '\\'])
            && self.text.split_whitespace().all(|token| !token.is_ascii() || token.len() <= 40)
    }

    /// Whether it adds nothing to another: most of its words are there, and no name or number is new.
    pub fn repeats(&self, other: &Self) -> bool {
        let own = self.content.len();
        let shared = || self.content().filter(|word| other.content().any(|known| known == *word)).count();
        let new_mark = || self.marks().iter().any(|mark| !other.text.contains(mark));
        self.text == other.text || (own > 0 && shared() * 10 >= own * 7 && !new_mark())
    }
}

fn lower(word: &str) -> String {
    let lower = word.to_lowercase();
    if lower.contains('’') { lower.replace('’', "'") } else { lower }
}

/// A piece of prose, read.
#[derive(Debug)]
pub(super) struct Piece {
    /// As in [`Unit`].
    pub opens_section: bool,
    pub sentences: Vec<Rc<Sentence>>,
}

/// Texts that were read: the last one of a conversation is looked at for what came out of it, for what was left open and,
/// where it is the first as well, for what was asked.
#[derive(Debug, Default)]
pub(super) struct Reading(RefCell<Vec<(String, Rc<[Piece]>)>>);

impl Reading {
    /// The prose of a text, piece by piece.
    pub fn of(&self, text: &str) -> Rc<[Piece]> {
        if let Some((_, pieces)) = self.0.borrow().iter().find(|(known, _)| known == text) {
            return pieces.clone();
        }
        let pieces: Rc<[Piece]> = units(text).iter().map(piece).collect();
        self.0.borrow_mut().push((text.to_owned(), pieces.clone()));
        pieces
    }

    /// All sentences of a text, in order.
    pub fn sentences(&self, text: &str) -> Vec<Rc<Sentence>> {
        self.of(text).iter().flat_map(|piece| &piece.sentences).cloned().collect()
    }
}

/// All sentences of a text that is read this once, in order.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    units(text).iter().flat_map(|unit| split(&unit.text)).map(|text| Sentence::new(&text)).collect()
}

fn piece(unit: &Unit) -> Piece {
    let sentences = split(&unit.text).iter().map(|text| Rc::new(Sentence::new(text))).collect();
    Piece { opens_section: unit.opens_section, sentences }
}

/// Splits by the rules of Unicode; what ends in an abbreviation or opens with a number goes on.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = String::new();
    for mut part in text.split_sentence_bounds() {
        while let Some(at) = glued(part) {
            open.push_str(&part[..at]);
            push(&mut found, &open);
            open.clear();
            part = &part[at..];
        }
        open.push_str(part);
        if open.len() > LONGEST || !goes_on(open.trim_end()) {
            push(&mut found, &open);
            open.clear();
        }
    }
    push(&mut found, &open);
    found
}

fn push(found: &mut Vec<String>, text: &str) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        found.push(text.to_owned());
    }
}

/// Where a sentence ends without the space that should follow: `… it works.Then we …`. Names such as `io.Reader` or
/// `fields.Field` stand alone or go on in another way.
fn glued(text: &str) -> Option<usize> {
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

fn goes_on(text: &str) -> bool {
    let Some(body) = text.strip_suffix('.') else { return false };
    let last = body.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    // An initial, an abbreviation, or the number of a point.
    let initial = last.chars().count() == 1 && last.chars().all(|c| c.is_ascii_uppercase()) && last != "I";
    let number = last == body && last.len() <= 3 && last.bytes().all(|b| b.is_ascii_digit());
    initial || number || cues::is_abbreviation(&last.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        assert_eq!(
            split("Use e.g. Tokio or J. Doe's. Then stop! Really?"),
            ["Use e.g. Tokio or J. Doe's.", "Then stop!", "Really?"]
        );
        assert_eq!(
            split("It took 3.5 s in v1.2.3 of main.py. Fine."),
            ["It took 3.5 s in v1.2.3 of main.py.", "Fine."]
        );
        assert_eq!(split("请帮我修复登录。现在可以了！谢谢"), ["请帮我修复登录。", "现在可以了！", "谢谢"]);
        assert_eq!(
            split("We run it on the server.Then we look at fields.Field and more.py")[0],
            "We run it on the server."
        );
        assert_eq!(split("🎉"), [""; 0]);
    }

    #[test]
    fn the_same_in_other_words_is_seen() {
        let a = Sentence::new("The rounding issue has been fixed in fields.py.");
        assert!(Sentence::new("Rounding issue fixed in fields.py").repeats(&a));
        assert!(!Sentence::new("Rounding issue fixed in schema.py and Field").repeats(&a));
        assert!(!a.repeats(&Sentence::new("The login page is broken.")));
    }
}
