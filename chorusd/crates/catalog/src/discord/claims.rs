//! Claims: messages from channels that were taken for processing, each exactly once.

use std::fmt::Debug;

use jiff::Timestamp;
use uuid::Uuid;

use super::NewPost;
use crate::{CatalogRead, CatalogWrite};

/// A message to be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClaim {
    pub message: u64,
    pub channel: u64,
    pub agent: Uuid,
    /// The request as JSON.
    pub request: String,
    pub at: Timestamp,
    /// True if all earlier messages of the channel were read, too.
    pub contiguous: bool,
}

/// Outcome of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The message was queued.
    Queued,
    /// The message was claimed or skipped before.
    AlreadyClaimed,
    /// The agent's queue is full; the message is recorded as dropped.
    QueueFull,
}

/// A claimed message that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenClaim {
    pub message: u64,
    pub channel: u64,
    pub agent: Uuid,
    pub request: String,
    /// True if its turn has started.
    pub running: bool,
}

/// The table of claims.
pub trait ClaimTable: Debug + Send + Sync {
    /// Claims a message, and marks its channel as read up to it if it is contiguous. If `most` messages of its agent
    /// are queued or running already, drops it and posts `full`. `full` is posted once until there is space again; its
    /// `about` key is used to detect that.
    fn claim(&self, new: NewClaim, most: u32, full: NewPost) -> CatalogWrite<ClaimOutcome>;

    /// Permanently skips the messages of a channel up to `upto`, and posts `posts` about that.
    fn skip_messages(&self, channel: u64, upto: u64, posts: Vec<NewPost>) -> CatalogWrite<()>;

    /// Deletes claims that were finished and are older than the keys of turns are kept
    /// ([`KEY_RETENTION_DAYS`](chorus_journal::KEY_RETENTION_DAYS)), except those after the last message that was seen.
    /// Messages of the channel up to the deleted claims are skipped from then on.
    fn prune(&self, now: Timestamp) -> CatalogWrite<()>;

    /// Records that the turn of a message has started.
    fn mark_running(&self, message: u64) -> CatalogWrite<()>;

    /// Replaces the request of a message whose turn has not started; returns false if it has started or the message is
    /// not queued.
    fn update_request(&self, message: u64, request: String) -> CatalogWrite<bool>;

    /// Finishes a claim and posts `posts`, which are not changed any more, in the same commit; returns false, without
    /// posting, if it was finished before. The request is deleted.
    fn finish(&self, message: u64, posts: Vec<NewPost>) -> CatalogWrite<bool>;

    /// Finishes a claim without an answer; returns false if it was finished before. The request is deleted.
    fn finish_unanswered(&self, message: u64) -> CatalogWrite<bool>;

    /// Lists the messages of a channel after `after` that were claimed.
    fn claimed_after(&self, channel: u64, after: u64) -> CatalogRead<'_, Vec<u64>>;

    /// Lists the claimed messages that are not answered yet, oldest first.
    fn list_open(&self) -> CatalogRead<'_, Vec<OpenClaim>>;
}
