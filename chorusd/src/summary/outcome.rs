//! How it ended: what the assistant said late, and what nobody answered.

use std::collections::HashSet;
use std::rc::Rc;

use chorus_proto::Role;

use super::cues;
use super::digest::{Digest, Said, ends};
use super::sentence::{Reading, Sentence};

/// So many texts of the assistant, from the end, may hold the outcome.
const LATE: usize = 12;

/// Bytes at both ends of a text that are looked at: an outcome opens an answer or closes it.
const EDGE: usize = 1200;

/// The least score of an outcome: a late plan or question has less.
const ENOUGH: f64 = 3.0;

/// The sentence of the assistant that best says what came out of it.
pub(super) fn outcome(digest: &Digest, topic: &HashSet<&str>, reading: &Reading) -> Option<Rc<Sentence>> {
    let late: Vec<&Said> = digest
        .said()
        .rev()
        .filter(|said| said.role == Role::Assistant && !said.text.trim().is_empty())
        .take(LATE)
        .collect();
    let mut best: Option<(f64, Rc<Sentence>)> = None;
    for (age, said) in late.iter().enumerate() {
        let recent = 5.0 * 0.75_f64.powi(age as i32);
        for sentence in reading.sentences(&ends(&said.text, EDGE, EDGE)) {
            let Some(score) = score(&sentence, topic) else { continue };
            let score = score + recent;
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, sentence));
            }
        }
    }
    best.filter(|(score, _)| *score >= ENOUGH).map(|(_, sentence)| sentence)
}

/// `None` for what cannot be an outcome.
fn score(sentence: &Sentence, topic: &HashSet<&str>) -> Option<f64> {
    let words = &sentence.words;
    if (sentence.content().len() < 3 && cues::outcomes(words) == 0) || cues::is_offer(words) || cues::is_closing(words)
    {
        return None;
    }
    let mut score = cues::outcomes(words).min(2) as f64 * 2.0;
    score += sentence.content().filter(|word| topic.contains(word)).count().min(3) as f64 * 0.5;
    score += sentence.weight().min(5.0) * 0.4;
    if cues::is_plan(words) {
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

/// What was left open: a last word of the user, or a last question to them.
pub(super) fn left_open(digest: &Digest, reading: &Reading) -> Option<Rc<Sentence>> {
    let last = digest
        .said()
        .rev()
        .find(|said| matches!(said.role, Role::User | Role::Assistant) && !said.text.trim().is_empty())?;
    let said = reading.sentences(&ends(&last.text, EDGE, EDGE));
    let mut said = said.into_iter().filter(|sentence| sentence.content().len() > 0);
    let heavier = |a: &Rc<Sentence>, b: &Rc<Sentence>| a.weight().total_cmp(&b.weight());
    match last.role {
        Role::User => said
            .filter(|sentence| !cues::is_closing(&sentence.words) && !cues::is_greeting(&sentence.words))
            .max_by(heavier),
        _ => said.rfind(|sentence| {
            sentence.text.ends_with(['?', '？']) && !cues::is_offer(&sentence.words) && sentence.words.len() > 3
        }),
    }
}
