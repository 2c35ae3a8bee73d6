//! Random requests to the tables of Discord, and their results.

use std::fmt::Debug;
use std::time::Duration;

use chorus_base::error::Result as TableResult;
use chorus_catalog::discord::{Announcements, ChannelRow, DiscordTables, NewClaim, NewPost};
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::rng::Rng;
use jiff::{SignedDuration, Timestamp};

use super::{AGENTS, Result, at};

/// Channels of the script; two of them may be threads below the first one.
pub(super) const CHANNELS: [u64; 4] = [100, 101, 102, 1 << 60];

const WINDOW: Duration = Duration::from_secs(3600);

/// The requests with their results, one a line. Posts are numbered in the order of their first attempts, because their ids
/// differ.
pub(super) struct Script<'a> {
    pub(super) tables: DiscordTables,
    /// Cuts the connections at random answers to writes.
    pub(super) proxy: Option<&'a FaultProxy>,
    pub(super) lines: Vec<String>,
    rng: Rng,
    cuts: Rng,
    now: Timestamp,
    posts: Vec<i64>,
    nonces: u64,
}

impl<'a> Script<'a> {
    pub(super) fn new(tables: DiscordTables, proxy: Option<&'a FaultProxy>, seed: u64) -> Self {
        Self {
            tables,
            proxy,
            lines: Vec::new(),
            rng: Rng::new(seed),
            cuts: Rng::new(seed + 1),
            now: at(0),
            posts: Vec::new(),
            nonces: 0,
        }
    }

    pub(super) async fn run(&mut self, steps: u64) -> Result {
        for step in 0..steps {
            self.now += SignedDuration::from_secs(match self.rng.below(60) {
                0 => 20 * 86_400,
                1..=3 => 40_000,
                _ => 30,
            });
            let bytes = i64::try_from(self.cuts.below(600))?;
            if let Some(proxy) = self.proxy {
                proxy.cut_after_answer_bytes(bytes);
            }
            self.write().await;
            if let Some(proxy) = self.proxy {
                proxy.cut_after_answer_bytes(-1);
            }
            if step % 7 == 0 {
                self.read().await?;
            }
        }
        Ok(())
    }

