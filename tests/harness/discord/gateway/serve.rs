//! The WebSocket connections of the gateway.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout_at;
use tokio_websockets::{CloseCode, Message, ServerBuilder, WebSocketStream};

use super::frames;
use super::session::{Connection, ConnectionEnd};
use crate::discord::state::Shared;

/// How late a heartbeat may be.
const HEARTBEAT_GRACE: Duration = Duration::from_secs(5);

/// Accepts connections for ever.
pub async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        if shared.state().is_refusing {
            continue;
        }
        chorus_runtime::spawn(serve_connection(stream, shared.clone()));
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<Shared>) {
    _ = stream.set_nodelay(true);
    let Ok((request, mut socket)) = ServerBuilder::new().accept(stream).await else { return };
    let id = shared.change(|state| {
        let query = request.uri().query().unwrap_or_default();
        if !query.split('&').any(|pair| pair == "v=10") {
            state.record_violation(format!("gateway: version 10 is not asked for in {query:?}"));
        }
        let id = state.snowflakes.next();
        let mut connection = Connection::new();
        let interval = u64::try_from(state.heartbeat.as_millis()).unwrap_or(u64::MAX);
        connection.send_op(10, json!({"heartbeat_interval": interval, "_trace": []}));
        state.connections.insert(id, connection);
        id
    });
    let kept = run_connection(&mut socket, &shared, id).await;
    shared.change(|state| state.remove_connection(id, kept));
}

/// Runs a connection to its end. Returns whether its session can be resumed.
async fn run_connection(socket: &mut WebSocketStream<TcpStream>, shared: &Shared, id: u64) -> bool {
    loop {
        let mut changed = std::pin::pin!(shared.changed.notified());
        changed.as_mut().enable();
        let (texts, end) = shared.state().take_outgoing(id);
        for text in texts {
            if socket.send(Message::text(text)).await.is_err() {
                return true;
            }
        }
        match end {
            Some(ConnectionEnd::Reset) => return true,
            Some(ConnectionEnd::Close(code, why)) => {
                let code = NonZeroU16::new(code).and_then(|code| CloseCode::try_from(code.get()).ok());
                _ = socket.send(Message::close(code, why)).await;
                // The client answers the close frame, or disconnects.
                let until = tokio::time::Instant::now() + Duration::from_secs(1);
                while let Ok(Some(Ok(_))) = timeout_at(until, socket.next()).await {}
                return code
                    .is_none_or(|code| ![4003, 4007, 4009, 4010, 4011, 4012, 4013, 4014].contains(&u16::from(code)));
            }
            None => {}
        }
        let due = shared.state().heartbeat_deadline(id);
        tokio::select! {
            said = socket.next() => match said {
                Some(Ok(message)) => {
                    if let Some(text) = message.as_text() {
                        shared.change(|state| frames::handle_frame(state, id, text));
                    } else if let Some((code, _)) = message.as_close() {
                        return ![1000, 1001].contains(&u16::from(code));
                    }
                }
                _ => return true,
            },
            () = changed => {}
            () = tokio::time::sleep_until(due.into()) => shared.change(|state| state.close_for_missed_heartbeat(id)),
        }
    }
}

impl crate::discord::state::State {
    fn heartbeat_deadline(&self, id: u64) -> Instant {
        let beat = self.connections.get(&id).map_or_else(Instant::now, |connection| connection.last_heartbeat);
        beat + self.heartbeat + HEARTBEAT_GRACE
    }

    fn close_for_missed_heartbeat(&mut self, id: u64) {
        let silent =
            self.connections.get(&id).is_none_or(|connection| connection.is_silent || connection.end.is_some());
        if !silent {
            self.record_violation("gateway: a heartbeat was missed");
        }
        frames::close_connection(self, id, 4009, "Session timed out.");
    }
}
