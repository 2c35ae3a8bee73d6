//! Settings.

use chorus_catalog::AuditDecision;
use chorus_proto::ErrorKind;
use chorus_tests::postgres::{Database, Result};
use uuid::Uuid;

use super::both::{AGENT, Script, same_in_both, tables_of};
use super::rows::decision;
use crate::cluster::open;

async fn examples(script: &mut Script) -> Result {
    let settings = script.tables.settings.clone();
    script.outcome("none", settings.get("discord_servers").await);
    for (key, value) in [("capture", Some("{}")), ("discord_servers", Some("[]")), ("idle_timeout", Some("\u{e4}"))] {
        script.outcome("set", settings.set(key, value.map(str::to_owned)).await);
    }
    script.outcome("set again", settings.set("capture", Some("[1]".into())).await);
    script.outcome("removed", settings.set("idle_timeout", None).await);
    script.outcome("removed again", settings.set("idle_timeout", None).await);
    for key in ["capture", "discord_servers", "idle_timeout"] {
        script.outcome("get", settings.get(key).await);
    }
    // The value stays, the log is redacted.
    let secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijkl-AA";
    let row = |new: Option<&str>| AuditDecision { new: new.map(str::to_owned), ..decision(Uuid::nil(), "settings:x") };
    script.outcome("audited", settings.set_audited("default_model", row(Some(secret))).await);
    script.outcome("get", settings.get("default_model").await);
    script.outcome("audited", settings.set_audited("default_model", row(None)).await);
    script.outcome("get", settings.get("default_model").await);
    let page = script.tables.audit.page(chorus_catalog::AuditFilter::default()).await?;
    assert!(!format!("{page:?}").contains(secret));
    script.note("log", &page);
    Ok(())
}

same_in_both! { settings_and_their_log = examples }

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_settings_that_concern_no_machine() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let (a, b) = (open(&database, "a").await?, open(&database, "b").await?);
    let (a, b) = (tables_of(&a).0.settings, tables_of(&b).0.settings);
    for key in ["capture", "chosen_agent", "discord_servers"] {
        a.set(key, Some(format!("{key} of a"))).await?;
    }
    assert_eq!(b.get("discord_servers").await?.as_deref(), Some("discord_servers of a"));
    for key in ["capture", "chosen_agent"] {
        assert_eq!(b.get(key).await?, None);
        b.set(key, Some("of b".into())).await?;
        b.set(key, None).await?;
        assert_eq!(a.get(key).await?, Some(format!("{key} of a")));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_cannot_be_recorded_does_not_change() -> Result {
    let Some(database) = Database::create().await? else { return Ok(()) };
    let node = open(&database, "a").await?;
    let tables = tables_of(&node).0;
    tables.settings.set("idle_timeout", Some("30m".into())).await?;
    let nul = tables.settings.set("idle_timeout", Some("a\u{0}".into())).await.err().ok_or("it was stored")?;
    assert_eq!(nul.kind, ErrorKind::InvalidParams);
    // The agent is not owned by this node.
    let row = AuditDecision { new: Some("40m".into()), ..decision(AGENT, "settings:idle_timeout") };
    let refused = tables.settings.set_audited("idle_timeout", row).await.err().ok_or("it was stored")?;
    assert_eq!(refused.kind, ErrorKind::Busy);
    tables.audit.append(decision(Uuid::nil(), "first")).await?;
    database.connect().await?.batch_execute("UPDATE audit_log SET hash = '\\x00'").await?;
    let row = AuditDecision { new: Some("50m".into()), ..decision(Uuid::nil(), "settings:idle_timeout") };
    let refused = tables.settings.set_audited("idle_timeout", row).await.err().ok_or("it was stored")?;
    assert_eq!(refused.to_string(), "entry 1 of the audit log was changed: its hash has 1 bytes, not 32");
    assert_eq!(tables.settings.get("idle_timeout").await?.as_deref(), Some("30m"));
    Ok(())
}
