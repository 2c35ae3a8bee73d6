//! Rows of usage.

use chorus_catalog::{CallKind, UsageFilter, UsageRow};
use chorus_session::stored_message::ContextNo;
use chorus_tests::postgres::{Database, Result};
use chorus_tests::rng::Rng;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::both::{AGENT, OTHER, Script, agent, same_in_both, tables_of};
use super::rows::usage_row;
use crate::cluster::{at, open};

/// A row with an amount of money that no binary fraction is equal to.
fn random_row(rng: &mut Rng) -> UsageRow {
    let pick =
        |rng: &mut Rng, from: &[&str]| from[usize::try_from(rng.below(from.len() as u64)).unwrap_or(0)].to_owned();
    let kinds = [CallKind::Turn, CallKind::Summary, CallKind::MergeReport, CallKind::Compaction];
    let second = i64::try_from(rng.below(400_000)).unwrap_or(0) - 200_000;
    let cost = (rng.below(10) as f64) / 10.0 + (rng.below(1_000) as f64) / 1e7;
    UsageRow {
        agent_name: pick(rng, &["a", "b", "A"]),
        context: (rng.below(2) == 0).then(|| ContextNo(i64::try_from(rng.below(9)).unwrap_or(0))),
        conversation_id: (rng.below(2) == 0).then(|| Uuid::from_u128(rng.below(3).into())),
        turn_id: (rng.below(2) == 0).then(|| Uuid::from_u128(rng.next_u64().into())),
        model: pick(rng, &["p/m", "p/M", "q/n"]),
        kind: kinds[usize::try_from(rng.below(4)).unwrap_or(0)],
        input: rng.below(1 << 40),
        output: rng.below(1 << 20),
        estimated: rng.below(3) * 100,
        by_estimate: rng.below(3) == 0,
        ..usage_row(agent(rng.below(3)), second, (rng.below(5) > 0).then_some(cost))
    }
}

async fn random(script: &mut Script) -> Result {
    let usage = script.tables.usage.clone();
    let mut rng = Rng::new(17);
    for round in 0..240 {
        let row = random_row(&mut rng);
        script.outcome("insert", usage.insert(row).await);
        if round % 40 > 0 {
            continue;
        }
        for since in [at(-300_000), at(0), at(150_000), at(300_000)] {
            let (spent, newest) = usage.spending_by_agent(since).await?;
            let mut spent: Vec<_> = spent.into_iter().collect();
            spent.sort_by_key(|(agent, _)| *agent);
            script.note("spent", &(spent, newest));
        }
        for count in [0, 3, 1_000] {
            script.outcome("estimated", usage.estimated_calls(count).await);
        }
        for number in 0..16 {
            let agents = [vec![], vec![AGENT], vec![AGENT, OTHER, Uuid::nil()], vec![agent(3)]];
            let filter = UsageFilter {
                agents: agents[number % 4].clone(),
                since: (number % 3 > 0).then(|| at(i64::try_from(number).unwrap_or(0) * 10_000)),
                zone: if number % 2 == 0 { TimeZone::UTC } else { TimeZone::fixed(jiff::tz::offset(-9)) },
                by_conversation: number > 7,
            };
            script.outcome("daily", usage.list_daily(filter).await);
        }
        for name in ["a", "A", "", "a\u{0}"] {
            let mut ids = usage.agents_named(name.to_owned()).await?;
            ids.sort();
            script.note("named", &ids);
        }
    }
    Ok(())
}

/// Ten times a tenth is one, so that a limit is reached when it is.
async fn tenths(script: &mut Script) -> Result {
    for second in 0..10 {
        script.tables.usage.insert(usage_row(AGENT, second, Some(0.1))).await?;
        let (spent, _) = script.tables.usage.spending_by_agent(at(0)).await?;
        script.note("spent", &spent);
    }
    let (spent, _) = script.tables.usage.spending_by_agent(at(0)).await?;
    assert_eq!(spent.get(&AGENT).map(|spent| spent.cost), Some(1.0));
    Ok(())
}

same_in_both! {
    random_calls_and_their_sums = random,
    sums_of_money = tenths,
}

/// A row that this node has still to commit is not counted, and its number is higher than that of the newest one counted,
/// whatever other nodes insert.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_row_is_that_of_this_node() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (a, b) = (tables_of(&a).0.usage, tables_of(&b).0.usage);
    assert_eq!(a.spending_by_agent(at(0)).await?.1, 0);
    let first = a.insert(usage_row(AGENT, 1, Some(1.0))).await?;
    let mut others = Vec::new();
    for second in 0..20 {
        others.push(b.insert(usage_row(OTHER, second, None)).await?);
    }
    let (spent, newest) = a.spending_by_agent(at(0)).await?;
    assert_eq!((spent.len(), newest), (2, first));
    assert_eq!(spent.get(&OTHER).map(|spent| (spent.calls, spent.unpriced)), Some((20, 20)));
    assert_eq!(b.spending_by_agent(at(0)).await?.1, *others.last().ok_or("no rows")?);
    // Inserts of both nodes at the same time: each row is in the sum, or has a higher number.
    let (mut counted, mut later) = (0, 0);
    for second in 0..50 {
        let (number, sums, other) = tokio::join!(
            a.insert(usage_row(AGENT, 100 + second, None)),
            a.spending_by_agent(at(100)),
            b.insert(usage_row(OTHER, 100 + second, None))
        );
        let ((spent, newest), number) = (sums?, number?);
        other?;
        let calls = spent.get(&AGENT).map_or(0, |spent| spent.calls);
        let before = u64::try_from(second)?;
        assert_eq!(calls, before + u64::from(number <= newest));
        counted += u64::from(number <= newest);
        later += u64::from(number > newest);
    }
    assert_eq!(counted + later, 50);
    Ok(())
}
