//! Files that were edited on a node while another one had the agent.

use std::fs;

use chorus_tests::postgres::Database;

use super::{Node, pairs};
use crate::cluster::Result;

/// Two nodes that both have the file `docs/plan.md`. The second one has the agent.
async fn nodes(database: &Database) -> Result<(Node, Node)> {
    let (a, b) = (Node::start(database, "a").await?, Node::start(database, "b").await?);
    a.take_on().await?;
    a.write("docs/plan.md", "first")?;
    a.write("docs/other.md", "first")?;
    a.hand_over().await?;
    b.take_on().await?;
    Ok((a, b))
}

/// The texts of the copies.
fn copies(node: &Node) -> Result<Vec<(String, String)>> {
    let named = node.texts()?.into_iter().filter(|(name, _)| name.contains(".conflict-"));
    Ok(named.map(|(name, text)| (name.split_at(name.len() - "20270115-080000".len()).0.to_owned(), text)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_another_node_has_changed_too_becomes_a_copy_that_all_nodes_get() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = nodes(&database).await?;
    b.write("docs/plan.md", "of b")?;
    fs::remove_file(b.path("docs/other.md"))?;
    b.write("docs/new.md", "of b")?;
    b.hand_over().await?;
    // Each is a change on both sides.
    a.write("docs/plan.md", "of a")?;
    a.write("docs/other.md", "of a")?;
    a.write("docs/new.md", "of a")?;
    a.take_on().await?;
    let expected =
        ["new.md", "other.md", "plan.md"].map(|name| (format!("docs/{name}.conflict-a-"), "of a".to_owned()));
    assert_eq!(copies(&a)?, expected);
    assert_eq!(fs::read_to_string(a.path("docs/plan.md"))?, "of b");
    assert_eq!(fs::read_to_string(a.path("docs/new.md"))?, "of b");
    assert!(!a.path("docs/other.md").exists());
    a.hand_over().await?;
    b.take_on().await?;
    assert_eq!(b.texts()?, a.texts()?);
    // The conflict is over.
    b.hand_over().await?;
    a.take_on().await?;
    assert_eq!(copies(&a)?.len(), 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_nobody_else_has_changed_is_taken() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = nodes(&database).await?;
    b.write("docs/plan.md", "of b")?;
    b.hand_over().await?;
    a.write("docs/other.md", "of a")?;
    // Deleted where the agent was not: that does not count.
    fs::remove_file(a.path("docs/plan.md"))?;
    a.take_on().await?;
    let expected = pairs(&[("docs/other.md", "of a"), ("docs/plan.md", "of b")]);
    assert_eq!(a.texts()?, expected);
    a.hand_over().await?;
    b.take_on().await?;
    assert_eq!(b.texts()?, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_edit_on_both_nodes_is_no_conflict() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = nodes(&database).await?;
    b.write("docs/plan.md", "second")?;
    b.hand_over().await?;
    a.write("docs/plan.md", "second")?;
    a.take_on().await?;
    assert_eq!(a.texts()?, b.texts()?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_what_was_known_nothing_is_overwritten() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = nodes(&database).await?;
    b.write("docs/plan.md", "of b")?;
    b.hand_over().await?;
    fs::remove_dir_all(a.home.path().join("db/agent-files"))?;
    a.take_on().await?;
    assert_eq!(copies(&a)?, [("docs/plan.md.conflict-a-".to_owned(), "first".to_owned())]);
    assert_eq!(fs::read_to_string(a.path("docs/plan.md"))?, "of b");
    assert_eq!(fs::read_to_string(a.path("docs/other.md"))?, "first");
    Ok(())
}
