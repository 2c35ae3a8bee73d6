//! Finds the outcome of a conversation and the question that it left open.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_proto::Role;

use super::lexicon;
use super::sample::{ConversationSample, SampledMessage, head_and_tail};
use super::sentence::{Sentence, SentenceCache};

/// Number of the assistant's last messages that are searched for the outcome.
const MAX_LATE_MESSAGES: usize = 12;

/// Bytes at each end of a text that are examined: the outcome is at the start or the end of a message.
const EDGE_BYTES: usize = 1200;

/// Smallest score of an outcome. Plans and questions score less, even late ones.
const MIN_SCORE: f64 = 3.0;

/// Finds the assistant's sentence that best describes the outcome.
pub(super) fn find_outcome(
    digest: &ConversationSample,
    topic: &HashSet<&str>,
    reading: &SentenceCache,
) -> Option<Arc<Sentence>> {
    let late: Vec<&SampledMessage> = digest
        .messages()
        .rev()
        .filter(|said| said.role == Role::Assistant && !said.text.trim().is_empty())
        .take(MAX_LATE_MESSAGES)
        .collect();
    let mut best: Option<(f64, Arc<Sentence>)> = None;
    for (age, said) in late.iter().enumerate() {
        let recent = 5.0 * 0.75_f64.powi(age as i32);
        for sentence in reading.sentences(&head_and_tail(&said.text, EDGE_BYTES, EDGE_BYTES)) {
            let Some(score) = score_sentence(&sentence, topic) else { continue };
            let score = score + recent;
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, sentence));
            }
        }
    }
    best.filter(|(score, _)| *score >= MIN_SCORE).map(|(_, sentence)| sentence)
}

/// Scores a sentence. Returns `None` if it cannot be an outcome.
fn score_sentence(sentence: &Sentence, topic: &HashSet<&str>) -> Option<f64> {
    let words = &sentence.words;
    if (!sentence.has_content_words(3) && lexicon::count_outcome_words(words) == 0)
        || lexicon::is_offer(words)
        || lexicon::is_closing(words)
    {
        return None;
    }
    let mut score = lexicon::count_outcome_words(words).min(2) as f64 * 2.0;
    score += sentence.content_words().filter(|word| topic.contains(word)).count().min(3) as f64 * 0.5;
    score += sentence.weight().min(5.0) * 0.4;
    if lexicon::is_plan(words) {
        score -= 4.0;
    }
    if sentence.text.ends_with(['?', '？']) {
        score -= 4.0;
    }
    if sentence.text.ends_with(':') {
        score -= 0.5;
    }
    if words.len() < 4 {
        score -= 2.0;
    }
    Some(score)
}

/// Finds what was left open: the user's last sentence, or the last question to the user.
pub(super) fn find_left_open(digest: &ConversationSample, reading: &SentenceCache) -> Option<Arc<Sentence>> {
    let last = digest
        .messages()
        .rev()
        .find(|said| matches!(said.role, Role::User | Role::Assistant) && !said.text.trim().is_empty())?;
    let said = reading.sentences(&head_and_tail(&last.text, EDGE_BYTES, EDGE_BYTES));
    let mut said = said.into_iter().filter(|sentence| sentence.has_content_words(1));
    let heavier = |a: &Arc<Sentence>, b: &Arc<Sentence>| a.weight().total_cmp(&b.weight());
    match last.role {
        Role::User => said
            .filter(|sentence| !lexicon::is_closing(&sentence.words) && !lexicon::is_greeting(&sentence.words))
            .max_by(heavier),
        _ => said.rfind(|sentence| {
            sentence.text.ends_with(['?', '？']) && !lexicon::is_offer(&sentence.words) && sentence.words.len() > 3
        }),
    }
}
