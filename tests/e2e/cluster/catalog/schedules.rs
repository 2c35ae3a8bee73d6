//! Schedules: both databases do the same, and lost answers double nothing.

use chorus_catalog::{ScheduleInsertion, ScheduleProgress, ScheduleRow, ScheduleRule, ScheduleState, ScheduleTable};
use chorus_proto::AgentStatus;
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule::{MissedRuns, RunOutcome, RunRecord};
use chorus_tests::postgres::Database;
use uuid::Uuid;

use super::{Result, add_agent, at, open_sqlite};
use crate::cluster::{ProxiedNode, claim, open};

fn schedule(agent: Uuid, name: &str, rule: ScheduleRule, next: Option<i64>) -> ScheduleRow {
    ScheduleRow {
        id: Uuid::from_u128(name.bytes().fold(1, |number, byte| number * 256 + u128::from(byte))),
        agent,
        name: name.to_owned(),
        rule,
        time_zone: "Europe/Berlin".to_owned(),
        message: format!("M\u{e4} {name}"),
        missed: MissedRuns::Skip,
        created_at: at(0),
        created_by: "owner".to_owned(),
        progress: ScheduleProgress {
            state: if next.is_some() { ScheduleState::Active } else { ScheduleState::Done },
            next_at: next.map(at),
            pending_at: None,
            overdue_at: None,
            runs: Vec::new(),
        },
        version: 0,
    }
}

