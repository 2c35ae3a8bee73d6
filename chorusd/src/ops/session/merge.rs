//! `session.merge`.

use chorus_proto::methods::tree::{MergeParams, MergeResult};
use chorus_proto::{ErrorKind, Message, NewMessage, Role, SessionHeader, TokenPair, WorkingSet};

use super::get::read;
use crate::agent::Facts;
use crate::agent::acknowledge::opening;
use crate::agent::context::{Pick, Room, page, whole_calls};
use crate::agent::event::{Reply, Restore, Verb};
use crate::clock::new_id;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::context::taken::forget_later;
use crate::ops::context::wrong_reply;
use crate::ops::{Ops, blocking, select, view};
use crate::session::SessionFile;
use crate::session::same::say_the_same;
use crate::store::catalog::SessionRow;
use crate::summary::{self, Digest, Line, findings, lines_question};
use crate::usage::CallKind;

/// The newest messages of a line that are looked at for decisions, tasks and files.
const NEWEST: u64 = 2000;

/// Bytes of transcript that a model is shown.
const SHOWN: usize = 48 << 10;

/// Brings two lines of work together: a new live context with what both begin with and an account of what each did since, the facts and
/// decisions of both, and a list of where they contradict each other. Both sessions stay as they are.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, also where there is nothing to bring together; `corrupt_session`, `busy`, `disk_full`,
/// `storage_failed`.
pub async fn merge(ops: &Ops, params: MergeParams) -> Result<MergeResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let a = select::session(ops, &agent, said, &params.a).await?;
    let b = select::session(ops, &agent, said, &params.b).await?;
    // A turn that runs would refuse it, and the account costs money.
    ops.registry.ask(agent.facts.id, Verb::IsFree).await?;
    let (files, warnings) = both(ops, &agent.facts, [&a, &b]).await?;
    let merged = blocking(move || merged(files)).await?;
    let (message, text, generated) = merged.account(ops, &agent.facts).await?;
    let (common, conflicts) = (merged.common.len() as u64, merged.set.conflicts.clone());
    // A model's words may have been waited for: the session must still be there, and stay while it becomes the context.
    let _no_deletes = ops.sessions_lock.read().await;
    let gone = || {
        Failure::new(ErrorKind::SessionNotFound, "the session was deleted that the new context was to begin with")
            .hint("if it is in `chorusctl trash list`, restore it there and merge again")
    };
    let a = ops.store.catalog.session(a.header.id).await?.ok_or_else(gone)?;
    read(ops, &a).await?;
    let verb = Verb::Restore(Box::new(Restore {
        session: a.header.id,
        session_id: a.header.session_id.clone(),
        messages: merged.common,
        added: vec![message],
        working_set: merged.set,
        restoration: TokenPair::default(),
        discard: false,
    }));
    let Reply::Restored { messages, saved_first } = ops.registry.ask(agent.facts.id, verb).await?.reply else {
        return Err(wrong_reply());
    };
    for row in [&a, &b] {
        // When it was last used only matters to retention: nobody waits for it.
        drop(ops.store.catalog.touch_session(row.header.id, ops.clock.now()));
    }
    Ok(MergeResult {
        a: view::session(ops, a).await?,
        b: view::session(ops, b).await?,
        common,
        messages,
        account: text,
        generated,
        conflicts,
        saved_first: saved_first.map(|session| *session),
        warnings,
    })
}

/// Reads both, and tells what a person should know of them.
async fn both(ops: &Ops, agent: &Facts, rows: [&SessionRow; 2]) -> Result<([SessionFile; 2], Vec<String>)> {
    let _no_deletes = ops.sessions_lock.read().await;
    let mut warnings = Vec::new();
    let mut file = async |row: &SessionRow| {
        let name = &row.header.session_id;
        if row.header.agent_id != agent.id {
            warnings.push(format!("the session {name} is one of {}", row.header.agent_name));
        }
        let (file, changed) = read(ops, row).await?;
        if changed {
            warnings.push(format!("the file of {name} was changed since it was saved"));
        }
        Ok::<_, Failure>(file)
    };
    let files = [file(rows[0]).await?, file(rows[1]).await?];
    Ok((files, warnings))
}

