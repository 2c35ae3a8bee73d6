//! Memories of agents.

use chorus_catalog::{MemoryRow, MemoryScope, RememberOutcome};
use chorus_proto::ErrorKind;
use chorus_tests::postgres::{Database, Result};
use chorus_tests::rng::Rng;
use futures_util::future::join_all;
use uuid::Uuid;

use super::both::{AGENT, OTHER, Script, agent, same_in_both, tables_of};
use super::rows::memory;
use crate::cluster::{claim, open};

const PROJECTS: [Option<&str>; 3] = [None, Some("/p"), Some("/q")];

async fn note_memories(script: &mut Script) {
    let memories = script.tables.memories.clone();
    let scopes: Vec<_> = (0..6_u64)
        .map(|number| MemoryScope {
            agent: agent(number % 3),
            project: PROJECTS[(number % 3) as usize].map(str::to_owned),
        })
        .collect();
    for most in [0, 2, 1_000] {
        script.outcome("first", memories.first_visible(scopes.clone(), most).await);
    }
    script.outcome("of nobody", memories.first_visible(Vec::new(), 1).await);
    for scope in scopes {
        script.outcome("written", memories.list_written_by(scope.agent).await);
        script.outcome("visible", memories.list_visible(scope).await);
    }
}

async fn random(script: &mut Script) -> Result {
    let memories = script.tables.memories.clone();
    let mut rng = Rng::new(13);
    for round in 1..80_u128 {
        let project = PROJECTS[usize::try_from(rng.below(3))?];
        let text = ["one", "two", "One", "\u{e4}"][usize::try_from(rng.below(4))?];
        let path = [None, Some("src/a"), Some("src/b")][usize::try_from(rng.below(3))?];
        let row = MemoryRow { path: path.map(str::to_owned), ..memory(round, agent(rng.below(3)), project, text) };
        let id = row.id;
        match rng.below(8) {
            0 => script.outcome("delete own", memories.delete_own(row.agent).await),
            1 => {
                let written = memories.list_written_by(row.agent).await?;
                let ids = written.iter().map(|row| row.id).take(2).chain([Uuid::nil()]).collect();
                script.outcome("delete", memories.delete(ids).await);
            }
            2 => {
                let written = memories.list_written_by(row.agent).await?;
                let known = written.first().map_or(id, |row| row.id);
                script.outcome("update", memories.update_text(known, format!("{text} {}", rng.below(9))).await);
            }
            _ => script.outcome("insert", memories.insert(row).await),
        }
        script.outcome("contains", memories.contains(id).await);
        note_memories(script).await;
    }
    Ok(())
}

/// An agent's own memory and each project's have a limit.
async fn full(script: &mut Script) -> Result {
    let memories = script.tables.memories.clone();
    for project in [None, Some("/p")] {
        let inserts = (0..1_000_u128).map(|number| {
            let id = number + if project.is_some() { 5_000 } else { 0 };
            memories.insert(memory(id, agent(id as u64), project, &number.to_string()))
        });
        // Those of the project are of four agents.
        for stored in join_all(inserts.collect::<Vec<_>>()).await {
            assert!(matches!(stored?, RememberOutcome::New(_)));
        }
        let known = memories.insert(memory(9_000, AGENT, project, "4")).await;
        script.outcome("known", known);
        let refused = memories.insert(memory(9_001, AGENT, project, "new")).await;
        script.note("full", &refused.map_err(|failure| (failure.kind, failure.message, failure.hint)));
    }
    // Each agent has 250.
    let used = MemoryRow { agent: OTHER, ..memory(1, OTHER, None, "an id in use") };
    let stored = memories.insert(used.clone()).await?;
    assert!(matches!(stored, RememberOutcome::New(id) if id != used.id), "{stored:?}");
    Ok(())
}

same_in_both! { random_memories = random }

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_an_agent_and_of_a_project_may_be_full() -> Result {
    use super::both::{PostgresHome, SqliteHome, assert_same};
    let home = SqliteHome::open()?;
    let mut sqlite = home.script();
    let Some(node) = PostgresHome::open(None).await? else { return Ok(()) };
    let mut postgres = node.script().await?;
    for script in [&mut sqlite, &mut postgres] {
        full(script).await?;
    }
    assert_same(&sqlite, &postgres, &"full");
    Ok(())
}

/// Two nodes write for one project at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_share_a_project_store_each_memory_once_and_none_beyond_the_limit() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    claim(&a, AGENT).await?;
    claim(&b, OTHER).await?;
    let (a, b) = (tables_of(&a).0.memories, tables_of(&b).0.memories);
    let mut id = 0;
    let mut next = |agent, text: String| {
        id += 1;
        memory(id, agent, Some("/p"), &text)
    };
    for round in 0..100 {
        let (one, two) = tokio::join!(
            a.insert(next(AGENT, format!("text {round}"))),
            b.insert(next(OTHER, format!("text {round}")))
        );
        let (new, known) = match (one?, two?) {
            (RememberOutcome::New(new), RememberOutcome::Known(known)) => (new, known),
            (RememberOutcome::Known(known), RememberOutcome::New(new)) => (new, known),
            other => return Err(format!("{other:?}").into()),
        };
        assert_eq!(new, known);
    }
    let fill = "INSERT INTO memories (id, write_id, agent_id, agent_name, project, text, created_at, requester, source)
         SELECT gen_random_uuid(), gen_random_uuid(), $1, 'a', '/p', 'filled ' || number, 0, '', 'tool'
         FROM generate_series(1, 890) AS number";
    database.connect().await?.execute(fill, &[&AGENT]).await?;
    let inserts = (0..40).map(|number| match number % 2 {
        0 => a.insert(next(AGENT, format!("last {number}"))),
        _ => b.insert(next(OTHER, format!("last {number}"))),
    });
    let mut stored = 0;
    for outcome in join_all(inserts.collect::<Vec<_>>()).await {
        match outcome {
            Ok(RememberOutcome::New(_)) => stored += 1,
            Ok(known) => return Err(format!("{known:?}").into()),
            Err(failure) => assert_eq!(failure.kind, ErrorKind::LimitReached, "{failure}"),
        }
    }
    assert_eq!(stored, 10);
    Ok(())
}
