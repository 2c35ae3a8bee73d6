//! The task of one active agent: takes requests and completions, asks the state what to do, and does it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chorus_proto::{TokenPair, Usage};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::batch::Batch;
use super::call;
use super::context::Context;
use super::cut_off::CutOff;
use super::effect::{Append, Beginning, CallModel, Change, Effect, Mark, RunTools, What};
use super::event::{Asked, Event, Journalled, Known, Reply, Request, RequestId, Verb};
use super::meter::Shown;
use super::precedence::TurnGuard;
use super::registry::Registry;
use super::rest::{self, UNTOUCHED};
use super::state::State;
use super::turn::Stopped;
use super::voice::{Voice, Voices};
use super::window::Budget;
use super::{Facts, links, load, notice, save, workspace};
use crate::clock::Ticks;
use crate::failure::{Failure, Result};
use crate::store::journal::{self, Behind, ChangeRecord, Head, NewEvent, NewHead, Reference, Renewal, TurnMark};

/// A request on its way to an actor.
#[derive(Debug)]
pub struct Letter {
    /// Boxed: a mailbox has room for some letters even while it is empty.
    pub verb: Box<Verb>,
    /// Said by a caller that has taken the agent out of the directory already.
    pub facts: Option<Arc<Facts>>,
    pub reply: oneshot::Sender<Result<Answer>>,
}

/// A reply, and for [`Verb::Hold`] what keeps the agent held: it is let go when this is dropped.
#[derive(Debug)]
pub struct Answer {
    pub reply: Reply,
    pub hold: Option<oneshot::Sender<()>>,
}

/// One active agent.
#[derive(Debug)]
pub struct Actor {
    agent: Uuid,
    /// Of the agent when the last request came.
    name: String,
    window: Budget,
    /// What the next request would show of the context.
    shown: Option<Shown>,
    state: State,
    mailbox: mpsc::Receiver<Letter>,
    registry: Arc<Registry>,
    replies: HashMap<RequestId, oneshot::Sender<Result<Answer>>>,
    next_request: RequestId,
    /// When the last request came.
    touched: Ticks,
    /// It leaves memory as soon as nothing is under way, unless a request comes first.
    rests: bool,
    /// Who hears what is said while a request waits.
    voices: HashMap<RequestId, Voice>,
    /// The turn that runs: what ends it, and who listens.
    turn: Option<(Uuid, CancellationToken, Voices)>,
    /// While its model is called.
    first: Option<TurnGuard>,
    /// Appends under way, in order.
    appends: FuturesOrdered<BoxFuture<'static, Event>>,
    /// Everything else under way.
    work: FuturesUnordered<BoxFuture<'static, Event>>,
}

impl Actor {
    pub fn new(agent: Uuid, mailbox: mpsc::Receiver<Letter>, registry: Arc<Registry>) -> Self {
        Self {
            agent,
            name: String::new(),
            window: Facts::default().window,
            shown: None,
            state: State::default(),
            mailbox,
            registry,
            replies: HashMap::new(),
            next_request: 0,
            touched: Ticks(0),
            rests: false,
            voices: HashMap::new(),
            turn: None,
            first: None,
            appends: FuturesOrdered::new(),
            work: FuturesUnordered::new(),
        }
    }

    /// Runs until the agent has nothing going on. `head`: the context to read back first.
    pub async fn run(mut self, head: Option<Head>) {
        self.touched = self.registry.clock.ticks();
        self.registry.untouched.set(self.agent, Some(self.touched.after(UNTOUCHED)));
        if let Some(head) = head {
            let deadline = self.registry.resumed(&head);
            // Boxed: this task lives as long as the context, and need not be as large as reading it back.
            let (registry, now) = (&self.registry, self.registry.clock.now());
            self.state = Box::pin(load::state(&registry.store, &registry.home, &head, deadline, now)).await;
        }
        loop {
            tokio::select! {
                biased;
                Some(event) = self.appends.next() => self.step(event),
                Some(event) = self.work.next() => self.step(event),
                letter = self.mailbox.recv(), if self.state.accepts() => match letter {
                    Some(letter) => self.take(letter),
                    None => return,
                },
                else => return,
            }
            let retired = if self.state.is_empty() {
                self.registry.retire(self.agent, &self.mailbox)
            } else {
                // What was in the way may be gone at the next request, which reads the context back anew.
                let steps_back = self.state.is_broken() || (self.rests && self.state.is_at_rest());
                steps_back && self.registry.step_back(self.agent, &self.mailbox)
            };
            if retired {
                return;
            }
        }
    }

