//! Implements [`TaskHost`]: what background tasks need from the rest of the daemon.

use std::path::PathBuf;

use chorus_base::error::Result;
use chorus_proto::EventType;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use crate::agent::command;
use crate::ops::Ops;
use crate::tasks::TaskHost;

impl TaskHost for Ops {
    fn name_and_dir(&self, agent: Uuid) -> Option<(String, PathBuf)> {
        self.agents.by_id(agent).map(|entry| (entry.settings.name.clone(), entry.settings.dir.clone()))
    }

    fn publish_event(&self, kind: EventType, agent: String, conversation: ConversationKey, data: Value) {
        let conversation = self.agents.conversations.name(conversation);
        self.registry.emit_event(kind, Some(agent), conversation, data);
    }

    fn append_message(
        &self,
        conversation: ConversationKey,
        message: StoredMessage,
        key: String,
    ) -> BoxFuture<'static, Result<()>> {
        let registry = self.registry.clone();
        let append = command::append(vec![message], Some(key));
        Box::pin(async move { registry.ask(conversation, append).await.map(drop) })
    }

    fn sync_running_tasks(&self, agent: Uuid) {
        self.running_tasks_sync.mark_changed(agent);
    }
}
