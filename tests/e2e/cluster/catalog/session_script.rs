//! A script of writes and reads of sessions, and its results.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use chorus_base::error::Result as TableResult;
use chorus_catalog::{NewSession, PendingSummary, ProjectFilter, SessionPlacement, SessionQuery, SessionRow};
use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::super::Result;
use super::Tables;
use super::session_rows::{
    AGENTS, CONVERSATIONS, header, id, one_in, pick, program, project, row, row_of, slug, tag, time, word,
};

/// The results of a script, one a line.
pub(super) struct Script {
    tables: Tables,
    rng: Rng,
    pub(super) lines: Vec<String>,
    /// Each session that was inserted, as it is known.
    rows: BTreeMap<Uuid, SessionRow>,
}

/// Gives a header the fields of another one in which a row does not follow its header while the session stays.
fn keep_identity(header: &mut SessionHeader, of: SessionHeader) {
    (header.id, header.agent_id, header.session_id) = (of.id, of.agent_id, of.session_id);
    (header.conversation, header.saved_at) = (of.conversation, of.saved_at);
    header.started_at = header.started_at.min(of.saved_at);
    if let Some(source) = &mut header.source {
        source.ended_at = source.ended_at.min(of.saved_at);
    }
}

impl Script {
    pub(super) fn new(tables: Tables, seed: u64) -> Self {
        Self { tables, rng: Rng::new(seed), lines: Vec::new(), rows: BTreeMap::new() }
    }

    fn note<T: Debug>(&mut self, what: &str, result: TableResult<T>) {
        self.lines.push(match result {
            Ok(value) => format!("{what}: {value:?}"),
            Err(failure) => format!("{what}: {:?} {}", failure.kind, failure.message),
        });
    }

    /// Notes a list whose order does not matter.
    fn note_sorted<T: Debug>(&mut self, what: &str, result: TableResult<impl IntoIterator<Item = T>>) {
        let sorted = result.map(|list| {
            let mut list: Vec<String> = list.into_iter().map(|item| format!("{item:?}")).collect();
            list.sort();
            list
        });
        self.note(what, sorted);
    }

    /// A row that was inserted, with a header that may have changed.
    fn known_row(&mut self) -> Result<SessionRow> {
        let rows: Vec<Uuid> = self.rows.keys().copied().collect();
        if rows.is_empty() || one_in(&mut self.rng, 9) {
            return row(&mut self.rng);
        }
        let mut known = self.rows[&pick(&mut self.rng, &rows)].clone();
        if !one_in(&mut self.rng, 3) {
            let mut changed = header(&mut self.rng, known.header.agent_id)?;
            keep_identity(&mut changed, known.header);
            known = row_of(&mut self.rng, changed);
        }
        Ok(known)
    }

    /// A row to update one with. It has the fields of the stored header that rows do not follow; without a stored row it
    /// has no tags, which SQLite would refuse.
    async fn stored_row(&mut self) -> Result<SessionRow> {
        let mut row = self.known_row()?;
        match self.tables.sessions.get(row.header.id).await? {
            Some(SessionRow { header: stored, .. }) => keep_identity(&mut row.header, stored),
            None => row.header.tags.clear(),
        }
        Ok(row)
    }

    pub(super) async fn write(&mut self) -> Result {
        let sessions = self.tables.sessions.clone();
        let what = self.rng.below(16);
        match what {
            0..=4 => {
                let row = row(&mut self.rng)?;
                let placement = pick(&mut self.rng, &[SessionPlacement::Last, SessionPlacement::AtOwnPlace]);
                let summary = one_in(&mut self.rng, 2).then(|| PendingSummary { described: one_in(&mut self.rng, 2) });
                let is_one_of_many = one_in(&mut self.rng, 2);
                let new = NewSession { summary, is_one_of_many, ..NewSession::new(row.clone(), placement) };
                let inserted = sessions.insert(new).await;
                if inserted.is_ok() {
                    self.rows.insert(row.header.id, row);
                }
                self.note("insert", inserted);
            }
            5 | 6 => {
                let row = self.known_row()?;
                let result = sessions.upsert(row.clone()).await;
                self.rows.insert(row.header.id, row);
                self.note("upsert", result);
            }
            7 => {
                let row = self.stored_row().await?;
                let result = sessions.update(row).await;
                self.note("update", result);
            }
            8 => {
                let row = self.stored_row().await?;
                let result = sessions.replace(row, None).await;
                self.note("replace", result);
            }
            9 => {
                let mut row = self.known_row()?;
                row.header.agent_id = pick(&mut self.rng, &AGENTS[..3]);
                row.header.conversation = None;
                let result = sessions.move_to_agent(row.clone()).await;
                if result.is_ok() {
                    self.rows.insert(row.header.id, row);
                }
                self.note("move", result);
            }
            10 => {
                let row = self.known_row()?;
                let result = sessions.undo_insert(row.header).await;
                self.note("undo", result);
            }
            11 => {
                let result = sessions.touch(id(&mut self.rng), time(&mut self.rng)).await;
                self.note("touch", result);
            }
            12 => {
                let id = id(&mut self.rng);
                let result = if one_in(&mut self.rng, 2) { sessions.delete(id) } else { sessions.purge(id) }.await;
                self.note("delete", result);
            }
            13 => {
                let wanted = PendingSummary { described: one_in(&mut self.rng, 2) };
                let result = self.tables.summaries.push(id(&mut self.rng), wanted).await;
                self.note("push", result);
            }
            14 => {
                let result = self.tables.summaries.remove(id(&mut self.rng)).await;
                self.note("remove", result);
            }
            _ => {
                // Nobody waits for the first one.
                let (id, used, before) = (id(&mut self.rng), time(&mut self.rng), time(&mut self.rng));
                drop(sessions.touch(id, used));
                let result = sessions.get_unused_since(id, before).await;
                self.note("unused", result);
            }
        }
        Ok(())
    }

