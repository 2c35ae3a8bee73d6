//! What tasks ask of the rest of the daemon.

use std::fmt::Debug;
use std::path::PathBuf;

use chorus_proto::EventType;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Result;
use crate::message::StoredMessage;

/// The daemon as tasks see it; `ops` is it.
pub trait TaskHost: Debug + Send + Sync {
    /// The name and the directory of an agent that is not destroyed.
    fn name_and_dir(&self, agent: Uuid) -> Option<(String, PathBuf)>;

    /// Tells observers; nobody waits for it.
    fn publish_event(&self, kind: EventType, agent: String, data: Value);

    /// Adds a message to an agent's context, unless the same `key` has added one before. The request is on its way when this
    /// returns; the future ends when the message is kept, which in a turn is when its calls have their results.
    fn append_message(&self, agent: Uuid, message: StoredMessage, key: String) -> BoxFuture<'static, Result<()>>;

    /// What an agent has running is no longer what its agent.json lists. Soon it is; nobody waits for it.
    fn sync_running_tasks(&self, agent: Uuid);
}
