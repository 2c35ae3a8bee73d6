//! What came of a command or a button.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::messages::LOADING;
use super::shown::Shown;
use super::state::{Interaction as Kept, Shared};
use crate::wait::{DEADLINE, wait_until};

/// An interaction that the application was told of.
#[derive(Debug, Clone)]
pub struct Interaction {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl Interaction {
    fn kept(&self) -> Kept {
        self.shared.state().interactions[&self.id].clone()
    }

    /// Waits for the first answer: its kind, and how long it took.
    ///
    /// # Panics
    /// Where there is none in time.
    #[track_caller]
    pub fn acknowledged(&self) -> (u64, Duration) {
        let (kind, at) = wait_until("an interaction to be acknowledged", DEADLINE, || self.kept().callback);
        (kind, at - self.kept().at)
    }

    /// Whether there was a first answer.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.kept().callback.is_some()
    }

    /// What the answer says now: the first message that was made or changed for it and is still there.
    ///
    /// # Panics
    /// Where there is none in time.
    #[track_caller]
    pub fn answer(&self) -> Shown {
        wait_until("an interaction to be answered", DEADLINE, || self.answers().into_iter().next())
    }

    /// Waits for an answer that holds `text`.
    ///
    /// # Panics
    /// With the answers where none does in time.
    #[track_caller]
    pub fn answer_with(&self, text: &str) -> Shown {
        let end = std::time::Instant::now() + DEADLINE;
        wait_until(text, DEADLINE * 2, || {
            let answers = self.answers();
            let found = answers.iter().find(|answer| answer.content.contains(text)).cloned();
            assert!(found.is_some() || std::time::Instant::now() < end, "no {text:?} in {answers:#?}");
            found
        })
    }

    /// Every message that was made or changed in answer, as it is now.
    #[must_use]
    pub fn answers(&self) -> Vec<Shown> {
        let state = self.shared.state();
        let messages = state.interactions[&self.id].answered.iter().filter_map(|id| state.messages.get(id));
        messages.filter(|message| message.flags & LOADING == 0).map(|message| Shown::of(&state, message)).collect()
    }

    /// What is offered for completion: names and values.
    ///
    /// # Panics
    /// Where nothing is in time.
    #[track_caller]
    pub fn choices(&self) -> Vec<(String, Value)> {
        let choices = wait_until("words for completion", DEADLINE, || self.kept().choices);
        let named = |choice: &Value| (choice["name"].as_str().unwrap_or_default().to_owned(), choice["value"].clone());
        choices.as_array().into_iter().flatten().map(named).collect()
    }
}
