//! What the user wanted: the first real request, and what made it particular later.

use std::rc::Rc;

use chorus_proto::Role;

use super::cues;
use super::digest::{Digest, Said, at_char};
use super::sentence::{Reading, Sentence};

/// Characters of later user messages that are looked at; what is longer was pasted.
const LATER: usize = 600;

/// The user's own sentences.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The sentences of the first message that asks for something.
    pub first: Vec<Rc<Sentence>>,
    /// Later ones, in order.
    pub later: Vec<Rc<Sentence>>,
}

/// Finds them.
pub(super) fn request(digest: &Digest, reading: &Reading) -> Request {
    let mut request = Request::default();
    let mut fallback = Vec::new();
    for said in digest.said().filter(|said| said.role == Role::User) {
        if !request.first.is_empty() && is_terminal(said) {
            continue;
        }
        let first = request.first.is_empty();
        let (telling, others) = read(said, first, reading);
        if !first {
            request.later.extend(telling);
        } else if telling.is_empty() && fallback.is_empty() {
            fallback = others;
        } else {
            request.first = telling;
        }
    }
    if request.first.is_empty() {
        request.first = fallback;
    }
    request
}

/// A user message that is the screen of a terminal: it ends with its prompt.
fn is_terminal(said: &Said) -> bool {
    said.text.trim_end().ends_with(['$', '#']) && !said.text.trim_end().ends_with("###")
}

/// The sentences of a message that ask or tell something, and the others.
fn read(said: &Said, first: bool, reading: &Reading) -> (Vec<Rc<Sentence>>, Vec<Rc<Sentence>>) {
    let text = if first { &said.text } else { at_char(&said.text, LATER).0 };
    let pieces = reading.of(text);
    // What follows a heading in capitals is instructions to anybody, if something was said before it.
    let (mut end, mut told) = (pieces.len(), false);
    for (at, piece) in pieces.iter().enumerate() {
        if piece.opens_section && told {
            end = at;
            break;
        }
        told = told || piece.sentences.iter().any(tells);
    }
    let all: Vec<_> = pieces[..end].iter().flat_map(|piece| &piece.sentences).cloned().collect();
    if all.first().is_some_and(|sentence| cues::is_preamble(&sentence.words)) {
        return (Vec::new(), all);
    }
    all.into_iter().partition(tells)
}

/// Whether a sentence says something about the matter.
fn tells(sentence: &Rc<Sentence>) -> bool {
    let words = &sentence.words;
    !(cues::is_greeting(words)
        || cues::is_closing(words)
        || cues::is_introduction(words, &sentence.text)
        || sentence.content().len() == 0)
}