    fn query(&mut self) -> SessionQuery {
        let rng = &mut self.rng;
        let agent = (!one_in(rng, 3)).then(|| pick(rng, &AGENTS));
        let conversation = if one_in(rng, 3) { Some(ConversationKey::main(agent.unwrap_or(AGENTS[0]))) } else { None };
        let of_first = (agent == Some(AGENTS[0]) && one_in(rng, 2)).then_some(CONVERSATIONS[0].0);
        let conversation = of_first.map(|id| ConversationKey { agent: AGENTS[0], id }).or(conversation);
        let now = CONVERSATIONS.map(|(id, name)| (id, format!("now {}", name.to_lowercase())));
        // An agent that is listed twice counts twice in SQLite.
        let also = AGENTS[1..].iter().copied().filter(|also| Some(*also) != agent).collect();
        // Few conditions at a time, so that rows meet them.
        let filter = rng.below(9);
        let project = (filter == 0).then(|| ProjectFilter {
            directory: one_in(rng, 2).then(|| project(rng)),
            name: one_in(rng, 2).then(|| "a".to_owned()),
            agents: if one_in(rng, 3) { vec![AGENTS[1]] } else { Vec::new() },
        });
        SessionQuery {
            agent,
            also: if one_in(rng, 3) { also } else { Vec::new() },
            conversation,
            hidden: if one_in(rng, 4) { vec![CONVERSATIONS[1].0, AGENTS[1]] } else { Vec::new() },
            source: (filter == 1 || one_in(rng, 15)).then(|| program(rng)),
            project,
            since: (filter == 2 || one_in(rng, 15)).then(|| time(rng)),
            until: one_in(rng, 12).then(|| time(rng)),
            tag: (filter == 3 || one_in(rng, 15)).then(|| tag(rng)),
            words: (0..if filter > 5 { 0 } else { filter.saturating_sub(3) }).map(|_| word(rng)).collect(),
            conversation_texts: now.into_iter().collect(),
            offset: pick(rng, &[0, 0, 1, 2, 5, 9, 14, 20, 40]),
            limit: pick(rng, &[0, 1, 3, 10, u64::MAX]),
        }
    }

    /// Reads everything that does not depend on a query.
    pub(super) async fn read_all(&mut self) -> Result {
        let (sessions, summaries) = (self.tables.sessions.clone(), self.tables.summaries.clone());
        for agent in AGENTS {
            self.note_sorted("ids", sessions.ids_of_agent(agent).await);
            self.note_sorted("stamps", sessions.file_stamps(agent).await);
            self.note_sorted("corrupt", sessions.corrupt_names(agent).await);
            self.note_sorted("identities", sessions.identities_of_agent(agent).await);
            let (conversation, base) = (ConversationKey::main(agent), "2027-01-25_drop".to_owned());
            let both = sessions.newest_and_names(conversation, base).await;
            self.note(
                "newest and names",
                both.map(|(newest, mut names)| {
                    names.sort();
                    (newest, names)
                }),
            );
        }
        self.note_sorted("lineage", sessions.lineage(AGENTS.to_vec()).await);
        self.note("newest of each", sessions.newest_of_each(AGENTS.to_vec()).await);
        let mut conversations: Vec<_> = AGENTS.into_iter().map(ConversationKey::main).collect();
        conversations.extend(CONVERSATIONS.map(|(id, _)| ConversationKey { agent: AGENTS[0], id }));
        self.note("newest of conversations", sessions.newest_of_conversations(conversations).await);
        self.note("programs", sessions.source_programs().await);
        self.note_sorted("counts", sessions.count_by_program().await);
        self.note_sorted("imported", sessions.ids_with_source().await);
        self.note("summaries", summaries.list().await);
        // Their positions are those of the database, but they grow in the same order.
        let (mut stamps, mut after) = (Vec::new(), i64::MIN);
        loop {
            let page = sessions.stamps_after(after, 4).await?;
            let Some(last) = page.last() else { break };
            after = last.position;
            assert!(page.is_sorted_by_key(|stamp| stamp.position));
            stamps.extend(page.into_iter().map(|stamp| (stamp.id, stamp.sha256, stamp.file_stamp)));
        }
        self.note_sorted("all stamps", Ok(stamps));
        Ok(())
    }

