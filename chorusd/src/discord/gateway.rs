//! The connection to Discord's gateway.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::bridge::Bridge;
use super::event::Event;

/// Keeps the connection until the daemon stops or Discord wants it no more.
pub async fn run(bridge: &Arc<Bridge>, _events: mpsc::Sender<Event>) {
    bridge.stop.cancelled().await;
}
