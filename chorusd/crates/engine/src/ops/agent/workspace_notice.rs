//! Tells an agent that its workspace is not what it was on its former node.

use std::sync::Arc;

use chorus_base::new_id;
use chorus_journal::ContextRow;
use chorus_proto::message::{Source, SourceKind};
use chorus_proto::{NewMessage, Role};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::agent::shared_workspace::WorkspaceNews;

/// A message for all live conversations of an agent.
#[derive(Debug)]
pub(super) struct WorkspaceNotice {
    /// Identifies the claim, so that nobody is told twice.
    key: String,
    text: String,
    conversations: Vec<ConversationKey>,
}

impl WorkspaceNotice {
    /// Makes the notice of a claim. `heads` are the live contexts of the agent.
    pub(super) fn new(agent: Uuid, epoch: i64, news: WorkspaceNews, heads: &[ContextRow]) -> Self {
        let WorkspaceNews { text, for_all, .. } = news;
        let mut conversations: Vec<_> = heads.iter().map(|head| head.conversation).collect();
        let main = ConversationKey::main(agent);
        if for_all && !conversations.contains(&main) {
            conversations.push(main);
        }
        Self { key: format!("workspace:{epoch}"), text, conversations }
    }

    /// Puts the message into the queue of each conversation. The future ends when it is in all contexts.
    pub(super) fn post(self, registry: &Arc<Registry>) -> BoxFuture<'static, ()> {
        let Self { key, text, conversations } = self;
        let now = registry.now();
        let each = conversations.into_iter().filter_map(|conversation| {
            let source = Some(Source { kind: SourceKind::Agent, channel_id: None, message_id: None, format: None });
            let message = NewMessage { source, generated: true, ..NewMessage::text(Role::System, &text) };
            let message = message.complete(|| new_id().to_string(), now);
            let message = StoredMessage::new(&message).ok()?;
            let append = command::append(vec![message], Some(key.clone()));
            let registry = registry.clone();
            let mut posted = async move {
                if let Err(failure) = registry.ask(conversation, append).await {
                    tracing::warn!(agent = %conversation.agent, %failure, "cannot notify an agent about its workspace");
                }
            }
            .boxed();
            // The first poll puts it into the queue.
            let is_done = (&mut posted).now_or_never().is_some();
            (!is_done).then_some(posted)
        });
        let each: Vec<_> = each.collect();
        futures_util::future::join_all(each).map(drop).boxed()
    }
}
