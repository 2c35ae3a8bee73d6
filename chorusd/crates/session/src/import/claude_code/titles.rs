//! Titles that the file gives to its conversations.

use super::line::Title;

/// Largest number of summaries that are kept. A file usually has a handful.
const MAX_SUMMARIES: usize = 1000;

/// The titles found so far.
#[derive(Debug, Default)]
pub(super) struct Titles {
    given: Option<String>,
    guessed: Option<String>,
    /// Summaries, each with the hash of the leaf that it refers to, or 0 if it names none.
    summaries: Vec<(u64, String)>,
}

/// The conversation that the leaf of a summary belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafOwner {
    /// The conversation that is being described.
    This,
    Another,
    /// The leaf is not in the file.
    Missing,
}

impl Titles {
    /// Records a title.
    pub(super) fn add(&mut self, title: Title<'_>, hash: impl Fn(&str) -> u64) {
        match title {
            Title::Given(text) => self.given = to_single_line(&text),
            Title::Guessed(text) => self.guessed = to_single_line(&text),
            Title::Summary { text, leaf } => {
                let leaf = leaf.map_or(0, |leaf| hash(&leaf));
                if self.summaries.len() < MAX_SUMMARIES {
                    self.summaries.extend(to_single_line(&text).map(|text| (leaf, text)));
                }
            }
        }
    }

    /// Returns the hashes of the leaves that summaries refer to, sorted.
    pub(super) fn leaves(&self) -> Vec<u64> {
        let mut leaves: Vec<u64> = self.summaries.iter().map(|(leaf, _)| *leaf).collect();
        leaves.sort_unstable();
        leaves
    }

    /// Returns the description of a conversation. For a side chain that is the last summary of one of its lines. For
    /// the main conversation it is the first of: the user's title, its last summary, a generated title, and the only
    /// summary whose leaf is not in the file, since resuming the conversation may have rewritten the lines.
    pub(super) fn description(&self, main: bool, owner: impl Fn(u64) -> LeafOwner) -> Option<String> {
        let (mut own, mut strange) = (None, Vec::new());
        for (leaf, text) in &self.summaries {
            match owner(*leaf) {
                _ if *leaf == 0 && main => own = Some(text),
                LeafOwner::This => own = Some(text),
                LeafOwner::Missing if *leaf != 0 => strange.push(text),
                LeafOwner::Missing | LeafOwner::Another => {}
            }
        }
        if !main {
            return own.cloned();
        }
        strange.dedup();
        let only = strange.pop().filter(|_| strange.is_empty());
        self.given.as_ref().or(own).or(self.guessed.as_ref()).or(only).cloned()
    }
}

/// Joins the lines of `text`. Returns `None` if nothing is left.
fn to_single_line(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}
