//! `/context`.

use std::time::Duration;

use chorus_proto::methods::chain::{CompactParams, ResumeParams};
use chorus_proto::methods::context::{ClearParams, RestoreParams, RewindParams, SaveParams};
use chorus_proto::{ErrorKind, Session};
use uuid::Uuid;

use super::call::{Asker, Call};
use super::confirm::Deed;
use super::definitions::Right;
use super::reply::Reply;
use super::wording::here;
use super::words::{Clean as _, code, count, cut, plain, title, warnings};
use crate::agent::directory::Entry;
use crate::failure::{Failure, Result};
use crate::ops::context::{clear, compact, restore, resume, rewind, save};
use crate::ops::discord::commands;
use crate::ops::select::meaning;

/// How long a summary is waited for: an answer can be changed for 15 minutes.
const SUMMARY: Duration = Duration::from_secs(13 * 60);

/// The agent that a change is about, once it is written down who has it made.
async fn changed(call: &Call, action: &str) -> Result<std::sync::Arc<Entry>> {
    let agent = call.by.agent(call.given.text("agent"))?;
    call.by.note(&agent, action, Right::Change).await?;
    Ok(agent)
}

pub async fn save(call: &Call) -> Result<Reply> {
    let by = &call.by;
    let agent = changed(call, "context.save").await?;
    let params = SaveParams {
        agent: Some(agent.facts.name.clone()),
        description: call.given.text("description").map(str::to_owned),
        ..SaveParams::default()
    };
    let saved = meaning(agent.facts.id, save::save(by.ops(), params)).await?;
    let below = warnings(by, &saved.warnings);
    let text = said(by, &saved.session, saved.summary_pending) + &below;
    let summary_of = saved.summary_pending.then_some((saved.session.header.id, below));
    Ok(Reply { summary_of, ..Reply::new(text) })
}

/// The answer to a save, where a model's summary has come in the place of the first one; `None`: none will come.
pub async fn summarised(by: &Asker, (session, below): (Uuid, String)) -> Option<Reply> {
    let saved = tokio::time::timeout(SUMMARY, commands::summarised(by.ops(), session)).await;
    let saved = saved.ok()?.inspect_err(|failure| tracing::warn!(%failure, "a summary is not shown")).ok()??;
    Some(Reply::new(said(by, &saved, false) + &below))
}

/// What a save comes to. `pending`: a model's summary is on its way.
fn said(by: &Asker, session: &Session, pending: bool) -> String {
    let later = if pending { "\n-# A model writes a summary, which takes the place of this one." } else { "" };
    format!("Saved as {}.{}{later}", named(by, session), summary(by, session))
}

/// Asks whether the conversation is to be discarded.
pub async fn clear(call: &Call) -> Result<Reply> {
    let (by, save) = (&call.by, call.given.yes("save"));
    let agent = by.agent(call.given.text("agent"))?;
    let id = agent.facts.id;
    let Some(info) = by.ops().registry.info(id) else {
        return Err(
            Failure::new(ErrorKind::NothingToSave, "the conversation is empty").hint("there is nothing to clear")
        );
    };
    let messages = count(info.messages, "message");
    let saved = match info.unsaved {
        _ if save => "It is saved first.".to_owned(),
        0 => "It is saved already.".to_owned(),
        unsaved if unsaved == info.messages => "Nothing of it is saved.".to_owned(),
        1 => "1 of them is not saved.".to_owned(),
        unsaved => format!("{unsaved} of them are not saved."),
    };
    let text = format!("Clear the conversation of **{}** ({messages})? {saved}", plain(by, &agent.facts.name, 64));
    let bridge = &by.bridge;
    Ok(bridge.slash.asked.ask(bridge, &by.person.requester, Deed::Clear { agent: id, save }, text, "Clear"))
}

/// Discards it; that was confirmed.
pub async fn clear_now(by: &Asker, agent: Uuid, save: bool) -> Result<Reply> {
    by.may(Right::Change)?;
    let entry = by.ops().directory.by_id(agent).filter(|entry| by.is_here(entry));
    let entry = entry.ok_or_else(|| Failure::new(ErrorKind::AgentNotFound, "that agent is gone"))?;
    by.agent(Some(&entry.facts.name))?;
    by.note(&entry, "context.clear", Right::Change).await?;
    let name = entry.facts.name.clone();
    let gone = meaning(agent, clear::clear(by.ops(), ClearParams { agent: Some(name.clone()), save })).await?;
    let saved =
        gone.saved.as_ref().map_or_else(String::new, |session| format!(" It is saved as {}.", named(by, session)));
    let pins = if gone.pins > 0 { format!(" and {}", count(gone.pins, "pinned fact")) } else { String::new() };
    let went = format!("{}{pins} went.{saved}", count(gone.discarded, "message"));
    let (who, name) = (plain(by, by.person.name(), 64), plain(by, &name, 64));
    let aloud = format!("{who} cleared the conversation of **{name}**: {went}");
    Ok(Reply { aloud: Some(aloud), ..Reply::new(format!("Cleared: {went}")) })
}

