//! Where the message comes from, and what goes along with it.

use std::fs;

use chorus_tests::ctl::{chorusctl, chorusctl_with};
use serde_json::json;

use super::{replies, talks};
use crate::home;

#[test]
fn a_message_comes_from_an_argument_or_from_standard_input_without_its_last_line_end() {
    let home = home();
    let calls = talks(&home, |mut asked| replies(&mut asked, "yes"));
    chorusctl_with(&home, ["send", "hello"], b"not this").expect_success();
    chorusctl_with(&home, ["send", "-"], b"  piped\n").expect_success();
    chorusctl_with(&home, ["send"], b"two\nlines\n\n").expect_success();
    chorusctl_with(&home, ["send"], b"none").expect_success();
    chorusctl(&home, ["send", "an argument\n"]).expect_success();
    chorusctl_with(&home, ["send"], "grüße\r\n".as_bytes()).expect_success();
    chorusctl(&home, ["send", "- an item"]).expect_success();
    chorusctl(&home, ["send", "--", "--jsnol"]).expect_success();
    let texts: Vec<_> = calls.of("send").into_iter().map(|params| params["text"].clone()).collect();
    assert_eq!(texts, ["hello", "  piped", "two\nlines\n", "none", "an argument\n", "grüße", "- an item", "--jsnol"]);
}

#[test]
fn nothing_is_no_message() {
    let home = home();
    let calls = talks(&home, |mut asked| replies(&mut asked, "yes"));
    for (args, stdin) in
        [(&["send"][..], &b""[..]), (&["send", " \n"], b""), (&["send", "-"], b"\n"), (&["send", ""], b"x")]
    {
        chorusctl_with(&home, args.iter().copied(), stdin).expect_failure_with_hint(2);
    }
    chorusctl_with(&home, ["send"], b"\xff").expect_failure_with_hint(2);
    chorusctl(&home, ["send", "--jsnol"]).expect_failure_with_hint(2);
    assert!(calls.of("send").is_empty());
}

#[test]
fn files_go_along() {
    let home = home();
    let calls = talks(&home, |mut asked| replies(&mut asked, "a cat"));
    fs::write(home.user_home.join("cat.png"), b"\x89PNG").expect("a file");
    fs::write(home.user_home.join("notes"), "a,b\n").expect("a file");
    chorusctl(&home, ["send", "what is this?", "--attach", "cat.png", "--attach", "./notes"]).expect_success();
    let attached = json!([
        {"name": "cat.png", "media_type": "image/png", "size": 4, "data": "iVBORw=="},
        {"name": "notes", "media_type": "text/plain", "size": 4, "data": "YSxiCg=="},
    ]);
    assert_eq!(calls.of("send")[0]["attachments"], attached);
    chorusctl(&home, ["send", "x", "--attach", "none.png"]).expect_failure(3);
    let big = fs::File::create(home.user_home.join("big.bin")).expect("a file");
    big.set_len(12 << 20).expect("its length");
    chorusctl(&home, ["send", "x", "--attach", "big.bin"]).expect_failure_with_hint(2);
    chorusctl(&home, ["send", "x", "--attach", "."]).expect_failure(1);
    assert_eq!(calls.of("send").len(), 1);
}
