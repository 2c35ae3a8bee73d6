//! The estimate of tokens on real conversations.

use bytes::Bytes;
use chorus_llm::tokenizer::TokenizerCache;
use chorus_proto::{NewMessage, Role};
use chorus_session::stored_message::StoredMessage;
use chorus_session::token_estimate::{MessageSize, tokens_of_text};
use chorus_tests::real_data;
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn real_texts_are_estimated_near_what_a_vocabulary_has() {
    let Some(root) = real_data::data_dir() else { return };
    let (tokenizer, _) = TokenizerCache::default().load().expect("a tokenizer");
    let (mut texts, mut errors, mut estimated, mut exact) = (0, 0.0, 0, 0);
    for folder in ["tau-bench", "swe-agent"] {
        for path in real_data::files_with_extension(&root.join(folder), "json") {
            let list: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("a list");
            for said in list.iter().filter_map(|message| message["content"].as_str()).filter(|said| said.len() > 400) {
                let (estimate, tokens) = (tokens_of_text(said), tokenizer.count(said));
                errors += (estimate as f64 / tokens as f64 - 1.0).abs();
                (estimated, exact) = (estimated + estimate, exact + tokens);
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
    let (mean, whole) = (errors / f64::from(texts), estimated as f64 / exact as f64 - 1.0);
    assert!(mean < 0.1 && whole.abs() < 0.06, "mean error {mean:.3}, all together {whole:+.3}");
}
