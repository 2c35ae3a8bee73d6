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
        let (all, telling) = read(said, request.first.is_empty());
        if request.first.is_empty() {
            if fallback.is_empty() {
                fallback = all;
            }
            request.first = telling;
        } else {
            request.later.extend(telling);
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

/// All sentences of a message, and those of them that ask or tell something.
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
        return (all, Vec::new());
    }
    let telling = all.iter().filter(|sentence| tells(sentence)).cloned().collect();
    (all, telling)
}

/// Whether a sentence says something about the matter.
fn tells(sentence: &Sentence) -> bool {
    let words = &sentence.words;
    !(cues::is_greeting(words)
        || cues::is_closing(words)
        || cues::is_introduction(words, &sentence.text)
        || sentence.content().is_empty())
}
