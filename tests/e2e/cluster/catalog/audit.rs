//! The audit log.

use chorus_catalog::{AuditDecision, AuditFilter, AuditHead, MAX_AUDIT_PAGE_ROWS};
use chorus_tests::postgres::{Database, Result};
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::both::{AGENT, OTHER, Script, agent, same_in_both, tables_of};
use super::rows::decision;
use crate::cluster::{at, open};

async fn note_pages(script: &mut Script, filters: &[AuditFilter]) {
    for filter in filters {
        let page = script.tables.audit.page(filter.clone()).await;
        script.outcome(&format!("{filter:?}"), page);
    }
}

/// Rows with all kinds of content, and pages by all filters.
async fn random(script: &mut Script) -> Result {
    let audit = script.tables.audit.clone();
    let mut rng = Rng::new(7);
    script.outcome("empty", audit.verify(None).await);
    note_pages(script, &[AuditFilter::default()]).await;
    for number in 0..120 {
        let texts = ["", "\u{0}", "tool:bash:ls \u{1f600}", "x", "key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123"];
        let mut text = || texts[usize::try_from(rng.below(5)).unwrap_or(0)].to_owned();
        let (action, rule, user, old, new) = (text(), text(), text(), text(), text());
        let row = AuditDecision {
            at: at(i64::try_from(rng.below(50))? + number),
            agent_name: ["a", "b", ""][usize::try_from(rng.below(3))?].to_owned(),
            turn: (rng.below(2) == 0).then(|| Uuid::from_u128(rng.next_u64().into())),
            rule,
            user,
            old: (rng.below(2) == 0).then_some(old),
            new: (rng.below(2) == 0).then_some(new),
            ..decision(if rng.below(5) == 0 { Uuid::nil() } else { agent(rng.below(3)) }, &action)
        };
        script.outcome("append", audit.append(row).await);
    }
    for _ in 0..80 {
        let agents = (0..rng.below(4)).map(|number| if number == 3 { Uuid::nil() } else { agent(number) }).collect();
        let since = (rng.below(2) == 0).then(|| at(i64::try_from(rng.below(200)).unwrap_or(0)));
        let limit = (rng.below(2) == 0).then(|| [0, 1, 2, 10, 119, 120, u64::MAX / 2][(rng.next_u64() % 7) as usize]);
        let after = i64::try_from(rng.below(130))? * i64::from(rng.below(2) == 0);
        note_pages(script, &[AuditFilter { agents, since, after, limit }]).await;
    }
    for name in ["a", "b", "", "c", "a\u{0}"] {
        let mut ids = audit.agents_named(name.to_owned()).await?;
        ids.sort();
        script.note("named", &ids);
    }
    let walk = audit.verify(None).await?;
    assert_eq!((walk.is_intact(), walk.rows), (true, 120));
    script.note("verified", &walk.head);
    let known = |id, hash| Some(AuditHead { id, hash });
    for known in [known(walk.head.id, walk.head.hash), known(7, [1; 32]), known(121, [0; 32])] {
        let walk = audit.verify(known).await?;
        script.note("anchored", &(walk.rows, walk.head, walk.broken));
    }
    Ok(())
}

/// Pages end after 1,000 rows, or a row after 1 MiB.
async fn large(script: &mut Script) -> Result {
    let audit = script.tables.audit.clone();
    let texts = [("x".repeat(300_000), 10), ("y".to_owned(), 2_100), ("z".repeat(1 << 20), 3)];
    for (text, count) in texts {
        let appends: Vec<_> = (0..count).map(|_| audit.append(decision(AGENT, &text))).collect();
        for append in appends {
            append.await?;
        }
    }
    for limit in [None, Some(1_500), Some(1_001), Some(1_000), Some(4), Some(3)] {
        let (mut after, mut limit) = (0, limit);
        loop {
            let (rows, more) = audit.page(AuditFilter { after, limit, ..AuditFilter::default() }).await?;
            assert!(rows.len() <= MAX_AUDIT_PAGE_ROWS);
            let ends = rows.first().map(|row| row.id).zip(rows.last().map(|row| row.id));
            script.note("page", &(limit, rows.len(), ends, more));
            let (Some((_, last)), true) = (ends, more) else { break };
            (after, limit) = (last, None);
        }
    }
    let walk = audit.verify(None).await?;
    script.note("verified", &(walk.rows, walk.head, walk.broken));
    Ok(())
}

