//! Shortens messages that are too long for a window: each keeps its beginning and its end, with a note in between.

use chorus_proto::{Attachment, Message, ToolCall};
use chorus_session::attachment_text;
use chorus_session::token_estimate::{MessageSize, tokens_of_bytes};
use serde_json::Value;
use serde_json::value::RawValue;

/// Tokens that a message may always have; fewer would say nothing.
const MIN_MESSAGE_TOKENS: u64 = 64;

/// A text of at most this many bytes is not cut.
const MIN_CUT_BYTES: usize = 160;

/// Attached files may always have this fraction (one half) of a message's tokens.
const FILES_DIVISOR: u64 = 2;

/// What a cut text is shorter than its share: a fraction of it, and the tokens of the mark besides its bytes.
const MARGIN_DIVISOR: u64 = 64;
const MARK_TOKENS: u64 = 12;

/// How many quarters of a cut text are its beginning.
const HEAD_QUARTERS: usize = 3;

/// A message that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortenedMessage {
    /// Id of the message.
    pub id: String,
    /// How many of its bytes are left out.
    pub bytes: u64,
}

/// Returns the limit of tokens per message with which all messages together have at most `most` tokens, so that the
/// longest ones shrink first; `None` if they already have no more than that.
pub(super) fn max_message_tokens(sizes: impl IntoIterator<Item = u64>, most: u64) -> Option<u64> {
    let mut sizes: Vec<u64> = sizes.into_iter().collect();
    if sizes.iter().sum::<u64>() <= most {
        return None;
    }
    sizes.sort_unstable();
    let (mut left, mut others) = (most, sizes.len() as u64);
    for size in sizes {
        let share = left / others;
        if size > share {
            return Some(share.max(MIN_MESSAGE_TOKENS));
        }
        (left, others) = (left - size, others - 1);
    }
    None
}

/// Shortens messages so that all together have about `most` tokens.
pub(super) fn shorten_messages(messages: &mut [Message], most: u64) -> Vec<ShortenedMessage> {
    let size = |message: &Message| MessageSize::of_message(message).tokens();
    let Some(cap) = max_message_tokens(messages.iter().map(size), most) else { return Vec::new() };
    let long = messages.iter_mut().filter(|message| size(message) > cap);
    long.filter_map(|message| {
        let bytes = shorten_message(message, cap);
        (bytes > 0).then(|| ShortenedMessage { id: message.id.clone(), bytes })
    })
    .collect()
}

/// Shortens the texts of a message: first its attached files, then all others in proportion. Returns the bytes removed.
fn shorten_message(message: &mut Message, cap: u64) -> u64 {
    let mut gone = cut_files(message, cap);
    let files = attached_text_bytes(message);
    // The parts that are not text keep their size, so one pass may not be enough.
    for _ in 0..4 {
        let parts = MessageSize::of_message(message);
        let (tokens, texts) = (parts.tokens(), parts.text_tokens().saturating_sub(tokens_of_bytes(files)));
        if tokens <= cap {
            break;
        }
        // What is left may have a few more tokens a byte than the whole, and the mark has some, too.
        let room = texts.saturating_sub(tokens - cap);
        let room = room.saturating_sub(room / MARGIN_DIVISOR + MARK_TOKENS);
        let share = |length: usize| share_of(length, room, texts);
        let before = gone;
        gone += cut_middle(&mut message.content, &share);
        for call in &mut message.tool_calls {
            gone += cut_params(call, &share);
        }
        if gone == before {
            break;
        }
    }
    gone
}

/// Returns the bytes of text in the files attached to a message.
fn attached_text_bytes(message: &Message) -> u64 {
    message.attachments.iter().map(attachment_text::shown_bytes_of).sum()
}