/// What two lines come to.
struct Merged {
    /// What both begin with.
    common: Vec<Stored>,
    set: WorkingSet,
    lines: [Line; 2],
    /// The messages of each behind what both begin with.
    rest: [Vec<Stored>; 2],
}

fn merged([a, b]: [SessionFile; 2]) -> Result<Merged> {
    let same = a.messages.iter().zip(&b.messages).take_while(|(one, other)| say_the_same(one, other)).count();
    if same == a.messages.len() && same == b.messages.len() {
        let (a, b) = (&a.header.session_id, &b.header.session_id);
        return Err(Failure::new(ErrorKind::Denied, format!("{a} and {b} say the same: there is nothing to merge"))
            .hint(format!("`chorusctl context restore {a}` goes on with it")));
    }
    let common = whole_calls(&a.messages, same);
    let (name_a, name_b) = (a.header.session_id.clone(), b.header.session_id.clone());
    let (line_a, rest_a) = line(&a.header, &a.messages[common..]);
    let (line_b, rest_b) = line(&b.header, &b.messages[common..]);
    let whole = |header: &SessionHeader, line: &Line| {
        let mut set = header.working_set.clone();
        set.decisions.extend(line.found.decisions.iter().cloned());
        set.open_tasks.extend(line.found.open_tasks.iter().cloned());
        set.files_touched.extend(line.found.files_touched.iter().cloned());
        set
    };
    let (set_a, set_b) = (whole(&a.header, &line_a), whole(&b.header, &line_b));
    let set = summary::united((&name_a, &set_a), (&name_b, &set_b));
    let mut messages = a.messages;
    messages.truncate(common);
    Ok(Merged { common: messages, set, lines: [line_a, line_b], rest: [rest_a, rest_b] })
}

/// A line, and its messages behind what both begin with.
fn line(header: &SessionHeader, rest: &[Stored]) -> (Line, Vec<Stored>) {
    let (newest, _) = page(rest, Pick::Last(NEWEST), Room { page: usize::MAX, message: usize::MAX });
    // What the working set has of those very messages is found anew, so that it is told, too.
    let mut known = header.working_set.clone();
    forget_later(&mut known, rest);
    let said = findings(&newest, &known, usize::MAX);
    let mut digest = Digest::new();
    for index in Digest::indices(rest.len()) {
        if let Ok(message) = rest[index].to_message() {
            digest.push(&message);
        }
    }
    let found = WorkingSet {
        decisions: said.decisions,
        open_tasks: said.open_tasks,
        files_touched: said.files_touched,
        ..WorkingSet::default()
    };
    let summary = summary::extract(&digest).summary;
    let line = Line { name: header.session_id.clone(), messages: rest.len() as u64, summary, found };
    (line, rest.to_vec())
}

impl Merged {
    /// The message that gives an account of both lines, its text, and whether Chorus wrote all of it.
    async fn account(&self, ops: &Ops, facts: &Facts) -> Result<(Stored, String, bool)> {
        let [a, b] = &self.lines;
        let asked = lines_question([(&a.name, &self.rest[0]), (&b.name, &self.rest[1])], SHOWN);
        let told = match asked {
            Some(asked) => {
                let stop = ops.stop.child_token();
                let (said, _) = opening(&ops.registry, facts, (CallKind::Account, asked), stop).await;
                said.as_deref().and_then(summary::told)
            }
            None => None,
        };
        let text = summary::account(self.common.len() as u64, [a, b], &self.set.conflicts, told.as_deref());
        let new = NewMessage::text(Role::Assistant, text.clone());
        let message = Message { generated: true, ..new.complete(|| new_id().to_string(), ops.clock.now()) };
        let message = Stored::new(&message).map_err(|e| Failure::internal(e.to_string()))?;
        Ok((message, text, told.is_none()))
    }
}
