//! The words of a sentence.

/// Words in lower case, in order. They are in one buffer: a summary looks at hundreds of sentences.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    text: String,
    /// The end of each word in `text`, in bytes.
    ends: Vec<usize>,
}

impl Words {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
    }

    /// Iterates over the words from `index` on.
    pub(super) fn iter_from(&self, index: usize) -> impl Iterator<Item = &str> {
        (index..self.len()).filter_map(|index| self.get(index))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.iter_from(0)
    }

    fn push(&mut self, word: &str) {
        if word.is_ascii() {
            self.text.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        } else {
            // The whole word at once, because the lower case of a letter may depend on its neighbours.
            self.text.push_str(&word.to_lowercase().replace('’', "'"));
        }
        self.ends.push(self.text.len());
    }
}

impl<'a> FromIterator<&'a str> for Words {
    fn from_iter<T: IntoIterator<Item = &'a str>>(words: T) -> Self {
        let mut all = Self::default();
        words.into_iter().for_each(|word| all.push(word));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_lower_case_and_in_order() {
        let words: Words = ["Let’s", "GO", "", "ΟΔΟΣ"].into_iter().collect();
        assert_eq!(words.iter().collect::<Vec<_>>(), ["let's", "go", "", "οδος"]);
        assert_eq!(words.iter_from(3).collect::<Vec<_>>(), ["οδος"]);
        assert_eq!((words.len(), words.get(1), words.get(4)), (4, Some("go"), None));
    }
}
