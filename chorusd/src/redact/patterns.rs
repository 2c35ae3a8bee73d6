//! How a secret of others is described: how it begins, and what must follow. `list` has all of them.

use super::alphabet::Alphabet;
use super::matchers::Match;
pub use super::pattern_list::PATTERNS;
use super::view_text::ViewText;

/// One way in which a secret begins.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    pub kind: &'static str,
    pub prefix: &'static str,
    pub rule: PatternRule,
}

/// What follows the beginning.
#[derive(Debug, Clone, Copy)]
pub enum PatternRule {
    /// This part. The beginning belongs to the secret.
    Single(PatternPart),
    /// These parts.
    Parts(&'static [PatternPart]),
    /// Looked at by a function of its own.
    Custom(MatchFn),
    /// As `By`, but the beginning only says that a secret follows.
    CustomAfter(MatchFn),
}

/// A part of a secret.
#[derive(Debug, Clone, Copy)]
pub enum PatternPart {
    /// Just this.
    Text(&'static str),
    /// At least `least` letters of an alphabet, and at most `most`. `varies`: those behind `least` may be in another line.
    Run { of: Alphabet, least: usize, most: usize, varies: bool },
}

/// Looks at a place, given with its kind.
pub type MatchFn = fn(&ViewText<'_>, usize, &'static str) -> Match;

impl Pattern {
    /// Returns true if the beginning is part of the secret.
    pub fn includes_prefix(&self) -> bool {
        !matches!(self.rule, PatternRule::CustomAfter(_))
    }

    /// Returns the parts that follow the beginning; none for what a function looks at.
    pub fn parts(&self) -> &[PatternPart] {
        match &self.rule {
            PatternRule::Single(part) => std::slice::from_ref(part),
            PatternRule::Parts(parts) => parts,
            PatternRule::Custom(_) | PatternRule::CustomAfter(_) => &[],
        }
    }

    /// Returns true if `=` may end it.
    pub fn may_end_with_padding(&self) -> bool {
        match self.parts().last() {
            Some(PatternPart::Run { of, .. }) => (of.contains)(b'='),
            _ => matches!(
                self.kind,
                "azure-key" | "bearer-token" | "basic-auth" | "npm-auth" | "docker-auth" | "authorization"
            ),
        }
    }
}

/// So many letters.
pub const fn exactly(of: Alphabet, count: usize) -> PatternPart {
    PatternPart::Run { of, least: count, most: count, varies: false }
}

/// So many letters or more.
pub const fn at_least(of: Alphabet, least: usize) -> PatternPart {
    PatternPart::Run { of, least, most: usize::MAX, varies: true }
}

/// As many letters as there are. At least `least`, which is as many as there are today.
pub const fn run(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Pattern {
    single(kind, start, PatternPart::Run { of, least, most: usize::MAX, varies: false })
}

/// As many letters as there are. Their number varies: at least `least`.
pub const fn variable(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Pattern {
    single(kind, start, PatternPart::Run { of, least, most: usize::MAX, varies: true })
}

/// Exactly so many letters.
pub const fn exact(kind: &'static str, start: &'static str, of: Alphabet, count: usize) -> Pattern {
    single(kind, start, exactly(of, count))
}

const fn single(kind: &'static str, start: &'static str, part: PatternPart) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Single(part) }
}

pub const fn parts(kind: &'static str, start: &'static str, parts: &'static [PatternPart]) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Parts(parts) }
}

pub const fn custom(kind: &'static str, start: &'static str, look: MatchFn) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Custom(look) }
}

pub const fn custom_after(kind: &'static str, start: &'static str, look: MatchFn) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::CustomAfter(look) }
}
