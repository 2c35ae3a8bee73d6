//! What is said in a turn on its way to who asked for it. A listener that is slow hears longer pieces; nobody waits for it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chorus_proto::methods::send::Said;
use tokio::sync::Notify;

/// Who listens.
pub trait Ear: Debug + Send + Sync {
    /// Hears a piece at once; false: cannot now, and has heard nothing.
    fn now(&self, said: &Said) -> bool;
    /// Hears a piece as soon as it can. Until then [`Ear::now`] is false.
    fn later(&self, said: Said);
}

/// One listener's end.
#[derive(Debug, Clone, Default)]
pub struct Voice(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    listener: Mutex<Listener>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Listener {
    /// `None`: nobody listens, or not any more.
    ear: Option<Arc<dyn Ear>>,
    /// What could not be heard at once.
    kept: Vec<Said>,
}

impl Voice {
    /// A voice for `ear`; what is said to nobody is gone.
    #[must_use]
    pub fn new(ear: Option<Arc<dyn Ear>>) -> Self {
        let listener = Mutex::new(Listener { ear, kept: Vec::new() });
        Self(Arc::new(Inner { listener, more: Notify::new() }))
    }

    /// Says a piece; one that must wait and goes on with the piece before it is joined to it.
    pub fn say(&self, piece: &Said) {
        let mut listener = self.listener();
        let Listener { ear: Some(ear), kept } = &mut *listener else { return };
        if kept.is_empty() && ear.now(piece) {
            return;
        }
        match (kept.last_mut(), piece) {
            (Some(Said::Text(before)), Said::Text(text)) | (Some(Said::Thinking(before)), Said::Thinking(text)) => {
                before.push_str(text);
            }
            _ => kept.push(piece.clone()),
        }
        drop(listener);
        self.0.more.notify_one();
    }

    /// Passes on what could not be heard at once.
    pub fn pass_on(&self) {
        // All under the lock: a piece that is said meanwhile comes after these.
        let Listener { ear: Some(ear), kept } = &mut *self.listener() else { return };
        for said in kept.drain(..) {
            ear.later(said);
        }
    }

    /// Passes on the last pieces; nothing is heard after them.
    pub fn finish(&self) {
        self.pass_on();
        self.listener().ear = None;
    }

    /// Waits until there may be something to pass on.
    pub async fn more(&self) {
        self.0.more.notified().await;
    }

    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.0.listener.lock().unwrap_or_else(PoisonError::into_inner)
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
            voice.say(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Hears so many pieces at once, then none.
    #[derive(Debug, Default)]
    struct Slow {
        takes: AtomicUsize,
        heard: Mutex<Vec<Said>>,
    }

    impl Ear for Slow {
        fn now(&self, said: &Said) -> bool {
            let taken = self.takes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if taken {
                self.heard.lock().unwrap().push(said.clone());
            }
            taken
        }

        fn later(&self, said: Said) {
            self.heard.lock().unwrap().push(said);
        }
    }

    #[test]
    fn what_cannot_be_heard_at_once_is_joined_and_keeps_its_place() {
        let ear = Arc::new(Slow::default());
        ear.takes.store(1, Ordering::SeqCst);
        let voice = Voice::new(Some(ear.clone()));
        let say = |text: &str| voice.say(&Said::Text(text.into()));
        say("at once ");
        say("a");
        // It could hear again, but not before what it has missed.
        ear.takes.store(1, Ordering::SeqCst);
        say("b");
        voice.say(&Said::Note("n".into()));
        say("c");
        voice.pass_on();
        say("d");
        voice.finish();
        say("e");
        let heard = std::mem::take(&mut *ear.heard.lock().unwrap());
        let said = |text: &str| Said::Text(text.into());
        assert_eq!(
            heard,
            [said("at once "), said("ab"), Said::Note("n".into()), said("c"), said("d")],
            "and nothing after the end"
        );
    }
}
