//! Rows of tasks.

use chorus_catalog::TaskRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_tests::postgres::Result;
use chorus_tests::rng::Rng;

use super::both::{AGENT, PostgresHome, Script, agent, same_in_both};
use super::rows::task;
use crate::cluster::at;

async fn note_tasks(script: &mut Script) -> Result {
    let tasks = script.tables.tasks.clone();
    for whose in [None, Some(agent(0)), Some(agent(3))] {
        for (offset, limit) in [(0, 3), (2, 5), (0, u64::MAX), (u64::MAX, 1)] {
            script.outcome("list", tasks.list(whose, offset, limit).await);
        }
    }
    let mut start = tasks.list_at_start().await?;
    start.unreported.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
    let mut ended: Vec<_> = start.ended.into_iter().collect();
    ended.sort();
    script.note("at start", &(start.last, start.unreported, ended));
    Ok(())
}

async fn random(script: &mut Script) -> Result {
    let tasks = script.tables.tasks.clone();
    let mut rng = Rng::new(5);
    note_tasks(script).await?;
    for round in 0..70 {
        let row = task(agent(rng.below(3)), rng.below(60), i64::try_from(rng.below(30))?);
        match rng.below(3) {
            0 => script.outcome("insert", tasks.insert(row).await),
            1 => {
                let status = [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Stopped, TaskStatus::Lost];
                let row = TaskRow {
                    status: status[usize::try_from(rng.below(4))?],
                    exit_code: (rng.below(2) == 0).then_some(-1),
                    signal: (rng.below(2) == 0).then_some(9),
                    ended_at: Some(at(round % 40)),
                    ..row
                };
                script.outcome("end", tasks.update_end(row).await);
            }
            _ => script.outcome("reported", tasks.mark_reported(row.id.clone()).await),
        }
        script.outcome("get", tasks.get(format!("t{}", rng.below(60))).await);
        note_tasks(script).await?;
    }
    for id in ["x", "x12y3", "y\u{e4}4", "10"] {
        script.outcome("odd ids", tasks.insert(TaskRow { id: id.to_owned(), ..task(AGENT, 1, 50) }).await);
        note_tasks(script).await?;
    }
    script.outcome("not an id", tasks.get("\u{0}".into()).await);
    Ok(())
}

same_in_both! { random_tasks = random }

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_cannot_be_stored_are_refused() -> Result {
    let Some(node) = PostgresHome::open(None).await? else { return Ok(()) };
    let tasks = node.script().await?.tables.tasks;
    let row = TaskRow { command: "echo \u{0}".into(), ..task(AGENT, 1, 1) };
    let refused = tasks.insert(row).await.err().ok_or("it was stored")?;
    assert_eq!(refused.kind, ErrorKind::InvalidParams);
    assert_eq!(tasks.get("t1".into()).await?, None);
    Ok(())
}
