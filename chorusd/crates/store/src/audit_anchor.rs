//! Audit anchor: a copy of the newest audit log row's number and hash in live.db, which reveals a log that was cut off
//! at its end.

use chorus_base::error::Result;
use chorus_catalog::{AuditDecision, AuditHead, ChainVerifier};
use jiff::Timestamp;
use uuid::Uuid;

use super::SqliteFiles;

const ANCHOR_KEY: &str = "audit_head";

impl SqliteFiles {
    /// Stores each new row as the anchor from now on. Does not wait for the write, so after a crash the anchor may name
    /// an earlier row.
    pub(super) fn start_audit_anchor(&self) {
        let mark = self.journal.value_writer(ANCHOR_KEY);
        self.catalog.audit.on_row(move |head| mark(format_anchor(head)));
    }

    /// Verifies the hash chain of the audit log, up to the anchor at least.
    pub(super) async fn verify_audit_chain(&self) -> Result<ChainVerifier> {
        // Read the anchor first: rows that are written meanwhile come after it.
        let known = self.audit_anchor().await?;
        self.catalog.tables.audit.verify(known).await
    }

    /// Writes a row to the audit log if rows are missing according to the anchor; the next row overwrites the anchor
    /// itself.
    pub(super) async fn record_cut_audits(&self, now: Timestamp) -> Result<()> {
        let Some(known) = self.audit_anchor().await? else { return Ok(()) };
        if self.catalog.audit.contains(known).await? {
            return Ok(());
        }
        let there = self.catalog.audit.head().await?.unwrap_or(AuditHead::NONE);
        let rule = format!(
            "entry {} (hash {}) was written but is missing; the log ends with entry {}",
            known.id,
            known.hex(),
            there.id
        );
        tracing::warn!("the audit log is incomplete: {rule}");
        let row = AuditDecision {
            at: now,
            agent: Uuid::nil(),
            agent_name: String::new(),
            turn: None,
            action: "audit".into(),
            decision: "lost".into(),
            rule,
            user: "nobody".into(),
            old: None,
            new: None,
        };
        self.catalog.tables.audit.append(row).await?;
        // Wait for the new anchor: otherwise the next start could report the same loss again.
        match self.catalog.audit.head().await? {
            Some(head) => self.journal.set_value(ANCHOR_KEY, format_anchor(head)).await,
            None => Ok(()),
        }
    }

    async fn audit_anchor(&self) -> Result<Option<AuditHead>> {
        Ok(self.journal.value(ANCHOR_KEY).await?.and_then(|text| parse_anchor(&text)))
    }
}

fn format_anchor(head: AuditHead) -> String {
    format!("{} {}", head.id, head.hex())
}

fn parse_anchor(text: &str) -> Option<AuditHead> {
    let (id, hash) = text.split_once(' ')?;
    let digits = hash.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
    let hash: Vec<u8> = digits.collect::<Option<_>>()?;
    Some(AuditHead { id: id.parse().ok()?, hash: hash.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_as_it_was_written() {
        let head = AuditHead { id: 7, hash: std::array::from_fn(|n| n as u8 * 8) };
        assert_eq!(parse_anchor(&format_anchor(head)), Some(head));
        assert!(["", "7", "7 zz", "x 00", "7 00"].iter().all(|text| parse_anchor(text).is_none()));
    }
}
