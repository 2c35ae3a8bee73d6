//! Exports as conversations of other programs.

use chorus_catalog::{ToolExport, ToolExportTable};
use chorus_proto::ErrorKind;
use chorus_tests::postgres::Database;
use uuid::Uuid;

use super::{Result, at, open_sqlite};
use crate::cluster::{ProxiedNode, open};

fn export(conversation: &str, second: i64) -> ToolExport {
    ToolExport {
        conversation: conversation.to_owned(),
        session: (second > 0).then(|| Uuid::from_u128(7)),
        origin: format!("origin of {conversation}"),
        last_message_at: at(second),
    }
}

async fn script(table: &dyn ToolExportTable) -> Result<Vec<Option<ToolExport>>> {
    table.record(export("a", 1)).await?;
    table.record(export("a", 2)).await?;
    table.record(export("\u{e4}", 0)).await?;
    let mut found = Vec::new();
    for conversation in ["a", "A", "\u{e4}", ""] {
        found.push(table.find(conversation.to_owned()).await?);
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_export_of_a_conversation_counts_on_all_nodes() -> Result {
    let home = tempfile::tempdir()?;
    let store = open_sqlite(&home)?;
    let wanted = script(&*store.catalog.tool_exports).await?;
    assert_eq!(wanted, [Some(export("a", 1)), None, Some(export("\u{e4}", 0)), None]);
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    assert_eq!(script(&*a.tool_export_table()).await?, wanted);
    assert_eq!(script(&*b.tool_export_table()).await?, wanted, "another node has recorded them");
    let refused = a.tool_export_table().record(export("\0", 1)).await.err().ok_or("NUL was stored")?;
    assert_eq!(refused.kind, ErrorKind::InvalidParams);
    Ok(store.close().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_lose_and_double_no_export() -> Result {
    let Some(ProxiedNode { proxy, journal, fatal, .. }) = ProxiedNode::start().await? else { return Ok(()) };
    let table = journal.tool_export_table();
    for bytes in 0..40 {
        proxy.cut_after_answer_bytes(bytes * 3);
        table.record(export(&bytes.to_string(), bytes)).await?;
        proxy.cut_after_answer_bytes(-1);
    }
    for bytes in 0..40 {
        assert_eq!(table.find(bytes.to_string()).await?, Some(export(&bytes.to_string(), bytes)));
    }
    assert_eq!(fatal.lock().len(), 0);
    Ok(())
}