    fn take(&mut self, letter: Letter) {
        let ticks = self.registry.clock.ticks();
        if matches!(*letter.verb, Verb::Rest) {
            self.rest(ticks);
            let _ = letter.reply.send(Ok(Answer { reply: Reply::Done, hold: None }));
            return;
        }
        if matches!(*letter.verb, Verb::Send(_)) && self.registry.is_closing() {
            let _ = letter.reply.send(Err(CutOff::Stop.before_it_began()));
            return;
        }
        self.touched = ticks;
        if std::mem::take(&mut self.rests) {
            self.registry.untouched.set(self.agent, Some(ticks.after(UNTOUCHED)));
        }
        let Some(facts) = letter.facts.or_else(|| self.registry.directory.by_id(self.agent).map(|e| e.facts.clone()))
        else {
            let _ = letter.reply.send(Err(Failure::destroyed()));
            return;
        };
        let id = self.next_request;
        self.next_request += 1;
        self.replies.insert(id, letter.reply);
        if let Verb::Send(send) = &*letter.verb {
            self.voices.insert(id, send.voice.clone());
        }
        let now = self.registry.clock.now();
        let fresh = self.registry.store.journal.reserve();
        self.name.clone_from(&facts.name);
        self.window = facts.window;
        let asked = Asked { id, facts, now, ticks, fresh };
        self.step(Event::Request(Box::new(Request { asked, verb: *letter.verb })));
    }

    /// Steps back soon, or where somebody came meanwhile, is asked again.
    fn rest(&mut self, now: Ticks) {
        let due = self.touched.after(UNTOUCHED);
        self.rests = due <= now && self.state.context().is_some_and(rest::may);
        if due > now {
            self.registry.untouched.set(self.agent, Some(due));
        }
    }

    fn step(&mut self, event: Event) {
        let effects = self.state.handle(event);
        self.go_first();
        // Whoever hears the answer must find the numbers that go with it.
        self.shown = self.state.context().map(|context| Shown::of(context, self.window, self.shown));
        self.registry.publish(self.agent, self.state.context().zip(self.shown));
        self.registry.running.set(self.agent, self.state.running());
        let (news, rest): (Vec<_>, Vec<_>) = effects.into_iter().partition(|effect| matches!(effect, Effect::Tell(..)));
        self.tell(news);
        for effect in rest {
            self.carry_out(effect);
        }
    }

    /// Lets a turn that calls its model go before what is asked of the same server in the background.
    fn go_first(&mut self) {
        let calls = self.state.calls_model();
        if calls == self.first.is_some() {
            return;
        }
        let registry = &self.registry;
        let entry = registry.directory.by_id(self.agent).filter(|_| calls);
        let target = entry.and_then(|entry| registry.models.resolve(entry.facts.model.as_deref()?).ok());
        self.first = target.map(|target| registry.summaries.precedence.turn(&target.provider));
    }

