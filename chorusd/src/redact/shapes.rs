//! How a secret of others is described: how it begins, and what must follow. `list` has all of them.

use super::alphabet::Alphabet;
use super::bytes::Bytes;
pub use super::list::SHAPES;
use super::look::Look;

/// One way in which a secret begins.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub kind: &'static str,
    pub start: &'static str,
    pub rule: Rule,
}

/// What follows the beginning.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// This part. The beginning belongs to the secret.
    One(Part),
    /// These parts.
    Parts(&'static [Part]),
    /// Looked at by a function of its own.
    By(Looks),
    /// As `By`, but the beginning only says that a secret follows.
    After(Looks),
}

/// A part of a secret.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// Just this.
    Text(&'static str),
    /// At least `least` letters of an alphabet, and at most `most`. `varies`: those behind `least` may be in another line.
    Of { of: Alphabet, least: usize, most: usize, varies: bool },
}

/// Looks at a place, given with its kind.
pub type Looks = fn(&Bytes<'_>, usize, &'static str) -> Look;

impl Shape {
    /// Returns true if the beginning is part of the secret.
    pub fn is_itself(&self) -> bool {
        !matches!(self.rule, Rule::After(_))
    }

    /// Returns the parts that follow the beginning; none for what a function looks at.
    pub fn parts(&self) -> &[Part] {
        match &self.rule {
            Rule::One(part) => std::slice::from_ref(part),
            Rule::Parts(parts) => parts,
            Rule::By(_) | Rule::After(_) => &[],
        }
    }

    /// Returns true if `=` may end it.
    pub fn is_padded(&self) -> bool {
        match self.parts().last() {
            Some(Part::Of { of, .. }) => (of.has)(b'='),
            _ => matches!(
                self.kind,
                "azure-key" | "bearer-token" | "basic-auth" | "npm-auth" | "docker-auth" | "authorization"
            ),
        }
    }
}

/// So many letters.
pub const fn n(of: Alphabet, count: usize) -> Part {
    Part::Of { of, least: count, most: count, varies: false }
}

/// So many letters or more.
pub const fn least(of: Alphabet, least: usize) -> Part {
    Part::Of { of, least, most: usize::MAX, varies: true }
}

/// As many letters as there are. At least `least`, which is as many as there are today.
pub const fn run(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Shape {
    one(kind, start, Part::Of { of, least, most: usize::MAX, varies: false })
}

/// As many letters as there are. Their number varies: at least `least`.
pub const fn varies(kind: &'static str, start: &'static str, of: Alphabet, least: usize) -> Shape {
    one(kind, start, Part::Of { of, least, most: usize::MAX, varies: true })
}

/// Exactly so many letters.
pub const fn exact(kind: &'static str, start: &'static str, of: Alphabet, count: usize) -> Shape {
    one(kind, start, n(of, count))
}

const fn one(kind: &'static str, start: &'static str, part: Part) -> Shape {
    Shape { kind, start, rule: Rule::One(part) }
}

pub const fn parts(kind: &'static str, start: &'static str, parts: &'static [Part]) -> Shape {
    Shape { kind, start, rule: Rule::Parts(parts) }
}

pub const fn by(kind: &'static str, start: &'static str, look: Looks) -> Shape {
    Shape { kind, start, rule: Rule::By(look) }
}

pub const fn after(kind: &'static str, start: &'static str, look: Looks) -> Shape {
    Shape { kind, start, rule: Rule::After(look) }
}