same_in_both! {
    random_rows_and_pages_of_the_log = random,
    pages_of_a_large_log = large,
}

/// Each node has a chain; lists have the rows of all.
#[tokio::test(flavor = "multi_thread")]
async fn each_node_has_a_chain_and_a_change_of_any_is_noticed() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    crate::cluster::claim(&a, AGENT).await?;
    crate::cluster::claim(&b, OTHER).await?;
    let (a, b) = (tables_of(&a).0.audit, tables_of(&b).0.audit);
    for number in 0..20 {
        a.append(decision(AGENT, &number.to_string())).await?;
        b.append(decision(OTHER, &number.to_string())).await?;
    }
    let both = async |what: &str| -> Result<(u64, Option<String>, Option<String>)> {
        let (from_a, from_b) = (a.verify(None).await?, b.verify(None).await?);
        assert_eq!(from_a.rows, from_b.rows, "{what}");
        Ok((from_a.rows, from_a.broken.map(|(_, why)| why), from_b.broken.map(|(_, why)| why)))
    };
    assert_eq!(both("intact").await?, (40, None, None));
    let (rows, more) = b.page(AuditFilter::default()).await?;
    assert_eq!((rows.len(), more), (40, false));
    assert_eq!(rows.iter().filter(|row| row.row.agent == AGENT).count(), 20);
    assert!(rows.is_sorted_by(|one, next| one.id < next.id));
    let of_a = AuditFilter { agents: vec![AGENT], ..AuditFilter::default() };
    assert_eq!(b.page(of_a).await?.0.len(), 20);
    let client = database.connect().await?;
    let changes = [
        "UPDATE audit_log SET action = 'y' WHERE node = 'b' AND number = 7",
        "UPDATE audit_log SET node = 'c' WHERE node = 'b' AND number = 20",
        "DELETE FROM audit_log WHERE node = 'b' AND number = 3",
        "UPDATE audit_log SET old = '' WHERE node = 'b' AND number = 9",
        "UPDATE audit_log SET at = at + 1 WHERE node = 'b' AND number = 9",
        "UPDATE audit_log SET hash = '\\x00' WHERE node = 'b' AND number = 20",
    ];
    for change in changes {
        client.batch_execute("BEGIN; CREATE TABLE saved AS TABLE audit_log; COMMIT").await?;
        assert_eq!(client.execute(change, &[]).await?, 1);
        let (_, from_a, from_b) = both(change).await?;
        let (from_a, from_b) = (from_a.ok_or(change)?, from_b.ok_or(change)?);
        assert!(from_a.starts_with("in the log of node "), "{from_a}");
        assert!(from_a.ends_with(&from_b), "{from_a}, {from_b}");
        client
            .batch_execute(
                "BEGIN; DELETE FROM audit_log; INSERT INTO audit_log OVERRIDING SYSTEM VALUE TABLE saved;
                 DROP TABLE saved; COMMIT",
            )
            .await?;
    }
    assert_eq!(both("restored").await?, (40, None, None));
    // What is cut off at the end shows only by a row that is known from elsewhere.
    let head = b.verify(None).await?.head;
    client.batch_execute("DELETE FROM audit_log WHERE node = 'b' AND number > 18").await?;
    assert!(a.verify(None).await?.is_intact());
    let (_, why) = b.verify(Some(head)).await?.broken.ok_or("the end is missing")?;
    assert_eq!(why, "entries 19 to 20 are missing at the end");
    Ok(())
}