    /// Reads with a few random queries.
    pub(super) async fn read(&mut self) -> Result {
        let (sessions, summaries) = (self.tables.sessions.clone(), self.tables.summaries.clone());
        let listing = self.query();
        // The order of a map is random.
        let what = format!("list {:?}", SessionQuery { conversation_texts: HashMap::new(), ..listing.clone() });
        self.note(&what, sessions.list(listing.clone()).await);
        self.note("with short ids", sessions.list_with_short_ids(listing.clone()).await);
        let plain = SessionQuery { since: None, until: None, words: Vec::new(), ..listing };
        self.note("nth", sessions.nth(plain).await);
        let ids: Vec<Uuid> = (0..4).map(|_| id(&mut self.rng)).collect();
        self.note("get", sessions.get(ids[0]).await);
        self.note("get all", sessions.get_all(ids.clone()).await);
        self.note("short ids", sessions.short_ids(ids.clone()).await);
        self.note_sorted("names", sessions.names(ids.clone()).await);
        self.note("summary", summaries.get(ids[0]).await);
        let agent = pick(&mut self.rng, &AGENTS);
        let only = one_in(&mut self.rng, 2).then_some(agent);
        let n = self.rng.below(4);
        self.note("nth newest", sessions.nth_newest(ConversationKey::main(agent), n).await);
        let (conversation, name) = pick(&mut self.rng, &CONVERSATIONS);
        let key = ConversationKey { agent: AGENTS[0], id: conversation };
        self.note("nth of conversation", sessions.nth_newest(key, n).await);
        self.note_sorted("named conversations", sessions.conversations_named(AGENTS[0], name.to_owned()).await);
        let rows: Vec<String> = self.rows.values().map(|row| row.header.session_id.clone()).collect();
        let known = rows.get(usize::try_from(self.rng.below(1 + rows.len() as u64))?).cloned().unwrap_or_default();
        self.note_sorted("names with base", sessions.names_with_base(agent, known.clone()).await);
        self.note_sorted("named", sessions.list_named(only, known.clone()).await);
        let length = usize::try_from(self.rng.below(16))?;
        let prefix: String = known.chars().take(length).collect();
        self.note("with prefix", sessions.list_with_prefix(only, prefix).await);
        let prefix: String = ids[1].to_string().chars().take(length).collect();
        self.note("with id prefix", sessions.list_with_prefix(only, prefix).await);
        let slug = slug(&mut self.rng).to_owned();
        self.note("with slug", sessions.list_with_slug(AGENTS.to_vec(), slug.clone()).await);
        let words = word(&mut self.rng);
        self.note("with title words", sessions.list_with_title_words(AGENTS[..2].to_vec(), words).await);
        let moments = (0..3).map(|_| (pick(&mut self.rng, &AGENTS), time(&mut self.rng))).collect();
        self.note("names at", sessions.names_at(moments).await);
        let program = program(&mut self.rng);
        let conversation = format!("c{}", self.rng.below(4));
        self.note("of source", sessions.list_of_source(program, conversation).await);
        let starts: Vec<_> = self.rows.values().map(|row| row.header.started_at).collect();
        for start in starts.into_iter().take(3) {
            self.note("without source", sessions.list_without_source(start).await);
        }
        self.note("without source by slug", sessions.list_without_source_by_slug(slug).await);
        let filter = ProjectFilter { directory: Some(project(&mut self.rng)), ..ProjectFilter::default() };
        self.note_sorted("of project", sessions.ids_of_project(filter).await);
        let before = time(&mut self.rng);
        self.note_sorted("unused", sessions.list_unused_since(before).await);
        Ok(())
    }
}
