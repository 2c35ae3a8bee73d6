//! Builds a summary from sentences of the conversation itself.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_proto::{Role, SummarySource};

use super::lexicon;
use super::outcome::{find_left_open, find_outcome};
use super::sample::ConversationSample;
use super::sentence::{Sentence, SentenceCache};
use super::text_limit::{end_sentence, truncate_chars};
use super::user_goal::{UserGoal, find_user_goal, texts_to_parse};

/// Length of the longest title, in characters.
const MAX_TITLE_CHARS: usize = 72;
/// Length of the longest sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 220;
/// While the summary has fewer characters, more details of the request are added.
const DETAIL_LIMIT_CHARS: usize = 300;
/// Largest number of sentences in a summary.
const MAX_SENTENCES: usize = 4;

/// A title and a summary in the conversation's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractiveSummary {
    /// One line of at most 72 characters from the first real request.
    pub title: Option<String>,
    /// Two to four sentences, or fewer if there are no more.
    pub summary: Option<String>,
}

impl ExtractiveSummary {
    /// Returns the source of the summary for the header of a session.
    #[must_use]
    pub fn source(&self) -> SummarySource {
        if self.summary.is_some() { SummarySource::Extractive } else { SummarySource::None }
    }
}

/// Chooses the sentences: the request, its details, the outcome, and what was left open.
#[must_use]
pub fn extract_summary(digest: &ConversationSample) -> ExtractiveSummary {
    let reading = SentenceCache::with_texts(&texts_to_parse(digest));
    let request = find_user_goal(digest, &reading);
    let asked = request.first.iter().find(|sentence| sentence.words.len() > 1).or(request.first.first());
    let topic: HashSet<&str> = request.first.iter().flat_map(|sentence| sentence.content_words()).collect();
    let mut chosen = ChosenSentences::default();
    // In order of importance; the text follows the order of the conversation.
    chosen.add(0, asked);
    chosen.add(3, find_outcome(digest, &topic, &reading).as_ref());
    chosen.add(4, find_left_open(digest, &reading).as_ref());
    let (early, later) = rank_details(&request);
    chosen.add(2, later.iter().copied().find(|sentence| chosen.is_new(sentence)));
    for detail in early {
        if chosen.chars() < DETAIL_LIMIT_CHARS {
            chosen.add(1, Some(detail));
        }
    }
    let title = asked.map(|asked| title_from_sentence(asked)).or_else(|| first_line(digest));
    ExtractiveSummary { summary: chosen.join(digest.chars()).or_else(|| title.clone()), title }
}

/// Returns the other sentences of the first request in order, and the later sentences by descending weight.
fn rank_details(request: &UserGoal) -> (Vec<&Arc<Sentence>>, Vec<&Arc<Sentence>>) {
    let early =
        request.first.iter().filter(|sentence| sentence.weight() > 2.0 && sentence.is_fluent()).take(3).collect();
    let weighed = request.later.iter().map(|sentence| (sentence.weight(), sentence));
    let mut later: Vec<(f64, &Arc<Sentence>)> = weighed
        .filter(|(weight, sentence)| *weight > 2.0 && sentence.is_fluent() && !lexicon::is_bare_answer(&sentence.words))
        .collect();
    // The sort is stable: of equal sentences the earlier one comes first.
    later.sort_by(|a, b| b.0.total_cmp(&a.0));
    let later = later.into_iter().map(|(_, sentence)| sentence).collect();
    (early, later)
}

fn title_from_sentence(sentence: &Sentence) -> String {
    let text = lexicon::strip_greeting(&sentence.text);
    truncate_chars(text.trim_end_matches(['.', ':', ',', ';', '。', ' ']), MAX_TITLE_CHARS)
}

/// Returns the first line of the conversation if there is no sentence, as with ASCII art or emoji.
fn first_line(digest: &ConversationSample) -> Option<String> {
    let spoken = |said: &&super::sample::SampledMessage| matches!(said.role, Role::User | Role::Assistant);
    let lines = digest.messages().filter(spoken).flat_map(|said| said.text.lines());
    let line = lines.map(str::trim).find(|line| !line.is_empty())?;
    Some(truncate_chars(line, MAX_TITLE_CHARS))
}

/// Sentences, each with its position in the summary.
#[derive(Default)]
struct ChosenSentences(Vec<(u8, Arc<Sentence>)>);

impl ChosenSentences {
    fn is_new(&self, sentence: &Sentence) -> bool {
        !self.0.iter().any(|(_, chosen)| sentence.repeats(chosen))
    }

    fn add(&mut self, place: u8, sentence: Option<&Arc<Sentence>>) {
        if let Some(sentence) = sentence.filter(|sentence| self.0.len() < MAX_SENTENCES && self.is_new(sentence)) {
            self.0.push((place, sentence.clone()));
        }
    }

    fn chars(&self) -> usize {
        self.0.iter().map(|(_, sentence)| sentence.text.chars().count()).sum()
    }

    /// Joins the sentences to one text of at most `most` characters.
    fn join(mut self, most: usize) -> Option<String> {
        self.0.sort_by_key(|(place, _)| *place);
        let mut text = String::new();
        for (_, sentence) in &self.0 {
            if !text.is_empty() && !text.ends_with(['。', '！', '？']) {
                text.push(' ');
            }
            text.push_str(&end_sentence(&truncate_chars(lexicon::strip_greeting(&sentence.text), MAX_SENTENCE_CHARS)));
        }
        if text.chars().count() > most {
            text = truncate_chars(self.0.first()?.1.text.as_str(), most);
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests;
