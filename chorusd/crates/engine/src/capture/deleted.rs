//! The conversations that were deleted here, so that capture does not bring them back.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::hex::hex;
use chorus_base::sync::Mutex;
use chorus_catalog::CaptureTable;
use chorus_proto::SessionHeader;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

/// The conversations that were deleted here. Only hashes of their ids are stored.
#[derive(Debug)]
pub struct DeletedConversations {
    table: Arc<dyn CaptureTable>,
    hashes: Mutex<HashSet<String>>,
    /// Is notified when a conversation may be captured again.
    pub(super) restored: Notify,
}

impl DeletedConversations {
    /// Loads them from the catalog.
    pub async fn load(table: Arc<dyn CaptureTable>) -> Result<Self> {
        let hashes = table.deleted_conversations().await?.into_iter().collect();
        Ok(Self { table, hashes: Mutex::new(hashes), restored: Notify::new() })
    }

    /// Returns true if a conversation that is known by one of these ids was deleted.
    #[must_use]
    pub fn contains(&self, program: &str, ids: &[String]) -> bool {
        let hashes = self.hashes.lock();
        !hashes.is_empty() && ids.iter().any(|id| hashes.contains(&conversation_hash(program, id)))
    }

    /// Returns true if the conversation with this [`conversation_hash`] was deleted.
    pub(crate) fn contains_hash(&self, hash: &str) -> bool {
        self.hashes.lock().contains(hash)
    }

    /// Records that a conversation was deleted.
    pub(crate) async fn add(&self, program: &str, conversation: &str) -> Result<()> {
        let hash = conversation_hash(program, conversation);
        self.table.add_tombstone(hash.clone()).await?;
        self.hashes.lock().insert(hash);
        Ok(())
    }

    /// Lets capture take all conversations again. Returns their number.
    pub(crate) async fn remove_all(&self) -> Result<u64> {
        let hashes = self.hashes.lock().clone();
        let count = hashes.len() as u64;
        self.remove_hashes(hashes).await?;
        Ok(count)
    }

    /// Adds hashes that are in the catalog already.
    pub(crate) fn add_stored(&self, hashes: Vec<String>) {
        self.hashes.lock().extend(hashes);
    }

    /// Lets capture take these conversations again, because they were restored.
    pub(crate) async fn remove_identities(&self, identities: &[(String, String)]) -> Result<()> {
        let hashes =
            identities.iter().map(|(program, conversation)| conversation_hash(program, conversation)).collect();
        self.remove_hashes(hashes).await
    }

    async fn remove_hashes(&self, hashes: HashSet<String>) -> Result<()> {
        self.table.remove_tombstones(hashes.iter().cloned().collect()).await?;
        self.hashes.lock().retain(|hash| !hashes.contains(hash));
        self.table.forget_held_back().await?;
        self.restored.notify_one();
        Ok(())
    }

    /// Lets capture take a conversation again, because the user brought it back.
    pub(crate) async fn remove(&self, program: &str, ids: &[String]) -> Result<()> {
        if !self.contains(program, ids) {
            return Ok(());
        }
        self.remove_hashes(ids.iter().map(|id| conversation_hash(program, id)).collect()).await
    }
}

/// Returns the program and the id there of the conversation that a session holds. A session that an agent saved has these on
/// other machines.
pub(crate) fn identity(header: &SessionHeader) -> (String, String) {
    match &header.source {
        Some(source) => (source.program.clone(), source.conversation.clone()),
        None => ("chorus".to_owned(), header.id.to_string()),
    }
}

/// Returns the hash by which a conversation of a program is known without its id.
pub(crate) fn conversation_hash(program: &str, conversation: &str) -> String {
    hex(&Sha256::digest(format!("{program}\0{conversation}")))
}
