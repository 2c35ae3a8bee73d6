//! Rows of file writes.

use chorus_catalog::FileWriteRow;
use chorus_tests::postgres::Result;
use chorus_tests::rng::Rng;
use uuid::Uuid;

use super::both::{Script, agent, same_in_both};

async fn random(script: &mut Script) -> Result {
    let writes = script.tables.file_writes.clone();
    let mut rng = Rng::new(11);
    script.outcome("none", writes.last_position().await);
    for round in 1..150 {
        let path = ["a", "A", "src/\u{e4}", "a/b"][usize::try_from(rng.below(4))?].to_owned();
        let (whose, conversation) = (agent(rng.below(2)), Uuid::from_u128(rng.below(5).into()));
        if rng.below(5) == 0 {
            script.outcome("command", writes.record_command(whose, conversation).await);
        } else {
            let hash = (rng.below(2) == 0).then(|| [u8::try_from(round % 256).unwrap_or(0); 32]);
            let row = FileWriteRow { agent: whose, path: path.clone(), conversation, hash, at: round };
            script.outcome("record", writes.record(row).await);
        }
        let mut history = writes.history(whose, path).await?;
        history.command_users.sort();
        script.note("history", &history);
        script.outcome("last", writes.last_position().await);
    }
    script.outcome("no such path", writes.history(agent(0), "a\u{0}".into()).await.map(|history| history.writes));
    Ok(())
}

same_in_both! { random_file_writes = random }
