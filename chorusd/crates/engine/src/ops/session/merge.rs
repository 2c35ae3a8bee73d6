//! The operation `session.merge`.

use chorus_agent_core::AgentSettings;
use chorus_agent_core::context::{PageBudget, PageRange, complete_calls_prefix, read_page};
use chorus_agent_core::event::{Restore, RestoredContext};
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_base::requester::Requester;
use chorus_catalog::SessionRow;
use chorus_proto::methods::session_branching::{MergeParams, MergeResult};
use chorus_proto::{ErrorKind, Message, NewMessage, Role, SessionHeader, TokenPair, Trigger, WorkingSet};
use chorus_runtime::run_blocking;
use chorus_session::content_eq::has_same_content;
use chorus_session::stored_message::StoredMessage;
use chorus_session::summary::{Branch, ConversationSample, FindingLimits, branches_prompt, collect_findings};
use chorus_session::{SessionFile, summary};

use crate::agent::command;
use crate::agent::opening_request::request_opening;
use crate::ops::agent::AgentResolver;
use crate::ops::context::ContinuationStarter;
use crate::ops::context::session_prefix::drop_later_items;
use crate::ops::conversations::ConversationTarget;
use crate::usage::CallKind;

/// The limit on the newest messages of a branch that are searched for decisions, tasks and files.
const MAX_SEARCHED_MESSAGES: u64 = 2000;

/// The limit in bytes of the transcript that a model sees.
const MAX_TRANSCRIPT_BYTES: usize = 48 << 10;

/// Merges two branches of a conversation into a new live context. It has the messages that both begin with, a report of
/// what each did since, the facts and decisions of both, and a list of contradictions. Both sessions stay as they are.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, also if there is nothing to merge; `corrupt_session`, `busy`,
/// `disk_full`, `storage_failed`.
pub async fn merge(agents: &AgentResolver, starter: &ContinuationStarter, params: MergeParams) -> Result<MergeResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let agent_named = params.agent.is_some() && !params.own;
    let selectors = [&*params.a, &*params.b];
    let saved_live =
        starter.sessions.save_if_selected(&Requester::Owner, &target, &selectors, Trigger::Restore).await?;
    let (command_a, command_b) =
        (format!("session merge NAME {}", params.b), format!("session merge {} NAME", params.a));
    let a = starter.sessions.resolve(&target, agent_named, &params.a, &command_a).await?;
    let b = starter.sessions.resolve(&target, agent_named, &params.b, &command_b).await?;
    // Checked first, because a running turn would refuse the command after the report has cost money.
    let new = params.as_conversation.as_deref();
    agents.check_destination(&target.agent, new)?;
    if new.is_none() {
        starter.registry.ask(target.key, command::check_replaceable()).await?;
    }
    let (files, warnings) = read_both(starter, &target.agent.settings, [&a, &b]).await?;
    let merged = run_blocking(move || merge_files(files)).await?;
    let (message, text, generated) = merged.write_report(starter, &target).await?;
    let (common, conflicts) = (merged.common.len() as u64, merged.working_set.conflicts.clone());
    // Time has passed while a model was called: the session must still exist, and must not be deleted until it has
    // become the context.
    let _no_deletes = starter.sessions_lock.read().await;
    let deleted_error = || {
        Error::new(ErrorKind::SessionNotFound, "the session to start from was deleted")
            .hint("if it is in the trash (chorusctl trash list), restore it and merge again")
    };
    let a = starter.store.catalog.sessions.get(a.header.id).await?.ok_or_else(deleted_error)?;
    starter.sessions.read_file(&a).await?;
    let restore = command::restore(Restore {
        session: a.header.id,
        session_id: a.header.session_id.clone(),
        messages: merged.common,
        appended: vec![message],
        working_set: merged.working_set,
        restoration: TokenPair::default(),
        discard: false,
    });
    let target = agents.destination(target, new).await?;
    let RestoredContext { messages, saved_first } = starter.registry.ask(target.key, restore).await?;
    for row in [&a, &b] {
        // Not awaited: only retention uses the time of last use.
        drop(starter.store.catalog.sessions.touch(row.header.id, starter.clock.now()));
    }
    Ok(MergeResult {
        a: starter.sessions.describe(a).await?,
        b: starter.sessions.describe(b).await?,
        common,
        messages,
        account: text,
        generated,
        conflicts,
        saved_first: saved_first.or(saved_live).map(|session| *session),
        warnings,
    })
}

/// Reads both sessions, with warnings about them.
async fn read_both(
    starter: &ContinuationStarter,
    agent: &AgentSettings,
    rows: [&SessionRow; 2],
) -> Result<([SessionFile; 2], Vec<String>)> {
    let _no_deletes = starter.sessions_lock.read().await;
    let mut warnings = Vec::new();
    let mut file = async |row: &SessionRow| {
        let name = &row.header.session_id;
        if row.header.agent_id != agent.id {
            warnings.push(format!("session {name} belongs to agent {}", row.header.agent_name));
        }
        let (file, changed) = starter.sessions.read_file(row).await?;
        if changed {
            warnings.push(format!("the file of {name} was changed after it was saved"));
        }
        Ok::<_, Error>(file)
    };
    let files = [file(rows[0]).await?, file(rows[1]).await?];
    Ok((files, warnings))
}

