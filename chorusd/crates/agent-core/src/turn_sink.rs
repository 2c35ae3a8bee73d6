//! Streams the events of a turn to its listeners. A slow listener receives joined, longer pieces; the turn never waits.

use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use chorus_base::sync::Mutex;
use chorus_proto::methods::send::TurnEvent;
use futures_util::task::AtomicWaker;

use super::said_pieces::SaidPieces;

/// Receives the events of a turn.
pub trait TurnListener: Debug + Send + Sync {
    /// Sends an event if the listener can take it at once; else returns false and sends nothing.
    fn try_send(&self, event: &TurnEvent) -> bool;
    /// Sends an event as soon as the listener can take it. Until then [`TurnListener::try_send`] returns false.
    fn send_when_ready(&self, event: TurnEvent);
}

/// The sending end of one listener.
#[derive(Debug, Clone, Default)]
pub struct TurnSink(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    subscriber: Mutex<Subscriber>,
    /// Whether the backlog has grown since the last [`TurnSink::wait_for_backlog`].
    backlog_grown: AtomicBool,
    /// The task that waits for a backlog.
    waiter: AtomicWaker,
}

#[derive(Debug, Default)]
struct Subscriber {
    /// `None`: there is no listener, or it is closed.
    listener: Option<Arc<dyn TurnListener>>,
    /// Events that the listener could not take at once.
    backlog: Vec<TurnEvent>,
}

impl TurnSink {
    /// Creates a sink for `listener`; without one, events are dropped.
    #[must_use]
    pub fn new(listener: Option<Arc<dyn TurnListener>>) -> Self {
        let subscriber = Mutex::new(Subscriber { listener, backlog: Vec::new() });
        Self(Arc::new(Inner { subscriber, ..Inner::default() }))
    }

    /// Sends an event. If it has to wait and continues the text before it, the two are joined.
    pub fn send(&self, event: &TurnEvent) {
        let mut subscriber = self.0.subscriber.lock();
        let Subscriber { listener: Some(listener), backlog } = &mut *subscriber else { return };
        if backlog.is_empty() && listener.try_send(event) {
            return;
        }
        match (backlog.last_mut(), event) {
            (Some(TurnEvent::Text(before)), TurnEvent::Text(text))
            | (Some(TurnEvent::Thinking(before)), TurnEvent::Thinking(text)) => {
                before.push_str(text);
            }
            _ => backlog.push(event.clone()),
        }
        drop(subscriber);
        self.0.backlog_grown.store(true, Ordering::Release);
        self.0.waiter.wake();
    }

    /// Hands the backlog to the listener.
    pub fn flush(&self) {
        // All under the lock: an event that is sent in the meantime comes after these.
        let Subscriber { listener: Some(listener), backlog } = &mut *self.0.subscriber.lock() else { return };
        for event in backlog.drain(..) {
            listener.send_when_ready(event);
        }
    }

    /// Hands over the backlog and closes the sink.
    pub fn close(&self) {
        self.flush();
        self.0.subscriber.lock().listener = None;
    }

    /// Returns true if both are the same sink.
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the listener is still there.
    pub fn is_open(&self) -> bool {
        self.0.subscriber.lock().listener.is_some()
    }

