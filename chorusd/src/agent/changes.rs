//! Changes of a context that are no messages: pins and rewinds. Part of the state machine.

use chorus_proto::{ErrorKind, WorkingSet};

use super::context::{Context, pinned};
use super::effect::{Beginning, Change, Effect, What};
use super::event::{Asked, Reply};
use super::state::{Busy, State, begun, deadline, nothing_there};
use crate::failure::{Failure, Result};

impl State {
    /// Pins a fact by hand. On an agent without a context this begins one, without a timer.
    pub(super) fn pin(&mut self, asked: &Asked, item: String, text: String, effects: &mut Vec<Effect>) {
        let set = self.context.as_ref().map(|context| context.working_set.clone()).unwrap_or_default();
        self.change_set(asked, pinned(&set, item, text), effects);
    }

    /// Takes out the `number`th pinned fact.
    pub(super) fn unpin(&mut self, asked: &Asked, number: u64, effects: &mut Vec<Effect>) {
        let mut set = self.context.as_ref().map(|context| context.working_set.clone()).unwrap_or_default();
        let index = number.checked_sub(1).and_then(|n| usize::try_from(n).ok());
        match index.filter(|index| *index < set.pinned_facts.len()) {
            Some(index) => {
                set.pinned_facts.remove(index);
                self.change_set(asked, set, effects);
            }
            None => {
                let there_are = set.pinned_facts.len();
                let failure = Failure::new(
                    ErrorKind::NotFound,
                    format!("there is no pinned fact {number}; there are {there_are}"),
                )
                .hint("`chorusctl context show` lists them with their numbers");
                effects.push(Effect::Reply(asked.id, Err(failure)));
            }
        }
    }

    fn change_set(&mut self, asked: &Asked, set: WorkingSet, effects: &mut Vec<Effect>) {
        let begin = self.pinning(asked);
        let mut context = self.context.clone().unwrap_or_else(|| begun(&begin));
        context.working_set = set.clone();
        let what = What::WorkingSet(Box::new(set.clone()));
        self.change(asked, begin, context, what, Reply::Pinned(Box::new(set)), effects);
    }

    /// The context that a change goes into: the live one, or one that begins without a timer.
    pub(super) fn pinning(&self, asked: &Asked) -> Beginning {
        let agent = asked.facts.id;
        match &self.context {
            Some(context) => Beginning {
                context: context.no,
                agent,
                started_at: context.started_at,
                deadline: context.deadline,
                parent: context.parent,
            },
            None => Beginning { context: asked.fresh, agent, started_at: asked.now, deadline: None, parent: None },
        }
    }

    /// Drops the last user turns from the context; they can be had back until the next message.
    pub(super) fn rewind(&mut self, asked: &Asked, turns: u64, effects: &mut Vec<Effect>) {
        let Some(context) = self.context.as_ref().filter(|context| context.totals.messages > 0) else {
            effects.push(Effect::Reply(asked.id, Err(nothing_there(&asked.facts.name))));
            return;
        };
        let Some(keep) = context.turn_start(turns) else {
            effects.push(Effect::Reply(asked.id, Err(out_of_reach(&asked.facts.name, context, turns))));
            return;
        };
        let mut after = context.clone();
        after.rewind(keep);
        let moved = context.totals.messages - after.totals.messages;
        self.moved(asked, after, What::Rewind { keep: keep as u64, saved: context.saved }, moved, effects);
    }

    /// Takes the last rewind back.
    pub(super) fn unrewind(&mut self, asked: &Asked, effects: &mut Vec<Effect>) {
        let before = self.context.as_ref().map_or(0, |context| context.totals.messages);
        let mut after = self.context.clone();
        if !after.as_mut().is_some_and(Context::unrewind) {
            let failure = Failure::new(ErrorKind::Denied, format!("{} has no rewind to take back", asked.facts.name))
                .hint("a rewind can be taken back until the next message");
            effects.push(Effect::Reply(asked.id, Err(failure)));
            return;
        }
        if let Some(after) = after {
            let moved = after.totals.messages - before;
            self.moved(asked, after, What::Unrewind, moved, effects);
        }
    }

    fn moved(&mut self, asked: &Asked, mut context: Context, what: What, moved: u64, effects: &mut Vec<Effect>) {
        // A context without messages has nothing to put away.
        context.deadline = deadline(asked).filter(|_| context.totals.messages > 0);
        context.last_activity_at = asked.now;
        let reply = Reply::Rewound { moved, messages: context.totals.messages };
        let begin = self.pinning(asked);
        self.change(asked, begin, context, what, reply, effects);
    }

    pub(super) fn change(
        &mut self,
        asked: &Asked,
        begin: Beginning,
        context: Context,
        what: What,
        reply: Reply,
        effects: &mut Vec<Effect>,
    ) {
        if self.context.is_none() {
            self.next_record = 0;
        }
        let number = self.next_record;
        self.next_record = number.saturating_add(1);
        effects.push(Effect::Change(Box::new(Change {
            begin,
            number,
            what,
            totals: context.totals,
            saved: context.saved,
            deadline: context.deadline,
        })));
        self.busy = Some(Busy::Changing { request: asked.id, context: Box::new(context), reply });
    }

    pub(super) fn changed(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(Busy::Changing { request, context, reply }) = self.busy.take() else { return };
        if result.is_ok() {
            self.context = Some(*context);
        }
        effects.push(Effect::Reply(request, result.map(|()| reply)));
    }
}

/// Why a context cannot be rewound so far, and what has what came before.
fn out_of_reach(agent: &str, context: &Context, turns: u64) -> Failure {
    let there_are = context.totals.queries;
    let there_are = format!("{there_are} user turn{}", if there_are == 1 { "" } else { "s" });
    let failure = |message| Failure::new(ErrorKind::InvalidParams, message);
    match context.parent.filter(|_| context.working_set.background.is_some()) {
        Some(parent) => failure(format!(
            "the context of {agent} has {there_are} since it began from an earlier session, not {turns}; a rewind does \
             not reach behind that"
        ))
        .hint(format!(
            "`chorusctl --agent {agent} context restore {parent}` has every message of the session before; the live ones are saved first"
        )),
        None => failure(format!("the context of {agent} has {there_are}, not {turns}"))
            .hint("rewind by fewer; `chorusctl context clear` empties it"),
    }
}
