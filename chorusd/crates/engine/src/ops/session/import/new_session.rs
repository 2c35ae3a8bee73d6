//! Saves a conversation that is imported for the first time, or a revision of one.

use std::path::Path;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionPlacement;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SessionSource, SummarySource, Trigger};
use chorus_session::{slug, summary};
use chorus_store::session_files;
use uuid::Uuid;

use super::importer::SessionImporter;
use crate::agent::session_save::{SessionTarget, write_session};
use crate::ops::import_sink::ImportedSession;

/// A session to be saved.
#[derive(Debug)]
pub(super) struct NewSession {
    pub imported: Arc<ImportedSession>,
    pub source: SessionSource,
    /// The session of which this is a new revision, or which it continues.
    pub parent: Option<Uuid>,
}

impl SessionImporter {
    /// Saves a session of `agent`.
    pub(super) async fn save_new(&self, agent: Uuid, new: NewSession) -> Result<Session> {
        // Locked only while one session is written, so that a rename need not wait for the whole import.
        let _stays = self.sessions_lock.read().await;
        let entry = self.agents.by_id(agent);
        let settings = &entry.map(|entry| entry.settings.clone()).ok_or_else(Error::agent_destroyed)?;
        let NewSession { imported, source, parent } = new;
        let (about, usage) = (imported.about.clone(), imported.usage.clone());
        // Reserved until the row exists: of several concurrent imports of one id, one gets it.
        let reserved = about.id.and_then(|id| self.store.files.ids.try_reserve(id));
        let id = match reserved.as_ref().map(|id| *id.key()) {
            Some(id) if self.store.catalog.sessions.get(id).await?.is_none() => id,
            _ => Uuid::new_v4(),
        };
        // A session file of Chorus keeps its time. A foreign transcript is saved as of now.
        let started_at = about.started_at.unwrap_or(imported.first_at);
        let dated = about.saved_at.filter(|_| about.session_id.is_some());
        let saved_at = dated.unwrap_or_else(|| self.clock.now());
        let named = about.session_id.filter(|name| is_session_id(name));
        let wanted = named.unwrap_or_else(|| slug::session_id(started_at, &imported.name_slug()));
        let of = settings.clone();
        let make = move |dir: &Path, session_id: &str| {
            let extract = summary::extract_summary(&imported.digest);
            let (given, found) = (about.summary.is_some(), extract.source());
            let totals = &imported.totals;
            let header = SessionHeader {
                schema: SESSION_SCHEMA,
                id,
                session_id: session_id.to_owned(),
                agent_id: of.id,
                agent_name: of.name.clone(),
                conversation: None,
                source: Some(source),
                description: about.description.or(extract.title),
                summary_source: match about.summary_source {
                    Some(source) if given => source,
                    _ if given => SummarySource::Given,
                    _ => found,
                },
                summary: about.summary.or(extract.summary),
                saved_at,
                started_at,
                trigger: Trigger::Import,
                model: about.model,
                message_count: totals.messages,
                query_count: totals.queries,
                token_estimate: totals.tokens(),
                restoration_tokens: about.restoration_tokens.unwrap_or_default(),
                parent_id: parent.or(about.parent_id),
                workspace_commit: None,
                tags: about.tags,
                working_set: about.working_set.unwrap_or_default(),
            };
            let filled = session_files::stage_spooled(dir, &header, &imported.body)?;
            Ok((header, filled))
        };
        let taken_names = self.store.catalog.sessions.names_with_base(settings.id, wanted.clone()).await?;
        let order = SessionPlacement::AtOwnPlace;
        let usage = Some(usage);
        let place = SessionTarget { name: wanted, taken_names, batched: false, summary_request: None, order, usage };
        let written = write_session(&self.store, settings, place, make, || async { Ok(()) }).await;
        drop(reserved);
        let written = written?;
        if dated.is_some() {
            // The session keeps its old time but counts as used now.
            if let Err(failure) = self.store.catalog.sessions.touch(written.header.id, self.clock.now()).await {
                tracing::warn!(session = %written.header.session_id, %failure, "cannot record the first use of a new session");
            }
        }
        Ok(written)
    }
}

/// Returns true if a name from outside may name a session file: `<YYYY-MM-DD>_<slug>`.
fn is_session_id(name: &str) -> bool {
    let Some((date, slug)) = name.split_once('_') else { return false };
    date.len() == 10
        && date.parse::<jiff::civil::Date>().is_ok()
        && !slug.is_empty()
        && slug.len() <= 64
        && slug.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn only_our_own_form_names_a_file() {
        assert!(is_session_id("2026-02-12_auth-refactor-2"));
        for bad in
            ["x", "2026-02-12_", "2026-02-12_../x", "2026-02-12_a/b", "2026-02-31_a", "20260212__a", "2026-02-12_A"]
        {
            assert!(!is_session_id(bad), "{bad}");
        }
    }
}
