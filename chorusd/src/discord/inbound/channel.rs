//! What is heard in one channel, in its order: each message is taken up on the disk before anybody works on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serenity::model::channel::Message;
use serenity::model::event::MessageUpdateEvent;
use serenity::model::id::{ChannelId, GuildId, MessageId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};

use super::backfill::{self, Missing};
use super::desk::{Place, Wish};
use super::heard::{self, Heard};
use super::{Claim, FIRST, LONGEST, lines};
use crate::agent::directory::Entry;
use crate::discord::bridge::Bridge;
use crate::failure::Result;
use crate::ops::discord::claims::{self, Claimed, NewClaim};
use crate::ops::discord::{channels, outbox};

/// Things that may wait to be looked at; where there are more, the channel is read anew.
const QUEUE: usize = 256;
/// Messages for nobody that are passed before that is noted.
const PASSED: u32 = 64;

/// One thing that happened in a channel.
#[derive(Debug)]
pub enum Note {
    Message(Box<Message>),
    Edited(Box<MessageUpdateEvent>),
    Deleted(Vec<MessageId>),
    /// There is a new connection: what happened before it may not have been told.
    Connected,
    /// Chorus may have other rights now.
    Rights,
}

/// The way to the task of a channel.
#[derive(Debug)]
pub struct Line {
    tx: mpsc::Sender<Note>,
    lost: Arc<Lost>,
}

/// Whether something was dropped because too much waited.
#[derive(Debug, Default)]
struct Lost {
    any: AtomicBool,
    told: Notify,
}

impl Line {
    /// Starts the task.
    pub fn open(bridge: &Arc<Bridge>, id: ChannelId) -> Self {
        let (tx, rx) = mpsc::channel(QUEUE);
        let lost = Arc::<Lost>::default();
        let intake =
            Intake { bridge: bridge.clone(), id, lost: lost.clone(), behind: true, closed: None, passed: 0, newest: 0 };
        bridge.tasks.spawn(intake.run(rx));
        Self { tx, lost }
    }

    /// Passes something on; where there is no room, everything is dropped until the channel is read anew, so that nothing overtakes.
    pub fn pass(&self, note: Note) {
        if self.lost.any.load(Ordering::SeqCst) || self.tx.try_send(note).is_err() {
            self.lost.any.store(true, Ordering::SeqCst);
            self.lost.told.notify_one();
        }
    }
}

struct Intake {
    bridge: Arc<Bridge>,
    id: ChannelId,
    lost: Arc<Lost>,
    /// The channel is to be read first. As long as it is not, how far it was read stays as it is.
    behind: bool,
    /// Discord does not let it be read: what comes is heard meanwhile.
    closed: Option<Closed>,
    /// Messages for nobody since it was noted how far the channel was read, and the newest.
    passed: u32,
    newest: u64,
}

/// When it is worth a try again without a sign of other rights.
struct Closed {
    until: Instant,
    pause: Duration,
}

impl Intake {
    async fn run(mut self, mut rx: mpsc::Receiver<Note>) {
        let stop = self.bridge.stop.clone();
        let work = async {
            loop {
                let note = tokio::select! {
                    biased;
                    note = rx.recv() => match note {
                        Some(note) => note,
                        None => return,
                    },
                    () = self.lost.told.notified() => Note::Connected,
                };
                self.take(note).await;
                // From here on all is heard again, and what was not is read.
                if rx.is_empty() && self.lost.any.swap(false, Ordering::SeqCst) {
                    self.take(Note::Connected).await;
                }
            }
        };
        // What is under way is in the database, or comes again.
        tokio::select! {
            () = work => {}
            () = stop.cancelled() => {}
        }
        if self.passed > 0
            && !self.behind
            && let Err(failure) = channels::seen(&self.bridge.ops, self.id.get(), self.newest).await
        {
            tracing::debug!(channel = %self.id, %failure, "how far it was read is not noted");
        }
    }

    async fn take(&mut self, note: Note) {
        let Some(agent) = self.bridge.rooms.agent_of(self.id) else { return };
        match &note {
            Note::Connected => (self.behind, self.closed) = (true, None),
            Note::Rights => self.closed = None,
            _ => {}
        }
        if self.behind && self.closed.as_ref().is_none_or(|closed| closed.until <= Instant::now()) {
            let told = if let Note::Message(message) = &note { Some(&**message) } else { None };
            self.catch_up(told).await;
        }
        match note {
            Note::Message(message) => self.heard(&agent, *message).await,
            Note::Edited(event) => self.edited(&agent, &event).await,
            Note::Deleted(messages) => {
                for message in messages {
                    change(&self.bridge, message, Wish::Gone).await;
                }
            }
            Note::Connected | Note::Rights => {}
        }
    }

    /// Reads the channel until it is known what was written there, or that Discord does not let it be read. `told`: a message that the
    /// gateway has told of, with more of its author than can be read.
    async fn catch_up(&mut self, told: Option<&Message>) {
        let mut pause = FIRST;
        loop {
            let mut missing = match backfill::read(&self.bridge, self.id).await {
                Ok(missing) => missing,
                Err(backfill::Failed::Closed(why)) => {
                    let pause = self.closed.as_ref().map_or(FIRST, |closed| (closed.pause * 2).min(LONGEST));
                    if self.closed.is_none() {
                        tracing::warn!(channel = %self.id, why, "a channel cannot be read; only what comes from now on is heard");
                    }
                    self.closed = Some(Closed { until: Instant::now() + pause, pause });
                    return;
                }
                Err(backfill::Failed::Passing { why, after }) => {
                    tracing::warn!(channel = %self.id, why, "a channel cannot be read now");
                    sleep(after.unwrap_or(pause)).await;
                    pause = (pause * 2).min(LONGEST);
                    continue;
                }
            };
            if let Some(told) = told
                && let Some(read) = missing.messages.iter_mut().find(|read| read.id == told.id)
            {
                *read = told.clone();
            }
            (self.behind, self.closed) = (false, None);
            self.make_up(missing).await;
            return;
        }
    }