/// Shortens attached text files as far as the message needs it, but not below half of its tokens, so that a long
/// message does not push out its file. The longest files shrink first.
fn cut_files(message: &mut Message, most: u64) -> u64 {
    for file in &mut message.attachments {
        // The file claims to be text but is not, so nothing of it would be readable.
        if attachment_text::shown_bytes_of(file) > 0 && attachment_text::full_text(file).is_none() {
            file.data = None;
        }
    }
    let tokens = MessageSize::of_message(message).tokens();
    if tokens <= most {
        return 0;
    }
    let room = tokens_of_bytes(attached_text_bytes(message)).saturating_sub(tokens - most).max(most / FILES_DIVISOR);
    let size = |file: &Attachment| tokens_of_bytes(attachment_text::shown_bytes_of(file));
    let Some(most) = max_message_tokens(message.attachments.iter().map(size), room) else { return 0 };
    message.attachments.iter_mut().filter(|file| size(file) > most).map(|file| cut_file(file, most)).sum()
}

fn cut_file(file: &mut Attachment, most: u64) -> u64 {
    let Some(mut text) = attachment_text::full_text(file) else { return 0 };
    // Base64 padding may count for two bytes more than there are.
    let room = (most * 4).saturating_sub(2);
    let gone = cut_middle(&mut text, &|_| usize::try_from(room).unwrap_or(usize::MAX));
    attachment_text::replace_text(file, &text);
    gone
}

/// Returns the share of a text of `length` in `room`, if all texts together have the length `of`.
fn share_of(length: usize, room: u64, of: u64) -> usize {
    let kept = length as u128 * u128::from(room) / u128::from(of.max(1));
    usize::try_from(kept).unwrap_or(usize::MAX)
}

fn cut_params(call: &mut ToolCall, share: &impl Fn(usize) -> usize) -> u64 {
    let Ok(mut params) = serde_json::from_str::<Value>(call.params.get()) else { return 0 };
    let gone = cut_values(&mut params, share);
    if gone > 0
        && let Ok(raw) = RawValue::from_string(params.to_string())
    {
        call.params = raw;
    }
    gone
}

fn cut_values(value: &mut Value, share: &impl Fn(usize) -> usize) -> u64 {
    match value {
        Value::String(text) => cut_middle(text, share),
        Value::Array(all) => all.iter_mut().map(|value| cut_values(value, share)).sum(),
        Value::Object(fields) => fields.values_mut().map(|value| cut_values(value, share)).sum(),
        _ => 0,
    }
}

