//! Estimates the tokens of a text by its script and by the shape of its words, in one pass.
//!
//! The weights were fitted to the two vocabularies of OpenAI (the geometric mean of their counts) over texts in 20
//! languages, source code, JSON, listings and encoded data; docs/design/windows.md has the errors. Other vocabularies
//! differ by less than these two do from each other, and `usage::Calibration` learns by how much.

/// Thousandths of a token of a word of ASCII letters.
const WORD: u64 = 890;
/// A capital letter that follows a small one starts another piece, as in `camelCase`.
const CAPITAL_IN_WORD: u64 = 1500;
/// A word that directly follows a digit.
const WORD_AFTER_DIGIT: u64 = 640;
/// Each letter of a word after the first [`SHORT_WORD`].
const LONG_WORD_LETTER: u64 = 360;
/// Each letter of a word after the first [`LONG_WORD`]: hardly a word of a language.
const RANDOM_LETTER: u64 = 1100;
/// A letter that is the same as the one before it, as in `aaaa`.
const REPEATED_LETTER: u64 = 250;
const SHORT_WORD: u32 = 6;
const LONG_WORD: u32 = 14;
/// Up to three digits.
const DIGITS: u64 = 1450;
/// The first of several punctuation marks, and each further one.
const PUNCTUATION: u64 = 780;
const MORE_PUNCTUATION: u64 = 120;
/// Several spaces or tabs; a single one belongs to the word behind it.
const INDENTATION: u64 = 1110;
/// The first of several Chinese, Japanese or Korean characters, in addition to what each has.
const EAST_ASIAN_RUN: u64 = 2080;

/// The kind of the previous character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Punctuation,
    Space,
    Newline,
    /// A character of a script other than Latin.
    Other,
}

/// Returns the estimated tokens of a text, in thousandths.
#[must_use]
pub fn millitokens_of_text(text: &str) -> u64 {
    let mut estimate = Estimate { millis: 0, kind: Kind::Newline, run: 0, previous: '\0' };
    for char in text.chars() {
        if char.is_ascii() {
            estimate.add_ascii(char);
        } else {
            estimate.add_other(char);
        }
        estimate.previous = char;
    }
    estimate.end_run();
    estimate.millis
}

struct Estimate {
    millis: u64,
    kind: Kind,
    /// Characters of this kind so far.
    run: u32,
    previous: char,
}

impl Estimate {
    fn add_ascii(&mut self, char: char) {
        let kind = match char {
            'a'..='z' | 'A'..='Z' => Kind::Letter,
            '0'..='9' => Kind::Digit,
            ' ' | '\t' => Kind::Space,
            '\n' | '\r' => Kind::Newline,
            _ => Kind::Punctuation,
        };
        if kind == self.kind {
            return self.extend_run(char);
        }
        let after_digit = self.kind == Kind::Digit;
        self.end_run();
        (self.kind, self.run) = (kind, 1);
        self.millis += match kind {
            Kind::Letter if after_digit => WORD_AFTER_DIGIT,
            Kind::Letter => WORD,
            Kind::Punctuation => PUNCTUATION,
            Kind::Digit | Kind::Space | Kind::Newline | Kind::Other => 0,
        };
    }

    fn extend_run(&mut self, char: char) {
        self.run = self.run.saturating_add(1);
        self.millis += match self.kind {
            Kind::Letter if char == self.previous => REPEATED_LETTER,
            Kind::Letter if char.is_ascii_uppercase() && !self.previous.is_uppercase() => {
                self.run = 1;
                CAPITAL_IN_WORD
            }
            Kind::Letter if self.run > LONG_WORD => RANDOM_LETTER,
            Kind::Letter if self.run > SHORT_WORD => LONG_WORD_LETTER,
            Kind::Punctuation => MORE_PUNCTUATION,
            _ => 0,
        };
    }

    fn add_other(&mut self, char: char) {
        let script = Script::of(char);
        if script == Script::Latin {
            // Within a word it is one more letter of it.
            if self.kind != Kind::Letter {
                self.end_run();
                (self.kind, self.run) = (Kind::Letter, 0);
                self.millis += WORD;
            }
            self.run = self.run.saturating_add(1);
        } else if self.kind != Kind::Other {
            self.end_run();
            (self.kind, self.run) = (Kind::Other, 1);
            self.millis += if script.is_east_asian() { EAST_ASIAN_RUN } else { 0 };
        }
        self.millis += script.millitokens();
    }

    /// Adds what depends on the length of the run that ends here.
    fn end_run(&mut self) {
        self.millis += match self.kind {
            Kind::Digit => u64::from(self.run.div_ceil(3)) * DIGITS,
            Kind::Space if self.run > 1 => INDENTATION,
            _ => 0,
        };
    }
}

/// A script, or several that have about as many tokens a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Latin letters with diacritics, and combining marks.
    Latin,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    /// Devanagari, Bengali and the other scripts of India.
    Indic,
    /// Thai, Lao, Tibetan, Burmese and Georgian.
    SouthEastAsian,
    Hangul,
    Kana,
    /// Chinese characters, and the punctuation and wide forms that go with them.
    Han,
    Emoji,
    /// Dashes, quotes, arrows, box drawing and the like.
    Symbol,
    Rare,
}

impl Script {
    fn of(char: char) -> Self {
        match u32::from(char) {
            0..0x250 | 0x300..0x370 | 0x1e00..0x1f00 => Self::Latin,
            0x370..0x400 | 0x1f00..0x2000 => Self::Greek,
            0x400..0x530 => Self::Cyrillic,
            0x590..0x600 => Self::Hebrew,
            0x600..0x900 | 0xfb50..0xfe00 | 0xfe70..0xff00 => Self::Arabic,
            0x900..0xe00 => Self::Indic,
            0xe00..0x1100 => Self::SouthEastAsian,
            0x1100..0x1200 | 0x3130..0x3190 | 0xac00..0xd7b0 => Self::Hangul,
            0x3040..0x3100 => Self::Kana,
            0x2000..0x2e80 | 0xfe00..0xfe10 => Self::Symbol,
            0x2e80..0xa000 | 0xf900..0xfb00 | 0xff00..0x1_0000 | 0x2_0000..0x4_0000 => Self::Han,
            0x1_f000..0x2_0000 => Self::Emoji,
            _ => Self::Rare,
        }
    }

    fn is_east_asian(self) -> bool {
        matches!(self, Self::Han | Self::Kana | Self::Hangul)
    }

    fn millitokens(self) -> u64 {
        match self {
            Self::Latin => 980,
            Self::Greek => 700,
            Self::Cyrillic => 430,
            Self::Hebrew => 750,
            Self::Arabic => 580,
            Self::Indic => 730,
            Self::SouthEastAsian => 660,
            Self::Hangul => 230,
            Self::Kana => 850,
            Self::Han => 820,
            Self::Emoji => 1960,
            Self::Symbol => 2300,
            Self::Rare => 2700,
        }
    }
}
