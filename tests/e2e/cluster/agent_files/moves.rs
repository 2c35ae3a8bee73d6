//! Files that follow their agent from node to node.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_store::SharedFiles as _;
use chorus_tests::postgres::Database;

use super::{AGENT, Node, claim, pairs};
use crate::cluster::Result;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_edited_and_deleted_on_one_node_is_so_on_the_next() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (Node::start(&database, "a").await?, Node::start(&database, "b").await?);
    a.take_on().await?;
    a.write("docs/README.md", "read me")?;
    a.write("docs/plans/north.md", "wet")?;
    a.write("persona.txt", "brief")?;
    // Nothing of these is kept here.
    for name in ["docs/.hidden", ".profile", "agent.json", "workspace/x", "sessions/x.json", "logs/1"] {
        a.write(name, "own")?;
    }
    a.hand_over().await?;
    b.take_on().await?;
    let first = pairs(&[("docs/README.md", "read me"), ("docs/plans/north.md", "wet"), ("persona.txt", "brief")]);
    assert_eq!(b.texts()?, first);
    b.write("docs/plans/north.md", "dry")?;
    b.write("docs/new.md", "new")?;
    fs::remove_file(b.path("persona.txt"))?;
    b.hand_over().await?;
    a.take_on().await?;
    let shared =
        |node: &Node| -> Result<Vec<_>> { Ok(node.texts()?.into_iter().filter(|(_, text)| text != "own").collect()) };
    let second = pairs(&[("docs/README.md", "read me"), ("docs/new.md", "new"), ("docs/plans/north.md", "dry")]);
    assert_eq!(shared(&a)?, second);
    let versions = [("docs/README.md", 1), ("docs/new.md", 1), ("docs/plans/north.md", 2)];
    assert_eq!(a.versions().await?, versions.map(|(path, version)| (path.to_owned(), version)));
    // Nothing has changed, so nothing is written.
    a.store_edits().await?;
    a.hand_over().await?;
    b.take_on().await?;
    assert_eq!(b.texts()?, second);
    assert_eq!(b.versions().await?, a.versions().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_overtaken_writes_no_file() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (Node::start(&database, "a").await?, Node::start(&database, "b").await?);
    a.take_on().await?;
    a.write("docs/plan.md", "one")?;
    a.store_edits().await?;
    // As if it had been paused.
    let client = database.connect().await?;
    let taken_over = async {
        loop {
            let sql = "UPDATE nodes SET heartbeat = clock_timestamp() - interval '9 seconds' WHERE id = 'a'";
            client.execute(sql, &[]).await?;
            if claim(&b.journal, AGENT).await.is_ok() {
                return Ok::<_, chorus_tests::postgres::Error>(());
            }
        }
    };
    taken_over.await?;
    b.files.take_on(b.of(), true).await?;
    b.write("docs/plan.md", "of b")?;
    b.store_edits().await?;
    a.write("docs/plan.md", "of a")?;
    a.write("docs/more.md", "of a")?;
    let refused = a.files.store_edits(a.of()).await.err().ok_or("it was stored")?;
    assert_eq!(refused.kind, ErrorKind::Busy);
    let refused = a.files.delete_of_agent(AGENT).await.err().ok_or("they were deleted")?;
    assert_eq!(refused.kind, ErrorKind::Busy);
    assert_eq!(b.versions().await?, [("docs/plan.md".to_owned(), 2)]);
    b.files.delete_of_agent(AGENT).await?;
    assert_eq!(b.versions().await?, []);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_whose_folder_was_moved_away_are_not_deleted_elsewhere() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let a = Node::start(&database, "a").await?;
    a.take_on().await?;
    a.write("docs/one.md", "one")?;
    a.write("docs/deep/two.md", "two")?;
    a.store_edits().await?;
    fs::rename(a.path("docs"), a.path("workspace/docs"))?;
    a.store_edits().await?;
    assert_eq!(a.versions().await?.len(), 2);
    // They are fetched, because the agent has them.
    assert_eq!(fs::read_to_string(a.path("docs/deep/two.md"))?, "two");
    // One folder in it that is a link now says nothing about what was in it.
    fs::rename(a.path("docs/deep"), a.path("workspace/deep"))?;
    std::os::unix::fs::symlink(a.path("workspace/deep"), a.path("docs/deep"))?;
    a.store_edits().await?;
    assert_eq!(a.versions().await?.len(), 2);
    // Only one file was deleted.
    fs::remove_file(a.path("docs/one.md"))?;
    a.store_edits().await?;
    assert_eq!(a.versions().await?, [("docs/deep/two.md".to_owned(), 1)]);
    // Where the directory of the agent is missing, nothing is done.
    fs::rename(a.of().dir, a.home.path().join("away"))?;
    a.store_edits().await?;
    assert_eq!(a.versions().await?.len(), 1);
    Ok(())
}