/// The result of merging two branches.
struct MergedBranches {
    /// The messages that both begin with.
    common: Vec<StoredMessage>,
    working_set: WorkingSet,
    branches: [Branch; 2],
    /// The remaining messages of each branch.
    remaining: [Vec<StoredMessage>; 2],
}

fn merge_files([a, b]: [SessionFile; 2]) -> Result<MergedBranches> {
    let same = a.messages.iter().zip(&b.messages).take_while(|(one, other)| has_same_content(one, other)).count();
    if same == a.messages.len() && same == b.messages.len() {
        let (a, b) = (&a.header.session_id, &b.header.session_id);
        return Err(Error::new(ErrorKind::Denied, format!("{a} and {b} are identical: nothing to merge"))
            .hint(format!("continue with it: chorusctl restore {a}")));
    }
    let common = complete_calls_prefix(&a.messages, same);
    let (name_a, name_b) = (a.header.session_id.clone(), b.header.session_id.clone());
    let (line_a, rest_a) = describe_branch(&a.header, &a.messages[common..]);
    let (line_b, rest_b) = describe_branch(&b.header, &b.messages[common..]);
    let whole = |header: &SessionHeader, line: &Branch| {
        let mut set = header.working_set.clone();
        set.decisions.extend(line.found.decisions.iter().cloned());
        set.open_tasks.extend(line.found.open_tasks.iter().cloned());
        set.files_touched.extend(line.found.files_touched.iter().cloned());
        set
    };
    let (set_a, set_b) = (whole(&a.header, &line_a), whole(&b.header, &line_b));
    let set = summary::merge_working_sets((&name_a, &set_a), (&name_b, &set_b));
    let mut messages = a.messages;
    messages.truncate(common);
    Ok(MergedBranches { common: messages, working_set: set, branches: [line_a, line_b], remaining: [rest_a, rest_b] })
}

/// Describes a branch by its messages after the common ones, and returns these.
fn describe_branch(header: &SessionHeader, rest: &[StoredMessage]) -> (Branch, Vec<StoredMessage>) {
    let (newest, _) = read_page(
        rest,
        PageRange::Last(MAX_SEARCHED_MESSAGES),
        PageBudget { page_bytes: usize::MAX, message_bytes: usize::MAX },
    );
    // Findings from these messages are removed from the known set, so that they are found and reported again.
    let mut known_set = header.working_set.clone();
    drop_later_items(&mut known_set, rest);
    let findings = collect_findings(&newest, &known_set, FindingLimits::UNLIMITED);
    let mut digest = ConversationSample::new();
    for index in ConversationSample::selected_indices(rest.len()) {
        if let Ok(message) = rest[index].to_message() {
            digest.push(&message);
        }
    }
    let found = WorkingSet {
        decisions: findings.decisions,
        open_tasks: findings.open_tasks,
        files_touched: findings.files_touched,
        ..WorkingSet::default()
    };
    let summary = summary::extract_summary(&digest).summary;
    let line = Branch { name: header.session_id.clone(), messages: rest.len() as u64, summary, found };
    (line, rest.to_vec())
}

impl MergedBranches {
    /// Returns the message that reports on both branches, its text, and true if Chorus wrote all of it.
    async fn write_report(
        &self,
        starter: &ContinuationStarter,
        target: &ConversationTarget,
    ) -> Result<(StoredMessage, String, bool)> {
        let [a, b] = &self.branches;
        let prompt =
            branches_prompt([(&a.name, &self.remaining[0]), (&b.name, &self.remaining[1])], MAX_TRANSCRIPT_BYTES);
        let report = match prompt {
            Some(prompt) => {
                let stop = starter.stop.child_token();
                let (settings, conversation) = (&target.agent.settings, target.key.stored_id());
                let asked = (CallKind::MergeReport, prompt);
                let (reply, _) = request_opening(&starter.registry, settings, conversation, asked, stop).await;
                reply.as_deref().and_then(summary::sanitize_merge_report)
            }
            None => None,
        };
        let text = summary::build_merge_report(
            self.common.len() as u64,
            [a, b],
            &self.working_set.conflicts,
            report.as_deref(),
        );
        let new = NewMessage::text(Role::Assistant, text.clone());
        let message = Message { generated: true, ..new.complete(|| new_id().to_string(), starter.clock.now()) };
        let message = StoredMessage::new(&message).map_err(|e| Error::internal(e.to_string()))?;
        Ok((message, text, report.is_none()))
    }
}
