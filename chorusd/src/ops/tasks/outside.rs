//! What tasks ask of the rest of the daemon.

use std::path::PathBuf;

use chorus_proto::EventType;
use futures_util::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use crate::agent::event::Verb;
use crate::failure::Result;
use crate::message::Stored;
use crate::ops::Ops;
use crate::tasks::Outside;

impl Outside for Ops {
    fn place_of(&self, agent: Uuid) -> Option<(String, PathBuf)> {
        self.directory.by_id(agent).map(|entry| (entry.facts.name.clone(), entry.facts.dir.clone()))
    }

    fn announce(&self, kind: EventType, agent: String, data: Value) {
        self.registry.tell(kind, Some(agent), data);
    }

    fn append(&self, agent: Uuid, message: Stored, key: String) -> BoxFuture<'static, Result<()>> {
        let registry = self.registry.clone();
        let verb = Verb::Append { messages: vec![message], key: Some(key) };
        Box::pin(async move { registry.ask(agent, verb).await.map(drop) })
    }

    fn running_changed(&self, agent: Uuid) {
        self.listed.mark(agent);
    }
}
