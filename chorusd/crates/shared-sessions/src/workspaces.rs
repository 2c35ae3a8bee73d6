//! Bundles of workspaces, next to the bodies of sessions: an object each, written before the row that names it.

use chorus_base::error::{Error, Result};
use chorus_catalog::WorkspaceBundle;
use chorus_proto::ErrorKind;
use chorus_session_objects::{BundleKey, NAME_WITHIN, put_once};
use chorus_store::{NewWorkspaceBundle, SharedWorkspaces};
use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::SharedSessions;

impl SharedWorkspaces for SharedSessions {
    fn list(&self, agent: Uuid) -> BoxFuture<'_, Result<Vec<WorkspaceBundle>>> {
        self.workspaces.list(agent)
    }

    fn add(&self, agent: Uuid, bundle: NewWorkspaceBundle) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let NewWorkspaceBundle { follows, base, tip, content, replaces } = bundle;
            let owned = self.ownership.epoch(agent).and_then(|epoch| u64::try_from(epoch).ok());
            let epoch = owned.ok_or_else(|| Error::new(ErrorKind::Busy, "another node has taken over the agent"))?;
            let former = if replaces.is_some() { self.workspaces.list(agent).await? } else { Vec::new() };
            let name_before = self.clock.ticks().after(NAME_WITHIN);
            let row = WorkspaceBundle {
                number: follows + 1,
                base,
                tip,
                key: BundleKey { agent, epoch, write: Uuid::new_v4() }.to_text(&self.prefix),
                sha256: Sha256::digest(&content).into(),
                bytes: content.len() as u64,
                at: self.clock.now(),
                node: self.node.clone(),
                handover: None,
            };
            put_once(&*self.bucket, &row.key, content.into()).await?;
            if self.clock.ticks() > name_before {
                // The sweep could delete it before the row is there.
                return Err(Error::new(ErrorKind::StorageFailed, "storing the workspace took too long"));
            }
            let number = row.number;
            if !self.workspaces.insert(agent, row, replaces).await? {
                return Err(Error::new(ErrorKind::Conflict, "another bundle of the workspace was stored"));
            }
            let Some(first) = replaces else { return Ok(()) };
            for old in former.into_iter().filter(|old| (first..number).contains(&old.number)) {
                self.delete_object(old.key);
            }
            Ok(())
        })
    }

    fn read(&self, bundle: WorkspaceBundle) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(async move {
            let damaged = |why| {
                let WorkspaceBundle { number, key, .. } = &bundle;
                Error::new(ErrorKind::GitFailed, format!("checkpoint {number} {why}: {key}"))
            };
            // Wrong content is read once more, as that of sessions.
            for _ in 0..2 {
                let Some(content) = self.bucket.get(&bundle.key).await? else {
                    return Err(damaged("is not in the bucket"));
                };
                if <[u8; 32]>::from(Sha256::digest(&content)) == bundle.sha256 {
                    return Ok(content.into());
                }
            }
            Err(damaged("is not as it was written"))
        })
    }

    fn set_handover(&self, agent: Uuid, number: u64, newer_files: u64) -> BoxFuture<'_, Result<()>> {
        self.workspaces.set_handover(agent, number, newer_files)
    }

    fn delete_of_agent(&self, agent: Uuid) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let bundles = self.workspaces.list(agent).await?;
            self.workspaces.delete_of_agent(agent).await?;
            bundles.into_iter().for_each(|bundle| self.delete_object(bundle.key));
            Ok(())
        })
    }
}

impl SharedSessions {
    /// Deletes an object that no row names any more, in the background: if that fails, a sweep does it.
    fn delete_object(&self, key: String) {
        let bucket = self.bucket.clone();
        chorus_runtime::spawn(async move {
            if let Err(failure) = bucket.delete(&key).await {
                tracing::warn!(key, %failure, "cannot delete a bundle that no row names; a sweep deletes it");
            }
        });
    }
}
