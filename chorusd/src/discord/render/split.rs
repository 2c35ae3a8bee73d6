//! A text in parts that one message takes each.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation as _;

use super::MAX_MESSAGE_CHARS;
use super::code_block::{FenceState, Token};

/// As many characters are looked at for a better place to cut, of a whole part.
const MIN_FILL_DIVISOR: usize = 3;
/// A character of more code points than these is no character.
const MAX_GRAPHEME_CHARS: usize = 64;

/// `text` in parts of at most [`MOST`] characters. Cut between paragraphs, lines or words where that wastes little, never inside a
/// character; a block of code that is cut is closed and opened again. But for what does that, the parts one behind the other are `text`.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    Parts::new(text, MAX_MESSAGE_CHARS).map(|part| part.to_string()).collect()
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
    fence: FenceState<'t>,
    max_chars: usize,
}

impl<'t> Parts<'t> {
    pub fn new(text: &'t str, max_chars: usize) -> Self {
        Self { rest: text, fence: FenceState::default(), max_chars }
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let opening = self.fence.opening_fence();
        let cut = find_cut(self.rest, self.fence, self.max_chars - opening.chars().count());
        let (text, rest) = self.rest.split_at(cut.at);
        (self.rest, self.fence) = (rest, cut.fence);
        // One that the text itself leaves open stays so.
        let closing = if rest.is_empty() { "" } else { cut.fence.closing_fence(text) };
        Some(Part { opening, text, closing })
    }
}

/// How good a place is to cut at; the best is last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CutQuality {
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
    quality: CutQuality,
    fence: FenceState<'t>,
}

/// Where to cut `text`, of which at least something goes into `room` characters.
fn find_cut<'t>(text: &'t str, start: FenceState<'t>, room: usize) -> Cut<'t> {
    let (mut place, mut at, mut count, mut opened) = (start, 0, 0, start.is_in_block());
    // The last of each class.
    let mut found: [Option<Cut<'t>>; 5] = [None; 5];
    let mut whole = None;
    for token in (Tokens { rest: text, fence: start }) {
        at += token.text().len();
        count += token.text().chars().count();
        if count > room {
            break;
        }
        place = place.after(token);
        let fits = count + place.closing_fence(&text[..at]).len() <= room;
        if at == text.len() {
            whole = Some(Cut { at, quality: CutQuality::Paragraph, fence: place });
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
        let class = cut_quality(&text[..at], &text[at..], place, opened);
        // A good place far from the end is none.
        let late = count * MIN_FILL_DIVISOR >= room || class <= CutQuality::Character;
        if late {
            found[class as usize] = Some(Cut { at, quality: class, fence: place });
        }
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    whole.or_else(|| found.into_iter().flatten().max_by_key(|cut| cut.quality)).unwrap_or(Cut {
        at: first,
        quality: CutQuality::Bad,
        fence: start,
    })
}

/// `opened`: a block has been opened, and nothing is in it yet.
fn cut_quality(before: &str, behind: &str, place: FenceState<'_>, opened: bool) -> CutQuality {
    let closes = place.is_in_block() && behind.trim_start().starts_with(super::code_block::FENCE);
    if opened || closes || before.ends_with('`') && behind.starts_with('`') {
        return CutQuality::Bad;
    }
    match before.as_bytes() {
        [.., b'\n', b'\n'] | [.., b'\n', b'\r', b'\n'] if !place.is_in_block() => CutQuality::Paragraph,
        // What follows as a block begins with its fence.
        [.., b'\n'] if !place.is_in_block() && behind.starts_with(super::code_block::FENCE) => CutQuality::Paragraph,
        [.., b'\n'] => CutQuality::Line,
        [.., b' ' | b'\t'] => CutQuality::Word,
        _ => CutQuality::Character,
    }
}

/// The tokens of a text, from a place in it on.
#[derive(Debug)]
pub struct Tokens<'t> {
    pub rest: &'t str,
    pub fence: FenceState<'t>,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.fence.next_token(self.rest, first_grapheme(self.rest)?);
        self.fence = self.fence.after(token);
        self.rest = &self.rest[token.text().len()..];
        Some(token)
    }
}

/// The first character as people see them; of one that is too long its first code points.
fn first_grapheme(text: &str) -> Option<&str> {
    let grapheme = text.graphemes(true).next()?;
    Some(grapheme.char_indices().nth(MAX_GRAPHEME_CHARS).map_or(grapheme, |(end, _)| &grapheme[..end]))
}
