//! Finding the next secret in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::known::forms;
use super::look::{Bytes, Look, look};
use super::shapes::{Rule, SHAPES};

/// The kind of the daemon's own keys.
const OWN: &str = "chorus-key";

/// Bytes of a key's form that are looked for; the rest is compared where they are found.
const ANCHOR: usize = 12;

/// Bytes of a needle's beginning from which on what may be one is waited for in the middle of a word.
const LIKELY: usize = 3;

/// Everything that is looked for.
#[derive(Debug)]
pub struct Needles {
    /// `None` never happens: these are few patterns.
    search: Option<AhoCorasick>,
    /// What each pattern of `search` is the beginning of: the longest first.
    begins: Vec<Vec<What>>,
    /// Beginnings of what is itself the secret, sorted.
    sorted: Vec<Vec<u8>>,
    longest: usize,
    /// Bytes that one of these begins with.
    first: [bool; 256],
    keys: Vec<String>,
    /// With the number of the key.
    forms: Vec<(Vec<u8>, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Shape(usize),
    Form(usize),
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// What begins here may become a secret.
    Open(usize),
    Secret(Found),
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub part: Range<usize>,
    pub kind: &'static str,
    /// The number of the daemon's own key that it is.
    pub key: Option<usize>,
}

impl Needles {
    /// Looks for secrets of others, and for `keys`.
    pub fn new(keys: Vec<String>) -> Self {
        let forms: Vec<_> = keys
            .iter()
            .enumerate()
            .flat_map(|(number, key)| forms(key).into_iter().map(move |form| (form, number)))
            .collect();
        let shapes = SHAPES.iter().enumerate().map(|(at, shape)| (shape.start.as_bytes().to_vec(), What::Shape(at)));
        let own = forms.iter().enumerate();
        let own = own.map(|(at, (form, _))| (form[..form.len().min(ANCHOR)].to_vec(), What::Form(at)));
        let all: Vec<(Vec<u8>, What)> = own.chain(shapes).collect();
        let mut patterns: Vec<&Vec<u8>> = all.iter().map(|(start, _)| start).collect();
        patterns.sort_unstable();
        patterns.dedup();
        let begins = patterns
            .iter()
            .map(|pattern| {
                let mut here: Vec<_> = all.iter().filter(|(start, _)| pattern.starts_with(start)).collect();
                here.sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
                here.into_iter().map(|(_, what)| *what).collect()
            })
            .collect();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        let itself = |what: &What| !matches!(what, What::Shape(at) if matches!(SHAPES[*at].rule, Rule::After(_)));
        let mut sorted: Vec<_> = all.iter().filter(|(_, what)| itself(what)).map(|(start, _)| start.clone()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let longest = sorted.iter().map(Vec::len).max().unwrap_or(0);
        let mut first = [false; 256];
        sorted.iter().filter_map(|start| start.first()).for_each(|byte| first[usize::from(*byte)] = true);
        Self { search, begins, sorted, longest, first, keys, forms }
    }

    /// The daemon's own keys.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The first secret of `text` that ends behind `done`; what stands before that is only looked at for how it goes on.
    pub fn next(&self, text: &Bytes<'_>, from: usize, done: usize) -> Next {
        let mut at = from;
        let mut open: Option<usize> = None;
        while let Some(found) = self.search.as_ref().and_then(|search| search.find(Input::new(text.all).range(at..))) {
            if open.is_some_and(|open| open <= found.start()) {
                break;
            }
            at = found.start() + 1;
            for what in &self.begins[found.pattern().as_usize()] {
                match self.look(text, found.start(), *what) {
                    (Look::Secret { part, kind }, key) if part.end > done => {
                        // What may begin before it is waited for first.
                        if let Some(open) = open.filter(|open| *open < part.start) {
                            return Next::Open(open);
                        }
                        return Next::Secret(Found { part: part.start.max(done)..part.end, kind, key });
                    }
                    (Look::Open(from), _) => {
                        open = Some(open.map_or(from, |open| open.min(from)).max(done));
                        break;
                    }
                    _ => {}
                }
            }
        }
        let tail = if text.whole { None } else { self.tail(text, done) };
        match (open, tail) {
            (Some(open), Some(tail)) => Next::Open(open.min(tail)),
            (Some(open), None) | (None, Some(open)) => Next::Open(open),
            (None, None) => Next::Nothing,
        }
    }

    fn look(&self, text: &Bytes<'_>, at: usize, what: What) -> (Look, Option<usize>) {
        match what {
            What::Shape(shape) => (look(text, at, &SHAPES[shape]), None),
            What::Form(form) => {
                let (form, key) = &self.forms[form];
                let rest = &text.all[at..];
                let look = if rest.starts_with(form) {
                    Look::Secret { part: at..at + form.len(), kind: OWN }
                } else if !text.whole && form.starts_with(rest) {
                    Look::Open(at)
                } else {
                    Look::No
                };
                (look, Some(*key))
            }
        }
    }

    /// Where the end of `text` may be the beginning of a secret.
    fn tail(&self, text: &Bytes<'_>, done: usize) -> Option<usize> {
        let end = text.all.len();
        (done.max(end.saturating_sub(self.longest))..end).find(|at| {
            let tail = &text.all[*at..];
            if !self.first[usize::from(tail[0])] {
                return false;
            }
            let near = self.sorted.partition_point(|start| start.as_slice() < tail);
            self.sorted.get(near).is_some_and(|start| start.starts_with(tail))
                && (tail.len() >= LIKELY || text.begins(*at))
        })
    }

    /// What of the end of a text that was cut off may be a piece of a secret: the beginning of one of the daemon's own
    /// keys, or a shape that had not ended.
    pub fn piece(&self, all: &[u8], done: usize) -> Option<Found> {
        const LEAST: usize = 8;
        let text = Bytes { all, whole: false };
        match self.next(&text, done, done) {
            Next::Open(from) if all.len() - from >= LEAST => {
                let known = self.forms.iter().any(|(form, _)| form.starts_with(&all[from..]));
                let shape = SHAPES.iter().find(|shape| all[from..].starts_with(shape.start.as_bytes()));
                let long = shape.filter(|shape| all.len() - from >= shape.start.len() + LEAST);
                // What is whole but for its end was found before this is asked.
                let kind = if known { Some(OWN) } else { long.map(|shape| shape.kind) };
                let random = known || all[from..].iter().any(u8::is_ascii_digit);
                kind.filter(|_| random).map(|kind| Found { part: from..all.len(), kind, key: None })
            }
            _ => None,
        }
    }
}
