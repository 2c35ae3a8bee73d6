//! A turn: from a user's message to the model's last word, with the tools that it calls in between. Part of the state
//! machine.
//!
//! Each step is in the journal before the next begins. Results of calls and tools carry the turn and the step they belong to;
//! what comes late is dropped.

use std::sync::Arc;

use chorus_proto::methods::send::{Said, SendResult};
use chorus_proto::{EventType, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::Facts;
use super::again::{self, Again};
use super::allowance::Allowance;
pub use super::answer::{Answer, Stopped};
use super::compaction::Wish;
use super::context::Context;
use super::cut_off::CutOff;
use super::effect::{Append, Beginning, CallModel, Effect, Mark};
use super::event::{Asked, Known, Reply, RequestId};
use super::links;
use super::queue::Queued;
use super::spent::add;
use super::state::{Owner, Pending, State, deadline_of};
use super::tool_calls::Calls;
use super::voice::Voice;
use crate::clock::Ticks;
use crate::failure::{Failure, Result};
use crate::message::{ContextNo, Stored};
use crate::who::Requester;

/// A message that asks for a turn.
#[derive(Debug)]
pub struct Send {
    /// Of the turn that it begins, unless its key is known.
    pub turn: Uuid,
    pub message: Stored,
    pub key: Option<String>,
    /// Where its key is known, and the daemon ended before anything was done in that turn, it is done now.
    pub again: bool,
    /// Where it is told what is said; not the state machine's.
    pub voice: Voice,
    /// Who asked for it.
    pub by: Requester,
}

/// The turn that runs.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: Uuid,
    /// Whoever waits for its end.
    requests: Vec<RequestId>,
    key: Option<String>,
    /// Its message, where a turn of its key that was cut off may be gone on with.
    pub(super) again: Option<Again>,
    pub(super) by: Requester,
    pub(super) facts: Arc<Facts>,
    pub(super) since: Ticks,
    /// Number of the model call; one that was compacted before is another.
    pub(super) step: u32,
    /// Where its message stands in the context, once it does.
    pub(super) opened: Option<usize>,
    pub(super) phase: Phase,
    pub(super) cut_off: Option<CutOff>,
    pub(super) allowance: Allowance,
    /// A tool could not go on: why the turn ends.
    pub(super) stop: Option<Failure>,
    /// Whoever came with its key in the middle of an answer: half of it would be no answer, so they hear the next one.
    late: Vec<RequestId>,
    /// The window was made smaller once, because it was too long.
    tight: bool,
    /// Whether it is to be compacted before the next call.
    wish: Wish,
    usage: Usage,
    calls: Vec<ToolCall>,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// The message is on its way into the journal.
    Opening,
    Calling,
    /// That messages leave the window is on its way into the journal.
    Shrinking,
    /// What the model said is on its way into the journal; these tools are called then.
    Keeping(Vec<ToolCall>),
    /// Tools whose results are not in the journal yet.
    Tools(Calls),
    /// The last word is on its way into the journal.
    Closing(Box<Result<String>>),
}

impl Turn {
    /// One more waits for its end.
    fn join(&mut self, request: RequestId, effects: &mut Vec<Effect>) {
        self.requests.push(request);
        if !matches!(self.phase, Phase::Opening) {
            effects.push(Effect::Say(request, Said::Started { turn_id: self.id }));
        }
        if matches!(self.phase, Phase::Calling) {
            self.late.push(request);
        } else {
            effects.push(Effect::Join(request));
        }
    }
}

/// When something came in.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub ticks: Ticks,
}

impl Turn {
    /// Whether it waits for this call.
    pub fn calls(&self, step: u32) -> bool {
        self.step == step && matches!(self.phase, Phase::Calling)
    }

    /// Waits for a compaction, where it is this call that it belongs to.
    pub fn begin_shrinking(&mut self, step: u32) -> bool {
        let calls = self.calls(step);
        if calls {
            self.phase = Phase::Shrinking;
        }
        calls
    }
}

