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

    /// Whether anybody listens, still.
    fn is_heard(&self) -> bool {
        self.listener().ear.is_some()
    }

    /// Waits until there may be something to pass on.
    pub async fn more(&self) {
        self.0.more.notified().await;
    }

    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.0.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All who listen to one turn, and those who wait for it to end.
#[derive(Debug, Clone, Default)]
pub struct Voices(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    listening: Vec<Voice>,
    /// They hear what the turn asks, and nothing else: an answer lets it go on.
    waiting: Vec<Voice>,
    /// Questions that nobody has answered yet.
    open: Vec<Said>,
}

impl Voices {
    /// Hears all from now on, and what is still asked.
    pub fn join(&self, voice: Voice) {
        let mut told = self.told();
        told.open.iter().for_each(|asked| voice.say(asked));
        told.listening.push(voice);
    }

    /// Hears only what is asked, from now on and still.
    pub fn wait(&self, voice: Voice) {
        let mut told = self.told();
        told.open.iter().for_each(|asked| voice.say(asked));
        told.waiting.retain(Voice::is_heard);
        told.waiting.push(voice);
    }

    pub fn say(&self, piece: &Said) {
        let mut told = self.told();
        told.listening.iter().for_each(|voice| voice.say(piece));
        match piece {
            Said::Ask { .. } => told.open.push(piece.clone()),
            Said::Decided { id, .. } => {
                told.open.retain(|asked| !matches!(asked, Said::Ask { approval } if approval.id == *id));
            }
            _ => return,
        }
        told.waiting.iter().for_each(|voice| voice.say(piece));
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use chorus_proto::methods::approvals::Status;

    use super::*;
    use crate::approvals::sample;

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
    fn who_comes_late_hears_what_is_still_asked_and_who_waits_hears_only_that() {
        let listener = || {
            let ear = Arc::new(Slow::default());
            ear.takes.store(usize::MAX, Ordering::SeqCst);
            (ear.clone(), Voice::new(Some(ear)))
        };
        let heard = |ear: &Slow| std::mem::take(&mut *ear.heard.lock().unwrap());
        let asks = |id: &str| Said::Ask { approval: Box::new(sample::approval(id)) };
        let decided = |id: &str| Said::Decided { id: id.into(), status: Status::Denied, by: None };
        let voices = Voices::default();
        for said in [Said::Text("t".into()), asks("1"), asks("2"), decided("1")] {
            voices.say(&said);
        }
        let ((late, voice), (waiting, other)) = (listener(), listener());
        voices.join(voice);
        voices.wait(other);
        assert_eq!((heard(&late), heard(&waiting)), (vec![asks("2")], vec![asks("2")]));
        for said in [Said::Text("t".into()), decided("2"), asks("3")] {
            voices.say(&said);
        }
        assert_eq!(heard(&late), [Said::Text("t".into()), decided("2"), asks("3")]);
        assert_eq!(heard(&waiting), [decided("2"), asks("3")]);
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
