//! Finds what the user wanted: the first real request, and later details.

use std::sync::Arc;

use chorus_proto::Role;

use super::lexicon;
use super::sample::{ConversationSample, SampledMessage, split_at_char};
use super::sentence::{Sentence, SentenceCache};

/// Bytes of each later user message that are examined. The rest of a longer one was probably pasted.
const MAX_LATER_BYTES: usize = 600;

/// The user's own sentences.
#[derive(Debug, Default)]
pub(super) struct UserGoal {
    /// The sentences of the first message that asks for something.
    pub first: Vec<Arc<Sentence>>,
    /// Sentences of later messages, in order.
    pub later: Vec<Arc<Sentence>>,
}

/// Finds the sentences of the user's request.
pub(super) fn find_user_goal(digest: &ConversationSample, reading: &SentenceCache) -> UserGoal {
    let mut request = UserGoal::default();
    let mut fallback = Vec::new();
    for said in digest.messages().filter(|said| said.role == Role::User) {
        if !request.first.is_empty() && is_terminal_output(said) {
            continue;
        }
        let first = request.first.is_empty();
        let (telling, others) = read_message(said, first, reading);
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

/// Returns the texts that [`find_user_goal`] will parse, and perhaps some more.
pub(super) fn texts_to_parse(digest: &ConversationSample) -> Vec<&str> {
    let said = digest.messages().filter(|said| said.role == Role::User && !is_terminal_output(said));
    said.map(|said| split_at_char(&said.text, MAX_LATER_BYTES).0).collect()
}

/// Returns whether a user message is the output of a terminal: it ends with a prompt.
fn is_terminal_output(said: &SampledMessage) -> bool {
    said.text.trim_end().ends_with(['$', '#']) && !said.text.trim_end().ends_with("###")
}

/// Returns the sentences of a message that ask or tell something, and the others.
fn read_message(
    said: &SampledMessage,
    first: bool,
    reading: &SentenceCache,
) -> (Vec<Arc<Sentence>>, Vec<Arc<Sentence>>) {
    let text = if first { &said.text } else { split_at_char(&said.text, MAX_LATER_BYTES).0 };
    let pieces = reading.parse(text);
    // A section with a heading in capitals contains general instructions if other text precedes it.
    let (mut end, mut told) = (pieces.len(), false);
    for (at, piece) in pieces.iter().enumerate() {
        if piece.opens_section && told {
            end = at;
            break;
        }
        told = told || piece.sentences.iter().any(is_telling);
    }
    let all: Vec<_> = pieces[..end].iter().flat_map(|piece| &piece.sentences).cloned().collect();
    if all.first().is_some_and(|sentence| lexicon::is_preamble(&sentence.words)) {
        return (Vec::new(), all);
    }
    all.into_iter().partition(is_telling)
}

/// Returns whether a sentence says something about the subject.
fn is_telling(sentence: &Arc<Sentence>) -> bool {
    let words = &sentence.words;
    !(lexicon::is_greeting(words)
        || lexicon::is_closing(words)
        || lexicon::is_introduction(words, &sentence.text)
        || !sentence.has_content_words(1))
}
