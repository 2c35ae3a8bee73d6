//! Describes patterns of others' secrets: a prefix and what must follow it. `patterns` contains all of them.

use super::alphabet::Alphabet;
use super::matcher_input::ViewText;
use super::pattern_matcher::Match;

/// One form of a secret.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    pub kind: &'static str,
    pub prefix: &'static str,
    pub rule: PatternRule,
}

/// The rest of the secret after its prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PatternRule {
    /// A single part. The prefix belongs to the secret.
    Single(PatternPart),
    /// Several parts.
    Parts(&'static [PatternPart]),
    /// A custom matcher.
    Custom(MatchFn),
    /// A custom matcher; the prefix is not part of the secret but shows that one follows.
    CustomAfter(MatchFn),
}

/// A part of a secret.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PatternPart {
    /// Exactly this text.
    Text(&'static str),
    /// At least `least` and at most `most` bytes of an alphabet. `varies` means that those after the first `least` may
    /// be on another line.
    Run { of: Alphabet, least: usize, most: usize, varies: bool },
}

/// A matcher, called with the offset of the prefix and the kind.
pub(crate) type MatchFn = fn(&ViewText<'_>, usize, &'static str) -> Match;

impl Pattern {
    /// Returns whether the prefix is part of the secret.
    pub(crate) fn includes_prefix(&self) -> bool {
        !matches!(self.rule, PatternRule::CustomAfter(_))
    }

    /// Returns the parts that follow the prefix, or none if a custom matcher handles it.
    pub(crate) fn parts(&self) -> &[PatternPart] {
        match &self.rule {
            PatternRule::Single(part) => std::slice::from_ref(part),
            PatternRule::Parts(parts) => parts,
            PatternRule::Custom(_) | PatternRule::CustomAfter(_) => &[],
        }
    }

    /// Returns whether the secret may end with `=`.
    pub(crate) fn may_end_with_padding(&self) -> bool {
        match self.parts().last() {
            Some(PatternPart::Run { of, .. }) => (of.contains)(b'='),
            _ => matches!(
                self.kind,
                "azure-key" | "bearer-token" | "basic-auth" | "npm-auth" | "docker-auth" | "authorization"
            ),
        }
    }
}

/// A part of exactly `count` bytes.
pub(crate) const fn exactly(of: Alphabet, count: usize) -> PatternPart {
    PatternPart::Run { of, least: count, most: count, varies: false }
}

/// A part of at least `least` bytes.
pub(crate) const fn at_least(of: Alphabet, least: usize) -> PatternPart {
    PatternPart::Run { of, least, most: usize::MAX, varies: true }
}

/// A pattern that takes as many bytes as there are, at least `least`, which is the length that is issued today.
pub(crate) const fn run(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Pattern {
    single(kind, start, PatternPart::Run { of, least, most: usize::MAX, varies: false })
}

/// A pattern that takes as many bytes as there are. The length varies; it is at least `least`.
pub(crate) const fn variable(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Pattern {
    single(kind, start, PatternPart::Run { of, least, most: usize::MAX, varies: true })
}

/// A pattern of exactly `count` bytes.
pub(crate) const fn exact(kind: &'static str, start: &'static str, of: Alphabet, count: usize) -> Pattern {
    single(kind, start, exactly(of, count))
}

const fn single(kind: &'static str, start: &'static str, part: PatternPart) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Single(part) }
}

pub(crate) const fn parts(kind: &'static str, start: &'static str, parts: &'static [PatternPart]) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Parts(parts) }
}

pub(crate) const fn custom(kind: &'static str, start: &'static str, look: MatchFn) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::Custom(look) }
}

pub(crate) const fn custom_after(kind: &'static str, start: &'static str, look: MatchFn) -> Pattern {
    Pattern { kind, prefix: start, rule: PatternRule::CustomAfter(look) }
}
