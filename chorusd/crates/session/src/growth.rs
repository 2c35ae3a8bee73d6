//! Compares a conversation that is imported again with the session that holds it.

use std::borrow::Cow;
use std::io::{self, BufRead};

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::content_eq::has_same_content;
use crate::hash::MessageHash;
use crate::message_lines::MessageLines;
use crate::stored_message::StoredMessage;

/// The relation of a conversation to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Both have the same messages.
    Same,
    /// The session has everything that the conversation has, and more.
    Shorter,
    /// The conversation adds messages at the end.
    Longer(Growth),
    /// A message of the session is changed or missing in the conversation.
    Different,
}

/// The part of a session that stays when it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Number of messages that stay. All of them, unless the last is a reply that was imported while it was written.
    pub kept: u64,
    /// End of the last message that stays, from the start of the reader.
    pub kept_end: u64,
}

/// The result of [`compare`].
#[derive(Debug)]
pub struct Comparison {
    pub relation: Relation,
    /// [`MessageHash`] of the session's messages; of no use if [`Relation::Different`].
    pub stored_sha256: String,
    /// [`MessageHash`] of the messages of the session after it has grown.
    pub grown_sha256: String,
}

/// The messages that are compared, with their number.
#[derive(Debug)]
pub struct Side<R> {
    pub lines: MessageLines<R>,
    pub count: u64,
}

/// Compares the messages of a session with those of a conversation. Ids and times may differ, because some programs have
/// none. `prepare` is applied to messages that differ before they are compared, for example to redact them.
pub fn compare(
    stored: &mut Side<impl BufRead>,
    new: &mut Side<impl BufRead>,
    prepare: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
) -> io::Result<Comparison> {
    let different =
        || Comparison { relation: Relation::Different, stored_sha256: String::new(), grown_sha256: String::new() };
    let common = stored.count.min(new.count);
    // Of the session as it is, and as it will be.
    let (mut was, mut grown) = (MessageHash::default(), MessageHash::default());
    let mut kept_end = 0;
    let mut relation = None;
    for at in 0..common {
        let (Some(old), Some(said)) = (stored.lines.next()?, new.lines.next()?) else { return Ok(different()) };
        was.add(old);
        if is_same(old, said, prepare) {
            grown.add(old);
            kept_end = stored.lines.end();
            continue;
        }
        if at + 1 == stored.count && is_completed_by(old, said, prepare) {
            grown.add(said);
            relation = Some(Relation::Longer(Growth { kept: at, kept_end }));
        } else if at + 1 == new.count && is_completed_by(said, old, prepare) {
            relation = Some(Relation::Shorter);
        } else {
            return Ok(different());
        }
    }
    while let Some(old) = stored.lines.next()? {
        was.add(old);
    }
    while let Some(said) = new.lines.next()? {
        grown.add(said);
    }
    let relation = relation.unwrap_or(match stored.count.cmp(&new.count) {
        std::cmp::Ordering::Equal => Relation::Same,
        std::cmp::Ordering::Greater => Relation::Shorter,
        std::cmp::Ordering::Less => Relation::Longer(Growth { kept: stored.count, kept_end }),
    });
    Ok(Comparison { relation, stored_sha256: was.finish(), grown_sha256: grown.finish() })
}

fn is_same(old: &[u8], new: &[u8], prepare: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
    old == new || both(old, new, prepare).is_some_and(|(old, new)| has_same_content(&old, &new))
}

