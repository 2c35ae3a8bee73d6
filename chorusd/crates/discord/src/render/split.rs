//! Splits a text into parts that fit into one message each.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation as _;

use super::MAX_MESSAGE_CHARS;
use super::code_block::{FenceState, Token};

/// A part is cut at a word, line or paragraph only behind a third of its length: `1 / MIN_FILL_DIVISOR`.
const MIN_FILL_DIVISOR: usize = 3;
/// A grapheme of more code points than this is cut.
const MAX_GRAPHEME_CHARS: usize = 64;

/// Splits `text` into parts of at most [`MAX_MESSAGE_CHARS`] characters, between paragraphs, lines or words if that
/// wastes little, and never inside a grapheme. A code block that is cut is closed and reopened. Without these fences
/// the concatenated parts equal `text`.
#[must_use]
pub(crate) fn split(text: &str) -> Vec<String> {
    Parts::new(text, MAX_MESSAGE_CHARS).map(|part| part.to_string()).collect()
}

/// A part, with the fences that keep its code block intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part<'t> {
    pub opening: String,
    pub text: &'t str,
    pub closing: &'static str,
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.opening, self.text, self.closing)
    }
}

/// An iterator over the parts of a text, each computed on demand.
#[derive(Debug)]
pub(super) struct Parts<'t> {
    rest: &'t str,
    fence: FenceState<'t>,
    max_chars: usize,
}

impl<'t> Parts<'t> {
    pub(super) fn new(text: &'t str, max_chars: usize) -> Self {
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
        // A block that the text itself leaves open stays open.
        let closing = if rest.is_empty() { "" } else { cut.fence.closing_fence(text) };
        Some(Part { opening, text, closing })
    }
}

/// The quality of a place to cut, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CutQuality {
    /// Between backticks, or where a code block would be left empty.
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

/// Finds where to cut `text` so that the part fits into `room` characters. The part has at least one character.
fn find_cut<'t>(text: &'t str, start: FenceState<'t>, room: usize) -> Cut<'t> {
    let (mut place, mut at, mut count, mut opened) = (start, 0, 0, start.is_in_block());
    // The last cut of each quality.
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
        // A good place near the beginning wastes too much of the message.
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

/// `opened`: a code block was opened and is still empty.
fn cut_quality(before: &str, behind: &str, place: FenceState<'_>, opened: bool) -> CutQuality {
    let closes = place.is_in_block() && behind.trim_start().starts_with(super::code_block::FENCE);
    if opened || closes || before.ends_with('`') && behind.starts_with('`') {
        return CutQuality::Bad;
    }
    match before.as_bytes() {
        [.., b'\n', b'\n'] | [.., b'\n', b'\r', b'\n'] if !place.is_in_block() => CutQuality::Paragraph,
        // What follows is a code block.
        [.., b'\n'] if !place.is_in_block() && behind.starts_with(super::code_block::FENCE) => CutQuality::Paragraph,
        [.., b'\n'] => CutQuality::Line,
        [.., b' ' | b'\t'] => CutQuality::Word,
        _ => CutQuality::Character,
    }
}

/// An iterator over the tokens of a text, from a given state on.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
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

/// Returns the first grapheme; of one that is too long, the first code points.
fn first_grapheme(text: &str) -> Option<&str> {
    let grapheme = text.graphemes(true).next()?;
    Some(grapheme.char_indices().nth(MAX_GRAPHEME_CHARS).map_or(grapheme, |(end, _)| &grapheme[..end]))
}
