//! The notice that is posted when an idle context expired.

use core::time::Duration;

use chorus_base::error::Result;
use chorus_proto::{EventType, Session, SessionHeader};
use chorus_store::Store;
use serde_json::json;
use uuid::Uuid;

use super::registry::Registry;

/// How long the notice waits for a model's summary. After that it uses the extractive one.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(30);

/// Posts the notice for the idle context of a conversation of the agent `name`, which `session` holds.
pub(super) async fn post(
    registry: &Registry,
    (name, conversation): (String, Option<String>),
    session: Uuid,
    written: Option<Box<Session>>,
    timeout: Duration,
) {
    let late = registry.summaries.wait_until_done(session, SUMMARY_TIMEOUT).await;
    let (about, short_id) = match written.filter(|_| !late) {
        Some(session) => (session_label(&session.header), session.short_id),
        None => match load_session_label(&registry.store, session).await {
            Ok(known) => known,
            Err(failure) => {
                tracing::warn!(agent = %name, %failure, "an idle notice has no session");
                (session.to_string(), session.to_string())
            }
        },
    };
    let text = notice_text(&about, timeout, &short_id);
    tracing::info!(agent = %name, text, "idle");
    registry.emit_event(EventType::Notice, Some(name), conversation, json!({"text": text, "id": session}));
}

async fn load_session_label(store: &Store, id: Uuid) -> Result<(String, String)> {
    let row = store.catalog.sessions.get(id).await?;
    let short_id = store.catalog.sessions.short_ids(vec![id]).await?.pop().unwrap_or_default();
    Ok((row.map_or_else(|| id.to_string(), |row| session_label(&row.header)), short_id))
}

/// Returns the summary, else the description, else the session's name.
fn session_label(header: &SessionHeader) -> String {
    header.summary.clone().or_else(|| header.description.clone()).unwrap_or_else(|| header.session_id.clone())
}

/// Returns the text of the notice. `about` is the session's summary, `timeout` the agent's idle timeout.
pub(super) fn notice_text(about: &str, timeout: Duration, short_id: &str) -> String {
    // Exactly one full stop after the summary.
    let about = about.trim().trim_end_matches('.');
    format!(
        "Session saved: {about}. Context cleared after {} of inactivity. Use /context restore {short_id} to resume.",
        format_duration(timeout)
    )
}

/// Formats a duration: `30 minutes`, `1 hour 30 minutes`.
fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let words: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if words.is_empty() { format!("{} milliseconds", duration.as_millis()) } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_is_exact() {
        assert_eq!(
            notice_text("We moved the column. ", Duration::from_secs(1800), "1f3a9c02"),
            "Session saved: We moved the column. Context cleared after 30 minutes of inactivity. \
             Use /context restore 1f3a9c02 to resume."
        );
        for (seconds, words) in
            [(1, "1 second"), (90, "1 minute 30 seconds"), (5400, "1 hour 30 minutes"), (172_800, "2 days")]
        {
            assert_eq!(format_duration(Duration::from_secs(seconds)), words);
        }
        assert_eq!(format_duration(Duration::from_millis(300)), "300 milliseconds");
    }
}
