//! The connections to the daemon: one for events, one for the conversation that is open, and one for each request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::client_async::AsyncClient;
use chorus_proto::event::Event;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::{CallError, EventType};
use chorus_remote::DaemonAddress;
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::daemon_link::DaemonLink;
use crate::fleet::Target;
use crate::requests::{Answer, Failure, Request, SendStage, carry_out};

/// The waits before the daemon is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// The time in which the daemon has to accept a connection.
const MAX_SUBSCRIBE: Duration = Duration::from_secs(10);
/// The limit on requests at the same time; more of them wait.
const MAX_REQUESTS: usize = 6;
/// The limit on messages that are not handled yet; a connection is not read further then.
const MAX_PENDING: usize = 1024;

/// A message from the daemon.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Events arrive from now on; what happened before is not known.
    Connected,
    /// The daemon cannot be reached, and is tried again. With the reason, if it is another one than that nobody listens there.
    Disconnected(Option<Failure>),
    Event(Box<Event>),
    /// Events were missed.
    Lagged,
    /// A piece of the conversation that is open, with the number of the attachment.
    Turn(u64, Box<TurnEvent>),
    /// The conversation is followed no more, and is tried again.
    Detached(u64, Option<Failure>),
    /// A message with this key has come further.
    SendStage(Target, String, SendStage),
    Answer(Request, Result<Answer, Failure>),
}

/// The connections of a screen.
#[derive(Debug)]
pub(crate) struct Connections {
    daemon: Arc<DaemonLink>,
    client: String,
    sender: mpsc::Sender<Incoming>,
    requests: Arc<Semaphore>,
    attached: Option<JoinHandle<()>>,
}

impl Connections {
    /// Connects, and returns what arrives.
    pub(crate) fn start(daemon: DaemonAddress, client: String) -> (Self, mpsc::Receiver<Incoming>) {
        let (sender, receiver) = mpsc::channel(MAX_PENDING);
        let daemon = Arc::new(DaemonLink::new(daemon));
        chorus_runtime::spawn(follow_events(daemon.clone(), sender.clone()));
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        (Self { daemon, client, sender, requests, attached: None }, receiver)
    }

    /// Sends a request, whose answer arrives later.
    pub(crate) fn request(&self, request: Request) {
        let (daemon, sender, permits) = (self.daemon.clone(), self.sender.clone(), self.requests.clone());
        chorus_runtime::spawn(async move {
            // What somebody asked for is never held up by what is only refreshed.
            let _permit = if request.is_action() { None } else { permits.acquire().await.ok() };
            let carried_out = carry_out(&daemon, request.clone(), &sender);
            let answer = match request.time_limit() {
                Some(limit) => timeout(limit, carried_out).await.unwrap_or_else(|_| Err(Failure::no_answer())),
                None => carried_out.await,
            };
            // The screen is left.
            let _ = sender.send(Incoming::Answer(request, answer)).await;
        });
    }

    /// Follows a conversation instead of the one before.
    pub(crate) fn attach(&mut self, target: Target, number: u64) {
        self.detach();
        let (daemon, sender) = (self.daemon.clone(), self.sender.clone());
        let (agent, conversation) = target.params();
        let params = AttachParams { agent, conversation, client: Some(self.client.clone()), after: None };
        self.attached =
            Some(chorus_runtime::spawn(async move { follow_conversation(&daemon, &params, number, &sender).await }));
    }

    /// Ends what [`Self::attach`] began.
    pub(crate) fn detach(&mut self) {
        if let Some(task) = self.attached.take() {
            task.abort();
        }
    }
}

/// The type of an event, which is enough to know whether the rest matters.
#[derive(Deserialize)]
struct EventKind {
    #[serde(rename = "type")]
    kind: EventType,
}

/// Connects and asks for events. Fails with the reason, if it is not only that nobody listens.
async fn subscribe(daemon: &DaemonLink) -> Result<AsyncClient, Option<Failure>> {
    let mut client = daemon.connect().await.map_err(|error| {
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        (!is_absent).then(|| Failure { message: error.to_string(), hint: None, kind: None })
    })?;
    match client.call::<Subscribe>(&SubscribeParams::default()).await {
        Ok(_) => Ok(client),
        Err(CallError::Io(_)) => Err(None),
        Err(error) => Err(Some(error.into())),
    }
}

/// Receives events until the screen is left; connects again if the daemon goes away.
async fn follow_events(daemon: Arc<DaemonLink>, sender: mpsc::Sender<Incoming>) {
    let mut retry = FIRST_RETRY;
    loop {
        let subscribed =
            timeout(MAX_SUBSCRIBE, subscribe(&daemon)).await.unwrap_or_else(|_| Err(Some(Failure::no_answer())));
        let mut reason = None;
        match subscribed {
            Err(failure) => reason = failure,
            Ok(mut client) => {
                retry = FIRST_RETRY;
                if sender.send(Incoming::Connected).await.is_err() {
                    return;
                }
                while let Ok(Some((method, params))) = client.next_notification().await {
                    let incoming = match &*method {
                        "lagged" => Some(Incoming::Lagged),
                        "event" => parse_event(params.get()),
                        _ => None,
                    };
                    if let Some(incoming) = incoming
                        && sender.send(incoming).await.is_err()
                    {
                        return;
                    }
                }
            }
        }
        if sender.send(Incoming::Disconnected(reason)).await.is_err() {
            return;
        }
        sleep(retry).await;
        retry = (retry * 2).min(LAST_RETRY);
    }
}

/// Parses an event that may change the screen. Most events are pieces of replies, which the conversation that is open gets
/// itself.
fn parse_event(params: &str) -> Option<Incoming> {
    let EventKind { kind } = serde_json::from_str(params).ok()?;
    if matches!(kind, EventType::TurnDelta | EventType::Unknown) {
        return None;
    }
    Some(Incoming::Event(Box::new(serde_json::from_str(params).ok()?)))
}

/// Follows a conversation until this is aborted; connects again if the connection ends.
async fn follow_conversation(daemon: &DaemonLink, params: &AttachParams, number: u64, sender: &mpsc::Sender<Incoming>) {
    let mut retry = FIRST_RETRY;
    loop {
        let failure = match attach_once(daemon, params, number, sender, &mut retry).await {
            Err(CallError::Io(_)) => None,
            Err(error) => Some(Failure::from(error)),
            Ok(()) => None,
        };
        if sender.send(Incoming::Detached(number, failure)).await.is_err() {
            return;
        }
        sleep(retry).await;
        retry = (retry * 2).min(LAST_RETRY);
    }
}

async fn attach_once(
    daemon: &DaemonLink,
    params: &AttachParams,
    number: u64,
    sender: &mpsc::Sender<Incoming>,
    retry: &mut Duration,
) -> Result<(), CallError> {
    let mut client = daemon.connect().await?;
    client.send_request(Attach::NAME, params).await?;
    while let Some((method, params)) = client.next_notification().await? {
        // Events of newer daemons are ignored.
        if method == "progress"
            && let Ok(Progress { said, .. }) = serde_json::from_str(params.get())
        {
            *retry = FIRST_RETRY;
            if sender.send(Incoming::Turn(number, Box::new(said))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
