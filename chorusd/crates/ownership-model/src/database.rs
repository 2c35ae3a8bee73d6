//! The database: how it carries out a request.

use crate::setting::{Heartbeats, Rule, Setting};
use crate::state::{Entry, Heartbeat, Owner, Request, State, Work};

/// Returns true if the claim of a process is granted at this moment.
pub(crate) fn may_claim(setting: &Setting, state: &State, agent: u8, process: Owner) -> bool {
    match state.row(agent).owner {
        None => true,
        Some(owner) if owner.node == process.node => {
            owner.boot < process.boot || (owner.boot == process.boot && setting.has(Rule::ClaimMayRepeat))
        }
        Some(owner) => {
            setting.heartbeats == Heartbeats::AnyMayBeStale
                || !setting.has(Rule::ClaimNeedsStaleHeartbeat)
                || state.node(owner.node).heartbeat != Heartbeat::Fresh
        }
    }
}

/// Returns true if no other transaction has locked the row of an agent.
fn is_unlocked(setting: &Setting, state: &State, request: &Request) -> bool {
    let locks = |other: &Request| matches!(other.work, Work::WriteChecked { .. }) && setting.has(Rule::WriteLocksRow);
    !state.requests().any(|other| other != request && other.agent == request.agent && locks(other))
}

fn epoch_of_claim(setting: &Setting, state: &State, request: &Request, seen: u8) -> u8 {
    let is_restart = state.row(request.agent).owner.is_some_and(|owner| owner.node == request.from.node);
    let is_raised =
        setting.has(Rule::ClaimRaisesEpoch) && (!is_restart || setting.has(Rule::RestartRaisesEpoch)) || seen == 0;
    seen + u8::from(is_raised)
}

/// Carries a request one step further; None if it has to wait for a lock.
pub(crate) fn execute(setting: &Setting, state: &State, request: &Request) -> Option<State> {
    let mut next = *state;
    let row = next.row_mut(request.agent);
    if matches!(request.work, Work::Write { .. }) && !setting.has(Rule::WriteLocksRow) {
        // A plain read waits for nobody.
    } else if !is_unlocked(setting, state, request) {
        return None;
    }
    let work = match request.work {
        Work::Claim => {
            if !may_claim(setting, state, request.agent, request.from) {
                None
            } else if setting.has(Rule::ClaimIsOneStatement) {
                row.epoch = epoch_of_claim(setting, state, request, row.epoch);
                row.owner = Some(request.from);
                row.wanted_by = None;
                Some(Work::Granted { epoch: row.epoch })
            } else {
                Some(Work::ClaimAfterRead { epoch: row.epoch })
            }
        }
        Work::ClaimAfterRead { epoch } => {
            row.epoch = epoch_of_claim(setting, state, request, epoch);
            row.owner = Some(request.from);
            Some(Work::Granted { epoch: row.epoch })
        }
        Work::Write { epoch, message } => {
            if epoch != row.epoch && setting.has(Rule::WriteComparesEpoch) {
                Some(Work::Refused { epoch })
            } else if row.has_message(message) && setting.has(Rule::WriteHasKey) {
                Some(Work::Accepted { message })
            } else {
                Some(Work::WriteChecked { epoch, message, seq: row.next_seq() })
            }
        }
        Work::WriteChecked { epoch, message, seq } => {
            let entry = Entry { seq, epoch, writer: request.from, message, row_epoch: row.epoch };
            *row.log.iter_mut().find(|place| place.is_none())? = Some(entry);
            Some(Work::Accepted { message })
        }
        Work::Release { epoch } => {
            if epoch == row.epoch || !setting.has(Rule::ReleaseComparesEpoch) {
                row.owner = None;
            }
            None
        }
        Work::Granted { .. } | Work::Accepted { .. } | Work::Refused { .. } => return None,
    };
    // An answer that nobody awaits goes nowhere.
    let answered =
        work.map(|work| Request { work, ..*request }).filter(|request| request.awaited || !request.is_answer());
    next.replace(request, answered);
    Some(next)
}
