//! Checks the records of live contexts, and reports earlier damage of the databases.

use chorus_base::error::Result;
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;
use chorus_runtime::run_blocking;
use chorus_store::recovery::{Incident, list_incidents};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};

use super::{check, check_with, join_some};
use crate::ops::Ops;

/// Name of the check of conversations.
const CONVERSATIONS_CHECK: &str = "conversations";

const CHECK_NAME: &str = "journal";
const SALVAGE_COMMAND: &str = "chorusctl doctor --salvage";

/// Checks that every live context can be read back, and reports incidents that were recorded before.
pub(super) async fn checks(ops: &Ops) -> Result<Vec<Check>> {
    let path = ops.home.join(DB_DIR).join(JOURNAL_FILE);
    let checked = run_blocking(move || integrity::check_journal(&path)).await?;
    let named = |agent| match ops.agents.by_id(agent) {
        Some(entry) => entry.settings.name.clone(),
        None => format!("unknown agent {agent}"),
    };
    let mut checks = Vec::new();
    let broken: Vec<String> = checked
        .broken()
        .filter_map(|found| Some(format!("{}: {}", named(found.head.conversation.agent), found.broken.as_ref()?)))
        .collect();
    if !broken.is_empty() {
        let all = pluralize(checked.contexts.len() as u64, "context");
        let text = format!("cannot read {} of {all}: {}", broken.len(), join_some(&broken));
        checks.push(check_with(CHECK_NAME, Verdict::Fail, text, SALVAGE_COMMAND));
    }
    if checked.orphans + checked.holes > 0 {
        let text = format!(
            "{} without a context, {}",
            pluralize(checked.orphans, "record"),
            pluralize(checked.holes, "unreadable row")
        );
        let hint = "copy db/live.db, then replace it with one from a backup";
        checks.push(check_with(CHECK_NAME, Verdict::Fail, text, hint));
    }
    let unknown = checked.contexts.iter().filter(|found| ops.agents.by_id(found.head.conversation.agent).is_none());
    let unknown: Vec<String> = unknown.map(|found| found.head.conversation.agent.to_string()).collect();
    if !unknown.is_empty() {
        let text = format!(
            "{} without an existing agent: {}",
            pluralize(unknown.len() as u64, "context"),
            join_some(&unknown)
        );
        checks.push(check_with(
            CHECK_NAME,
            Verdict::Warn,
            text,
            "add agents from their directories: chorusctl doctor --rebuild",
        ));
    }
    if checks.is_empty() {
        let text = format!(
            "{} of {}, all intact",
            pluralize(checked.records, "record"),
            pluralize(checked.contexts.len() as u64, "context")
        );
        checks.push(check(CHECK_NAME, Verdict::Ok, text));
    }
    checks.extend(check_conversations(ops));
    let db = ops.home.join(DB_DIR);
    for incident in run_blocking(move || Ok(list_incidents(&db))).await? {
        let (facts, dir) = (&incident.facts, format!("db/{}", incident.name()));
        let text = format!("damaged at {:.0}: {} ({dir})", facts.at, facts.what);
        if facts.catalog {
            checks.push(catalog_incident_check(&incident, text));
            continue;
        }
        if facts.incomplete {
            let what = if facts.salvaged { "only parts of it" } else { "none of it" };
            let hint =
                format!("{what} could be read: keep {}, its raw files are the only copy", incident.dir.display());
            checks.push(check_with(CHECK_NAME, Verdict::Warn, text, hint));
            continue;
        }
        checks.push(match (facts.salvaged, facts.lost) {
            (true, _) => {
                check_with(CHECK_NAME, Verdict::Info, text, format!("delete {dir} when you no longer need it"))
            }
            (false, true) => check_with(CHECK_NAME, Verdict::Fail, text, SALVAGE_COMMAND),
            (false, false) => check_with(CHECK_NAME, Verdict::Warn, text, SALVAGE_COMMAND),
        });
    }
    Ok(checks)
}

/// Reports an incident of the catalog. The start has recovered everything that could be recovered.
fn catalog_incident_check(incident: &Incident, text: String) -> Check {
    let (facts, dir) = (&incident.facts, format!("db/{}", incident.name()));
    if !facts.lost {
        return check_with(CATALOG_FILE, Verdict::Info, text, format!("delete {dir} when you no longer need it"));
    }
    if facts.salvaged {
        let hint = format!("only parts of it could be read: keep {dir}, or restore the home from a backup");
        return check_with(CATALOG_FILE, Verdict::Warn, text, hint);
    }
    let hint = "check `chorusctl memory list`, `chorusctl config` and `chorusctl audit verify`; then \
     acknowledge it: chorusctl doctor --salvage";
    check_with(CATALOG_FILE, Verdict::Fail, text, hint)
}

/// Reports the conversations that agents have in addition to `main`, and those agents that have as many live ones as they
/// may: the next conversation saves and clears another one. `None` if all agents have only `main`.
fn check_conversations(ops: &Ops) -> Option<Check> {
    let (mut open, mut live, mut full) = (0, 0, Vec::new());
    for agent in ops.agents.all() {
        let (id, most) = (agent.settings.id, agent.settings.max_conversations);
        open += ops.agents.conversations.of_agent(id).iter().filter(|row| row.closed_at.is_none()).count() as u64;
        let of_agent = ops.registry.context_infos_of(id);
        live += of_agent.keys().filter(|conversation| !conversation.is_main()).count() as u64;
        if of_agent.len() as u64 >= most && of_agent.len() > 1 {
            full.push(agent.settings.name.clone());
        }
    }
    if open + live == 0 {
        return None;
    }
    let text = format!("{} in addition to main, {live} live", pluralize(open, "conversation"));
    Some(match full.is_empty() {
        true => check(CONVERSATIONS_CHECK, Verdict::Ok, text),
        false => check_with(
            CONVERSATIONS_CHECK,
            Verdict::Warn,
            match &full[..] {
                [one] => format!("{text}; {one} has as many live ones as it may"),
                _ => format!("{text}; {} have as many live ones as they may", join_some(&full)),
            },
            "close some, or raise the limit: chorusctl agent config NAME max_conversations N",
        ),
    })
}
