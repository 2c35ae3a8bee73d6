//! Recall: passages of an agent's past that join the working set at the start of a window (`chorus_agent_core::recall`).
//!
//! A recall never fails a turn and hardly delays one: it is given up after `TIMEOUT`, and the window goes without. The turn after
//! that tries again.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use chorus_agent_core::effect::CallModel;
use chorus_agent_core::recall::{MAX_PASSAGE_TOKENS, MAX_RECALLED_TOKENS};
use chorus_base::error::{Error, Result};
use chorus_permissions::Profile;
use chorus_proto::methods::permissions::Decision;
use chorus_proto::{Message, Recall, RecalledPassage, Role, WorkingSet};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use chorus_session::token_estimate::tokens_of_text;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::registry::Registry;
use crate::tools::search_action;

/// How long a model call waits for passages.
const TIMEOUT: Duration = Duration::from_millis(300);

/// The newest messages of a window that are looked at, of which the last ones of users are what is searched for.
const NEWEST_MESSAGES: usize = 200;
const MAX_QUERIES: usize = 3;

/// Characters of each, and of the summary, that are searched for.
const MAX_QUERY_CHARS: usize = 600;

/// If nothing was found for so many messages of users, no more is searched for in this window: a greeting is no question yet.
const MAX_VAIN_QUERIES: usize = 3;

/// Tokens that the line about the origin of a passage has, approximately.
const ORIGIN_TOKENS: u64 = 40;

/// Passages that are found beside those that are wanted, because some of them may be in the window.
const SPARE: u64 = 10;

/// Finds passages in what was said to an agent. Implemented in `ops`.
pub trait PassageFinder: Debug + Send + Sync {
    /// Finds passages for a conversation, best first, among those that its people may see.
    ///
    /// # Errors
    /// The index is off, is being built, or cannot be read.
    fn find_passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Vec<RecalledPassage>>>;
}

/// A search of the past.
#[derive(Debug)]
pub struct PassageRequest {
    pub conversation: ConversationKey,
    /// Its live context.
    pub context: ContextNo,
    /// Plain words.
    pub text: String,
    pub limit: u64,
    /// Sessions whose messages are left out; so are those of the conversation's live context.
    pub without: Vec<Uuid>,
}

/// The messages of a window, as far as a recall needs them.
#[derive(Debug, Default)]
struct WindowTexts {
    /// The texts on one line each.
    said: Vec<String>,
    /// The last messages of users, the newest first.
    queries: Vec<String>,
}

/// Finds the passages that the window of a call is to have; `None` if the call is to go on as it is.
pub(super) async fn recall(registry: &Registry, conversation: ConversationKey, call: &CallModel) -> Option<Recall> {
    let planned = call.recall.as_ref()?;
    let finder = registry.passage_finder.get()?.upgrade()?;
    let found = tokio::time::timeout(TIMEOUT, async {
        let window = call.window_start.max(call.messages.len().saturating_sub(NEWEST_MESSAGES));
        let messages = call.messages.clone();
        let texts = chorus_runtime::spawn_blocking(move || read_window(messages.get(window..).unwrap_or_default()));
        let texts = texts.await.map_err(|e| Error::internal(e.to_string()))?;
        let text = query(&texts.queries, &call.working_set);
        if !may_search(call.settings.permission_profile(), &text) {
            return Ok(None);
        }
        let limit = planned.count.saturating_add(SPARE);
        let without = planned.sessions.clone();
        let found =
            finder.find_passages(PassageRequest { conversation, context: call.context, text, limit, without }).await?;
        let passages = select(found, &texts.said, usize::try_from(planned.count).unwrap_or(usize::MAX));
        Ok::<_, Error>(Some((passages, texts.queries.len())))
    });
    let agent = &call.settings.name;
    match found.await {
        Ok(Ok(None)) => {
            tracing::info!(%agent, "no recall: its permission profile does not allow it to search without asking");
            None
        }
        Ok(Ok(Some((passages, queries)))) => {
            let recall = Recall { window_start: call.window_start as u64, passages };
            (!recall.passages.is_empty() || queries >= MAX_VAIN_QUERIES).then_some(recall)
        }
        Ok(Err(failure)) => {
            tracing::info!(%agent, %failure, "nothing recalled");
            None
        }
        Err(_) => {
            tracing::info!(%agent, "nothing recalled: the search took too long");
            None
        }
    }
}

/// Returns true if the agent may search its past for a text with its tool, and nobody has to be asked.
fn may_search(profile: &Profile, text: &str) -> bool {
    profile.judge(&search_action(text)).decision == Decision::Allow
}

