//! What agents were allowed, refused and changed: one row a decision, each with the hash of the one before it.

use jiff::Timestamp;
use rusqlite::params;
use uuid::Uuid;

use super::Catalog;
use crate::failure::Result;

/// A decision on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub at: Timestamp,
    pub agent: Uuid,
    /// At that time.
    pub agent_name: String,
    pub turn: Option<Uuid>,
    /// What was to be done.
    pub action: String,
    /// `allow`, `ask`, `deny` by a rule; `approved`, `approved_always`, `refused`, `expired` by an answer; `changed`.
    pub decision: String,
    /// Why, for a person.
    pub rule: String,
    /// On whose behalf, or who answered.
    pub user: String,
    /// Of a change: the value before and after.
    pub old: Option<String>,
    pub new: Option<String>,
}

impl Catalog {
    /// Writes a decision down; it is on the disk when this returns.
    /// Secrets stay out of it.
    pub fn audit(&self, row: Audit) -> impl Future<Output = Result<()>> + Send + use<> {
        let row = self.clean(row);
        self.writer.submit(move |conn| {
            conn.prepare_cached(
                "INSERT INTO audit_log (at, agent_id, agent_name, turn_id, action, decision, rule, user, old, new, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, x'')",
            )?
            .execute(params![
                i64::try_from(row.at.as_nanosecond()).unwrap_or(i64::MAX),
                row.agent.as_bytes(),
                row.agent_name,
                row.turn.map(|turn| *turn.as_bytes()),
                row.action,
                row.decision,
                row.rule,
                row.user,
                row.old,
                row.new,
            ])?;
            Ok(())
        })
    }

    fn clean(&self, row: Audit) -> Audit {
        let Some(redactor) = self.redactor.get() else { return row };
        let clean = |text: String| redactor.text(&text).into_owned();
        let (old, new) = (row.old.map(clean), row.new.map(clean));
        Audit { action: clean(row.action), rule: clean(row.rule), old, new, ..row }
    }
}
