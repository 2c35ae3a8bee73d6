//! Opens sessions for reading: saved ones, and the live context in the form of one.

use std::path::PathBuf;

use chorus_agent_core::event::ContextDraft;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::SessionRow;
use chorus_proto::{ErrorKind, Session, SessionHeader, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::{Selector, slug};
use chorus_store::{session_files, session_form};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use super::SessionReader;
use super::message_source::{MessageSource, SharedMessages};
use crate::agent::{command, session_save};
use crate::ops::conversations::ConversationTarget;

/// A session that is open for reading.
#[derive(Debug)]
pub struct OpenSession {
    pub header: SessionHeader,
    pub messages: MessageSource,
    /// Identifies the messages.
    pub messages_hash: String,
    /// The row of a saved session; `None` for the live context.
    row: Option<SessionRow>,
}

impl OpenSession {
    /// True for the live context, which no session holds as it is.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.row.is_none()
    }
}

impl SessionReader {
    /// Opens the session that `text` selects, as [`SessionReader::resolve_to_read`] finds it. `@` is the live context as it is
    /// now: the session that holds it or, if there is something that no session holds, the session that a save would write.
    ///
    /// # Errors
    /// As [`SessionReader::resolve_as`] and [`SessionReader::open_messages`]; `session_not_found` if the live context has no
    /// messages.
    pub async fn open_as(
        &self,
        by: &Requester,
        target: &ConversationTarget,
        agent_said: bool,
        text: &str,
        command: &str,
    ) -> Result<OpenSession> {
        match Selector::parse(text) {
            Selector::Live => self.open_live(target).await,
            Selector::LiveOf(name) => {
                let key = self.find_live(by, target, &name)?;
                self.open_live(&ConversationTarget::new(target.agent.clone(), key)).await
            }
            _ => self.open_row(self.resolve_to_read(by, target, agent_said, text, command).await?).await,
        }
    }

    /// Returns the header of a session with its notes, which only its file has.
    ///
    /// # Errors
    /// `session_not_found` if the file is missing.
    pub async fn header_with_notes(&self, row: &SessionRow) -> Result<SessionHeader> {
        let path = self.local_path(row).await?;
        let read = run_blocking(move || session_files::read_header(&path)).await?;
        let notes = read.map(|of_file| of_file.working_set);
        Ok(SessionHeader { working_set: notes.unwrap_or_else(|| row.header.working_set.clone()), ..row.header.clone() })
    }

    /// Returns the path of a session's file, which is copied to this machine first if it is not there and its body is
    /// elsewhere.
    ///
    /// # Errors
    /// As [`SharedBodies::refresh`](chorus_store::SharedBodies::refresh).
    pub async fn local_path(&self, row: &SessionRow) -> Result<PathBuf> {
        self.store.local_file(row, &self.agent_dir(&row.header).await?).await
    }

    /// Opens a saved session. A large one whose body is elsewhere is not copied to this machine: its messages are read in
    /// parts. Fails like [`SessionReader::open_messages`].
    pub async fn open_row(&self, row: SessionRow) -> Result<OpenSession> {
        if let Some(bodies) = &self.store.bodies
            && let Some(body) = self.store.body_to_page(&row, &self.agent_dir(&row.header).await?)
        {
            let (header, messages_hash) = (row.header.clone(), body.sha256.clone());
            let messages = MessageSource::Shared(SharedMessages { bodies: bodies.clone(), body });
            return Ok(OpenSession { header, messages, messages_hash, row: Some(row) });
        }
        let file = self.open_messages(&row).await?;
        let (header, messages_hash) = (file.index.header.clone(), file.index.sha256.clone());
        let messages = MessageSource::File { name: row.header.session_id.clone(), file };
        Ok(OpenSession { header, messages, messages_hash, row: Some(row) })
    }