impl State {
    /// Whether a turn runs.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether a turn runs whose model is called: while tools run, it waits for them.
    #[must_use]
    pub fn calls_model(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !matches!(turn.phase, Phase::Tools(_)))
    }

    /// What is known of the agent now: a change in the middle of the turn.
    pub(super) fn heed(&mut self, facts: &Arc<Facts>) {
        if let Some(turn) = &mut self.turn {
            turn.facts = facts.clone();
        }
    }

    /// Whether calls lack their results, so that no message may come between.
    pub(super) fn calls_open(&self) -> bool {
        let phase = self.turn.as_ref().map(|turn| &turn.phase);
        matches!(phase, Some(Phase::Tools(_))) || matches!(phase, Some(Phase::Keeping(calls)) if !calls.is_empty())
    }

    /// Begins a turn, or lets it wait for those before it.
    pub(super) fn send(&mut self, asked: Asked, send: Send, effects: &mut Vec<Effect>) {
        if send.key.is_some() {
            let same = |key: &Option<String>| *key == send.key;
            if let Some(turn) = self.turn.as_mut().filter(|turn| same(&turn.key)) {
                turn.join(asked.id, effects);
                return;
            }
            if let Some(at) = self.queue.iter().position(|queued| same(&queued.send.key)) {
                return self.wait_too(at, asked.id, effects);
            }
        }
        let queued = Queued { asked, send, also: Vec::new() };
        if self.turn.is_none() && self.queue.is_empty() {
            self.begin_turn(queued, effects);
        } else {
            self.wait_in_turn(queued, effects);
        }
    }

    pub(super) fn begin_turn(&mut self, queued: Queued, effects: &mut Vec<Effect>) {
        let Queued { asked, send, also } = queued;
        let mut requests = vec![asked.id];
        requests.extend(also);
        effects.push(Effect::BeginTurn(send.turn));
        effects.extend(requests.iter().map(|request| Effect::Join(*request)));
        effects.extend(self.queue.iter().flat_map(Queued::requests).map(Effect::Wait));
        let moment = Moment { now: asked.now, ticks: asked.ticks };
        let mark = Mark::Open { turn: send.turn, key: send.key.clone() };
        self.turn = Some(Turn {
            id: send.turn,
            requests,
            key: send.key,
            again: send.again.then(|| Again { message: send.message.clone(), moment }),
            by: send.by,
            facts: asked.facts.clone(),
            since: asked.ticks,
            step: 0,
            opened: None,
            phase: Phase::Opening,
            cut_off: None,
            allowance: Allowance::default(),
            stop: None,
            late: Vec::new(),
            tight: false,
            wish: Wish::IfLong,
            usage: Usage::default(),
            calls: Vec::new(),
        });
        let messages = if self.is_sent_again(&send.message) { Vec::new() } else { vec![send.message] };
        let begin = self.beginning(&asked);
        self.keep(begin, &asked.facts, messages, moment, Some(mark), effects);
    }

    /// Journals what is said in the turn.
    pub(super) fn keep(
        &mut self,
        begin: Beginning,
        facts: &Facts,
        messages: Vec<Stored>,
        moment: Moment,
        mark: Option<Mark>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(turn) = self.turn.as_ref().map(|turn| turn.id) else { return };
        let first = self.next_record;
        self.next_record = first.saturating_add(u32::try_from(messages.len()).unwrap_or(u32::MAX));
        let deadline = deadline_of(facts, moment);
        self.pending.push_back(Pending {
            owner: Owner::Turn(turn),
            begin: begin.clone(),
            messages: messages.clone(),
            at: moment.now,
            deadline,
        });
        let agent_name = facts.name.clone();
        let append = Append { begin, agent_name, first, messages, at: moment.now, deadline, key: None, mark };
        effects.push(Effect::Append(Box::new(append)));
    }

    /// Journals a message that goes on with the context.
    pub(super) fn keep_on(&mut self, message: Stored, moment: Moment, mark: Option<Mark>, effects: &mut Vec<Effect>) {
        let Some((facts, begin)) = self.turn.as_ref().map(|turn| turn.facts.clone()).zip(self.going_on()) else {
            return;
        };
        let begin = Beginning { agent: facts.id, ..begin };
        self.keep(begin, &facts, vec![message], moment, mark, effects);
    }

    /// A message of the turn is in the journal, or is not.
    pub(super) fn turn_kept(&mut self, of: Uuid, result: Result<Option<Known>>, effects: &mut Vec<Effect>) {
        // Of a turn that is over, because something before it could not be kept, this changes nothing.
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.id == of) else { return };
        let known = match result {
            Ok(known) => known,
            Err(failure) => return self.finish(Err(failure), effects),
        };
        if let Some(known) = known {
            return self.was_known(known, effects);
        }
        match &mut turn.phase {
            Phase::Opening => self.opened(effects),
            Phase::Keeping(calls) if calls.is_empty() => self.call_or_end(effects),
            Phase::Keeping(_) => turn.run_tools(effects),
            Phase::Tools(calls) => {
                if calls.kept() {
                    turn.phase = Phase::Calling;
                    // Once: a model that goes on calling has its turn ended, and why is said then.
                    let word = turn.allowance.last_word().filter(|_| !turn.allowance.unheeded);
                    effects.extend(word.map(|word| Effect::SayAll(Said::Note(word.note().into()))));
                    self.unpark(effects);
                    self.call_or_end(effects);
                }
            }
            Phase::Closing(outcome) => {
                let outcome = std::mem::replace(&mut **outcome, Ok(String::new()));
                self.finish(outcome, effects);
            }
            Phase::Calling | Phase::Shrinking => {}
        }
    }

    /// The message of the turn is in the context, as the last where it just came: the model is asked.
    fn opened(&mut self, effects: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let id = turn.id;
        let last = self.context.as_ref().map_or(0, |context| context.messages.len().saturating_sub(1));
        turn.opened.get_or_insert(last);
        effects.push(Effect::Tell(EventType::TurnStarted, json!({"turn_id": id})));
        effects.push(Effect::SayAll(Said::Started { turn_id: id }));
        self.call_or_end(effects);
    }

    /// The key came before: its turn has ended, or was cut off.
    fn was_known(&mut self, known: Known, effects: &mut Vec<Effect>) {
        if self.goes_on(&known, effects) {
            return;
        }
        let Some(turn) = self.turn.take() else { return };
        let answer = known.answer.ok_or_else(|| again::ended(known.turn));
        for request in turn.requests {
            effects.push(Effect::Reply(request, answer.clone().map(|answer| Reply::Sent(Box::new(answer)))));
        }
    }

    /// The next call of the model, unless somebody has ended the turn.
    fn call_or_end(&mut self, effects: &mut Vec<Effect>) {
        if self.end_if_cut_off(effects) {
            return;
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(failure) = turn.halted() {
            return self.close(None, Err(failure), effects);
        }
        turn.step += 1;
        turn.phase = Phase::Calling;
        effects.extend(turn.late.drain(..).map(Effect::Join));
        let facts = turn.facts.clone();
        let call = self.next_call(&facts);
        effects.push(Effect::CallModel(Box::new(call)));
        let Some(turn) = &mut self.turn else { return };
        // What comes of a compaction is looked at in this call only; the next may be long for another reason.
        turn.wish = Wish::IfLong;
    }

    /// Ends the turn where somebody has cut it off.
    pub(super) fn end_if_cut_off(&mut self, effects: &mut Vec<Effect>) -> bool {
        let cut_off = self.turn.as_ref().and_then(|turn| turn.cut_off);
        if let Some(cut_off) = cut_off {
            self.close(None, Err(cut_off.in_the_middle()), effects);
        }
        cut_off.is_some()
    }

    /// What the next call of the model is made of: in the turn that runs, or in one that begins with the next message.
    #[must_use]
    pub fn next_call(&self, facts: &Arc<Facts>) -> CallModel {
        let (context, turn) = (self.context.as_ref(), self.turn.as_ref());
        let messages = context.map(|context| context.messages.clone()).unwrap_or_default();
        CallModel {
            turn: turn.map_or(Uuid::nil(), |turn| turn.id),
            step: turn.map_or(0, |turn| turn.step),
            facts: facts.clone(),
            context: context.map_or(ContextNo(0), |context| context.no),
            opened: turn.map_or(messages.len(), |turn| turn.opened.unwrap_or(0)),
            messages,
            working_set: context.map(|context| context.working_set.clone()).unwrap_or_default(),
            view: context.map_or(0, Context::view),
            wish: links::wish(context, turn.map_or(Wish::IfLong, |turn| turn.wish)),
            tight: turn.is_some_and(|turn| turn.tight),
            last_word: turn.and_then(|turn| turn.allowance.last_word()),
        }
    }

    /// The window was compacted, or could not be; the model is asked.
    pub(super) fn shrunk_in_turn(&mut self, result: Result<()>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.phase, Phase::Shrinking)) else { return };
        turn.wish = Wish::No;
        match result {
            Ok(()) => self.call_or_end(effects),
            Err(failure) => self.finish(Err(failure), effects),
        }
    }

    /// The model has answered, or has not.
    pub(super) fn called(
        &mut self,
        (id, step): (Uuid, u32),
        moment: Moment,
        result: Result<Answer, Box<Stopped>>,
        effects: &mut Vec<Effect>,
    ) {
        let current = |turn: &&mut Turn| turn.id == id && turn.step == step && matches!(turn.phase, Phase::Calling);
        let Some(turn) = self.turn.as_mut().filter(current) else { return };
        match result {
            Ok(answer) => {
                add(&mut turn.usage, &answer.usage);
                if let Some(note) = answer.note {
                    effects.push(Effect::SayAll(Said::Note(note)));
                }
                turn.calls.extend(answer.kept);
                turn.allowance.unheeded = turn.allowance.last_word().is_some();
                match answer.message {
                    Some(message) if !answer.calls.is_empty() => {
                        // Its tools may ask something.
                        effects.extend(turn.late.drain(..).map(Effect::Join));
                        turn.phase = Phase::Keeping(answer.calls);
                        self.keep_on(message, moment, None, effects);
                    }
                    message => self.close(message.map(|message| (message, moment)), Ok(answer.text), effects),
                }
            }
            Err(stopped) => {
                add(&mut turn.usage, &stopped.usage);
                if stopped.too_long && stopped.partial.is_none() && !turn.tight && turn.cut_off.is_none() {
                    (turn.tight, turn.wish) = (true, Wish::Now);
                    let note = "the conversation was longer than the model takes; it is shown less of it".into();
                    effects.push(Effect::SayAll(Said::Note(note)));
                    return self.call_or_end(effects);
                }
                let failure = turn.cut_off.map_or(stopped.failure, CutOff::in_the_middle);
                self.close(stopped.partial.map(|message| (message, moment)), Err(failure), effects);
            }
        }
    }

    /// Ends the turn that runs, or one that waits.
    pub(super) fn cancel(&mut self, request: RequestId, which: Option<Uuid>, effects: &mut Vec<Effect>) {
        if which.is_some_and(|turn| self.take_back(turn, effects)) {
            effects.push(Effect::Reply(request, Ok(Reply::Cancelled(which))));
            return;
        }
        let running = self.turn.as_ref().map(|turn| turn.id).filter(|id| which.is_none_or(|which| which == *id));
        if running.is_some() {
            self.stop_turn(CutOff::Hand, effects);
        }
        effects.push(Effect::Reply(request, Ok(Reply::Cancelled(running))));
    }

    /// Tells whatever the turn has under way to end.
    pub(super) fn stop_turn(&mut self, why: CutOff, effects: &mut Vec<Effect>) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.cut_off.is_none()) {
            turn.cut_off = Some(why);
            effects.push(Effect::StopTurn(turn.id));
        }
    }

    /// Journals the last word, where there is one, and that the turn is over.
    fn close(&mut self, last: Option<(Stored, Moment)>, outcome: Result<String>, effects: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let id = turn.id;
        let answer = outcome.as_ref().ok().map(|reply| SendResult {
            reply: reply.clone(),
            turn_id: id,
            usage: turn.usage.clone(),
            tool_calls: turn.calls.clone(),
        });
        let mark = Mark::Close { turn: id, key: turn.key.clone(), answer: answer.map(Box::new) };
        turn.phase = Phase::Closing(Box::new(outcome));
        match (last, self.context.as_ref().map(|context| context.no)) {
            (Some((message, moment)), _) => self.keep_on(message, moment, Some(mark), effects),
            (None, Some(context)) => effects.push(Effect::CloseTurn { context, mark }),
            (None, None) => self.turn_kept(id, Ok(None), effects),
        }
    }

    /// It is in the journal that a turn is over which had no more to say, or is not.
    pub(super) fn turn_closed(&mut self, of: Uuid, moment: Moment, result: Result<()>, effects: &mut Vec<Effect>) {
        let ended = self.turn.as_ref().filter(|turn| turn.id == of && result.is_ok());
        if let Some((facts, context)) = ended.map(|turn| turn.facts.clone()).zip(self.context.as_mut()) {
            // No message sets the timer, and in the turn it may have rung in vain.
            context.deadline = deadline_of(&facts, moment);
            effects.push(Effect::Deadline { context: context.no, deadline: context.deadline });
        }
        self.turn_kept(of, result.map(|()| None), effects);
    }

    /// The turn is over.
    fn finish(&mut self, outcome: Result<String>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.take() else { return };
        let id = turn.id;
        self.note_answered(turn.opened.unwrap_or(0), outcome.is_ok());
        if matches!(turn.phase, Phase::Tools(_)) {
            // What runs is of no use to anybody any more.
            effects.push(Effect::StopTurn(id));
        }
        let result = match outcome {
            Ok(reply) => {
                effects.push(Effect::Tell(EventType::TurnFinished, json!({"turn_id": id, "usage": turn.usage})));
                Ok(SendResult { reply, turn_id: id, usage: turn.usage, tool_calls: turn.calls })
            }
            Err(failure) => {
                let data = json!({"turn_id": id, "reason": failure.message});
                effects.push(Effect::Tell(EventType::TurnInterrupted, data));
                Err(failure)
            }
        };
        for request in turn.requests {
            effects.push(Effect::Reply(request, result.clone().map(|result| Reply::Sent(Box::new(result)))));
        }
        self.unpark(effects);
    }
}

/// What a turn left open when the daemon ended in it.
#[derive(Debug, Clone)]
pub struct LeftOpen {
    pub turn: Uuid,
    /// Results for the calls that have none.
    pub results: Vec<Stored>,
}
