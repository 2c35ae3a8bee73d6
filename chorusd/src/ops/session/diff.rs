//! `session.diff`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use chorus_proto::methods::tree::{DiffLine, DiffParams, DiffResult, Side};

use super::get::{corrupt, open};
use crate::agent::context::{Room, fitting};
use crate::failure::Result;
use crate::message::Stored;
use crate::ops::{Ops, blocking, select, view};
use crate::session::same::say_the_same;
use crate::store::session_index::{Messages, Paged};

/// Where two sessions part, and a page of what each says from there on.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`.
pub async fn diff(ops: &Ops, params: DiffParams) -> Result<DiffResult<Stored>> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let a = select::session(ops, &agent, said, &params.a).await?;
    let b = select::session(ops, &agent, said, &params.b).await?;
    let both = [
        Named { name: a.header.session_id.clone(), paged: open(ops, &a).await? },
        Named { name: b.header.session_id.clone(), paged: open(ops, &b).await? },
    ];
    let of = both.each_ref().map(|side| side.paged.index.sha256.clone());
    let known = ops.commons.find(&of);
    let (offset, limit) = (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX));
    let room = Room::of(ops.config.max_frame);
    let (common, (lines, next)) = blocking(move || {
        let common = known.map_or_else(|| common(&both), Ok)?;
        Ok((common, page(&both, common, (offset, limit), room)?))
    })
    .await?;
    ops.commons.keep(of, common);
    Ok(DiffResult { a: view::session(ops, a).await?, b: view::session(ops, b).await?, common, lines, next })
}

/// Pairs of sessions that are remembered.
const PAIRS: usize = 64;

/// How many messages sessions have in common that were compared lately, by the hashes of their messages: only the first
/// page goes through them.
#[derive(Debug, Default)]
pub struct Commons(Mutex<VecDeque<(Pair, u64)>>);

type Pair = [String; 2];

impl Commons {
    fn find(&self, pair: &Pair) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(of, _)| of == pair).map(|(_, common)| *common)
    }

    fn keep(&self, pair: Pair, common: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| *of != pair);
        known.push_back((pair, common));
        if known.len() > PAIRS {
            known.pop_front();
        }
    }
}

/// A session file and the name of its session.
struct Named {
    name: String,
    paged: Paged,
}

impl Named {
    fn next(&self, messages: &mut Messages) -> Result<Option<Stored>> {
        messages.read()?.map_err(|e| corrupt(&self.name, &e))
    }
}

/// How many messages both begin with.
fn common([a, b]: &[Named; 2]) -> Result<u64> {
    let (mut of_a, mut of_b) = (a.paged.messages_from(0), b.paged.messages_from(0));
    let mut common = 0;
    while let (Some(one), Some(other)) = (a.next(&mut of_a)?, b.next(&mut of_b)?)
        && say_the_same(&one, &other)
    {
        common += 1;
    }
    Ok(common)
}

/// The lines from `offset` on: what `a` has behind what is common, then what `b` has. And the offset of the next page.
fn page(
    both: &[Named; 2],
    common: u64,
    (offset, limit): (u64, u64),
    room: Room,
) -> Result<(Vec<DiffLine<Stored>>, Option<u64>)> {
    let (mut bytes, mut lines, mut passed) = (0, Vec::new(), 0_u64);
    for (side, of) in [Side::A, Side::B].into_iter().zip(both) {
        let rest = of.paged.index.header.message_count.saturating_sub(common);
        let skipped = offset.saturating_sub(passed).min(rest);
        passed += skipped;
        let mut number = common + skipped;
        let mut messages = of.paged.messages_from(number);
        while let Some(message) = of.next(&mut messages)? {
            let message = fitting(&message, room);
            bytes += message.json().len();
            let full = lines.len() as u64 >= limit || (bytes > room.page && !lines.is_empty());
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
