//! The interface through which tasks use the rest of the daemon.

use std::fmt::Debug;
use std::path::PathBuf;

use chorus_base::error::Result;
use chorus_proto::EventType;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

/// The daemon as seen by tasks; implemented in `ops`.
pub trait TaskHost: Debug + Send + Sync {
    /// Returns the name and directory of an agent, unless it is destroyed.
    fn name_and_dir(&self, agent: Uuid) -> Option<(String, PathBuf)>;

    /// Publishes an event about a task of a conversation to observers without waiting.
    fn publish_event(&self, kind: EventType, agent: String, conversation: ConversationKey, data: Value);

    /// Appends a message to the context of a conversation, unless a message with the same `key` was appended before. The request
    /// is sent before this returns. The future ends when the message is stored; during a turn that is when all calls
    /// have their results.
    fn append_message(
        &self,
        conversation: ConversationKey,
        message: StoredMessage,
        key: String,
    ) -> BoxFuture<'static, Result<()>>;

    /// Starts updating `running_tasks` in the agent's agent.json without waiting.
    fn sync_running_tasks(&self, agent: Uuid);
}