fn both(old: &[u8], new: &[u8], prepare: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Option<(StoredMessage, StoredMessage)> {
    let parse = |json: &[u8]| {
        let json = prepare(json).map_or(Cow::Borrowed(json), Cow::Owned);
        StoredMessage::parse(Bytes::copy_from_slice(&json)).ok()
    };
    Some((parse(old)?, parse(new)?))
}

/// Returns true if `part` is the beginning of the reply `whole`: its text and tool calls continue there.
fn is_completed_by(part: &[u8], whole: &[u8], prepare: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
    let Some((part, whole)) = both(part, whole, prepare) else { return false };
    let (Some(part), Some(whole)) = (Reply::parse(&part), Reply::parse(&whole)) else { return false };
    part.role == "assistant"
        && whole.role == part.role
        && whole.id == part.id
        && whole.content.starts_with(&*part.content)
        && whole.tool_calls.len() >= part.tool_calls.len()
        && part.tool_calls.iter().zip(&whole.tool_calls).all(|(one, other)| one.get() == other.get())
}

/// The fields of a reply that grow while it is written.
#[derive(serde::Deserialize)]
struct Reply {
    id: String,
    role: String,
    content: String,
    #[serde(default)]
    tool_calls: Vec<Box<RawValue>>,
}

impl Reply {
    fn parse(message: &StoredMessage) -> Option<Self> {
        serde_json::from_slice(message.json()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_message;

    fn message(id: &str, role: &str, text: &str) -> String {
        format!(r#"{{"id":"{id}","role":"{role}","content":"{text}","timestamp":"2026-02-12T09:00:00Z"}}"#)
    }

    fn talk(texts: &[&str]) -> Vec<String> {
        let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
        texts.iter().enumerate().map(|(at, text)| message(&format!("m{at}"), role(at), text)).collect()
    }

    fn written(messages: &[String]) -> Vec<u8> {
        let mut text = Vec::new();
        for (at, json) in messages.iter().enumerate() {
            write_message(&mut text, json.as_bytes(), at == 0).unwrap();
        }
        text
    }

    fn relation(stored: &[String], new: &[String]) -> Relation {
        let (old, said) = (written(stored), written(new));
        let side = |text, count| Side { lines: MessageLines::new(text), count };
        let (mut old, mut said) = (side(&old[..], stored.len() as u64), side(&said[..], new.len() as u64));
        let found = compare(&mut old, &mut said, &|_| None).unwrap();
        if let Relation::Longer(Growth { kept, .. }) = found.relation {
            let kept = usize::try_from(kept).unwrap();
            let grown = stored[..kept].iter().chain(&new[kept..]).map(|json| json.as_bytes());
            assert_eq!(found.grown_sha256, MessageHash::from_messages(grown).finish());
        }
        if found.relation != Relation::Different {
            let all = stored.iter().map(|json| json.as_bytes());
            assert_eq!(found.stored_sha256, MessageHash::from_messages(all).finish());
        }
        found.relation
    }

    #[test]
    fn only_messages_at_the_end_are_growth() {
        let three = talk(&["a", "b", "c"]);
        assert_eq!(relation(&three, &three), Relation::Same);
        assert_eq!(relation(&three, &three[..1]), Relation::Shorter);
        let Relation::Longer(growth) = relation(&three[..2], &three) else { panic!("grows") };
        assert_eq!((growth.kept, growth.kept_end), (2, written(&three[..2]).len() as u64));
        for other in [&["a", "x", "c"][..], &["a", "c", "b"], &["b", "a", "c", "d"], &["x"]] {
            assert_eq!(relation(&three, &talk(other)), Relation::Different, "{other:?}");
        }
    }

    #[test]
    fn new_ids_and_times_do_not_make_a_message_another() {
        let old = [message("one", "user", "a")];
        let new = [message("two", "user", "a").replace("09:00", "10:00"), message("three", "assistant", "b")];
        assert!(matches!(relation(&old, &new), Relation::Longer(Growth { kept: 1, .. })));
    }

    #[test]
    fn a_reply_that_was_being_written_is_completed() {
        let (part, whole) = (talk(&["a", "one"]), talk(&["a", "one two", "c"]));
        assert!(matches!(relation(&part, &whole), Relation::Longer(Growth { kept: 1, .. })));
        assert!(matches!(relation(&part, &whole[..2]), Relation::Longer(Growth { kept: 1, .. })));
        assert_eq!(relation(&whole, &part), Relation::Shorter);
        // A reply that something follows was complete.
        assert_eq!(relation(&talk(&["a", "one", "c"]), &whole), Relation::Different);
        assert_eq!(relation(&talk(&["a"]), &talk(&["a more"])), Relation::Different);
        let other_id = [message("m0", "user", "a"), message("x", "assistant", "one two")];
        assert_eq!(relation(&part, &other_id), Relation::Different);
    }

    #[test]
    fn messages_are_compared_as_they_were_prepared() {
        let (old, new) = (talk(&["a ###"]), talk(&["a key", "b"]));
        let (text, said) = (written(&old), written(&new));
        let side = |text, count| Side { lines: MessageLines::new(text), count };
        let hide = |json: &[u8]| Some(String::from_utf8_lossy(json).replace("key", "###").into_bytes());
        let found = compare(&mut side(&text[..], 1), &mut side(&said[..], 2), &hide).unwrap();
        assert!(matches!(found.relation, Relation::Longer(_)));
    }
}
