//! Rows that a damaged or hostile node has written.

use std::fs;
use std::os::unix::fs::symlink;

use chorus_tests::postgres::Database;
use sha2::{Digest as _, Sha256};

use super::{AGENT, Node};
use crate::cluster::Result;

async fn insert(database: &Database, path: &str, content: &[u8], sha256: &[u8]) -> Result {
    let sql =
        "INSERT INTO agent_files (agent_id, path, version, sha256, content, node) VALUES ($1, $2, 1, $3, $4, 'h')";
    database.connect().await?.execute(sql, &[&AGENT, &path, &sha256, &content]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_lead_nowhere_but_to_the_files_of_the_agent() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let a = Node::start(&database, "a").await?;
    let outside = a.home.path().join("outside");
    fs::create_dir(&outside)?;
    symlink(&outside, a.path("docs/link"))?;
    symlink(outside.join("victim"), a.path("docs/file-link.md"))?;
    fs::write(a.path("agent.json"), "{}")?;
    fs::create_dir(a.path("docs/folder"))?;
    let outside_path = outside.join("absolute").display().to_string();
    let hostile = [
        "../outside/x",
        "docs/../../outside/x",
        "docs/../../../outside/x",
        "/etc/chorus-hostile",
        &outside_path,
        "docs/link/x",
        "docs/.git/hooks/pre-commit",
        ".bashrc",
        "agent.json",
        "workspace/.git/config",
        "sessions/x.json",
        "docs//x",
        "docs/a\nb",
        "docs",
        "docs/folder",
        "",
    ];
    for path in hostile {
        insert(&database, path, b"hostile", &Sha256::digest("hostile")).await?;
    }
    insert(&database, "docs/damaged.md", b"damaged", &Sha256::digest("other")).await?;
    insert(&database, "docs/no-hash.md", b"damaged", b"").await?;
    let large = vec![b'x'; (1 << 20) + 1];
    insert(&database, "docs/large.md", &large, &Sha256::digest(&large)).await?;
    insert(&database, "docs/file-link.md", b"good", &Sha256::digest("good")).await?;
    insert(&database, "docs/good.md", b"good", &Sha256::digest("good")).await?;
    a.take_on().await?;
    assert_eq!(fs::read_to_string(a.path("docs/good.md"))?, "good");
    // The link got another name, and was not followed.
    assert_eq!(fs::read_to_string(a.path("docs/file-link.md"))?, "good");
    assert!(a.path("docs/file-link.md").symlink_metadata()?.is_file());
    assert_eq!(fs::read_dir(&outside)?.count(), 0);
    assert_eq!(fs::read_to_string(a.path("agent.json"))?, "{}");
    assert_eq!(fs::read_dir(a.path("workspace"))?.count(), 0);
    assert_eq!(fs::read_dir(a.path("sessions"))?.count(), 0);
    assert_eq!(fs::read_dir(a.path("docs/folder"))?.count(), 0);
    assert!(!fs::exists("/etc/chorus-hostile")?);
    let mut names: Vec<String> = fs::read_dir(a.path("docs"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    let renamed =
        names.iter().position(|name| name.starts_with("file-link.md.conflict-a-")).ok_or("no renamed link")?;
    names.remove(renamed);
    assert_eq!(names, ["file-link.md", "folder", "good.md", "link"]);
    // What cannot be used does not keep the node from storing what it can.
    a.write("docs/mine.md", "mine")?;
    a.store_edits().await?;
    assert!(a.versions().await?.contains(&("docs/mine.md".to_owned(), 1)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_rows_than_an_agent_may_have_are_bounded() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let a = Node::start(&database, "a").await?;
    let sql = "INSERT INTO agent_files (agent_id, path, version, sha256, content, node)
         SELECT $1, 'docs/' || n, 1, sha256('x'), 'x', 'h' FROM generate_series(1, 3000) n";
    database.connect().await?.execute(sql, &[&AGENT]).await?;
    a.take_on().await?;
    assert_eq!(fs::read_dir(a.path("docs"))?.count(), 512);
    a.store_edits().await?;
    let client = database.connect().await?;
    let count: i64 = client.query_one("SELECT count(*) FROM agent_files", &[]).await?.get(0);
    assert_eq!(count, 3000);
    Ok(())
}
