//! Who hears which event.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::bridge::Bridge;
use super::event::Event;
use super::rooms;

/// Hands events on until the gateway has ended. Nothing here waits for a disk or for Discord.
pub async fn run(bridge: &Arc<Bridge>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Dispatch(event) => rooms::hear(bridge, &event),
            Event::Connected { resumed } => rooms::connected(bridge, resumed),
            Event::Disconnected => {}
        }
    }
}
