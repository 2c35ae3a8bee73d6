//! Names that the file gives its conversations.

use super::line::Title;

/// So many summaries are kept: a file has a handful.
const MAX_SUMMARIES: usize = 1000;

/// Titles as they were found.
#[derive(Debug, Default)]
pub(super) struct Titles {
    given: Option<String>,
    guessed: Option<String>,
    /// The hash of the leaf a summary speaks of (0: it does not say), and the summary.
    summaries: Vec<(u64, String)>,
}

/// Which conversation the leaf of a summary belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafOwner {
    /// The one that asks.
    This,
    Another,
    /// The leaf is not in the file.
    Missing,
}

impl Titles {
    /// Keeps a title.
    pub fn add(&mut self, title: Title<'_>, hash: impl Fn(&str) -> u64) {
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

    /// The description of a side chain: the last summary of one of its lines. The main conversation is called what
    /// the user called it, if so; and where no summary is of a line in the file, it takes the only one there is:
    /// the lines may have been written anew when the conversation was taken up again.
    pub fn description(&self, main: bool, owner: impl Fn(u64) -> LeafOwner) -> Option<String> {
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

/// On one line.
fn to_single_line(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}
