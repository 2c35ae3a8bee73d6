//! Connections that are lost while files are stored.

use std::fs;

use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::postgres::Database;

use super::{AGENT, Node, pairs};
use crate::cluster::{Result, claim};

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_cut_at_any_byte_lose_and_double_no_file() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let proxy = FaultProxy::start(database.port()).await?;
    let a = Node::start_at(&database, proxy.port(), "a").await?;
    claim(&a.journal, AGENT).await?;
    let mut rounds = 0;
    for bytes in (0..1_500).step_by(43) {
        rounds += 1;
        a.write("docs/plan.md", &format!("round {rounds}"))?;
        a.write(&format!("docs/{rounds}.md"), "new")?;
        if rounds > 1 {
            fs::remove_file(a.path(&format!("docs/{}.md", rounds - 1)))?;
        }
        proxy.cut_after_answer_bytes(bytes);
        // It reads first, and a read that is cut off fails.
        while a.store_edits().await.is_err() {}
        proxy.cut_after_answer_bytes(-1);
    }
    proxy.heal();
    // A connection for reads may have been cut, too.
    let versions = loop {
        if let Ok(versions) = a.versions().await {
            break versions;
        }
    };
    assert_eq!(versions, [(format!("docs/{rounds}.md"), 1), ("docs/plan.md".to_owned(), rounds)]);
    let expected = pairs(&[(&format!("docs/{rounds}.md"), "new"), ("docs/plan.md", &format!("round {rounds}"))]);
    assert_eq!(a.texts()?, expected);
    Ok(())
}
