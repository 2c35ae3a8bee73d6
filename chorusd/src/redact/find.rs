//! Finding the next secret in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::block;
use super::bytes::Bytes;
use super::known::forms;
use super::look::{Look, look};
use super::shapes::SHAPES;
use super::view::View;

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
    /// The place of the secret in the text, and in its view.
    pub part: Range<usize>,
    pub seen: Range<usize>,
    pub kind: &'static str,
    /// The number of the daemon's own key that it is.
    pub key: Option<usize>,
    /// Its last `=` was taken for a soft line break, and is not in the view.
    pub padded: bool,
}

/// A secret that was found in a view.
struct Seen {
    part: Range<usize>,
    kind: &'static str,
    what: What,
    key: Option<usize>,
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
        let mut all: Vec<(Vec<u8>, What)> = own.chain(shapes).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let mut patterns: Vec<&Vec<u8>> = all.iter().map(|(start, _)| start).collect();
        patterns.dedup();
        let begins = patterns
            .iter()
            .map(|pattern| {
                // Beginnings of the pattern, the longest first.
                let lengths = (1..=pattern.len()).rev();
                let here = lengths.flat_map(|length| {
                    let from = all.partition_point(|(start, _)| start.as_slice() < &pattern[..length]);
                    all[from..].iter().take_while(move |(start, _)| start.as_slice() == &pattern[..length])
                });
                here.map(|(_, what)| *what).collect()
            })
            .collect();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        let itself = |what: &What| !matches!(what, What::Shape(at) if !SHAPES[*at].is_itself());
        let mut sorted: Vec<_> = all.iter().filter(|(_, what)| itself(what)).map(|(start, _)| start.clone()).collect();
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

    /// The first secret of the text that `view` shows that ends behind `done`; what stands before that is only looked at for how it
    /// goes on.
    pub fn next(&self, view: &View<'_>, from: usize, done: usize) -> Next {
        let text = Bytes::of(view);
        let mut at = view.at(from);
        let told = done;
        let done = view.at(told);
        let waits = |from: usize| Next::Open(view.raw(from).max(told));
        let mut open: Option<usize> = None;
        while let Some(found) = self.search.as_ref().and_then(|search| search.find(Input::new(text.all).range(at..))) {
            if open.is_some_and(|open| open <= found.start()) {
                break;
            }
            at = found.start() + 1;
            for what in &self.begins[found.pattern().as_usize()] {
                match self.look(&text, found.start(), *what) {
                    (Look::Secret { part, kind }, key) if part.end > done => {
                        // What may begin before it is waited for first.
                        if let Some(open) = open.filter(|open| *open < part.start) {
                            return waits(open);
                        }
                        let seen = Seen { part: part.start.max(done)..part.end, kind, what: *what, key };
                        let from = seen.part.start;
                        return match self.named(&text, seen) {
                            Some(seen) => Next::Secret(found_in(view, &text, seen)),
                            None => waits(from),
                        };
                    }
                    (Look::Open(from), _) => {
                        open = Some(open.map_or(from, |open| open.min(from)).max(done));
                        break;
                    }
                    _ => {}
                }
            }
        }
        let tail = if text.whole { None } else { self.tail(&text, view.at(from), done) };
        match (open, tail) {
            (Some(open), Some(tail)) => waits(open.min(tail)),
            (Some(open), None) | (None, Some(open)) => waits(open),
            (None, None) => Next::Nothing,
        }
    }

    /// A secret that was found by what stands before it as its own beginning tells it, if that does. `None`: more must come.
    fn named(&self, text: &Bytes<'_>, seen: Seen) -> Option<Seen> {
        if !matches!(seen.what, What::Shape(at) if !SHAPES[at].is_itself()) {
            return Some(seen);
        }
        let rest = &text.all[seen.part.start..];
        let own = self.forms.iter().enumerate().filter(|(_, (form, _))| rest.starts_with(form));
        let own = own.map(|(at, _)| What::Form(at));
        let shapes = SHAPES.iter().enumerate().filter(|(_, shape)| shape.is_itself());
        let shapes =
            shapes.filter(|(_, shape)| rest.starts_with(shape.start.as_bytes())).map(|(at, _)| What::Shape(at));
        for what in own.chain(shapes) {
            match self.look(text, seen.part.start, what) {
                (Look::Secret { part, kind }, key) if part.start == seen.part.start && part.end >= seen.part.end => {
                    return Some(Seen { part, kind, what, key });
                }
                (Look::Open(_), _) => return None,
                _ => {}
            }
        }
        Some(seen)
    }

