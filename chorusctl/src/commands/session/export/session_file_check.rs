//! Checks the bytes of a session file before they are copied, so that a damaged file is not passed on as a good one.

use chorus_proto::{Message, SessionHeader};
use uuid::Uuid;

/// The line after the header.
const MESSAGES_OPENING: &str = "\n  \"messages\": [\n";
/// The end of the file.
const FOOTER: &str = "\n  ]\n}\n";
const INDENTATION: &str = "    ";

/// Returns true if `bytes` are the file of the session `id` as Chorus writes it: a header, and as many messages as it states, one
/// on each line. The daemon decides on any other file: it converts it, or says how it is damaged.
pub(super) fn is_intact(bytes: &[u8], id: Uuid) -> bool {
    // All of it, because a field that this version does not know is not parsed.
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let Some((head, rest)) = text.split_once(MESSAGES_OPENING) else { return false };
    let Some(list) = rest.strip_suffix(FOOTER) else { return false };
    if !head.starts_with("{\n  \"schema\": 2,\n") {
        return false;
    }
    let Ok(header) = serde_json::from_str::<SessionHeader>(&format!("{head}\"messages\":[]}}")) else { return false };
    header.id == id && count_messages(list) == Some(header.message_count)
}

/// Counts the messages of the list; `None` if one of its lines is not a message.
fn count_messages(list: &str) -> Option<u64> {
    let mut lines = list.split('\n').peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let line = line.strip_prefix(INDENTATION)?;
        let message = if lines.peek().is_some() { line.strip_suffix(',')? } else { line };
        serde_json::from_str::<Message>(message).ok()?;
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn file() -> String {
        let message = |text: &str| {
            format!(
                "    {{\"id\":\"1\",\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":\"2026-02-12T09:00:00Z\",\"later\":\"x\"}}"
            )
        };
        format!(
            "{{\n  \"schema\": 2,\n  \"id\": \"{ID}\",\n  \"session_id\": \"x\",\n  \"agent_id\": \"{ID}\",\n  \"agent_name\": \"a\",\n  \
             \"description\": null,\n  \"summary\": null,\n  \"saved_at\": \"2026-02-12T10:00:00Z\",\n  \"started_at\": \
             \"2026-02-12T10:00:00Z\",\n  \"trigger\": \"manual_save\",\n  \"model\": null,\n  \"message_count\": 2,\n  \"query_count\": 2,\n  \
             \"token_estimate\": 9,\n  \"parent_id\": null,\n  \"messages\": [\n{},\n{}\n  ]\n}}\n",
            message("one"),
            message("two")
        )
    }

    #[test]
    fn a_damaged_file_is_recognized() {
        let good = file();
        assert!(is_intact(good.as_bytes(), ID), "{good}");
        assert!(!is_intact(good.as_bytes(), Uuid::from_u128(8)));
        let (first, _) =
            good.split_once(",\n    {\"id\":\"1\",\"role\":\"user\",\"content\":\"two\"").expect("two messages");
        assert!(!is_intact(format!("{first}\n  ]\n}}\n").as_bytes(), ID), "a message less than the header states");
        for (from, to) in [
            ("\"content\":\"one\"", "\"contant\":\"one\""),
            ("\"role\":\"user\"", "\"role\":\"uses\""),
            ("one", "o\u{1}e"),
            ("\"message_count\": 2", "\"message_count\": 3"),
            ("\"trigger\"", "\"tricker\""),
            ("},\n", "}\n"),
            ("\n  ]\n}\n", "\n  ]\n"),
        ] {
            assert!(good.contains(from) && !is_intact(good.replacen(from, to, 1).as_bytes(), ID), "{from:?} -> {to:?}");
        }
        // In a field that is not known here.
        let mut bytes = good.clone().into_bytes();
        let at = good.find("\"x\"}").expect("the field") + 1;
        bytes[at] = 0xff;
        assert!(!is_intact(&bytes, ID));
    }
}
