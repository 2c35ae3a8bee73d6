//! A conversation that is followed as it continues.

use chorus_proto::CallError;
use chorus_proto::client_async::AsyncClient;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams};
use chorus_proto::methods::send::{Progress, TurnEvent};
use chorus_proto::paths::InstancePaths;
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::retry::Retry;

/// A message about a conversation.
#[derive(Debug)]
pub enum ConversationFeed {
    Turn(Box<TurnEvent>),
    /// The conversation is followed no more, and is tried again.
    Detached(Option<Failure>),
}

/// Sends what happens in a conversation, as `wrap` returns it, until the receiver is gone; connects again if the connection ends.
pub async fn follow_conversation<T>(
    places: &InstancePaths,
    params: &AttachParams,
    sender: &mpsc::Sender<T>,
    wrap: impl Fn(ConversationFeed) -> T,
) {
    let mut retry = Retry::new();
    loop {
        let failure = match attach_once(places, params, sender, &wrap, &mut retry).await {
            Err(CallError::Io(_)) => None,
            Err(error) => Some(Failure::from(error)),
            Ok(()) => None,
        };
        if sender.send(wrap(ConversationFeed::Detached(failure))).await.is_err() {
            return;
        }
        retry.wait().await;
    }
}

async fn attach_once<T>(
    places: &InstancePaths,
    params: &AttachParams,
    sender: &mpsc::Sender<T>,
    wrap: impl Fn(ConversationFeed) -> T,
    retry: &mut Retry,
) -> Result<(), CallError> {
    let mut client = AsyncClient::connect_to(places).await?;
    client.send_request(Attach::NAME, params).await?;
    while let Some((method, params)) = client.next_notification().await? {
        // Events of newer daemons are ignored.
        if method == "progress"
            && let Ok(Progress { said, .. }) = serde_json::from_str(params.get())
        {
            retry.reset();
            if sender.send(wrap(ConversationFeed::Turn(Box::new(said)))).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
