//! Usage of conversations of other programs, as their transcripts record it. A call that several transcripts contain, for
//! example after a fork, counts for the session that was saved first.

use std::fmt::Debug;
use std::sync::Arc;

use chorus_journal::to_nanos;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// The model calls of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedUsage {
    /// Names of the models, as the program gives them.
    pub models: Vec<String>,
    /// Each call once.
    pub calls: Vec<ImportedCallRow>,
}

impl ImportedUsage {
    /// Returns the name of a call's model; it is empty if there is none with this number.
    #[must_use]
    pub fn model_name(&self, number: u32) -> &str {
        self.models.get(number as usize).map_or("", |model| model)
    }

    /// Returns a hash of all calls, of 16 bytes.
    #[must_use]
    pub fn digest(&self) -> Vec<u8> {
        let mut hash = Sha256::new();
        for call in &self.calls {
            let sums = call.sums();
            hash.update(call.key.to_le_bytes());
            hash.update(to_nanos(call.at).to_le_bytes());
            hash.update(self.model_name(call.model));
            for count in [sums.input, sums.output, sums.cache_read, sums.cache_write, sums.calls, sums.lower_bound] {
                hash.update(count.to_le_bytes());
            }
            hash.update(sums.cost.to_le_bytes());
        }
        hash.finalize()[..16].to_vec()
    }
}

/// A model call of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportedCallRow {
    /// The same in all transcripts that contain the call.
    pub key: u64,
    pub at: Timestamp,
    /// Index of the model.
    pub model: u32,
    /// Number of calls: several if their usage is known only together.
    pub calls: u32,
    /// Number of calls with a recorded cost.
    pub with_cost: u32,
    /// Number of calls that had more output tokens than were recorded.
    pub lower_bound: u32,
    /// Tokens of the whole input, including those that were read from the cache or written to it.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The cost that the program recorded, in US dollars.
    pub cost: f64,
}

impl ImportedCallRow {
    /// Returns the counts of the call.
    #[must_use]
    pub fn sums(&self) -> ImportedSums {
        ImportedSums {
            calls: self.calls.into(),
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cost: self.cost,
            with_cost: self.with_cost.into(),
            lower_bound: self.lower_bound.into(),
        }
    }
}

/// Sums over calls of other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ImportedSums {
    pub calls: u64,
    /// Tokens of the whole input, including those that were read from the cache or written to it.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The cost that the programs recorded, in US dollars.
    pub cost: f64,
    /// Number of calls with a recorded cost.
    pub with_cost: u64,
    /// Number of calls that had more output tokens than were recorded.
    pub lower_bound: u64,
}

impl ImportedSums {
    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cost += other.cost;
        self.with_cost = self.with_cost.saturating_add(other.with_cost);
        self.lower_bound = self.lower_bound.saturating_add(other.lower_bound);
    }
}

/// By what the usage is divided, besides program and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedDivision {
    None,
    Project,
    Day,
}

/// Selects usage.
#[derive(Debug, Clone)]
pub struct ImportedUsageFilter {
    /// Empty means the sessions of all agents.
    pub agents: Vec<Uuid>,
    /// Usage from the quarter of an hour on that contains this time.
    pub since: Option<Timestamp>,
    /// Time zone in which days are counted.
    pub zone: TimeZone,
    pub division: ImportedDivision,
}

/// Usage of one model in conversations of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedUsageRow {
    pub program: String,
    pub project: Option<String>,
    pub day: Option<Date>,
    pub model: String,
    pub sums: ImportedSums,
}

/// The tables of the usage of imported conversations. A session in the trash keeps its usage, which does not count.
pub trait ImportedUsageTable: Debug + Send + Sync {
    /// Records the usage of a session whose row exists, in place of what was recorded before, unless it is the same. Calls
    /// that count for other sessions of the same conversation, or for those with the same first call, are left out.
    /// Looks first: nothing is queued before the future is polled.
    fn record(&self, session: Uuid, usage: Arc<ImportedUsage>) -> CatalogRead<'_, ()>;

    /// Gives the usage of a session to the one that replaces it, in place of what was recorded for that one.
    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()>;

    /// Permanently deletes the usage of a session.
    fn delete(&self, session: Uuid) -> CatalogWrite<()>;

    /// Permanently deletes the usage of all sessions of an agent.
    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()>;

    /// Returns true if no usage is recorded.
    fn is_empty(&self) -> CatalogRead<'_, bool>;

    /// Returns sums by program and model, and by `division`, in no order. Leaves out the sessions in the trash.
    fn sums(&self, filter: ImportedUsageFilter) -> CatalogRead<'_, Vec<ImportedUsageRow>>;
}
