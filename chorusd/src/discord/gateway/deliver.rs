//! Events on their way to who deals with them.

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::discord::event::Event;

/// Hands events on and waits for nobody: a connection whose heartbeat waits is lost.
#[derive(Debug)]
pub struct Deliver {
    events: Sender<Event>,
    /// There was no room for some.
    missed: bool,
}

impl Deliver {
    pub fn new(events: Sender<Event>) -> Self {
        Self { events, missed: false }
    }

    /// Hands it on. What there is no room for is looked for later, as after a lost connection.
    pub fn give(&mut self, event: Event) {
        self.catch_up();
        if !self.missed && matches!(self.events.try_send(event), Err(TrySendError::Full(_))) {
            tracing::warn!("events of Discord come faster than they are dealt with; messages are looked for later");
            self.missed = true;
        }
    }

    /// Says that some are missing as soon as there is room to say it.
    pub fn catch_up(&mut self) {
        if self.missed && self.events.try_send(Event::Connected { resumed: true }).is_ok() {
            self.missed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_told_as_missing_once_there_is() {
        let (events, mut heard) = mpsc::channel(2);
        let mut deliver = Deliver::new(events);
        for _ in 0..5 {
            deliver.give(Event::Disconnected);
        }
        assert!(matches!((heard.try_recv(), heard.try_recv()), (Ok(Event::Disconnected), Ok(Event::Disconnected))));
        assert!(heard.try_recv().is_err());
        deliver.give(Event::Disconnected);
        let told = (heard.try_recv(), heard.try_recv());
        assert!(matches!(told, (Ok(Event::Connected { resumed: true }), Ok(Event::Disconnected))), "{told:?}");
    }
}
