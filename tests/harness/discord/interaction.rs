//! The handle of an interaction, with the application's responses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::messages::LOADING;
use super::state::{InteractionRecord as Kept, Shared};
use super::visible_message::VisibleMessage;
use crate::wait::{DEADLINE, wait_until};

/// An interaction that was sent to the application.
#[derive(Debug, Clone)]
pub struct Interaction {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl Interaction {
    fn record(&self) -> Kept {
        self.shared.state().interactions[&self.id].clone()
    }

    /// Waits for the initial response. Returns its type and how long it took.
    ///
    /// # Panics
    /// If there is none in time.
    #[track_caller]
    pub fn wait_for_acknowledgement(&self) -> (u64, Duration) {
        let (kind, at) = wait_until("an interaction to be acknowledged", DEADLINE, || self.record().callback);
        (kind, at - self.record().at)
    }

    /// Returns whether there was an initial response.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.record().callback.is_some()
    }

    /// Waits for a response: the first message that was created or edited for the interaction and still exists.
    ///
    /// # Panics
    /// If there is none in time.
    #[track_caller]
    pub fn response(&self) -> VisibleMessage {
        wait_until("an interaction to be answered", DEADLINE, || self.responses().into_iter().next())
    }

    /// Waits for a response that contains `text`.
    ///
    /// # Panics
    /// If none does in time; the panic message lists the responses.
    #[track_caller]
    pub fn response_with(&self, text: &str) -> VisibleMessage {
        let end = std::time::Instant::now() + DEADLINE;
        wait_until(text, DEADLINE * 2, || {
            let answers = self.responses();
            let found = answers.iter().find(|answer| answer.content.contains(text)).cloned();
            assert!(found.is_some() || std::time::Instant::now() < end, "no {text:?} in {answers:#?}");
            found
        })
    }

    /// Returns every message that was created or edited as a response, in its current state.
    #[must_use]
    pub fn responses(&self) -> Vec<VisibleMessage> {
        let state = self.shared.state();
        let messages = state.interactions[&self.id].responses.iter().filter_map(|id| state.messages.get(id));
        messages
            .filter(|message| message.flags & LOADING == 0)
            .map(|message| VisibleMessage::from_message(&state, message))
            .collect()
    }

    /// Waits for the choices of an autocomplete request. Returns names and values.
    ///
    /// # Panics
    /// If there are none in time.
    #[track_caller]
    pub fn choices(&self) -> Vec<(String, Value)> {
        let choices = wait_until("words for completion", DEADLINE, || self.record().choices);
        let named = |choice: &Value| (choice["name"].as_str().unwrap_or_default().to_owned(), choice["value"].clone());
        choices.as_array().into_iter().flatten().map(named).collect()
    }
}
