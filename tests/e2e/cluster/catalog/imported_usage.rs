//! Usage of conversations of other programs.

use std::sync::Arc;

use chorus_catalog::{ImportedDivision, ImportedUsageFilter};
use chorus_tests::postgres::{Database, Result};
use chorus_tests::rng::Rng;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::both::{AGENT, OTHER, Script, agent, insert_session, same_in_both, tables_of};
use super::rows::imported;
use crate::cluster::{at, claim, open};

fn filter(division: ImportedDivision) -> ImportedUsageFilter {
    ImportedUsageFilter { agents: Vec::new(), since: None, zone: TimeZone::UTC, division }
}

async fn note_sums(script: &mut Script) {
    let usage = script.tables.imported_usage.clone();
    script.outcome("empty", usage.is_empty().await);
    for division in [ImportedDivision::None, ImportedDivision::Project, ImportedDivision::Day] {
        let all = filter(division);
        let some = ImportedUsageFilter { agents: vec![agent(1), agent(3)], since: Some(at(9_000)), ..all.clone() };
        let west = ImportedUsageFilter { zone: TimeZone::fixed(jiff::tz::offset(-9)), ..all.clone() };
        for filter in [all, some, west] {
            let mut sums = usage.sums(filter).await;
            if let Ok(rows) = &mut sums {
                rows.sort_by_key(|row| (row.program.clone(), row.project.clone(), row.day, row.model.clone()));
            }
            script.outcome("sums", sums);
        }
    }
}

/// Sessions that share calls as forks and revisions do, which grow and go.
async fn random(script: &mut Script) -> Result {
    let usage = script.tables.imported_usage.clone();
    let mut rng = Rng::new(19);
    note_sums(script).await;
    for number in 1..=8_u128 {
        let conversation = ["x", "y", "z"][usize::try_from(number % 3)?];
        script.add_session(number, agent((number % 4) as u64), conversation).await?;
    }
    let mut gone = Vec::new();
    for _ in 0..70 {
        let number = u128::from(1 + rng.below(8));
        let session = Uuid::from_u128(number);
        match rng.below(12) {
            0 => script.outcome("delete", usage.delete(session).await),
            1 => script.outcome("delete of agent", usage.delete_of_agent(agent(rng.below(4))).await),
            2 if !gone.contains(&number) => {
                script.remove_session(number).await?;
                gone.push(number);
            }
            _ => {
                // A few keys in common, in the same order: those of the conversation that others are forks of.
                let first = [3, 4][usize::try_from(rng.below(2))?];
                let common = rng.below(6);
                let own = (0..rng.below(5)).map(|place| (1_u64 << 63) + rng.below(30) * 64 + place);
                let keys: Vec<u64> = std::iter::once(first).chain((10..10 + common).chain(own)).collect();
                let keys = if rng.below(10) == 0 { Vec::new() } else { dedup(keys) };
                script.outcome("record", usage.record(session, Arc::new(imported(&keys))).await);
            }
        }
        note_sums(script).await;
    }
    Ok(())
}

fn dedup(mut keys: Vec<u64>) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    keys.retain(|key| seen.insert(*key));
    keys
}

same_in_both! { random_usage_of_imported_conversations = random }

/// Two nodes record conversations that share calls at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_two_nodes_record_counts_once() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    claim(&a, AGENT).await?;
    claim(&b, OTHER).await?;
    let (a, b) = (tables_of(&a).0.imported_usage, tables_of(&b).0.imported_usage);
    let client = database.connect().await?;
    for round in 0..40_u64 {
        let (one, two) = (u128::from(round) * 2 + 1, u128::from(round) * 2 + 2);
        let forks = round.is_multiple_of(2);
        insert_session(&client, one, AGENT, &format!("x{round}")).await?;
        insert_session(&client, two, OTHER, &format!("{}{round}", if forks { "y" } else { "x" })).await?;
        let shared =
            |own: u64, first: u64| Arc::new(imported(&[1_000 * round + first, 1_000 * round + 3, 1_000 * round + own]));
        let (recorded, other) = tokio::join!(
            a.record(Uuid::from_u128(one), shared(10, 1)),
            b.record(Uuid::from_u128(two), shared(20, if forks { 1 } else { 2 }))
        );
        recorded?;
        other?;
        let calls: u64 = a.sums(filter(ImportedDivision::None)).await?.iter().map(|row| row.sums.calls).sum();
        // Forks share two calls, two revisions of a conversation one.
        let pairs = round / 2 + 1;
        assert_eq!(calls, pairs * 4 + (round + 1 - pairs) * 5, "round {round}");
    }
    Ok(())
}
