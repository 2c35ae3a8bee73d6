//! The estimate of tokens on real conversations.

use bytes::Bytes;
use chorus_proto::{NewMessage, Role};
use chorus_tests::data;
use chorusd::estimate::{Parts, text};
use chorusd::message::Stored;
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn real_texts_have_between_as_many_tokens_as_words_and_half_as_many_as_letters() {
    let Some(root) = data::folder() else { return };
    let mut texts = 0;
    for folder in ["tau-bench", "swe-agent"] {
        for path in data::files(&root.join(folder), "json") {
            let list: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("a list");
            for said in list.iter().filter_map(|message| message["content"].as_str()).filter(|said| said.len() > 400) {
                let (words, chars) = (said.split_whitespace().count() as u64, said.chars().count() as u64);
                let tokens = text(said);
                assert!(
                    tokens >= words / 2 && tokens <= chars / 2,
                    "{}: {tokens} for {words} words, {chars}",
                    path.display()
                );
                let message = NewMessage::text(Role::User, said).complete(|| "m".into(), Timestamp::UNIX_EPOCH);
                let stored = Stored::new(&message).expect("serialises");
                let read = Stored::parse(Bytes::copy_from_slice(stored.json())).expect("a message");
                assert_eq!((stored.tokens(), read.tokens()), (Parts::of(&message).tokens(), stored.tokens()));
                texts += 1;
            }
        }
    }
    assert!(texts > 500, "{texts} texts in {}", root.display());
}
