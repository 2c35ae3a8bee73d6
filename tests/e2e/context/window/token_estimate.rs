//! The estimate of tokens on real conversations.

use bytes::Bytes;
use chorus_proto::{NewMessage, Role};
use chorus_session::stored_message::StoredMessage;
use chorus_session::token_estimate::{MessageSize, tokens_of_text};
use chorus_tests::real_data;
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn real_texts_have_between_as_many_tokens_as_words_and_half_as_many_as_letters() {
    let Some(root) = real_data::data_dir() else { return };
    let mut texts = 0;
    for folder in ["tau-bench", "swe-agent"] {
        for path in real_data::files_with_extension(&root.join(folder), "json") {
            let list: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("a list");
            for said in list.iter().filter_map(|message| message["content"].as_str()).filter(|said| said.len() > 400) {
                let (words, chars) = (said.split_whitespace().count() as u64, said.chars().count() as u64);
                let tokens = tokens_of_text(said);
                assert!(
                    tokens >= words / 2 && tokens <= chars / 2,
                    "{}: {tokens} for {words} words, {chars}",
                    path.display()
                );
                let message = NewMessage::text(Role::User, said).complete(|| "m".into(), Timestamp::UNIX_EPOCH);
                let stored = StoredMessage::new(&message).expect("serialises");
                let read = StoredMessage::parse(Bytes::copy_from_slice(stored.json())).expect("a message");
                assert_eq!(
                    (stored.tokens(), read.tokens()),
                    (MessageSize::of_message(&message).tokens(), stored.tokens())
                );
                texts += 1;
            }
        }
    }
    assert!(texts > 500, "{texts} texts in {}", root.display());
}