    fn look(&self, text: &Bytes<'_>, at: usize, what: What) -> (Look, Option<usize>) {
        match what {
            What::Shape(shape) => (look(text, at, &SHAPES[shape]), None),
            What::Form(form) => {
                let (form, key) = &self.forms[form];
                (own(text, at, form), Some(*key))
            }
        }
    }

    /// Returns the place from which the end of `text` may be the beginning of a secret; it may begin in what has gone
    /// on.
    fn tail(&self, text: &Bytes<'_>, from: usize, done: usize) -> Option<usize> {
        let end = text.all.len();
        let begins = (from.max(end.saturating_sub(self.longest))..end).find(|at| {
            let tail = &text.all[*at..];
            if !self.first[usize::from(tail[0])] {
                return false;
            }
            let near = self.sorted.partition_point(|start| start.as_slice() < tail);
            self.sorted.get(near).is_some_and(|start| start.starts_with(tail))
                && (tail.len() >= LIKELY || text.begins(*at))
        });
        let block = block::unfinished(text);
        [begins, block].into_iter().flatten().min().map(|from| from.max(done)).filter(|from| *from < end)
    }

    /// What of the end of a text that was cut off may be a piece of a secret: the beginning of one of the daemon's own
    /// keys, or a shape that had not ended.
    pub fn piece(&self, view: &View<'_>, done: usize) -> Option<Found> {
        const LEAST: usize = 8;
        let Next::Open(from) = self.next(view, done, done) else { return None };
        let (text, from) = (Bytes::of(view), view.at(from));
        let rest = text.all.get(from..).filter(|rest| rest.len() >= LEAST)?;
        let known = self.forms.iter().any(|(form, _)| form.starts_with(rest));
        let shape = SHAPES.iter().filter(|shape| rest.starts_with(shape.start.as_bytes()));
        let long = shape.filter(|shape| rest.len() >= shape.start.len() + LEAST).max_by_key(|shape| shape.start.len());
        // What is whole but for its end was found before this is asked.
        let (kind, what) = if known { (OWN, What::Form(0)) } else { (long?.kind, What::Shape(0)) };
        let random = known || rest.iter().any(u8::is_ascii_digit);
        let seen = Seen { part: from..text.all.len(), kind, what, key: None };
        random.then(|| found_in(view, &text, seen))
    }
}

/// Looks at `at` for `form`, of one of the daemon's own keys. A blank or a backslash of it may be lost at the end of a
/// line.
fn own(text: &Bytes<'_>, at: usize, form: &[u8]) -> Look {
    let mut end = at;
    for letter in form {
        match text.get(end) {
            None if !text.whole => return Look::Open(at),
            Some(found) if found == *letter => end += 1,
            _ if matches!(letter, b' ' | b'\\') && text.gap(end).is_some() => {}
            _ => return Look::No,
        }
    }
    Look::Secret { part: at..end, kind: OWN }
}

/// A secret that was seen, in the text itself.
fn found_in(view: &View<'_>, text: &Bytes<'_>, seen: Seen) -> Found {
    let Seen { part, kind, what, key } = seen;
    let padded = text.gap(part.end).is_some_and(|gap| gap.equals)
        && matches!(what, What::Shape(at) if SHAPES[at].is_padded())
        && part.end < text.all.len();
    let end = view.raw_end(part.end) + usize::from(padded);
    Found { part: view.raw(part.start)..end, seen: part, kind, key, padded }
}
