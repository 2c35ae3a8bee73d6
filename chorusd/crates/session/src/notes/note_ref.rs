//! How people name a note: a letter with a number, as lists show it, or its id.

use chorus_proto::WorkingSet;

use super::NoteList;

/// The name of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRef {
    /// The text as it was given.
    pub text: String,
    /// The lists that a number without a letter counts in; `None` if a letter is needed.
    pub implied: Option<&'static [NoteList]>,
}

/// The lists that a letter stands for. Facts are counted through: first those that are pinned, then those that
/// compactions found.
const LETTERS: [(char, &[NoteList]); 5] = [
    ('f', &[NoteList::PinnedFacts, NoteList::Facts]),
    ('d', &[NoteList::Decisions]),
    ('t', &[NoteList::OpenTasks]),
    ('p', &[NoteList::FilesTouched]),
    ('c', &[NoteList::Conflicts]),
];

/// Length of the shortest prefix of an id.
const MIN_ID_PREFIX: usize = 4;

impl NoteRef {
    /// A note of any list.
    #[must_use]
    pub fn any(text: &str) -> Self {
        Self { text: text.trim().to_owned(), implied: None }
    }

    /// An open task, if the text is only a number.
    #[must_use]
    pub fn task(text: &str) -> Self {
        Self { implied: Some(&[NoteList::OpenTasks]), ..Self::any(text) }
    }

    /// A conflict, if the text is only a number.
    #[must_use]
    pub fn conflict(text: &str) -> Self {
        Self { implied: Some(&[NoteList::Conflicts]), ..Self::any(text) }
    }

    /// A pinned fact by its number.
    #[must_use]
    pub fn pinned_fact(number: u64) -> Self {
        Self { implied: Some(&[NoteList::PinnedFacts]), ..Self::any(&number.to_string()) }
    }

    /// Returns whether the text is a number without a letter although a letter is needed.
    #[must_use]
    pub fn needs_letter(&self) -> bool {
        self.implied.is_none() && !self.text.is_empty() && self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Returns the list and the index of the note; `None` if there is no such note, or several.
    #[must_use]
    pub fn find(&self, set: &WorkingSet) -> Option<(NoteList, usize)> {
        let (lists, number) = match self.text.chars().next()? {
            '0'..='9' => (self.implied?, &self.text[..]),
            letter => {
                let letter = letter.to_ascii_lowercase();
                let lists = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, lists)| *lists);
                (lists.unwrap_or_default(), self.text.get(1..)?)
            }
        };
        let number = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(mut index) = number {
            for list in lists {
                let count = list.items(set).len();
                if index < count {
                    return Some((*list, index));
                }
                index -= count;
            }
        }
        self.find_by_id(set)
    }

    fn find_by_id(&self, set: &WorkingSet) -> Option<(NoteList, usize)> {
        let all = || {
            NoteList::ALL
                .into_iter()
                .flat_map(|list| list.items(set).iter().enumerate().map(move |(index, item)| ((list, index), &item.id)))
        };
        let exact = all().find(|(_, id)| **id == self.text).map(|(note, _)| note);
        if exact.is_some() || self.text.len() < MIN_ID_PREFIX {
            return exact;
        }
        let mut begins = all().filter(|(_, id)| id.starts_with(&self.text)).map(|(note, _)| note);
        begins.next().filter(|_| begins.next().is_none())
    }
}
