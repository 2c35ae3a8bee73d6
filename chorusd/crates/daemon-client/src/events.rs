//! The events of the daemon.

use chorus_proto::EventType;
use chorus_proto::client_async::AsyncClient;
use chorus_proto::event::Event;
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::paths::InstancePaths;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::retry::Retry;

/// A message about the events.
#[derive(Debug)]
pub enum EventFeed {
    /// Events arrive from now on; what happened before is not known.
    Connected,
    /// The daemon is gone, and is tried again.
    Disconnected,
    Event(Box<Event>),
    /// Events were missed.
    Lagged,
}

/// The type of an event, which is enough to know whether the rest matters.
#[derive(Deserialize)]
struct EventKind {
    #[serde(rename = "type")]
    kind: EventType,
}

/// Sends events, each as `wrap` returns it, until the receiver is gone; connects again if the daemon goes away.
pub async fn follow_events<T>(places: &InstancePaths, sender: &mpsc::Sender<T>, wrap: impl Fn(EventFeed) -> T) {
    let mut retry = Retry::new();
    loop {
        if let Ok(mut client) = AsyncClient::connect_to(places).await
            && client.call::<Subscribe>(&SubscribeParams::default()).await.is_ok()
        {
            retry.reset();
            if sender.send(wrap(EventFeed::Connected)).await.is_err() {
                return;
            }
            while let Ok(Some((method, params))) = client.next_notification().await {
                let incoming = match &*method {
                    "lagged" => Some(EventFeed::Lagged),
                    "event" => parse_event(params.get()),
                    _ => None,
                };
                if let Some(incoming) = incoming
                    && sender.send(wrap(incoming)).await.is_err()
                {
                    return;
                }
            }
        }
        if sender.send(wrap(EventFeed::Disconnected)).await.is_err() {
            return;
        }
        retry.wait().await;
    }
}

/// Parses an event that may change what is shown. Most events are pieces of replies, which whoever follows a conversation gets
/// from it.
fn parse_event(params: &str) -> Option<EventFeed> {
    let EventKind { kind } = serde_json::from_str(params).ok()?;
    if matches!(kind, EventType::TurnDelta | EventType::Unknown) {
        return None;
    }
    Some(EventFeed::Event(Box::new(serde_json::from_str(params).ok()?)))
}