    fn note<T: Debug>(&mut self, what: &str, result: TableResult<T>) {
        let result = result.map_err(|failure| failure.kind);
        self.lines.push(format!("{}: {what}: {result:?}", self.lines.len()));
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.rng.below(list.len() as u64)).unwrap_or(0)]
    }

    fn message(&mut self) -> u64 {
        1000 + self.rng.below(60)
    }

    fn key(&mut self) -> String {
        self.pick(&["full:1", "full:2", "approval:1", "approval:\u{e4}", "approval", "Approval:", "b%_"]).to_owned()
    }

    fn nonce(&mut self) -> String {
        // Some are used twice, which every database refuses.
        self.nonces += u64::from(self.rng.below(25) > 0);
        format!("nonce {}", self.nonces)
    }

    fn body(&mut self) -> String {
        let members = [
            r#""content":"a""#,
            r#""content":"\u00e4 \u0000 \"","n":1.0"#,
            r#""content":null"#,
            r#""buttons":[1,{"a":null}]"#,
            r#""more":{"x":1,"y":{"z":null,"w":2}}"#,
            r#""more":{"x":null,"y":{"w":null,"v":[]}}"#,
            r#""more":5"#,
            r#""more":null"#,
            r#""n":12345678901234567890"#,
        ];
        match self.rng.below(40) {
            0 => "not JSON".to_owned(),
            1 => "[1,2]".to_owned(),
            2 => "{}".to_owned(),
            _ => format!("{{{}}}", self.pick(&members)),
        }
    }

    fn post(&mut self) -> NewPost {
        let about = (self.rng.below(3) > 0).then(|| self.key());
        let age = SignedDuration::from_secs(i64::try_from(self.rng.below(100_000)).unwrap_or(0));
        NewPost {
            channel_id: self.pick(&CHANNELS),
            about,
            body: self.body(),
            nonce: self.nonce(),
            notice_at: (self.rng.below(3) == 0).then_some(self.now - age),
        }
    }

    fn posts(&mut self) -> Vec<NewPost> {
        (0..self.rng.below(4)).map(|_| self.post()).collect()
    }

    fn row(&mut self) -> ChannelRow {
        let kind = self.rng.below(4);
        ChannelRow {
            channel: self.pick(&CHANNELS),
            guild: self.rng.below(2),
            agent: self.pick(&AGENTS),
            created_by_us: self.rng.below(2) == 0,
            seen: 990 + self.rng.below(30),
            skipped: 990 + self.rng.below(15),
            parent: (kind == 0).then_some(CHANNELS[0]),
            user: (kind == 1).then_some(77),
        }
    }

    /// A post that was to be sent, not always the newest.
    fn begun(&mut self) -> (usize, i64) {
        let place = self.posts.len().saturating_sub(1 + usize::try_from(self.rng.below(3)).unwrap_or(0));
        // A number that no post has.
        (place, self.posts.get(place).copied().unwrap_or(i64::MAX))
    }

    async fn write(&mut self) {
        let DiscordTables { channels, claims, outbox, announcements, identifies, .. } = self.tables.clone();
        match self.rng.below(36) {
            0 | 1 => {
                let row = self.row();
                self.note("upsert", channels.upsert(row).await);
            }
            2 => {
                let channel = self.pick(&[CHANNELS[0], CHANNELS[1], 5]);
                self.note("delete", channels.delete(channel).await);
            }
            3 => {
                let (channel, message) = (self.pick(&CHANNELS), self.message());
                self.note("seen", channels.mark_seen(channel, message).await);
            }
            4..=9 => {
                let new = NewClaim {
                    message: self.message(),
                    channel: self.pick(&CHANNELS),
                    agent: self.pick(&AGENTS),
                    request: self.nonces.to_string(),
                    at: self.now,
                    contiguous: self.rng.below(3) > 0,
                };
                let full = self.post();
                self.note("claim", claims.claim(new, 3, full).await);
            }
            10 => {
                let (channel, message, posts) = (self.pick(&CHANNELS), self.message(), self.posts());
                self.note("skip", claims.skip_messages(channel, message.saturating_sub(30), posts).await);
            }
            11 | 12 => {
                let message = self.message();
                self.note("running", claims.mark_running(message).await);
            }
            13 => {
                let message = self.message();
                self.note("update", claims.update_request(message, "changed".into()).await);
            }
            14..=16 => {
                let (message, posts) = (self.message(), self.posts());
                self.note("finish", claims.finish(message, posts).await);
            }
            17 => {
                let message = self.message();
                self.note("unanswered", claims.finish_unanswered(message).await);
            }
            18 => self.note("prune", claims.prune(self.now).await),
            19..=21 => {
                let posts = self.posts();
                self.note("enqueue", outbox.enqueue(posts).await);
            }
            22 | 23 => {
                let (about, body, nonce) = (self.key(), self.body(), self.nonce());
                self.note("edit", outbox.edit(about, body, nonce).await);
            }
            24 => {
                let about = self.key();
                self.note("finalize", outbox.finalize(about).await);
            }
            25..=28 => {
                let channel = self.pick(&CHANNELS);
                let due = outbox.begin_next(channel, self.now).await;
                let due = due.map(|due| {
                    due.map(|mut due| {
                        let place = self.posts.iter().position(|known| *known == due.id);
                        self.posts.extend(place.is_none().then_some(due.id));
                        due.id = place.map_or(-1, |place| i64::try_from(place).unwrap_or(-2));
                        due
                    })
                });
                self.note("begin", due);
            }
            29 => {
                let (place, id) = self.begun();
                self.note(&format!("unsent {place}"), outbox.mark_unsent(id).await);
            }
            30..=32 => {
                let ((place, id), message) = (self.begun(), self.message());
                self.note(&format!("sent {place} {message}"), outbox.mark_sent(id, message).await);
            }
            33 => {
                let (place, id) = self.begun();
                self.note(&format!("abandon {place}"), outbox.abandon(id).await);
                if self.rng.below(4) == 0 {
                    let channel = self.pick(&CHANNELS);
                    self.note("abandon channel", outbox.abandon_channel(channel).await);
                }
            }
            34 => {
                let announced = Announcements {
                    posts: self.posts(),
                    upto: (self.rng.below(2) == 0).then_some(self.nonces),
                    starts: (self.rng.below(3) == 0).then(|| self.nonces.to_string()),
                    dropped: (self.rng.below(2) == 0).then(|| (self.rng.below(3), self.now)),
                };
                self.note("announce", announcements.enqueue(announced).await);
            }
            _ => {
                let now = self.now - SignedDuration::from_secs(self.rng.below(50) as i64);
                self.note("identify", identifies.try_record(now, WINDOW, 4).await);
            }
        }
    }

    async fn read(&mut self) -> Result {
        let DiscordTables { channels, claims, outbox, announcements, identifies, .. } = self.tables.clone();
        for agent in [None, Some(AGENTS[0])] {
            self.note("channels", channels.list(agent).await);
        }
        self.note("threads", channels.list_threads().await);
        self.note("direct", channels.list_direct().await);
        for channel in CHANNELS {
            self.note("channel", channels.get(channel).await);
            let after = channels.threads_after(channel).await?;
            self.note("has threads after", Ok(after.is_some_and(|after| after > 1 << 59)));
            let mut claimed = claims.claimed_after(channel, 1010).await?;
            claimed.sort_unstable();
            self.note("claimed", Ok(claimed));
        }
        self.note("open", claims.list_open().await);
        for prefix in ["", "full:", "approval:", "A", "b%", "none"] {
            self.note("keys", outbox.list_keys(prefix.into()).await);
        }
        let mut waiting = outbox.list_channels().await?;
        waiting.sort_unstable();
        self.note("waiting", Ok(waiting));
        self.note("dropped", outbox.dropped_notices().await);
        self.note("event", announcements.last_event().await);
        self.note("starts", announcements.last_starts().await);
        self.note("identifies", identifies.count_in_window(self.now, WINDOW).await);
        Ok(())
    }
}
