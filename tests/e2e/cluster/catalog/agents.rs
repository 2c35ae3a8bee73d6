//! Rows of agents.

use chorus_catalog::AgentRow;
use chorus_proto::AgentStatus;
use chorus_tests::postgres::Result;
use chorus_tests::rng::Rng;
use futures_util::future::join_all;
use uuid::Uuid;

use super::both::{AGENT, OTHER, Script, agent, same_in_both};
use super::rows::{agent_row, memory};
use crate::cluster::at;

async fn note_agents(script: &mut Script) {
    for destroyed in [false, true] {
        let listed = script.tables.agents.list(destroyed).await;
        script.outcome("list", listed);
    }
    let mut by_id = script.tables.agents.list_by_id((0..9).map(agent).chain([Uuid::nil()]).collect()).await;
    if let Ok(rows) = &mut by_id {
        rows.sort_by_key(|row| row.id);
        rows.dedup();
    }
    script.outcome("by id", by_id);
    let mut destroyed = script.tables.agents.list_destroyed().await;
    if let Ok(ids) = &mut destroyed {
        ids.sort();
    }
    script.outcome("destroyed", destroyed);
    let mut agents: Vec<Uuid> = script.changes.take().agents.into_iter().collect();
    agents.sort();
    script.note("told to the index", &agents);
}

async fn examples(script: &mut Script) -> Result {
    let agents = script.tables.agents.clone();
    script.outcome("first", agents.upsert(agent_row(AGENT, "b")).await);
    script.outcome("second", agents.upsert(agent_row(OTHER, "a-1")).await);
    script.outcome("a name in use", agents.upsert(agent_row(agent(2), "b")).await);
    note_agents(script).await;
    script.add_session(1, AGENT, "x").await?;
    script.add_session(2, AGENT, "y").await?;
    script.add_session(3, agent(3), "z").await?;
    script.outcome("after its sessions", agents.upsert(AgentRow { sessions: 9, ..agent_row(agent(3), "c") }).await);
    note_agents(script).await;
    script.remove_session(1).await?;
    let changed = AgentRow { created_at: at(99), stamp: "2".into(), ..agent_row(AGENT, "b") };
    script.outcome("of no interest to the index", agents.upsert(changed).await);
    note_agents(script).await;
    let outside = AgentRow { dir: "../etc".into(), ..agent_row(OTHER, "a_1") };
    script.outcome("outside of the home", agents.upsert(outside).await);
    let destroyed = agents.mark_destroyed(AGENT, at(7), "trash/b".into(), Vec::new()).await;
    script.outcome("destroyed", destroyed);
    script.outcome("its name is free", agents.upsert(agent_row(agent(2), "b")).await);
    note_agents(script).await;
    script.outcome("restored under a name in use", agents.upsert(agent_row(AGENT, "b")).await);
    script.outcome("deleted", agents.delete(OTHER).await);
    script.outcome("deleted before", agents.delete(OTHER).await);
    note_agents(script).await;
    Ok(())
}

async fn with_memories(script: &mut Script) -> Result {
    let (agents, memories) = (script.tables.agents.clone(), script.tables.memories.clone());
    let given = vec![
        memory(1, AGENT, None, "one"),
        memory(2, AGENT, Some("/p"), "two"),
        memory(3, AGENT, None, "one"),
        memory(1, AGENT, None, "another with the same id"),
    ];
    let mut added = agents.upsert_with_memories(agent_row(AGENT, "a"), given.clone()).await;
    if let Ok(added) = &mut added {
        assert_ne!(added[2].0, given[3].id);
        added[2].0 = Uuid::nil();
    }
    script.outcome("with memories", added);
    script.outcome("again", agents.upsert_with_memories(agent_row(AGENT, "a"), given).await);
    let fill = (10..1_008).map(|number| memories.insert(memory(number, AGENT, None, &number.to_string())));
    for stored in join_all(fill.collect::<Vec<_>>()).await {
        stored?;
    }
    // It has 1,000 now: neither the memory that fits, for another project, nor the name is stored.
    let too_many = vec![memory(2_000, AGENT, Some("/q"), "fits"), memory(2_001, AGENT, None, "one too many")];
    let refused = agents.upsert_with_memories(agent_row(AGENT, "renamed"), too_many).await;
    script.note("full", &refused.map_err(|failure| (failure.kind, failure.message)));
    script.outcome("full", memories.contains(Uuid::from_u128(2_000)).await);
    note_agents(script).await;
    Ok(())
}

/// Random writes to four agents, and all reads after each.
async fn random(script: &mut Script) -> Result {
    let agents = script.tables.agents.clone();
    let mut rng = Rng::new(27);
    for round in 0..60_i64 {
        let id = agent(rng.below(4));
        let name = ["a", "b", "B", "a-b", "\u{e4}", "a\u{0}"][usize::try_from(rng.below(6))?];
        let status = if rng.below(4) == 0 { AgentStatus::Destroyed } else { AgentStatus::Active };
        let row = AgentRow { status, created_at: at(round), stamp: round.to_string(), ..agent_row(id, name) };
        // SQLite stores the character 0, PostgreSQL refuses it.
        if name.contains('\0') {
            continue;
        }
        match rng.below(6) {
            0 => script.outcome("delete", agents.delete(id).await),
            1 => {
                script.outcome("destroy", agents.mark_destroyed(id, at(round), format!("trash/{round}"), vec![]).await)
            }
            _ => script.outcome("upsert", agents.upsert(row).await),
        }
        note_agents(script).await;
    }
    Ok(())
}

same_in_both! {
    agents_and_their_sessions = examples,
    agents_that_come_with_memories = with_memories,
    random_changes_of_agents = random,
}