pub async fn restore(call: &Call) -> Result<Reply> {
    let (by, session) = (&call.by, call.given.must("session")?.to_owned());
    let agent = changed(call, "context.restore").await?;
    let params = RestoreParams {
        agent: Some(agent.facts.name.clone()),
        session,
        at: call.given.number("at"),
        discard: call.given.yes("discard"),
        own: true,
        files: false,
    };
    let work = restore::restore_for(by.ops(), params, &by.person.requester);
    let done = meaning(agent.facts.id, work).await?;
    let text = format!(
        "Restored {}: {}, {} live now.{}",
        named(by, &done.session),
        plain(by, &title(by, &done.session, 120), 200),
        count(done.messages, "message"),
        saved_first(by, done.saved_first.as_ref()),
    );
    Ok(Reply::new(text + &warnings(by, &done.warnings)))
}

pub async fn resume(call: &Call) -> Result<Reply> {
    let (by, session) = (&call.by, call.given.must("session")?.to_owned());
    let agent = changed(call, "context.resume").await?;
    let params = ResumeParams { agent: Some(agent.facts.name.clone()), session };
    let done = meaning(agent.facts.id, resume::resume_for(by.ops(), params, &by.person.requester)).await?;
    let saved = saved_first(by, done.saved_first.as_ref());
    let opening = opening(&done.acknowledgement, done.generated);
    let text = format!("Goes on from {}.{saved}\n\n{opening}", named(by, &done.session));
    Ok(Reply::new(text + &warnings(by, &done.warnings)))
}

pub async fn compact(call: &Call) -> Result<Reply> {
    let by = &call.by;
    let agent = changed(call, "context.compact").await?;
    let params = CompactParams { agent: Some(agent.facts.name.clone()), undo: call.given.yes("undo") };
    let done = meaning(agent.facts.id, compact::compact(by.ops(), params)).await?;
    let (before, after) = (done.receipt.tokens_before, done.receipt.tokens_after);
    let mut text = match &done.session {
        Some(session) => {
            format!("Compacted: {before} tokens before, {after} after. It is saved as {}.", named(by, session))
        }
        None => format!("The last compaction is taken back: {} are shown again.", count(done.receipt.left, "message")),
    };
    if let Some(said) = &done.acknowledgement {
        text.push_str(&format!("\n\n{}", opening(said, done.generated)));
    }
    Ok(Reply::new(text + &warnings(by, &done.warnings)))
}

pub async fn rewind(call: &Call) -> Result<Reply> {
    let agent = changed(call, "context.rewind").await?;
    let undo = call.given.yes("undo");
    let params = RewindParams { agent: Some(agent.facts.name.clone()), n: call.given.number("turns"), undo };
    let done = meaning(agent.facts.id, rewind::rewind(call.by.ops(), params)).await?;
    let moved = count(done.moved, "message");
    let text = if undo { format!("{moved} came back") } else { format!("{moved} dropped; `undo` brings them back") };
    Ok(Reply::new(format!("{text}. {} live now.", count(done.messages, "message"))))
}

/// The words that open a context: those that rules made name commands, a model's stay as they are.
fn opening(said: &str, generated: bool) -> String {
    if generated { here(said) } else { said.to_owned() }
}

fn named(by: &Asker, session: &Session) -> String {
    format!("{} ({})", code(by, &session.header.session_id, 80), code(by, &session.short_id, 40))
}

fn saved_first(by: &Asker, session: Option<&Session>) -> String {
    session.map_or_else(String::new, |session| format!(" What was live before is saved as {}.", named(by, session)))
}

fn summary(by: &Asker, session: &Session) -> String {
    let text = session.header.summary.as_deref().map(str::trim).filter(|text| !text.is_empty());
    text.map_or_else(String::new, |text| format!("\n{}", cut(&by.clean(text), 1200)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_quoted_and_rules_name_the_commands_that_there_are_here() {
        let said = "`chorusctl context history` shows them";
        assert_eq!(opening(said, false), said);
        assert_eq!(opening(said, true), "`/context history` shows them");
    }
}
