//! Files that are too large, or too many.

use std::fs;

use chorus_tests::postgres::Database;

use super::Node;
use crate::cluster::Result;

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_stays_here_and_its_last_row_there() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (Node::start(&database, "a").await?, Node::start(&database, "b").await?);
    a.take_on().await?;
    let (fits, large) = ("x".repeat(MIB), "y".repeat(MIB + 1));
    a.write("docs/grows.md", "small")?;
    a.write("docs/fits.md", &fits)?;
    a.write("docs/large.md", &large)?;
    a.store_edits().await?;
    a.write("docs/grows.md", &large)?;
    a.hand_over().await?;
    let stored = [("docs/fits.md".to_owned(), 1), ("docs/grows.md".to_owned(), 1)];
    assert_eq!(a.versions().await?, stored);
    b.take_on().await?;
    assert_eq!(fs::read_to_string(b.path("docs/fits.md"))?, fits);
    assert_eq!(fs::read_to_string(b.path("docs/grows.md"))?, "small");
    b.write("docs/grows.md", "of b")?;
    b.hand_over().await?;
    // What is large here is kept under another name.
    a.take_on().await?;
    assert_eq!(fs::read_to_string(a.path("docs/grows.md"))?, "of b");
    let copy =
        a.texts()?.into_iter().find(|(name, _)| name.starts_with("docs/grows.md.conflict-a-")).ok_or("no copy")?;
    assert_eq!(copy.1, large);
    assert_eq!(fs::read_to_string(a.path("docs/large.md"))?, large);
    // Once it is shorter, it is stored.
    a.write("docs/large.md", "short")?;
    a.store_edits().await?;
    assert!(a.versions().await?.contains(&("docs/large.md".to_owned(), 1)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_of_an_agent_have_a_limit() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let a = Node::start(&database, "a").await?;
    a.take_on().await?;
    for number in 0..10 {
        a.write(&format!("docs/{number}.md"), &"x".repeat(MIB))?;
    }
    a.store_edits().await?;
    assert_eq!(a.versions().await?.len(), 8);
    // One that becomes shorter makes room.
    a.write("docs/0.md", "short")?;
    a.write("docs/1.md", "short")?;
    a.write("docs/8.md", &"z".repeat(MIB))?;
    a.store_edits().await?;
    assert!(a.versions().await?.contains(&("docs/8.md".to_owned(), 1)));
    for number in 0..600 {
        a.write(&format!("docs/many/{number}"), "x")?;
    }
    a.store_edits().await?;
    let client = database.connect().await?;
    let count: i64 = client.query_one("SELECT count(*) FROM agent_files", &[]).await?.get(0);
    assert_eq!(count, 512);
    Ok(())
}
