//! What is said in a turn on its way to who asked for it. A listener that is slow hears longer pieces; nobody waits for it.

use std::sync::{Arc, Mutex, PoisonError};

use chorus_proto::methods::send::Said;
use tokio::sync::Notify;

/// One listener's end.
#[derive(Debug, Clone, Default)]
pub struct Voice(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    said: Mutex<Vec<Said>>,
    more: Notify,
}

impl Voice {
    /// Says a piece; one that goes on with the piece before it is joined to it.
    pub fn say(&self, piece: Said) {
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        match (said.last_mut(), &piece) {
            (Some(Said::Text(before)), Said::Text(text)) | (Some(Said::Thinking(before)), Said::Thinking(text)) => {
                before.push_str(text);
            }
            _ => said.push(piece),
        }
        drop(said);
        self.0.more.notify_one();
    }

    /// What was said since the last time; empty where that is nothing.
    #[must_use]
    pub fn take(&self) -> Vec<Said> {
        std::mem::take(&mut *self.0.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there may be something to take.
    pub async fn more(&self) {
        self.0.more.notified().await;
    }
}

/// All who listen to one turn.
#[derive(Debug, Clone, Default)]
pub struct Voices(Arc<Mutex<Vec<Voice>>>);

impl Voices {
    pub fn join(&self, voice: Voice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(voice);
    }

    pub fn say(&self, piece: &Said) {
        for voice in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            voice.say(piece.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_taken_is_joined_in_order() {
        let voice = Voice::default();
        for text in ["a", "b"] {
            voice.say(Said::Text(text.into()));
        }
        voice.say(Said::Note("n".into()));
        voice.say(Said::Text("c".into()));
        let said = [Said::Text("ab".into()), Said::Note("n".into()), Said::Text("c".into())];
        assert_eq!(voice.take(), said);
        assert!(voice.take().is_empty());
    }
}
