//! A text in parts that one message takes each.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation as _;

use super::MOST;
use super::fence::{Place, Token};

/// As many characters are looked at for a better place to cut, of a whole part.
const BACK: usize = 3;
/// A character of more code points than these is no character.
const LONGEST: usize = 64;

/// `text` in parts of at most [`MOST`] characters. Cut between paragraphs, lines or words where that wastes little, never inside a
/// character; a block of code that is cut is closed and opened again. But for what does that, the parts one behind the other are `text`.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    Parts::new(text, MOST).map(|part| part.to_string()).collect()
}

/// A part, and what keeps a block of code that it is in whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'t> {
    pub opening: String,
    pub text: &'t str,
    pub closing: &'static str,
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.opening, self.text, self.closing)
    }
}

/// Parts of a text, the next one made when it is asked for.
#[derive(Debug)]
pub struct Parts<'t> {
    rest: &'t str,
    place: Place<'t>,
    most: usize,
}

impl<'t> Parts<'t> {
    pub fn new(text: &'t str, most: usize) -> Self {
        Self { rest: text, place: Place::default(), most }
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let opening = self.place.opening();
        let cut = cut(self.rest, self.place, self.most - opening.chars().count());
        let (text, rest) = self.rest.split_at(cut.at);
        (self.rest, self.place) = (rest, cut.place);
        // One that the text itself leaves open stays so.
        let closing = if rest.is_empty() { "" } else { cut.place.closing(text) };
        Some(Part { opening, text, closing })
    }
}

/// How good a place is to cut at; the best is last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Between backticks, or where a block would have nothing in it.
    Bad,
    Character,
    Word,
    Line,
    Paragraph,
}

#[derive(Debug, Clone, Copy)]
struct Cut<'t> {
    at: usize,
    class: Class,
    place: Place<'t>,
}

/// Where to cut `text`, of which at least something goes into `room` characters.
fn cut<'t>(text: &'t str, start: Place<'t>, room: usize) -> Cut<'t> {
    let (mut place, mut at, mut count, mut opened) = (start, 0, 0, start.in_block());
    // The last of each class.
    let mut found: [Option<Cut<'t>>; 5] = [None; 5];
    let mut whole = None;
    for token in (Tokens { rest: text, place: start }) {
        at += token.text().len();
        count += token.text().chars().count();
        if count > room {
            break;
        }
        place = place.behind(token);
        let fits = count + place.closing(&text[..at]).len() <= room;
        if at == text.len() {
            whole = Some(Cut { at, class: Class::Paragraph, place });
            break;
        }
        if !fits {
            continue;
        }
        opened = match token {
            Token::Opens(_) => true,
            Token::Closes(_) => false,
            Token::Other(text) => opened && text.trim().is_empty(),
        };
        let class = class(&text[..at], &text[at..], place, opened);
        // A good place far from the end is none.
        let late = count * BACK >= room || class <= Class::Character;
        if late {
            found[class as usize] = Some(Cut { at, class, place });
        }
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    whole.or_else(|| found.into_iter().flatten().max_by_key(|cut| cut.class)).unwrap_or(Cut {
        at: first,
        class: Class::Bad,
        place: start,
    })
}

/// `opened`: a block has been opened, and nothing is in it yet.
fn class(before: &str, behind: &str, place: Place<'_>, opened: bool) -> Class {
    let closes = place.in_block() && behind.trim_start().starts_with(super::fence::FENCE);
    if opened || closes || before.ends_with('`') && behind.starts_with('`') {
        return Class::Bad;
    }
    match before.as_bytes() {
        [.., b'\n', b'\n'] | [.., b'\n', b'\r', b'\n'] if !place.in_block() => Class::Paragraph,
        // What follows as a block begins with its fence.
        [.., b'\n'] if !place.in_block() && behind.starts_with(super::fence::FENCE) => Class::Paragraph,
        [.., b'\n'] => Class::Line,
        [.., b' ' | b'\t'] => Class::Word,
        _ => Class::Character,
    }
}

/// The tokens of a text, from a place in it on.
#[derive(Debug)]
pub struct Tokens<'t> {
    pub rest: &'t str,
    pub place: Place<'t>,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.place.token(self.rest, first(self.rest)?);
        self.place = self.place.behind(token);
        self.rest = &self.rest[token.text().len()..];
        Some(token)
    }
}

/// The first character as people see them; of one that is too long its first code points.
fn first(text: &str) -> Option<&str> {
    let grapheme = text.graphemes(true).next()?;
    Some(grapheme.char_indices().nth(LONGEST).map_or(grapheme, |(end, _)| &grapheme[..end]))
}
