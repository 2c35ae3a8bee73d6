//! The stream of events for an open page: what changes, and how an answer is written in the conversation that it follows.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use chorus_daemon_client::{ConversationFeed, follow_conversation};
use chorus_proto::methods::conversations::AttachParams;
use chorus_proto::methods::send::TurnEvent;
use futures_util::Stream;
use futures_util::stream::poll_fn;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::extract::QueryParams;
use crate::hub::{Change, Subscription};

/// The limit on events that the browser has not read; the conversation is not read further then.
const MAX_PENDING: usize = 64;
/// The name under which others see the pages in a conversation.
const CLIENT: &str = "web";

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    /// The number of the newest change that the page has.
    after: Option<u64>,
    agent: Option<String>,
    conversation: Option<String>,
}

/// A task that ends when its stream is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Streams the changes after the number in `Last-Event-ID`, which a browser sends when it connects again, else after `after`.
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    QueryParams(params): QueryParams<Params>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let after = last.or(params.after);
    let (sender, mut receiver) = mpsc::channel(MAX_PENDING);
    let mut tasks = vec![Task(chorus_runtime::spawn(forward_changes(app.hub.subscribe(), after, sender.clone())))];
    if let Some(agent) = params.agent {
        let attach = AttachParams {
            agent: Some(agent),
            conversation: params.conversation,
            client: Some(CLIENT.into()),
            after: None,
        };
        let places = app.places.clone();
        tasks.push(Task(chorus_runtime::spawn(async move {
            follow_conversation(&places, &attach, &sender, to_event).await;
        })));
    }
    let stream = poll_fn(move |context| {
        // The tasks live as long as the stream.
        let _ = &tasks;
        receiver.poll_recv(context).map(|event| event.map(Ok))
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

async fn forward_changes(subscription: Subscription, after: Option<u64>, sender: mpsc::Sender<Event>) {
    let Subscription { revision, is_connected, mut changes } = subscription;
    let mut first = vec![connection_event(is_connected).id(revision.to_string())];
    if after.is_some_and(|after| after != revision) {
        first.push(missed());
    }
    for event in first {
        if sender.send(event).await.is_err() {
            return;
        }
    }
    loop {
        let event = match changes.recv().await {
            Ok(change) => {
                let (revision, change) = &*change;
                let event = match change {
                    Change::Missed => missed(),
                    Change::Daemon { is_connected } => connection_event(*is_connected),
                    Change::Event(event) => {
                        let data =
                            json!({ "type": event.kind, "agent": event.agent, "conversation": event.conversation });
                        Event::default().event("change").data(data.to_string())
                    }
                };
                event.id(revision.to_string())
            }
            Err(RecvError::Lagged(_)) => missed(),
            Err(RecvError::Closed) => return,
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
}

fn missed() -> Event {
    Event::default().event("change").data(json!({ "type": "missed" }).to_string())
}

fn connection_event(is_connected: bool) -> Event {
    Event::default().event("daemon").data(if is_connected { "here" } else { "away" })
}

/// Returns a piece of the conversation for the browser.
fn to_event(feed: ConversationFeed) -> Event {
    let data = match feed {
        ConversationFeed::Turn(said) => match *said {
            TurnEvent::Attached { .. } => json!({ "kind": "attached" }),
            TurnEvent::Text(text) => json!({ "kind": "text", "text": text }),
            TurnEvent::Thinking(_) => json!({ "kind": "thinking" }),
            TurnEvent::Tool { name, gist, .. } => json!({ "kind": "tool", "text": gist.unwrap_or(name) }),
            TurnEvent::Note(text) => json!({ "kind": "note", "text": text }),
            TurnEvent::Ended { reason, .. } => json!({ "kind": "ended", "text": reason }),
            TurnEvent::Ask { .. } | TurnEvent::Decided { .. } => json!({ "kind": "state" }),
            TurnEvent::Started { .. }
            | TurnEvent::Queued { .. }
            | TurnEvent::Result { .. }
            | TurnEvent::Message { .. } => json!({ "kind": "messages" }),
        },
        ConversationFeed::Detached(_) => json!({ "kind": "detached" }),
    };
    Event::default().event("turn").data(data.to_string())
}