    async fn open_live(&self, target: &ConversationTarget) -> Result<OpenSession> {
        let id = target.key.id;
        let draft = self.draft_live(target.key).await?.ok_or_else(|| {
            let name = &target.agent.settings.name;
            Error::new(ErrorKind::SessionNotFound, format!("the live conversation of {name} is empty"))
                .hint("use a saved one, for example `latest`; list them: chorusctl history")
        })?;
        if let Some(row) = self.holding_session(&draft).await? {
            return self.open_row(row).await;
        }
        let mut draft = draft.session;
        let last = draft.messages.last().map(|message| Sha256::digest(message.json()));
        // The messages before the last one are determined by the context and their number.
        let mut hash = Sha256::new();
        hash.update(id.as_bytes());
        hash.update(draft.context.0.to_le_bytes());
        hash.update(draft.totals.messages.to_le_bytes());
        hash.update(last.unwrap_or_default());
        let hash = hash.finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        let live_id = Builder::from_random_bytes(bytes).into_uuid();
        session_save::inherit_title(&self.store, &mut draft).await?;
        let wanted = session_save::wanted_name(&draft);
        let taken = self.table.names_with_base(target.key.agent, wanted.clone()).await?;
        let session_id = slug::free_name(&wanted, |name| {
            taken.iter().any(|known| known == name)
                || session_form::exists(&session_files::path_of(&draft.settings.dir, name))
        });
        let header = session_save::build_header(&draft, live_id, &session_id, None);
        let messages_hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(OpenSession { header, messages: MessageSource::Live(draft.messages), messages_hash, row: None })
    }

    /// Returns the live context as a save would write it; `None` if it has no messages.
    async fn draft_live(&self, conversation: ConversationKey) -> Result<Option<Box<ContextDraft>>> {
        if !self.registry.may_have_context(conversation) {
            return Ok(None);
        }
        let mut draft = self.registry.ask(conversation, command::draft()).await?;
        if let Some(draft) = &mut draft {
            draft.session.conversation = self.agents.index.conversations.reference(conversation);
        }
        Ok(draft)
    }

    /// Returns the session that holds the live context as it is.
    async fn holding_session(&self, live: &ContextDraft) -> Result<Option<SessionRow>> {
        let Some(saved) = live.session.saved_session.filter(|_| !live.unsaved) else { return Ok(None) };
        let row = self.table.get(saved).await?;
        // Part of a session may have been restored, and a rewind leaves the session with more than the context.
        Ok(row.filter(|row| row.header.message_count == live.session.totals.messages))
    }

    /// Saves the live context if one of `selectors` means it and no session holds it as it is, so that what continues from
    /// it has everything. Returns the session that was saved.
    ///
    /// # Errors
    /// `conversation_not_found`; `session_not_found` for one that is not offered to the requester; `busy` if a running turn keeps the context from being saved, `disk_full`, `storage_failed`.
    pub async fn save_if_selected(
        &self,
        by: &Requester,
        target: &ConversationTarget,
        selectors: &[&str],
        trigger: Trigger,
    ) -> Result<Option<Box<Session>>> {
        for text in selectors {
            let conversation = match Selector::parse(text) {
                Selector::Live => target.key,
                Selector::LiveOf(name) => self.find_live(by, target, &name)?,
                _ => continue,
            };
            if let Some(saved) = self.save_live(conversation, trigger).await? {
                return Ok(Some(saved));
            }
        }
        Ok(None)
    }

    /// Saves the live context of a conversation unless a session holds it as it is.
    async fn save_live(&self, conversation: ConversationKey, trigger: Trigger) -> Result<Option<Box<Session>>> {
        let Some(live) = self.draft_live(conversation).await? else { return Ok(None) };
        if live.unsaved {
            let saved = command::save_if_unsaved(trigger, false);
            return Ok(self.registry.ask(conversation, saved).await?.map(Box::new));
        }
        if live.session.saved_session.is_none() || self.holding_session(&live).await?.is_some() {
            return Ok(None);
        }
        let saved = self.registry.ask(conversation, command::save(None, Vec::new(), false)).await?;
        Ok(Some(saved.session))
    }

    /// Describes an open session. The live context has no file.
    pub async fn describe_open(&self, open: &OpenSession) -> Result<Session> {
        match &open.row {
            Some(row) => self.describe(row.clone()).await,
            None => Ok(Session {
                header: open.header.clone(),
                short_id: open.header.id.to_string().chars().take(8).collect(),
                unique_prefix: None,
                file_path: String::new(),
                available: true,
                corrupt: None,
            }),
        }
    }
}
