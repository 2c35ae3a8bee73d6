//! Words with emphasis, wrapped to a width.

use std::fmt::Write as _;

use super::style::Styler;
use super::text;

/// How a piece of text is set apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Emphasis {
    pub bold: bool,
    pub italic: bool,
    pub struck: bool,
    pub code: bool,
    pub faint: bool,
}

impl Emphasis {
    /// Appends `text` with the escape sequences of this emphasis.
    fn write(self, text: &str, paint: Styler, line: &mut String) {
        let codes = [(self.bold, "1"), (self.faint, "2"), (self.italic, "3"), (self.struck, "9"), (self.code, "36")];
        let codes: Vec<&str> = codes.iter().filter(|(set, _)| *set).map(|(_, code)| *code).collect();
        if codes.is_empty() || !paint.enabled {
            line.push_str(text);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(line, "\x1b[{}m{text}\x1b[0m", codes.join(";"));
        }
    }
}

/// A word: pieces without white space between them.
pub(super) type Word = Vec<(String, Emphasis)>;

/// Text as words.
#[derive(Debug, Default)]
pub(super) struct StyledWords {
    /// The lines that must be separate, each with its words.
    lines: Vec<Vec<Word>>,
    /// True if the next piece begins a word.
    between_words: bool,
}

impl StyledWords {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(Vec::is_empty)
    }

    /// Appends text; white space separates words.
    pub(super) fn push(&mut self, text: &str, emphasis: Emphasis) {
        for (index, piece) in text.split(char::is_whitespace).enumerate() {
            self.between_words |= index > 0;
            if piece.is_empty() {
                continue;
            }
            if self.lines.is_empty() {
                self.lines.push(Vec::new());
            }
            let Some(line) = self.lines.last_mut() else { continue };
            match line.last_mut().filter(|_| !self.between_words) {
                Some(word) => word.push((piece.to_owned(), emphasis)),
                None => line.push(vec![(piece.to_owned(), emphasis)]),
            }
            self.between_words = false;
        }
    }

    /// Ends the line.
    pub(super) fn push_line_break(&mut self) {
        self.lines.push(Vec::new());
        self.between_words = true;
    }

    /// Returns lines of at most `width` columns. A word that is wider is split.
    pub(super) fn wrap(self, width: usize, paint: Styler) -> Vec<String> {
        let write = |pieces: Word| {
            pieces.iter().fold(String::new(), |mut line, (piece, emphasis)| {
                emphasis.write(piece, paint, &mut line);
                line
            })
        };
        self.wrap_pieces(width).into_iter().map(write).collect()
    }

    /// Returns the same lines as pieces.
    pub(super) fn wrap_pieces(self, width: usize) -> Vec<Word> {
        self.lines.into_iter().flat_map(|words| wrap_line(words, width)).collect()
    }
}

fn wrap_line(words: Vec<Word>, width: usize) -> Vec<Word> {
    let (mut lines, mut line, mut used) = (Vec::new(), Word::new(), 0);
    for word in words {
        let columns: usize = word.iter().map(|(piece, _)| text::width(piece)).sum();
        if used > 0 && used + 1 + columns > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push((" ".to_owned(), Emphasis::default()));
            used += 1;
        }
        for (piece, emphasis) in word {
            for part in text::split_columns(&piece, width) {
                let columns = text::width(part);
                if used > 0 && used + columns > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push((part.to_owned(), emphasis));
                used += columns;
            }
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_word_stay_together() {
        let mut words = StyledWords::default();
        words.push("one (", Emphasis::default());
        words.push("two", Emphasis { bold: true, ..Emphasis::default() });
        words.push(") three", Emphasis::default());
        assert_eq!(words.wrap(6, Styler { enabled: false }), ["one", "(two)", "three"]);
    }

    #[test]
    fn a_word_that_fits_on_no_line_is_split() {
        let mut words = StyledWords::default();
        words.push("abcdefgh i", Emphasis::default());
        assert_eq!(words.wrap(3, Styler { enabled: false }), ["abc", "def", "gh", "i"]);
    }
}