fn read_window(messages: &[StoredMessage]) -> WindowTexts {
    let mut texts = WindowTexts::default();
    let messages: Vec<Message> = messages.iter().filter_map(|message| message.to_message().ok()).collect();
    for message in messages.iter().rev() {
        if message.role == Role::User && texts.queries.len() < MAX_QUERIES {
            texts.queries.push(message.content.chars().take(MAX_QUERY_CHARS).collect());
        }
        texts.said.push(on_one_line(&message.content));
    }
    texts
}

/// Returns what is searched for: what users said last, then what the window says of the messages before it. Signs that mean
/// something in a query are none here.
fn query(queries: &[String], set: &WorkingSet) -> String {
    let summary = set.summary.iter().map(|summary| summary.chars().take(MAX_QUERY_CHARS).collect());
    let text = queries.iter().cloned().chain(summary).collect::<Vec<String>>().join(" ");
    let words = text.split(|c: char| c.is_whitespace() || c == '"');
    let words = words.map(|word| word.trim_start_matches('-').trim_end_matches('*'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Chooses the best passages that say something new, and shortens them to their limits.
fn select(found: Vec<RecalledPassage>, said: &[String], count: usize) -> Vec<RecalledPassage> {
    let mut seen: HashSet<String> = HashSet::new();
    let (mut chosen, mut left): (Vec<RecalledPassage>, u64) = (Vec::new(), MAX_RECALLED_TOKENS);
    for mut passage in found {
        let most = MAX_PASSAGE_TOKENS.min(left.saturating_sub(ORIGIN_TOKENS));
        if chosen.len() >= count || most < ORIGIN_TOKENS {
            break;
        }
        let text = on_one_line(&passage.text);
        let inner = text.trim_matches('…');
        if inner.is_empty() || said.iter().any(|said| said.contains(inner)) || !seen.insert(text.clone()) {
            continue;
        }
        passage.text = shorten(text, most);
        left = left.saturating_sub(ORIGIN_TOKENS + tokens_of_text(&passage.text));
        chosen.push(passage);
    }
    chosen
}

/// Returns the text on one line, without control characters.
fn on_one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts the end off a text that has more than `most` tokens.
fn shorten(mut text: String, most: u64) -> String {
    while tokens_of_text(&text) > most {
        let kept = text.trim_end_matches('…').chars().count() as u64 * most / tokens_of_text(&text);
        text = text.chars().take(usize::try_from(kept).unwrap_or(0).saturating_sub(1)).collect();
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str) -> RecalledPassage {
        RecalledPassage {
            session: None,
            name: "main".into(),
            message: 1,
            role: Role::User,
            speaker: None,
            at: jiff::Timestamp::UNIX_EPOCH,
            text: text.into(),
        }
    }

    fn texts(chosen: &[RecalledPassage]) -> Vec<&str> {
        chosen.iter().map(|passage| &*passage.text).collect()
    }

    #[test]
    fn what_the_window_says_and_what_was_chosen_is_left_out() {
        let said = ["I asked for the port of the staging server".to_owned()];
        let found = ["the port", "…of the staging server", "it is 8443", "it  is\n8443", " ", "and 22", "and 23"];
        let chosen = select(found.map(passage).to_vec(), &said, 2);
        assert_eq!(texts(&chosen), ["it is 8443", "and 22"]);
    }

    #[test]
    fn passages_keep_to_their_tokens() {
        for word in ["word ", "日本", "é\u{301}x "] {
            let long: Vec<_> = (0..20).map(|n| passage(&format!("{n} {}", word.repeat(2000)))).collect();
            let chosen = select(long, &[], 20);
            let tokens: Vec<u64> = chosen.iter().map(|passage| tokens_of_text(&passage.text)).collect();
            assert!(tokens.iter().all(|tokens| *tokens <= MAX_PASSAGE_TOKENS), "{tokens:?}");
            assert!(tokens[0] > MAX_PASSAGE_TOKENS / 2 && chosen[0].text.ends_with('…'), "{tokens:?}");
            let all = tokens.iter().map(|tokens| tokens + ORIGIN_TOKENS).sum::<u64>();
            assert!((MAX_RECALLED_TOKENS / 2..=MAX_RECALLED_TOKENS).contains(&all), "{tokens:?}");
        }
    }

    #[test]
    fn a_message_is_plain_words() {
        let set = WorkingSet { summary: Some("about \"the port\"".into()), ..WorkingSet::default() };
        assert_eq!(
            query(&["was it -not \"the\nserver\" in --dev* ?".into()], &set),
            "was it not the server in dev ? about the port"
        );
    }
}
