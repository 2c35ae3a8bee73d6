//! The saved conversations of a machine, by the identity that they have on every machine.

use std::collections::{HashMap, HashSet};

use chorus_proto::methods::Method as _;
use chorus_proto::methods::agent::{List as ListAgents, ListParams as ListAgentsParams};
use chorus_proto::methods::context::{History, HistoryParams, HistoryResult};
use chorus_proto::methods::trash::{List as ListTrash, ListParams as ListTrashParams, TrashKind};
use chorus_proto::{Client, SessionSource};
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::app::parse_result;
use crate::error::Error;

/// Sessions per request.
const PAGE_SIZE: u64 = 1_000;

/// The program of sessions that Chorus itself saved.
const CHORUS: &str = "chorus";

/// A saved conversation.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) id: Uuid,
    session_id: String,
    agent_name: String,
    source: Option<SessionSource>,
    started_at: Timestamp,
}

impl Entry {
    /// Returns the identity of the conversation: its program, and the id there.
    fn key(&self) -> (String, String) {
        match &self.source {
            Some(source) => (source.program.clone(), source.conversation.clone()),
            None => (CHORUS.to_owned(), self.id.to_string()),
        }
    }

    /// Returns the hash of the messages. A session that an agent saved never changes, so its identity is enough.
    fn sha256(&self) -> Option<&str> {
        let source = self.source.as_ref().filter(|source| source.program != CHORUS)?;
        Some(&source.messages_sha256)
    }
}

/// The saved conversations of a machine.
#[derive(Debug)]
pub(super) struct Inventory {
    entries: Vec<Entry>,
    by_key: HashMap<(String, String), Vec<usize>>,
    /// Names of the agents that are there, other than those of imports.
    agents: HashSet<String>,
    /// Names of the sessions in the trash, with their agents.
    deleted: HashSet<(String, String)>,
}

impl Inventory {
    /// Lists what the daemon has, of a project or of all.
    pub(super) fn read(client: &mut Client, project: Option<&str>) -> Result<Self, Error> {
        let (mut entries, mut page) = (Vec::new(), 1);
        loop {
            let params = HistoryParams {
                all_agents: true,
                page: Some(page),
                limit: Some(PAGE_SIZE),
                project: project.map(str::to_owned),
                keep_numbers: true,
                ..HistoryParams::default()
            };
            let raw = client.call_raw(History::NAME, &params, &mut |_| {})?;
            let result: HistoryResult<Entry> = parse_result(&raw)?;
            let is_last = result.page >= result.pages;
            entries.extend(result.sessions);
            if is_last {
                break;
            }
            page += 1;
        }
        // A parent comes before its children.
        entries.sort_by_key(|entry| (entry.started_at, entry.id));
        entries.dedup_by_key(|entry| entry.id);
        let mut by_key: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_key.entry(entry.key()).or_default().push(index);
        }
        let agents = client.call::<ListAgents>(&ListAgentsParams::default())?.agents;
        let agents = agents.into_iter().filter(|agent| agent.import_source.is_none()).map(|agent| agent.name).collect();
        let trash = client.call::<ListTrash>(&ListTrashParams::default())?.entries;
        let deleted = trash.into_iter().filter(|entry| entry.kind == Some(TrashKind::Session));
        let deleted = deleted.filter_map(|entry| Some((entry.agent_name?, entry.name))).collect();
        Ok(Self { entries, by_key, agents, deleted })
    }

    /// Returns the sessions that `other` lacks, the oldest first. Those in its trash stay away, and `settled` are left out.
    pub(super) fn missing_in(&self, other: &Self, settled: &HashSet<Uuid>) -> Vec<&Entry> {
        let is_missing = |entry: &&Entry| {
            let same = other.by_key.get(&entry.key()).into_iter().flatten().map(|index| &other.entries[*index]);
            let mut same = same.filter(|held| entry.sha256().is_none() || held.sha256() == entry.sha256());
            same.next().is_none() && !settled.contains(&entry.id) && !other.is_deleted(entry)
        };
        self.entries.iter().filter(is_missing).collect()
    }

    fn is_deleted(&self, entry: &Entry) -> bool {
        let of = |agent: &str| self.deleted.contains(&(agent.to_owned(), entry.session_id.clone()));
        of(&entry.agent_name) || of(CHORUS)
    }

    /// Returns the agent that gets a session: the one of the same name, if there is one. Otherwise, it belongs to its source.
    pub(super) fn agent_for(&self, entry: &Entry) -> Option<String> {
        let is_own = entry.source.as_ref().is_none_or(|source| source.program == CHORUS);
        (is_own && self.agents.contains(&entry.agent_name)).then(|| entry.agent_name.clone())
    }
}