/// Returns the start of the character that contains byte `at`.
pub(super) fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Removes the middle of a text. Returns the bytes removed.
fn cut_middle(text: &mut String, share: &impl Fn(usize) -> usize) -> u64 {
    let length = text.len();
    let mark =
        |gone: usize| format!("\n[… {gone} bytes omitted here because of the size limit; the record has them …]\n");
    let keep = share(length).saturating_sub(mark(length).len());
    if length <= MIN_CUT_BYTES || keep >= length {
        return 0;
    }
    let head = floor_char_boundary(text, keep / 4 * HEAD_QUARTERS);
    let tail = floor_char_boundary(text, length - keep / 4);
    let gone = tail - head;
    text.replace_range(head..tail, &mark(gone));
    gone as u64
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use chorus_proto::{NewMessage, Role};
    use serde_json::json;

    use super::*;

    fn message(value: Value) -> Message {
        let new: NewMessage = serde_json::from_value(value).unwrap();
        new.complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH)
    }

    fn total(messages: &[Message]) -> u64 {
        messages.iter().map(|message| MessageSize::of_message(message).tokens()).sum()
    }

    #[test]
    fn the_longest_give_way_first() {
        assert_eq!(max_message_tokens([10, 20, 30], 60), None);
        assert_eq!(max_message_tokens([100, 2000, 100_000], 3000), Some(1450));
        assert_eq!(max_message_tokens([100, 100, 100_000], 3000), Some(2800));
        assert_eq!(max_message_tokens([900, 900], 10), Some(MIN_MESSAGE_TOKENS));
    }

    #[test]
    fn texts_are_cut_in_the_middle_with_a_mark_and_the_others_are_left_alone() {
        let long = format!("begin {} end", "é\"\n🎉".repeat(1 << 20));
        let mut messages = vec![
            message(json!({"role": "user", "content": "Look at this."})),
            message(json!({"role": "user", "content": long})),
            message(json!({"role": "assistant", "content": "ok"})),
        ];
        let told = shorten_messages(&mut messages, 1000);
        assert!((800..=1000).contains(&total(&messages)), "{}", total(&messages));
        let text = &messages[1].content;
        assert!(text.starts_with("begin é\"") && text.ends_with("🎉 end"), "{text}");
        assert!(text.contains(&format!("[… {} bytes omitted", told[0].bytes)), "{text}");
        assert_eq!((told.len(), &*messages[0].content, &*messages[2].content), (1, "Look at this.", "ok"));
        assert_eq!(shorten_messages(&mut messages, 1000), [], "once is enough");
    }

    #[test]
    fn parameters_stay_json_and_short_ones_as_they_are() {
        let params = json!({"path": "src/main.rs", "file_text": "fn main() {}\n".repeat(100_000), "n": [1, {"x": "y".repeat(99_999)}]});
        let mut messages = vec![
            message(
                json!({"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "create_file", "params": params}]}),
            ),
            message(json!({"role": "tool_result", "content": "x".repeat(300_000), "tool_call_id": "c"})),
        ];
        let told = shorten_messages(&mut messages, 2000);
        assert_eq!(told.len(), 2);
        assert!((1500..=2000).contains(&total(&messages)), "{}", total(&messages));
        let shown: Value = serde_json::from_str(messages[0].tool_calls[0].params.get()).unwrap();
        assert_eq!((&shown["path"], &shown["n"][0]), (&json!("src/main.rs"), &json!(1)));
        assert!(shown["file_text"].as_str().unwrap().contains("omitted here"));
        assert_eq!(messages[0].role, Role::Assistant);
    }

    fn file(text: &str) -> Value {
        let data = base64::engine::general_purpose::STANDARD.encode(text);
        json!({"name": "a.log", "media_type": "text/plain", "size": text.len(), "data": data})
    }

    #[test]
    fn files_give_way_before_what_is_said_of_them() {
        let log = format!("begin {} end", "GET /a \"200\"\n".repeat(4000));
        let question = "Which of them fails? ".repeat(100);
        let asked =
            json!({"role": "user", "content": question, "attachments": [file(&log), file("short"), file(&log)]});
        let mut messages = vec![message(asked)];
        let told = shorten_messages(&mut messages, 15_000);
        assert!((14_000..=15_000).contains(&total(&messages)), "{}", total(&messages));
        let files: Vec<_> = messages[0].attachments.iter().filter_map(attachment_text::shown_text).collect();
        assert_eq!((&messages[0].content, &*files[1], told.len()), (&question, "short", 1));
        for cut in [&files[0], &files[2]] {
            let marked = format!("[… {} bytes omitted", told[0].bytes / 2);
            assert!(cut.starts_with("begin GET") && cut.ends_with("\n end") && cut.contains(&marked), "{cut}");
        }
        assert_eq!(shorten_messages(&mut messages, 15_000), [], "once is enough");
    }

    #[test]
    fn a_long_text_and_a_long_file_share_the_room_and_what_only_is_called_a_text_has_none() {
        let mut none = file("a\0b");
        none["data"] = json!("AAAA".repeat(20_000));
        let long = "What is said. ".repeat(10_000);
        let mut messages =
            vec![message(json!({"role": "user", "content": long, "attachments": [file(&long), none, file("short")]}))];
        let told = shorten_messages(&mut messages, 4000);
        assert!((3500..=4000).contains(&total(&messages)), "{}", total(&messages));
        let [cut, none, short] = &messages[0].attachments[..] else { panic!("an attachment is lost") };
        assert!(told.len() == 1 && none.data.is_none(), "{told:?}");
        assert_eq!(attachment_text::shown_text(short).as_deref(), Some("short"));
        assert!((7000..=8000).contains(&attachment_text::shown_text(cut).unwrap().len()));
        assert!((7000..=8500).contains(&messages[0].content.len()), "{}", messages[0].content.len());
    }

    #[test]
    fn what_cannot_be_cut_is_no_endless_work() {
        let image = json!({"name": "a", "media_type": "image/png", "data": ""});
        let mut messages = vec![message(json!({"role": "user", "content": "a", "attachments": [image, image]}))];
        assert_eq!(shorten_messages(&mut messages, 100), []);
    }
}