    async fn make_up(&mut self, missing: Missing) {
        for (message, wish) in missing.changed {
            change(&self.bridge, message, wish).await;
        }
        let room = |agent: &Entry| {
            let waiting = self.bridge.inbound.desks.waiting_for(agent.facts.id);
            (claims::MOST_WAITING as usize).saturating_sub(waiting)
        };
        let Some(agent) = self.bridge.rooms.agent_of(self.id) else { return };
        let said = missing.messages.len();
        let skipped = said.saturating_sub(room(&agent));
        if skipped > 0 || missing.more {
            let upto = missing.messages.get(skipped).map_or(missing.newest, |next| next.id.get() - 1);
            let line = lines::skipped(self.id, skipped, missing.more);
            self.surely(|| claims::skip(&self.bridge.ops, self.id.get(), upto, line.clone())).await;
            self.bridge.posts.wake(self.id);
        }
        for message in missing.messages.into_iter().skip(skipped) {
            self.heard(&agent, message).await;
        }
        if missing.newest > 0 {
            self.surely(|| channels::seen(&self.bridge.ops, self.id.get(), missing.newest)).await;
        }
    }

    async fn heard(&mut self, agent: &Entry, message: Message) {
        let guild = guild(&self.bridge, agent, message.guild_id);
        // After a connection that was taken up again nobody has told how roles are called.
        if let Err(error) = self.bridge.guilds.learn(&self.bridge.rest, guild).await {
            tracing::warn!(%error, %guild, "Discord did not say which roles there are: they are known by their ids");
        }
        match heard::heard(&self.bridge, guild, &message) {
            Heard::Nothing => self.pass(message.id).await,
            Heard::Unread => self.unread(message.id).await,
            Heard::Asked(asked) => {
                let claim = Claim { message: message.id, channel: self.id, agent: agent.facts.id, asked, again: false };
                self.claim(claim).await;
            }
        }
    }

    /// A message that is for nobody.
    async fn pass(&mut self, message: MessageId) {
        if self.behind {
            return;
        }
        (self.passed, self.newest) = (self.passed + 1, self.newest.max(message.get()));
        if self.passed >= PASSED {
            self.surely(|| channels::seen(&self.bridge.ops, self.id.get(), self.newest)).await;
            self.passed = 0;
        }
    }

    /// Somebody wrote, but Discord does not say what.
    async fn unread(&mut self, message: MessageId) {
        if self.bridge.inbound.tell_unread(self.id) {
            tracing::warn!(channel = %self.id, "Discord keeps what people write from Chorus: turn the Message Content intent on");
            if let Some(line) = lines::unread(self.id) {
                self.surely(|| outbox::put(&self.bridge.ops, vec![line.clone()])).await;
                self.bridge.posts.wake(self.id);
            }
        }
        self.pass(message).await;
    }

    async fn claim(&mut self, claim: Claim) {
        let Ok(asked) = serde_json::to_string(&claim.asked) else { return };
        let new = NewClaim {
            message: claim.message.get(),
            channel: self.id.get(),
            agent: claim.agent,
            asked,
            at: self.bridge.ops.clock.now(),
            whole: !self.behind,
        };
        let Some(full) = lines::full(self.id, claim.message) else { return };
        let claimed = self.surely(|| claims::claim(&self.bridge.ops, new.clone(), full.clone())).await;
        self.passed = 0;
        match claimed {
            Claimed::New => self.bridge.inbound.desks.put(&self.bridge, claim),
            Claimed::Known => {}
            Claimed::Full => self.bridge.posts.wake(self.id),
        }
    }

    async fn edited(&self, agent: &Entry, event: &MessageUpdateEvent) {
        let guild = guild(&self.bridge, agent, event.guild_id);
        let waiting = self.bridge.inbound.desks.waiting_in(self.id);
        let Some((_, before)) = waiting.into_iter().find(|(message, _)| *message == event.id) else { return };
        if let Some(asked) = heard::changed(&self.bridge, guild, &before, event) {
            change(&self.bridge, event.id, Wish::Says(asked)).await;
        }
    }

    /// Does something in the database until it is done: nothing goes on before.
    async fn surely<T, F: Future<Output = Result<T>>>(&self, work: impl Fn() -> F) -> T {
        let mut pause = FIRST;
        loop {
            match work().await {
                Ok(done) => return done,
                Err(failure) => tracing::warn!(channel = %self.id, %failure, "what was heard cannot be kept now"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

/// The server of a channel, as far as it is known.
pub fn guild(bridge: &Bridge, agent: &Entry, told: Option<GuildId>) -> GuildId {
    let known = || bridge.rooms.channel_of(agent.facts.id).and_then(|(_, guild)| guild);
    told.or_else(known).unwrap_or(GuildId::new(1))
}

/// Takes a change of a message in, where that still waits.
async fn change(bridge: &Bridge, message: MessageId, wish: Wish) {
    if bridge.inbound.desks.change(message, &wish) != Some(Place::Waiting) {
        return;
    }
    match wish {
        Wish::Says(asked) => super::reword(bridge, message, &asked).await,
        Wish::Gone => {
            if let Err(failure) = claims::drop(&bridge.ops, message.get()).await {
                tracing::warn!(%message, %failure, "a deleted message stays taken up");
            }
        }
    }
}
