//! What the user wanted: the first real request, and what made it particular later.

use chorus_proto::Role;

use super::clean::units;
use super::cues;
use super::digest::{Digest, Said, at_char};
use super::sentence::{Sentence, sentences};

/// Characters of later user messages that are looked at; what is longer was pasted.
const LATER: usize = 600;

/// The user's own sentences.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The sentences of the first message that asks for something.
    pub first: Vec<Sentence>,
    /// Later ones, in order.
    pub later: Vec<Sentence>,
}

/// Finds them.
pub(super) fn request(digest: &Digest) -> Request {
    let mut request = Request::default();
    let mut fallback = Vec::new();
    for said in digest.said().filter(|said| said.role == Role::User) {
        if !request.first.is_empty() && is_terminal(said) {
            continue;
        }
        let first = request.first.is_empty();
        let (telling, others) = read(said, first);
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
fn read(said: &Said, first: bool) -> (Vec<Sentence>, Vec<Sentence>) {
    let text = if first { &said.text } else { at_char(&said.text, LATER).0 };
    let units = units(text);
    // What follows a heading in capitals is instructions to anybody, if something was said before it.
    let mut end = units.len();
    for (at, _) in units.iter().enumerate().filter(|(_, unit)| unit.opens_section) {
        if sentences(&units[..at]).iter().any(tells) {
            end = at;
            break;
        }
    }
    let all = sentences(&units[..end]);
    if all.first().is_some_and(|sentence| cues::is_preamble(&sentence.words)) {
        return (Vec::new(), all);
    }
    all.into_iter().partition(tells)
}

/// Whether a sentence says something about the matter.
fn tells(sentence: &Sentence) -> bool {
    let words = &sentence.words;
    !(cues::is_greeting(words)
        || cues::is_closing(words)
        || cues::is_introduction(words, &sentence.text)
        || sentence.content().len() == 0)
}
