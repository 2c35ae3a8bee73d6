//! The order of hits. Whoever changes a number here measures it: `cargo xtask retrieval`.

use std::collections::HashMap;

/// Messages that are ranked, of those with the best words.
pub(crate) const CANDIDATES: usize = 400;

/// The same for a query of one word.
pub(crate) const CANDIDATES_OF_ONE_WORD: usize = 100;

/// Messages that are ranked besides, of those of a time that the question names.
pub(crate) const CANDIDATES_OF_TIME: usize = 100;

/// Messages that are looked at for what they mean; if a filter leaves fewer than enough of them, more are, up to the most.
pub(crate) const NEAREST: usize = 200;
pub(crate) const ENOUGH_OF_NEAREST: usize = 60;
pub(crate) const MOST_NEAREST: usize = 12_800;

/// Score of a message for each standard deviation that it is closer in meaning than is usual, as a share of the best score by words.
pub(crate) const MEANING_WEIGHT: f32 = 0.15;

/// Sources that are looked at for their title.
pub(crate) const TITLE_CANDIDATES: usize = 20;

/// Share of its own score that a message lends to those one and two places before and behind it: what answers a question is often
/// said next to what has its words.
const LENT: [f32; 2] = [0.5, 0.25];

/// Share of the best score of a run of messages that each message in it gets.
const FROM_BEST: f32 = 0.3;

/// Share of the score of a source's title that each of its messages gets.
const FROM_TITLE: f32 = 0.3;

/// The score of a source whose title matches, as a share of that.
pub(crate) const TITLE_ALONE: f32 = 0.7;

/// Share of the best score that a message gets whose time the question names; one near that time gets less.
const FROM_TIME: f32 = 0.4;

/// How far hits of a source are apart that are shown as one.
pub(crate) const SPAN: u64 = 2;

/// The score of a message, in parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Score {
    /// By its own words.
    pub(crate) words: f32,
    /// By what it means.
    pub(crate) meaning: f32,
    /// Lent by its neighbours.
    pub(crate) neighbours: f32,
    /// For being in a run with a good one.
    pub(crate) session: f32,
    /// By the title of its session.
    pub(crate) title: f32,
    /// For being near the time that the question names.
    pub(crate) time: f32,
}

impl Score {
    /// The part that does not depend on other messages.
    pub(crate) fn own(self) -> f32 {
        self.words + self.meaning
    }

    pub(crate) fn total(self) -> f32 {
        self.own() + self.neighbours + self.session + self.title + self.time
    }

    /// The parts with their names.
    pub(crate) fn parts(self) -> Vec<(&'static str, f32)> {
        let all = [
            ("words", self.words),
            ("meaning", self.meaning),
            ("neighbours", self.neighbours),
            ("session", self.session),
            ("title", self.title),
            ("time", self.time),
        ];
        all.into_iter().filter(|(_, value)| *value != 0.0).collect()
    }
}

/// The parts of the score of a message that do not depend on others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnScore {
    pub(crate) words: f32,
    pub(crate) meaning: f32,
}

/// Scores messages by their own scores and those of their neighbours in the same group. `own` has group, number and score of
/// the candidates; `titles` the scores of titles by group. With `with_neighbours`, messages that have none of the words are ranked, too, if
/// they stand beside some that do.
pub(crate) fn rank(
    own: &[(u64, u64, OwnScore)],
    titles: &HashMap<u64, f32>,
    with_neighbours: bool,
) -> HashMap<(u64, u64), Score> {
    let mut scores: HashMap<(u64, u64), Score> = HashMap::new();
    for (group, number, OwnScore { words, meaning }) in own {
        scores.insert((*group, *number), Score { words: *words, meaning: *meaning, ..Score::default() });
    }
    for (group, number, score) in own {
        for (place, share) in LENT.iter().enumerate() {
            let distance = place as u64 + 1;
            for near in
                [number.checked_sub(distance).filter(|near| *near > 0), Some(number + distance)].into_iter().flatten()
            {
                let near = (*group, near);
                if with_neighbours || scores.contains_key(&near) {
                    scores.entry(near).or_default().neighbours += share * (score.words + score.meaning);
                }
            }
        }
    }
    let mut best: HashMap<u64, f32> = HashMap::new();
    for ((group, _), score) in &scores {
        let best = best.entry(*group).or_default();
        *best = best.max(score.total());
    }
    for ((group, _), score) in &mut scores {
        score.session = FROM_BEST * best.get(group).copied().unwrap_or_default();
        score.title = FROM_TITLE * titles.get(group).copied().unwrap_or_default();
    }
    scores
}

/// Adds to each score a share of the best one, by how close the entry is to the time that the question names: 0 to 1.
pub(crate) fn add_time<'a>(scores: impl Iterator<Item = (&'a mut Score, f32)>) {
    let scores: Vec<_> = scores.collect();
    let best = scores.iter().map(|(score, _)| score.total()).fold(0.0, f32::max);
    for (score, closeness) in scores {
        score.time = FROM_TIME * best * closeness;
    }
}
