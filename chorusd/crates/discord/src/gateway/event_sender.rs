//! Sends gateway events to the router.

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::gateway_event::GatewayEvent;

/// Sends events without waiting: if the connection's task waited, its heartbeat would stop and the connection would be
/// lost.
#[derive(Debug)]
pub(super) struct EventSender {
    events: Sender<GatewayEvent>,
    /// Some events were dropped because the queue was full.
    has_missed: bool,
}

impl EventSender {
    pub(super) fn new(events: Sender<GatewayEvent>) -> Self {
        Self { events, has_missed: false }
    }

    /// Sends an event. If the queue is full it is dropped, and messages are backfilled later as after a lost
    /// connection.
    pub(super) fn send(&mut self, event: GatewayEvent) {
        self.report_missed();
        if !self.has_missed && matches!(self.events.try_send(event), Err(TrySendError::Full(_))) {
            tracing::warn!("Discord events arrive faster than they are processed; fetching missed messages later");
            self.has_missed = true;
        }
    }

    /// Reports that events were dropped, as soon as there is room in the queue.
    pub(super) fn report_missed(&mut self) {
        if self.has_missed && self.events.try_send(GatewayEvent::Connected { resumed: true }).is_ok() {
            self.has_missed = false;
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
        let mut deliver = EventSender::new(events);
        for _ in 0..5 {
            deliver.send(GatewayEvent::Disconnected);
        }
        assert!(matches!(
            (heard.try_recv(), heard.try_recv()),
            (Ok(GatewayEvent::Disconnected), Ok(GatewayEvent::Disconnected))
        ));
        assert!(heard.try_recv().is_err());
        deliver.send(GatewayEvent::Disconnected);
        let told = (heard.try_recv(), heard.try_recv());
        assert!(
            matches!(told, (Ok(GatewayEvent::Connected { resumed: true }), Ok(GatewayEvent::Disconnected))),
            "{told:?}"
        );
    }
}
