//! Files that a message names with `@`.

use base64::Engine as _;
use serde_json::json;

use super::{chat, echoes, leave, plain, say, texts};
use crate::home;

#[test]
fn a_named_file_is_attached_and_its_name_completed() {
    let home = home();
    let calls = echoes(&home);
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("notes one.txt"), "ship on Friday").expect("a file");
    std::fs::create_dir(dir.path().join("src")).expect("a directory");
    std::fs::write(dir.path().join("src/main.rs"), "fn main() {}").expect("a file");
    let mut command = plain(&home);
    command.current_dir(dir.path());
    let mut running = chat(&command);
    say(&mut running, "see @sr\tm\t", "@src/main.rs");
    running.type_and_wait(" and @no\t\r", "heard ");
    say(&mut running, "\\@src/main.rs is a name, and @alice a person\r", "heard \"@src");
    let shown = say(&mut running, "what is @src/nothing.rs?\r", "heard \"what");
    assert!(shown.contains("src/nothing.rs is not a file; sent as text"), "{shown}");
    leave(running);
    assert_eq!(
        texts(&calls),
        [
            "see @src/main.rs and @notes\\ one.txt",
            "@src/main.rs is a name, and @alice a person",
            "what is @src/nothing.rs?"
        ]
    );
    let sent = calls.of("send");
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let files: Vec<_> = sent[0]["attachments"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| json!([file["name"], file["data"]]))
        .collect();
    assert_eq!(files, [json!(["main.rs", encode("fn main() {}")]), json!(["notes one.txt", encode("ship on Friday")])]);
    assert!(sent[1..].iter().all(|params| params["attachments"].as_array().is_none_or(Vec::is_empty)));
}
