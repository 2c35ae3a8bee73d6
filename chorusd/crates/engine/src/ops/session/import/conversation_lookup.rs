//! Finds the sessions that hold a conversation which is imported again, and lets one of them grow.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::methods::import::{ImportFormat, ImportOutcome};
use chorus_proto::{ErrorKind, SessionHeader, SessionSource, SummarySource, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::summary;
use chorus_store::{ChangeGrown, GrowthResult, HeaderChange, PrepareMessage};
use uuid::Uuid;

use super::exported_conversation::ExportedConversation;
use super::importer::{ImportTarget, SavedConversation, SessionImporter};
use super::new_session::NewSession;
use crate::ops::import_sink::ImportedSession;
use crate::ops::redact_import::ImportRedactor;

/// How often the earlier imports of a conversation are looked up because they change meanwhile.
const MAX_LOOKUPS: u32 = 3;

/// Identifies a conversation: its program, and the id there.
pub type ConversationKey = (String, String);

/// The earlier imports of a conversation.
#[derive(Debug, Default)]
struct EarlierImports {
    /// The id that they know the conversation by.
    conversation: Option<String>,
    /// The sessions that hold it, the newest revision first.
    revisions: Vec<SessionRow>,
    /// Sessions without a source that may hold it.
    candidates: Vec<SessionRow>,
}

impl EarlierImports {
    fn revision_ids(&self) -> Vec<Uuid> {
        self.revisions.iter().map(|row| row.header.id).collect()
    }
}

impl SessionImporter {
    /// Saves a conversation, or adds what is new to the session that holds it. With `find_parent`, the parent of a side
    /// chain is looked up, because the transcript does not contain it. Returns `None` if the rules of capture leave it out.
    pub(super) async fn save_conversation(
        &self,
        target: ImportTarget<'_>,
        mut imported: ImportedSession,
        find_parent: bool,
    ) -> Result<Option<SavedConversation>> {
        let program = program_of(target.format, &imported);
        if matches!(program.as_str(), "chorus" | "markdown") {
            // What our own agents used was recorded when they used it.
            imported.usage = Arc::default();
        }
        let ids = conversation_ids(&program, target.name, &imported);
        match target.rules {
            Some(rules) if !rules.admits(&program, &ids, (imported.about.project.as_deref(), target.name)) => {
                return Ok(None);
            }
            Some(_) => {}
            None => self.deleted.remove(&program, &ids).await?,
        }
        let _one_at_a_time = match ids.last() {
            Some(id) => Some(self.conversation_locks.lock((program.clone(), id.clone())).await),
            None => None,
        };
        if find_parent && let Some((parent, _)) = ids.first().and_then(|id| id.rsplit_once('/')) {
            let parents = self.store.catalog.sessions.list_of_source(program.clone(), parent.to_owned()).await?;
            let parent = self.of_agent(target.agent, parents).into_iter().next();
            imported.about.parent_id = parent.map(|row| row.header.id).or(imported.about.parent_id);
        }
        let raw = Arc::new(imported);
        let mut earlier = self.find_earlier(target.agent, &program, &ids, &raw).await?;
        let mut lookups = 1;
        let (conversation, mut source) = loop {
            let known_mode = earlier.revisions.iter().find_map(|row| row.header.source.as_ref()).map(|at| at.redacted);
            let modes = match known_mode {
                Some(redact) => vec![redact],
                // Earlier versions did not keep whether secrets were redacted.
                None if !raw.secrets.is_empty() => vec![target.redact, !target.redact],
                None => vec![target.redact],
            };
            let mut chosen = None;
            for redact in modes {
                let redacted = redact || raw.about.redacted;
                let conversation = if redact { self.redacted(&raw).await? } else { raw.clone() };
                let source = |sha256: &str| SessionSource {
                    program: program.clone(),
                    conversation: earlier.conversation.clone().or_else(|| ids.first().cloned()).unwrap_or_default(),
                    project: raw.about.project.clone(),
                    branch: raw.about.branch.clone(),
                    ended_at: ended_at(&conversation),
                    revision: 1,
                    redacted,
                    messages_sha256: sha256.to_owned(),
                };
                for row in earlier.revisions.iter().chain(&earlier.candidates) {
                    if let Some(saved) = self.grow(row, &conversation, source(&row.sha256)).await? {
                        return Ok(Some(saved));
                    }
                }
                chosen.get_or_insert((conversation.clone(), source(&conversation.body.sha256)));
            }
            let Some(chosen) = chosen else { return Err(Error::internal("nothing to import")) };
            if earlier.revisions.is_empty() || lookups == MAX_LOOKUPS {
                break chosen;
            }
            // A copy without secrets may have replaced a session meanwhile, and is the one to grow.
            let again = self.find_earlier(target.agent, &program, &ids, &raw).await?;
            if again.revision_ids() == earlier.revision_ids() {
                break chosen;
            }
            (earlier, lookups) = (again, lookups + 1);
        };
        let former = earlier.revisions.first();
        let exported = match self.find_export(&program, &ids, &raw, former.is_some(), target.rules.is_some()).await? {
            ExportedConversation::HeldBy(row) => return self.describe_holder(*row).await.map(Some),
            ExportedConversation::LeftOut => return Ok(None),
            ExportedConversation::Continues(session) => Some(session),
            ExportedConversation::Unknown => None,
        };
        source.revision = former.map_or(1, |row| row.header.source.as_ref().map_or(1, |of| of.revision) + 1);
        let agent = match former.map(|row| row.header.agent_id).or(target.agent) {
            Some(agent) => agent,
            None => self.import_agents.find_or_create(target.format, &source.program).await?,
        };
        // An agent may have been destroyed meanwhile.
        let project = raw.about.project.as_deref();
        if target.rules.is_some_and(|rules| !rules.admits(&program, &ids, (project, target.name))) {
            return Ok(None);
        }
        let secrets = conversation.secrets_after(0) + self.metadata_secrets(&raw);
        let parent = former.map(|row| row.header.id).or(exported);
        let added = conversation.totals.messages;
        let session = self.save_new(agent, NewSession { imported: conversation, source, parent }).await?;
        let outcome = if former.is_some() { ImportOutcome::Revision } else { ImportOutcome::New };
        Ok(Some(SavedConversation { session, outcome, added, secrets }))
    }

    /// Finds the earlier imports of a conversation that has one of these ids.
    async fn find_earlier(
        &self,
        agent: Option<Uuid>,
        program: &str,
        ids: &[String],
        imported: &ImportedSession,
    ) -> Result<EarlierImports> {
        let table = &self.store.catalog.sessions;
        for id in ids {
            let revisions = self.of_agent(agent, table.list_of_source(program.to_owned(), id.clone()).await?);
            if !revisions.is_empty() {
                return Ok(EarlierImports { conversation: Some(id.clone()), revisions, candidates: Vec::new() });
            }
        }
        let mut found = EarlierImports::default();
        if let Some(id) = imported.about.id
            && let Some(row) = table.get(id).await?
        {
            let adopted = row.header.source.is_none() && row.header.trigger == Trigger::Import;
            if adopted {
                // What an earlier version imported is the same conversation.
                found.revisions = self.of_agent(agent, vec![row]);
            } else if row.header.source.is_none() || program == "chorus" {
                // An export of a session that is still here. A session of an agent's own never grows.
                found.candidates = self.of_agent(agent, vec![row]);
            }
        }
        if found.revisions.is_empty() {
            let started_at = imported.about.started_at.unwrap_or(imported.first_at);
            let others = self.of_agent(agent, table.list_without_source(started_at).await?);
            found.candidates.extend(others);
            // Messages without times got that of the import, so the name tells more.
            if found.candidates.is_empty() && imported.first_at == imported.last_at {
                let named = table.list_without_source_by_slug(imported.name_slug()).await?;
                found.candidates = self.of_agent(agent, named);
            }
        }
        Ok(found)
    }

    /// Keeps the sessions of one agent: of `agent`, if given, otherwise of one that exists, and rather of one that holds
    /// imported conversations.
    fn of_agent(&self, agent: Option<Uuid>, mut rows: Vec<SessionRow>) -> Vec<SessionRow> {
        let rank = |row: &SessionRow| {
            let entry = self.agents.by_id(row.header.agent_id)?;
            Some(entry.settings.import_source.is_none())
        };
        let chosen = agent.or_else(|| {
            let ranked = rows.iter().filter_map(|row| Some((rank(row)?, row.header.agent_id)));
            ranked.min_by_key(|(rank, _)| *rank).map(|(_, agent)| agent)
        });
        rows.retain(|row| Some(row.header.agent_id) == chosen);
        rows
    }

    /// Adds what is new in `imported` to a session. Returns `None` if that is not just more at the end.
    async fn grow(
        &self,
        row: &SessionRow,
        imported: &Arc<ImportedSession>,
        source: SessionSource,
    ) -> Result<Option<SavedConversation>> {
        // Locked only while one session is written, so that a rename need not wait for the whole import.
        let _stays = self.sessions_lock.read().await;
        let Some(agent) = self.agents.by_id(row.header.agent_id) else { return Ok(None) };
        let prepare: PrepareMessage = if source.redacted {
            let redactor = self.redactor.clone();
            // A later version may find secrets that were not redacted before.
            Arc::new(move |json| {
                let text = std::str::from_utf8(json).ok()?;
                let message = serde_json::from_slice(json).ok()?;
                let search = ImportRedactor { redactor: &redactor, redact: true };
                search.redact_message(&message, text).0.map(|(_, json)| json)
            })
        } else {
            Arc::new(|_| None)
        };
        let own = row.header.trigger != Trigger::Import;
        let (of, wanted) = (imported.clone(), source.clone());
        let (registry, session) = (self.registry.clone(), row.header.id);
        let change = HeaderChange {
            usage: (!own).then(|| imported.usage.clone()),
            is_in_use: Arc::new(move || registry.sessions_in_use().contains(&session)),
            grown: (!own).then(|| {
                let change = move |header: &mut SessionHeader, sha256: &str| grow_header(header, &of, &wanted, sha256);
                Arc::new(change) as ChangeGrown
            }),
            same: {
                let of = imported.clone();
                Arc::new(move |header: &mut SessionHeader| {
                    if !own {
                        update_source(header, &source);
                        update_title(header, &of);
                    }
                })
            },
        };
        let (store, dir) = (&self.store, agent.settings.dir.clone());
        let grown = store.grow_session(row.header.id, dir, imported.body.clone(), prepare, change).await;
        let (row, outcome, kept) = match store.escalate_fatal(grown) {
            Ok(GrowthResult::Same(row) | GrowthResult::Shorter(row)) => {
                (row, ImportOutcome::UpToDate, imported.body.count)
            }
            Ok(GrowthResult::Grown { row, kept }) => {
                drop(store.catalog.sessions.touch(row.header.id, self.clock.now()));
                (row, ImportOutcome::Grown, kept)
            }
            Ok(GrowthResult::Different) => return Ok(None),
            Err(failure) if matches!(failure.kind, ErrorKind::SessionNotFound | ErrorKind::CorruptSession) => {
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        let added = imported.body.count - kept;
        let session = self.sessions.describe_all(vec![*row]).await?.pop();
        let session = session.ok_or_else(|| Error::internal("a session without a description"))?;
        Ok(Some(SavedConversation { session, outcome, added, secrets: imported.secrets_after(kept) }))
    }

    async fn redacted(&self, imported: &Arc<ImportedSession>) -> Result<Arc<ImportedSession>> {
        if imported.secrets.is_empty() && self.metadata_secrets(imported) == 0 {
            return Ok(imported.clone());
        }
        let (imported, redactor, dir) = (imported.clone(), self.redactor.clone(), self.spool_dir());
        run_blocking(move || imported.redacted(&redactor, &dir).map_err(|e| Error::io("cannot redact an import", &e)))
            .await
            .map(Arc::new)
    }

    fn metadata_secrets(&self, imported: &ImportedSession) -> u64 {
        ImportRedactor { redactor: &self.redactor, redact: false }.redact_metadata(&mut imported.about.clone())
    }
}

/// Returns the program of a conversation, or the format if that does not tell.
fn program_of(format: ImportFormat, imported: &ImportedSession) -> String {
    let named = match format {
        ImportFormat::ClaudeCode => "claude-code",
        ImportFormat::Codex => "codex",
        ImportFormat::Chatgpt => "chatgpt",
        ImportFormat::Goose => "goose",
        ImportFormat::Gemini => "gemini",
        ImportFormat::Opencode => "opencode",
        ImportFormat::Copilot => "copilot",
        ImportFormat::Pi => "pi",
        ImportFormat::Hermes => "hermes",
        ImportFormat::ClaudeAi => "claude-ai",
        ImportFormat::Cursor => "cursor",
        ImportFormat::VscodeChat => "vscode-chat",
        ImportFormat::GeminiApps => "gemini-apps",
        ImportFormat::Cline => "cline",
        ImportFormat::Aider => "aider",
        ImportFormat::Amp => "amp",
        ImportFormat::OpenWebui => "open-webui",
        ImportFormat::Librechat => "librechat",
        ImportFormat::Chorus => "chorus",
        // An export of Chorus has the session's id.
        ImportFormat::Markdown if imported.about.id.is_some() => "chorus",
        ImportFormat::Markdown => "markdown",
        ImportFormat::Openai | ImportFormat::Auto => "openai",
    };
    imported.about.program.clone().unwrap_or_else(|| named.to_owned())
}

/// Returns the ids that a conversation may be known by. The last one stays the same if the conversation grows.
fn conversation_ids(program: &str, file: &str, imported: &ImportedSession) -> Vec<String> {
    if let Some(id) = &imported.about.conversation {
        if program == "gemini" && imported.about.side_chain {
            // The directory of a subagent's file has the id of the conversation that started it.
            let parent = file.rsplit('/').nth(1).filter(|name| Uuid::parse_str(name).is_ok());
            return vec![parent.map_or_else(|| id.clone(), |parent| format!("{parent}/{id}"))];
        }
        return vec![id.clone()];
    }
    // Early versions of goose have the id in the name of the file: 20250614_101500.jsonl.
    let stem = file.rsplit('/').next().unwrap_or(file).strip_suffix(".jsonl");
    if program == "goose"
        && let Some(stem) =
            stem.filter(|stem| stem.len() == 15 && stem.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    {
        return vec![stem.to_owned()];
    }
    let opening = &imported.opening;
    let mut ids = vec![opening.with_reply.clone(), opening.question.clone()];
    ids.dedup();
    ids
}

/// Returns when a conversation ended. A session file of Chorus says when it was saved.
fn ended_at(imported: &ImportedSession) -> jiff::Timestamp {
    let about = &imported.about;
    about.saved_at.filter(|_| about.session_id.is_some() && about.program.is_none()).unwrap_or(imported.last_at)
}

/// Changes the header of a session to which the rest of `imported` was added.
fn grow_header(header: &mut SessionHeader, imported: &ImportedSession, source: &SessionSource, sha256: &str) {
    let (about, totals) = (&imported.about, &imported.totals);
    header.message_count = totals.messages;
    header.query_count = totals.queries;
    header.token_estimate = totals.tokens();
    update_source(header, &SessionSource { messages_sha256: sha256.to_owned(), ..source.clone() });
    update_title(header, imported);
    if header.summary_source == SummarySource::Given {
        return;
    }
    let extract = summary::extract_summary(&imported.digest);
    (header.summary_source, header.summary) = match &about.summary {
        Some(summary) => (about.summary_source.unwrap_or(SummarySource::Given), Some(summary.clone())),
        None => (extract.source(), extract.summary),
    };
    header.description = header.description.take().or(extract.title);
}

fn update_source(header: &mut SessionHeader, new: &SessionSource) {
    let new = new.clone();
    header.source = Some(match header.source.take() {
        Some(known) => SessionSource {
            ended_at: known.ended_at.max(new.ended_at),
            project: known.project.or(new.project),
            branch: new.branch.or(known.branch),
            messages_sha256: new.messages_sha256,
            ..known
        },
        None => new,
    });
}

/// Takes over the title and the model that the source has now.
fn update_title(header: &mut SessionHeader, imported: &ImportedSession) {
    let about = &imported.about;
    header.description = about.description.clone().or(header.description.take());
    header.model = about.model.clone().or(header.model.take());
}