    /// Waits until there may be a backlog to hand over. One task at a time may wait.
    pub async fn wait_for_backlog(&self) {
        poll_fn(|context| {
            self.0.waiter.register(context.waker());
            if self.0.backlog_grown.swap(false, Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// The listeners of one turn, and the requests that wait for it to end.
#[derive(Debug, Clone, Default)]
pub struct TurnSinks(Arc<Mutex<SinkLists>>);

#[derive(Debug, Default)]
struct SinkLists {
    listeners: Vec<TurnSink>,
    /// Receive only approval questions and decisions, because an answer may let the turn go on.
    approval_listeners: Vec<TurnSink>,
    /// Approval questions that are not decided yet.
    open_questions: Vec<TurnEvent>,
    said: SaidPieces,
}

impl TurnSinks {
    /// Adds a listener that hears what was said so far, too, after `first`. Does nothing if it listens already.
    pub fn add_late_listener(&self, sink: TurnSink, first: &TurnEvent) {
        let mut lists = self.0.lock();
        if lists.listeners.iter().any(|known| known.is_same(&sink)) {
            return;
        }
        sink.send(first);
        lists.said.pieces().for_each(|piece| sink.send(piece));
        lists.open_questions.iter().for_each(|asked| sink.send(asked));
        lists.listeners.push(sink);
    }

    /// Adds a listener for all events from now on, and sends it the open questions.
    pub fn add_listener(&self, sink: TurnSink) {
        let mut lists = self.0.lock();
        lists.open_questions.iter().for_each(|asked| sink.send(asked));
        lists.listeners.push(sink);
    }

    /// Adds a listener for approval questions only, and sends it the open ones.
    pub fn add_approval_listener(&self, sink: TurnSink) {
        let mut lists = self.0.lock();
        lists.open_questions.iter().for_each(|asked| sink.send(asked));
        lists.approval_listeners.retain(TurnSink::is_open);
        lists.approval_listeners.push(sink);
    }

    pub fn send(&self, event: &TurnEvent) {
        let mut lists = self.0.lock();
        lists.said.push(event);
        lists.listeners.iter().for_each(|sink| sink.send(event));
        match event {
            TurnEvent::Ask { .. } => lists.open_questions.push(event.clone()),
            TurnEvent::Decided { id, .. } => {
                lists
                    .open_questions
                    .retain(|asked| !matches!(asked, TurnEvent::Ask { approval } if approval.id == *id));
            }
            _ => return,
        }
        lists.approval_listeners.iter().for_each(|sink| sink.send(event));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use crate::test_support;
    use chorus_proto::methods::approvals::Status;

    use super::*;

    /// Takes so many events at once, then none.
    #[derive(Debug, Default)]
    struct SlowListener {
        takes: AtomicUsize,
        heard: Mutex<Vec<TurnEvent>>,
    }

    impl TurnListener for SlowListener {
        fn try_send(&self, event: &TurnEvent) -> bool {
            let taken = self.takes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if taken {
                self.heard.lock().push(event.clone());
            }
            taken
        }

        fn send_when_ready(&self, event: TurnEvent) {
            self.heard.lock().push(event);
        }
    }

    #[test]
    fn who_comes_late_hears_what_is_still_asked_and_who_waits_hears_only_that() {
        let listener = || {
            let listener = Arc::new(SlowListener::default());
            listener.takes.store(usize::MAX, Ordering::SeqCst);
            (listener.clone(), TurnSink::new(Some(listener)))
        };
        let heard = |listener: &SlowListener| std::mem::take(&mut *listener.heard.lock());
        let asks = |id: &str| TurnEvent::Ask { approval: Box::new(test_support::sample_approval(id)) };
        let decided = |id: &str| TurnEvent::Decided { id: id.into(), status: Status::Denied, by: None };
        let sinks = TurnSinks::default();
        for event in [TurnEvent::Text("t".into()), asks("1"), asks("2"), decided("1")] {
            sinks.send(&event);
        }
        let ((late, sink), (waiting, other)) = (listener(), listener());
        sinks.add_listener(sink);
        sinks.add_approval_listener(other);
        assert_eq!((heard(&late), heard(&waiting)), (vec![asks("2")], vec![asks("2")]));
        for event in [TurnEvent::Text("t".into()), decided("2"), asks("3")] {
            sinks.send(&event);
        }
        assert_eq!(heard(&late), [TurnEvent::Text("t".into()), decided("2"), asks("3")]);
        assert_eq!(heard(&waiting), [decided("2"), asks("3")]);
    }

    #[test]
    fn what_cannot_be_heard_at_once_is_joined_and_keeps_its_place() {
        let listener = Arc::new(SlowListener::default());
        listener.takes.store(1, Ordering::SeqCst);
        let sink = TurnSink::new(Some(listener.clone()));
        let say = |text: &str| sink.send(&TurnEvent::Text(text.into()));
        say("at once ");
        say("a");
        // It could take another one, but not before those that it missed.
        listener.takes.store(1, Ordering::SeqCst);
        say("b");
        sink.send(&TurnEvent::Note("n".into()));
        say("c");
        sink.flush();
        say("d");
        sink.close();
        say("e");
        let heard = std::mem::take(&mut *listener.heard.lock());
        let said = |text: &str| TurnEvent::Text(text.into());
        assert_eq!(
            heard,
            [said("at once "), said("ab"), TurnEvent::Note("n".into()), said("c"), said("d")],
            "and nothing after the end"
        );
    }
}
