//! What is said in a turn on its way to who asked for it. A listener that is slow hears longer pieces; nobody waits for it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chorus_proto::methods::send::TurnEvent;
use tokio::sync::Notify;

/// Who listens.
pub trait TurnListener: Debug + Send + Sync {
    /// Hears a piece at once; false: cannot now, and has heard nothing.
    fn try_send(&self, said: &TurnEvent) -> bool;
    /// Hears a piece as soon as it can. Until then [`Ear::now`] is false.
    fn send_when_ready(&self, said: TurnEvent);
}

/// One listener's end.
#[derive(Debug, Clone, Default)]
pub struct TurnSink(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    subscriber: Mutex<Subscriber>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Subscriber {
    /// `None`: nobody listens, or not any more.
    listener: Option<Arc<dyn TurnListener>>,
    /// What could not be heard at once.
    backlog: Vec<TurnEvent>,
}

impl TurnSink {
    /// A voice for `ear`; what is said to nobody is gone.
    #[must_use]
    pub fn new(ear: Option<Arc<dyn TurnListener>>) -> Self {
        let listener = Mutex::new(Subscriber { listener: ear, backlog: Vec::new() });
        Self(Arc::new(Inner { subscriber: listener, ready: Notify::new() }))
    }

    /// Says a piece; one that must wait and goes on with the piece before it is joined to it.
    pub fn send(&self, piece: &TurnEvent) {
        let mut listener = self.subscriber();
        let Subscriber { listener: Some(ear), backlog: kept } = &mut *listener else { return };
        if kept.is_empty() && ear.try_send(piece) {
            return;
        }
        match (kept.last_mut(), piece) {
            (Some(TurnEvent::Text(before)), TurnEvent::Text(text))
            | (Some(TurnEvent::Thinking(before)), TurnEvent::Thinking(text)) => {
                before.push_str(text);
            }
            _ => kept.push(piece.clone()),
        }
        drop(listener);
        self.0.ready.notify_one();
    }

    /// Passes on what could not be heard at once.
    pub fn flush(&self) {
        // All under the lock: a piece that is said meanwhile comes after these.
        let Subscriber { listener: Some(ear), backlog: kept } = &mut *self.subscriber() else { return };
        for said in kept.drain(..) {
            ear.send_when_ready(said);
        }
    }

    /// Passes on the last pieces; nothing is heard after them.
    pub fn close(&self) {
        self.flush();
        self.subscriber().listener = None;
    }

    /// Whether anybody listens, still.
    fn is_open(&self) -> bool {
        self.subscriber().listener.is_some()
    }

    /// Waits until there may be something to pass on.
    pub async fn wait_for_backlog(&self) {
        self.0.ready.notified().await;
    }

    fn subscriber(&self) -> MutexGuard<'_, Subscriber> {
        self.0.subscriber.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All who listen to one turn, and those who wait for it to end.
#[derive(Debug, Clone, Default)]
pub struct TurnSinks(Arc<Mutex<SinkLists>>);

#[derive(Debug, Default)]
struct SinkLists {
    listeners: Vec<TurnSink>,
    /// They hear what the turn asks, and nothing else: an answer lets it go on.
    approval_listeners: Vec<TurnSink>,
    /// Questions that nobody has answered yet.
    open_questions: Vec<TurnEvent>,
}

impl TurnSinks {
    /// Hears all from now on, and what is still asked.
    pub fn add_listener(&self, voice: TurnSink) {
        let mut told = self.lists();
        told.open_questions.iter().for_each(|asked| voice.send(asked));
        told.listeners.push(voice);
    }

    /// Hears only what is asked, from now on and still.
    pub fn add_approval_listener(&self, voice: TurnSink) {
        let mut told = self.lists();
        told.open_questions.iter().for_each(|asked| voice.send(asked));
        told.approval_listeners.retain(TurnSink::is_open);
        told.approval_listeners.push(voice);
    }

    pub fn send(&self, piece: &TurnEvent) {
        let mut told = self.lists();
        told.listeners.iter().for_each(|voice| voice.send(piece));
        match piece {
            TurnEvent::Ask { .. } => told.open_questions.push(piece.clone()),
            TurnEvent::Decided { id, .. } => {
                told.open_questions.retain(|asked| !matches!(asked, TurnEvent::Ask { approval } if approval.id == *id));
            }
            _ => return,
        }
        told.approval_listeners.iter().for_each(|voice| voice.send(piece));
    }

    fn lists(&self) -> MutexGuard<'_, SinkLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use chorus_proto::methods::approvals::Status;

    use super::*;
    use crate::approvals::test_support;

    /// Hears so many pieces at once, then none.
    #[derive(Debug, Default)]
    struct SlowListener {
        takes: AtomicUsize,
        heard: Mutex<Vec<TurnEvent>>,
    }

    impl TurnListener for SlowListener {
        fn try_send(&self, said: &TurnEvent) -> bool {
            let taken = self.takes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if taken {
                self.heard.lock().unwrap().push(said.clone());
            }
            taken
        }

        fn send_when_ready(&self, said: TurnEvent) {
            self.heard.lock().unwrap().push(said);
        }
    }

    #[test]
    fn who_comes_late_hears_what_is_still_asked_and_who_waits_hears_only_that() {
        let listener = || {
            let ear = Arc::new(SlowListener::default());
            ear.takes.store(usize::MAX, Ordering::SeqCst);
            (ear.clone(), TurnSink::new(Some(ear)))
        };
        let heard = |ear: &SlowListener| std::mem::take(&mut *ear.heard.lock().unwrap());
        let asks = |id: &str| TurnEvent::Ask { approval: Box::new(test_support::sample_approval(id)) };
        let decided = |id: &str| TurnEvent::Decided { id: id.into(), status: Status::Denied, by: None };
        let voices = TurnSinks::default();
        for said in [TurnEvent::Text("t".into()), asks("1"), asks("2"), decided("1")] {
            voices.send(&said);
        }
        let ((late, voice), (waiting, other)) = (listener(), listener());
        voices.add_listener(voice);
        voices.add_approval_listener(other);
        assert_eq!((heard(&late), heard(&waiting)), (vec![asks("2")], vec![asks("2")]));
        for said in [TurnEvent::Text("t".into()), decided("2"), asks("3")] {
            voices.send(&said);
        }
        assert_eq!(heard(&late), [TurnEvent::Text("t".into()), decided("2"), asks("3")]);
        assert_eq!(heard(&waiting), [decided("2"), asks("3")]);
    }

    #[test]
    fn what_cannot_be_heard_at_once_is_joined_and_keeps_its_place() {
        let ear = Arc::new(SlowListener::default());
        ear.takes.store(1, Ordering::SeqCst);
        let voice = TurnSink::new(Some(ear.clone()));
        let say = |text: &str| voice.send(&TurnEvent::Text(text.into()));
        say("at once ");
        say("a");
        // It could hear again, but not before what it has missed.
        ear.takes.store(1, Ordering::SeqCst);
        say("b");
        voice.send(&TurnEvent::Note("n".into()));
        say("c");
        voice.flush();
        say("d");
        voice.close();
        say("e");
        let heard = std::mem::take(&mut *ear.heard.lock().unwrap());
        let said = |text: &str| TurnEvent::Text(text.into());
        assert_eq!(
            heard,
            [said("at once "), said("ab"), TurnEvent::Note("n".into()), said("c"), said("d")],
            "and nothing after the end"
        );
    }
}