/// All that the table answers, as text.
async fn script(table: &dyn ScheduleTable, agent: Uuid) -> Result<Vec<String>> {
    let mut said = Vec::new();
    let cron = schedule(agent, "b", ScheduleRule::Cron("0 7 * * *".to_owned()), Some(70));
    let every = schedule(agent, "a", ScheduleRule::EverySeconds(60), Some(60));
    let once = schedule(agent, "c", ScheduleRule::Once(at(50)), None);
    for row in [&cron, &every, &once] {
        said.push(format!("{:?}", table.insert(row.clone(), 3).await?));
    }
    let taken = ScheduleRow { id: Uuid::from_u128(1), ..cron.clone() };
    said.push(format!("{:?}", table.insert(taken, 3).await?));
    said.push(format!("{:?}", table.insert(schedule(agent, "d", ScheduleRule::Once(at(9)), Some(9)), 2).await?));
    // One that is done gives way to one with its name.
    let again = ScheduleRow { id: Uuid::from_u128(2), ..schedule(agent, "c", ScheduleRule::Once(at(80)), Some(80)) };
    said.push(format!("{:?}", table.insert(again.clone(), 3).await?));
    said.push(format!("{:?}", table.get(once.id).await?));
    said.push(format!("{:?} {:?}", table.first_due().await?, table.due(at(59), 10).await?));
    said.push(format!("{:?}", table.due(at(75), 10).await?));
    said.push(format!("{:?}", table.due(at(75), 1).await?.len()));
    let run = RunRecord {
        due_at: at(60),
        ended_at: at(61),
        outcome: RunOutcome::Failed,
        turn_id: Some(Uuid::from_u128(3)),
        error: Some("a \u{0} b".to_owned()),
    };
    let progress = ScheduleProgress {
        state: ScheduleState::Paused,
        next_at: None,
        pending_at: Some(at(60)),
        overdue_at: Some(at(61)),
        runs: vec![run],
    };
    let claimed = ScheduleRow { progress, ..every.clone() };
    said.push(format!("{:?}", table.update(claimed.clone()).await?));
    said.push(format!("{:?}", table.update(claimed.clone()).await?));
    said.push(format!("{:?}", table.pending(None, 10).await?));
    let others = ["p", "q"].map(|name| {
        let row = schedule(agent, name, ScheduleRule::EverySeconds(60), None);
        ScheduleRow { progress: ScheduleProgress { pending_at: Some(at(60)), ..row.progress.clone() }, ..row }
    });
    for row in &others {
        table.insert(row.clone(), 9).await?;
    }
    let (mut paged, mut after) = (Vec::new(), None);
    while let Some(row) = table.pending(after, 1).await?.pop() {
        after = row.progress.pending_at.map(|due| (due, row.id));
        paged.push(row.id);
    }
    let whole: Vec<Uuid> = table.pending(None, 10).await?.into_iter().map(|row| row.id).collect();
    said.push(format!("{} {}", paged.len(), paged == whole));
    for row in others {
        table.delete(row).await?;
    }
    said.push(format!("{:?}", table.find(agent, "a".to_owned()).await?));
    said.push(format!("{:?}", table.find(agent, "A".to_owned()).await?));
    for (of, offset, limit) in [(Some(agent), 0, 10), (Some(agent), 1, 1), (None, 0, 10), (Some(Uuid::nil()), 0, 10)] {
        said.push(format!("{:?}", table.list(of, offset, limit).await?));
    }
    table.delete(cron).await?;
    said.push(format!("{}", table.list(Some(agent), 0, 10).await?.len()));
    table.delete_of_agent(agent).await?;
    said.push(format!("{:?} {:?}", table.list(None, 0, 10).await?, table.first_due().await?));
    Ok(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_the_same_in_both_databases() -> Result {
    let (home, agent) = (tempfile::tempdir()?, Uuid::from_u128(7));
    let store = open_sqlite(&home)?;
    let wanted = script(&*store.catalog.schedules, agent).await?;
    assert_eq!(wanted[..6], ["Inserted", "Inserted", "Inserted", "NameTaken", "LimitReached", "Inserted"]);
    assert_eq!(wanted[10..12], ["true", "false"]);
    assert_eq!(wanted[13], "3 true");
    store.close().await?;
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    add_agent(&database, agent, AgentStatus::Active).await?;
    claim(&a, agent).await?;
    assert_eq!(script(&*a.schedule_table(), agent).await?, wanted);
    let row = schedule(agent, "a", ScheduleRule::EverySeconds(60), Some(60));
    assert_eq!(a.schedule_table().insert(row.clone(), 1).await?, ScheduleInsertion::Inserted);
    // Another node sees it, but it is due for the owner of the agent only.
    let other = b.schedule_table();
    assert_eq!((other.list(None, 0, 10).await?.len(), other.first_due().await?), (1, None));
    assert!(other.due(at(99), 10).await?.is_empty() && a.schedule_table().due(at(99), 10).await?.len() == 1);
    assert!(other.update(row.clone()).await.is_err() && other.delete(row.clone()).await.is_err());
    let nul = ScheduleRow { message: "\0".to_owned(), ..row };
    let refused = a.schedule_table().insert(nul, 9).await.err().ok_or("NUL was stored")?;
    assert_eq!(refused.kind, ErrorKind::InvalidParams);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_claim_each_run_once() -> Result {
    let Some(ProxiedNode { proxy, journal, fatal, .. }) = ProxiedNode::start().await? else { return Ok(()) };
    let (table, agent) = (journal.schedule_table(), Uuid::from_u128(7));
    claim(&journal, agent).await?;
    for bytes in 0..40 {
        let name = format!("s{bytes}");
        let mut row = schedule(agent, &name, ScheduleRule::EverySeconds(60), Some(60));
        proxy.cut_after_answer_bytes(bytes * 5);
        assert_eq!(table.insert(row.clone(), 100).await?, ScheduleInsertion::Inserted, "{name}");
        proxy.cut_after_answer_bytes(-1);
        row.progress.pending_at = Some(at(60));
        proxy.cut_after_answer_bytes(bytes * 5);
        assert!(table.update(row.clone()).await?, "{name}");
        proxy.cut_after_answer_bytes(-1);
        assert!(!table.update(row).await?, "{name} is claimed");
    }
    assert_eq!(table.pending(None, 99).await?.len(), 40);
    assert_eq!(fatal.lock().len(), 0);
    Ok(())
}
