//! Text on one line with marked words, such as those that were searched for.

use super::sanitize;
use super::style::Styler;
use super::styled_words::{Emphasis, StyledWords, Word};

/// The end of a line after which there are others.
const CUT: &str = " …";

/// Text of others with marked characters. White space counts as one space.
#[derive(Debug)]
pub struct MarkedText(Vec<(char, bool)>);

impl MarkedText {
    /// Marks the characters of `text` in the ranges `marks`.
    #[must_use]
    pub fn new(text: &str, marks: &[(u64, u64)]) -> Self {
        let is_marked = |at: u64| marks.iter().any(|(start, end)| (*start..*end).contains(&at));
        Self((0..).zip(text.chars()).map(|(at, c)| (c, is_marked(at))).collect())
    }

    /// Returns the lines for a terminal of `width` columns: at most `max_lines`, with the first marked word in them. For
    /// `None` it returns the whole text as one line.
    #[must_use]
    pub fn lines(self, width: Option<usize>, max_lines: usize, styler: Styler) -> Vec<String> {
        let Some(width) = width else { return self.words().wrap(usize::MAX, styler) };
        let (words, width, is_cut) = self.cut(width, max_lines);
        let mut lines = words.wrap(width, styler);
        if is_cut {
            lines.truncate(max_lines);
            lines.last_mut().into_iter().for_each(|last| last.push_str(CUT));
        }
        lines
    }

    /// Returns the lines of [`MarkedText::lines`] as pieces, each with whether it is marked.
    #[must_use]
    pub fn pieces(self, width: usize, max_lines: usize) -> Vec<Vec<(String, bool)>> {
        let (words, width, is_cut) = self.cut(width, max_lines);
        let marked = |pieces: Word| pieces.into_iter().map(|(text, emphasis)| (text, emphasis.bold)).collect();
        let mut lines: Vec<Vec<_>> = words.wrap_pieces(width).into_iter().map(marked).collect();
        if is_cut {
            lines.truncate(max_lines);
            lines.last_mut().into_iter().for_each(|last| last.push((CUT.to_owned(), false)));
        }
        lines
    }

    /// Returns the words, the width to wrap them to, and true if the lines after `max_lines` are cut off.
    fn cut(mut self, width: usize, max_lines: usize) -> (StyledWords, usize, bool) {
        self.start_near_mark(width, max_lines);
        if self.words().wrap_pieces(width).len() <= max_lines {
            return (self.words(), width, false);
        }
        // Two columns for the sign.
        (self.words(), width.saturating_sub(2).max(1), true)
    }

    /// Drops the start if the first marked word is too far behind it.
    fn start_near_mark(&mut self, width: usize, max_lines: usize) {
        let Some(mark) = self.0.iter().position(|(_, marked)| *marked) else { return };
        let is_space = |at: &usize| self.0[*at].0.is_whitespace();
        if self.0.len() <= width * max_lines || mark < width * max_lines / 2 {
            return;
        }
        let start = (mark.saturating_sub(width / 2)..mark).find(is_space).unwrap_or(mark);
        self.0.drain(..start);
        self.0.insert(0, ('…', false));
        if start == mark {
            self.0.insert(1, (' ', false));
        }
    }

    fn words(&self) -> StyledWords {
        let mut words = StyledWords::default();
        for piece in self.0.chunk_by(|(_, one), (_, two)| one == two) {
            let bold = piece.first().is_some_and(|(_, marked)| *marked);
            let text: String = piece.iter().map(|(c, _)| if c.is_whitespace() { ' ' } else { *c }).collect();
            words.push(&sanitize::multi_line(&text), Emphasis { bold, ..Emphasis::default() });
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Styler = Styler { enabled: false };
    const COLOR: Styler = Styler { enabled: true };

    #[test]
    fn characters_are_marked_wherever_bytes_are() {
        let text = MarkedText::new("größer: Redis,\n\tübel", &[(8, 13), (16, 20)]);
        assert_eq!(text.lines(None, 1, COLOR), ["größer: \u{1b}[1mRedis\u{1b}[0m, \u{1b}[1mübel\u{1b}[0m"]);
    }

    #[test]
    fn marks_that_are_outside_are_ignored() {
        let marks = [(9, 3), (5, 99), (u64::MAX, u64::MAX)];
        assert_eq!(MarkedText::new("a redis", &marks).lines(None, 1, COLOR), ["a red\u{1b}[1mis\u{1b}[0m"]);
        assert_eq!(MarkedText::new("", &marks).lines(Some(10), 2, COLOR), Vec::<String>::new());
    }

    #[test]
    fn nothing_controls_the_terminal() {
        let text = MarkedText::new("\u{1b}[2J\u{202e}redis\u{7}", &[(0, 5)]);
        assert_eq!(text.lines(None, 1, PLAIN), ["␛[2J<U+202E>redis␇"]);
    }

    #[test]
    fn a_long_text_is_cut_after_the_last_line() {
        let text = MarkedText::new("one two three four five six seven", &[(0, 3)]);
        assert_eq!(text.lines(Some(10), 2, PLAIN), ["one two", "three …"]);
    }

    #[test]
    fn the_first_marked_word_is_shown_however_far_it_is() {
        let text = format!("{}redis is gone {}", "word ".repeat(30), "more ".repeat(30));
        let lines = MarkedText::new(&text, &[(150, 155)]).lines(Some(30), 2, PLAIN);
        assert_eq!(lines, ["… word word redis is gone", "more more more more more …"]);
        let hostile = "x".repeat(300);
        let lines = MarkedText::new(&hostile, &[(290, 295)]).lines(Some(30), 2, PLAIN);
        assert_eq!(lines, ["… xxxxxxxxxx"]);
    }
}
