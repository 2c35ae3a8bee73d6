//! The operation `session.diff`.

use std::collections::VecDeque;

use chorus_agent_core::context::{PageBudget, fit_message};
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_config::Config;
use chorus_proto::methods::session_branching::{DiffLine, DiffParams, DiffResult, Side};
use chorus_runtime::run_blocking;
use chorus_session::content_eq::has_same_content;
use chorus_session::stored_message::StoredMessage;

use super::message_source::MessageSource;
use crate::ops::agent::AgentResolver;
use crate::ops::session::SessionReader;

/// Finds where two sessions diverge, and returns a page of the messages after that.
pub async fn diff(
    agents: &AgentResolver,
    sessions: &SessionReader,
    overlaps: &SessionOverlaps,
    config: &Config,
    params: DiffParams,
) -> Result<DiffResult<StoredMessage>> {
    let target = agents.conversation_for_sessions(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let (command_a, command_b) = (format!("session diff NAME {}", params.b), format!("session diff {} NAME", params.a));
    let a = sessions.open_as(&Requester::Owner, &target, said, &params.a, &command_a).await?;
    let b = sessions.open_as(&Requester::Owner, &target, said, &params.b, &command_b).await?;
    let (session_a, session_b) = (sessions.describe_open(&a).await?, sessions.describe_open(&b).await?);
    let of = [a.messages_hash, b.messages_hash];
    let both = [a.messages, b.messages];
    let known = overlaps.find(&of);
    let (offset, limit) = (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX));
    let room = PageBudget::from_max_frame(config.max_frame);
    let (common, (lines, next)) = run_blocking(move || {
        let common = known.map_or_else(|| count_common(&both), Ok)?;
        Ok((common, read_page(&both, common, (offset, limit), room)?))
    })
    .await?;
    overlaps.remember(of, common);
    Ok(DiffResult { a: session_a, b: session_b, common, lines, next })
}

/// The limit on remembered pairs of sessions.
const MAX_PAIRS: usize = 64;

/// The number of common messages of recently compared sessions, by the hashes of their messages, so that only the first
/// page has to count them.
#[derive(Debug, Default)]
pub struct SessionOverlaps(Mutex<VecDeque<(HashPair, u64)>>);

type HashPair = [String; 2];

impl SessionOverlaps {
    fn find(&self, pair: &HashPair) -> Option<u64> {
        let known = self.0.lock();
        known.iter().find(|(of, _)| of == pair).map(|(_, common)| *common)
    }

    fn remember(&self, pair: HashPair, common: u64) {
        let mut known = self.0.lock();
        known.retain(|(of, _)| *of != pair);
        known.push_back((pair, common));
        if known.len() > MAX_PAIRS {
            known.pop_front();
        }
    }
}

/// Counts the common messages at the beginning of both sessions.
fn count_common([a, b]: &[MessageSource; 2]) -> Result<u64> {
    let (mut of_a, mut of_b) = (a.messages_from(0), b.messages_from(0));
    let mut common = 0;
    while let (Some(one), Some(other)) = (of_a.read()?, of_b.read()?)
        && has_same_content(&one, &other)
    {
        common += 1;
    }
    Ok(common)
}

/// Returns a page of lines from `offset` on: first the remaining messages of `a`, then those of `b`. Also returns the
/// offset of the next page.
fn read_page(
    both: &[MessageSource; 2],
    common: u64,
    (offset, limit): (u64, u64),
    room: PageBudget,
) -> Result<(Vec<DiffLine<StoredMessage>>, Option<u64>)> {
    let (mut bytes, mut lines, mut passed) = (0, Vec::new(), 0_u64);
    for (side, of) in [Side::A, Side::B].into_iter().zip(both) {
        let rest = of.count().saturating_sub(common);
        let skipped = offset.saturating_sub(passed).min(rest);
        passed += skipped;
        let mut number = common + skipped;
        let mut messages = of.messages_from(number);
        while let Some(message) = messages.read()? {
            let message = fit_message(&message, room);
            bytes += message.json().len();
            let full = lines.len() as u64 >= limit || (bytes > room.page_bytes && !lines.is_empty());
            if full {
                return Ok((lines, Some(passed).filter(|_| limit > 0)));
            }
            number += 1;
            passed += 1;
            lines.push(DiffLine { side, number, message });
        }
    }
    Ok((lines, None))
}