    /// All that one step has to tell goes as one job.
    fn tell(&self, news: Vec<Effect>) {
        let at = self.registry.clock.now();
        let event = |effect| match effect {
            Effect::Tell(kind, data) => Some(NewEvent { at, kind, agent: Some(self.name.clone()), data }),
            _ => None,
        };
        let events: Vec<_> = news.into_iter().filter_map(event).collect();
        if !events.is_empty() {
            drop(self.registry.store.journal.emit(events));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let store = &self.registry.store;
        match effect {
            Effect::Append(append) => {
                let done = store.journal.append(to_journal(*append));
                self.appends.push_back(done.map(|result| Event::Appended(result.map(from_journal))).boxed());
            }
            Effect::Write(draft) => {
                let registry = self.registry.clone();
                // A task of its own: writing must go on when this one has other things to do.
                let task = tokio::spawn(async move {
                    let checkpoint = workspace::checkpoint(&registry, &draft);
                    save::save(&registry.store, &registry.summaries, *draft, checkpoint).await
                });
                let written =
                    task.map(|ended| Event::Written(ended.unwrap_or_else(|e| Err(Failure::internal(e.to_string())))));
                self.work.push(written.boxed());
            }
            Effect::End(context) => {
                let ended = store.journal.end(context);
                let registry = self.registry.clone();
                let ended = async move {
                    let result = ended.await;
                    if result.is_ok() {
                        registry.trim(context);
                    }
                    Event::Ended(result)
                };
                self.work.push(ended.boxed());
            }
            Effect::Replace { old, new, session, totals, added, working_set, restoration } => {
                let (context, head, working_set) = (new.context, to_head(&new), json_of(&working_set));
                let reference = Reference { session, totals, working_set, restoration, added };
                let replaced = store.journal.replace(old, context, head, reference);
                let registry = self.registry.clone();
                let replaced = async move {
                    let result = replaced.await;
                    if let (Ok(()), Some(old)) = (&result, old) {
                        registry.trim(old);
                    }
                    Event::Replaced(result)
                };
                self.work.push(replaced.boxed());
            }
            Effect::Renew { old, new, messages, working_set, restoration, news: (kind, data) } => {
                let (context, head, working_set) = (new.context, to_head(&new), json_of(&working_set));
                let news = NewEvent { at: new.started_at, kind, agent: Some(self.name.clone()), data };
                let renewed =
                    store.journal.renew(Renewal { old, context, head, working_set, messages, restoration, news });
                let registry = self.registry.clone();
                let renewed = async move {
                    let result = renewed.await;
                    if let (Ok(()), Some(old)) = (&result, old) {
                        registry.trim(old);
                    }
                    Event::Replaced(result)
                };
                self.work.push(renewed.boxed());
            }
            Effect::Compact { context, number, compaction, at } => {
                let agent = Some(self.name.clone());
                let data = links::news(&compaction.receipt, None);
                let news = NewEvent { at, kind: links::EVENT, agent, data };
                let done = store.journal.compact(context, number, json_of(&*compaction), news);
                self.appends.push_back(done.map(|result| Event::Appended(result.map(|()| Journalled::Noted))).boxed());
            }
            Effect::Materialise { session, context } => {
                let behind = behind(&context);
                let messages = Arc::unwrap_or_clone(context.messages);
                let done = store.journal.materialise(context.no, messages, session, behind);
                self.work.push(done.map(Event::Materialised).boxed());
            }
            Effect::Change(change) => {
                let done = store.journal.change(to_change(*change));
                self.work.push(done.map(Event::Changed).boxed());
            }
            // Queued by the call; a deadline that is lost in a crash is only an older one.
            Effect::Deadline { context, deadline } => {
                drop(store.journal.set_deadline(context, deadline.map(|deadline| deadline.at)));
            }
            Effect::Tell(..) => self.tell(vec![effect]),
            Effect::IdleNotice { session, written, timeout } => {
                let (registry, name) = (self.registry.clone(), self.name.clone());
                self.registry.spawn(async move { notice::tell(&registry, name, session, written, timeout).await });
            }
            Effect::Summarise { session, facts } => self.registry.summaries.begin(session, facts),
            Effect::Reply(request, result) => self.reply(request, result),
            Effect::CallModel(asked) => self.call_model(*asked),
            Effect::RunTools(run) => self.run_tools(*run),
            Effect::StopTurn(turn) => {
                if let Some((_, cancel, _)) = self.turn.as_ref().filter(|(id, ..)| *id == turn) {
                    cancel.cancel();
                }
            }
            Effect::CloseTurn { context, mark } => {
                let registry = self.registry.clone();
                let turn = mark.turn();
                let closed = store.journal.close_turn(self.agent, context, to_mark(mark), registry.clock.now());
                let closed =
                    closed.map(move |result| Event::TurnClosed { turn, moment: call::moment(&registry), result });
                self.work.push(closed.boxed());
            }
            Effect::BeginTurn(turn) => self.turn = Some((turn, CancellationToken::new(), Voices::default())),
            Effect::Join(request) => {
                if let (Some(voice), Some((_, _, voices))) = (self.voices.get(&request), &self.turn) {
                    voices.join(voice.clone());
                }
            }
            Effect::Wait(request) => {
                if let (Some(voice), Some((_, _, voices))) = (self.voices.get(&request), &self.turn) {
                    voices.wait(voice.clone());
                }
            }
            Effect::Say(request, said) => {
                if let Some(voice) = self.voices.get(&request) {
                    voice.say(&said);
                }
            }
            Effect::SayAll(said) => {
                if let Some((_, _, voices)) = &self.turn {
                    voices.say(&said);
                }
            }
        }
    }

    fn call_model(&mut self, mut asked: CallModel) {
        // What was changed in the turn, by the agent itself too, holds from this call on.
        if let Some(entry) = self.registry.directory.by_id(self.agent) {
            asked.facts = entry.facts.clone();
        }
        let (of, registry) = ((asked.turn, asked.step), self.registry.clone());
        let Some((_, cancel, voices)) = self.turn.clone() else { return };
        // A task of its own: it goes on while this one has other things to do.
        let task = tokio::spawn(async move {
            let ended = call::call(&registry, asked, voices, cancel).await;
            let moment = call::moment(&registry);
            match ended {
                call::Ended::Called(result) => Event::Called { of, moment, result },
                call::Ended::Compacts(compaction) => Event::Compacted { of, moment, compaction },
            }
        });
        let registry = self.registry.clone();
        let ended = task.map(move |ended| {
            ended.unwrap_or_else(|e| {
                let failure = Failure::internal(e.to_string());
                let stopped = Stopped { failure, partial: None, usage: Usage::default(), too_long: false };
                Event::Called { of, moment: call::moment(&registry), result: Box::new(Err(Box::new(stopped))) }
            })
        });
        self.work.push(ended.boxed());
    }

    fn run_tools(&mut self, run: RunTools) {
        let Some((_, cancel, voices)) = self.turn.clone().filter(|(id, ..)| *id == run.turn) else { return };
        if run.cancelled {
            cancel.cancel();
        }
        let of = (run.turn, run.step);
        let (registry, agent, name) = (self.registry.clone(), self.agent, self.name.clone());
        // Nothing comes between calls and their results: they stand in the newest message.
        let newest = self.state.context().and_then(|context| context.messages.last());
        let message = newest.and_then(|message| message.to_message().ok()).map(|message| message.id);
        let batch = Batch { registry, agent, name, of, message, by: run.by, cancel, voices };
        self.work.extend(batch.run(run.calls, run.breaker));
    }

    fn reply(&mut self, request: RequestId, result: Result<Reply>) {
        self.voices.remove(&request);
        let Some(reply) = self.replies.remove(&request) else { return };
        let mut hold = None;
        if matches!(result, Ok(Reply::Held)) {
            let (guard, dropped) = oneshot::channel::<()>();
            hold = Some(guard);
            self.work.push(dropped.map(|_| Event::Released).boxed());
        }
        // A caller that went away has its request carried out all the same.
        let _ = reply.send(result.map(|reply| Answer { reply, hold }));
    }
}

fn json_of(what: &impl Serialize) -> Bytes {
    // Texts and numbers: always serialises.
    serde_json::to_vec(what).unwrap_or_default().into()
}

/// What is written behind the messages of a context, so that what is read back can take its compactions back too.
fn behind(context: &Context) -> Behind {
    let before = context.compactions.first().map(|first| {
        let mut set = context.working_set.clone();
        first.before.clone().put_into(&mut set);
        json_of(&set)
    });
    let compactions = context.compactions.iter().map(|done| json_of(&done.compaction)).collect();
    let restoration = Some(context.restoration).filter(|cost| *cost != TokenPair::default());
    Behind { before, compactions, working_set: Some(json_of(&context.working_set)), restoration }
}

fn to_mark(mark: Mark) -> TurnMark {
    match mark {
        Mark::Open { turn, key } => TurnMark::Open { turn, key },
        Mark::Close { turn, key, answer } => {
            TurnMark::Close { turn, key, answer: answer.and_then(|answer| serde_json::to_string(&answer).ok()) }
        }
    }
}

fn to_change(change: Change) -> journal::Change {
    journal::Change {
        context: change.begin.context,
        begin: to_head(&change.begin),
        number: change.number,
        record: match change.what {
            What::WorkingSet(set) => ChangeRecord::WorkingSet(json_of(&set)),
            What::Rewind { keep, saved } => ChangeRecord::Rewind { keep, saved },
            What::Unrewind => ChangeRecord::Unrewind,
            What::Uncompact => ChangeRecord::Uncompact,
        },
        totals: change.totals,
        saved: change.saved,
        deadline: change.deadline.map(|deadline| deadline.at),
    }
}

fn to_head(begin: &Beginning) -> NewHead {
    NewHead {
        agent: begin.agent,
        started_at: begin.started_at,
        idle_deadline_at: begin.deadline.map(|deadline| deadline.at),
        parent: begin.parent,
    }
}

fn to_journal(append: Append) -> journal::Append {
    journal::Append {
        agent: append.begin.agent,
        agent_name: append.agent_name,
        context: append.begin.context,
        begin: to_head(&append.begin),
        first: append.first,
        messages: append.messages,
        at: append.at,
        deadline: append.deadline.map(|deadline| deadline.at),
        key: append.key,
        mark: append.mark.map(to_mark),
    }
}

fn from_journal(appended: journal::Appended) -> Journalled {
    match appended {
        journal::Appended::Now(answer) => Journalled::Now(answer),
        journal::Appended::Before(answer) => Journalled::Before(answer),
        journal::Appended::Known(known) => Journalled::Known(Known {
            turn: known.turn,
            answer: known.answer.and_then(|answer| serde_json::from_str(&answer).ok()),
        }),
    }
}
