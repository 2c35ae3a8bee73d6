//! `man`.

use std::fs;
use std::process::Command;

use chorus_tests::ctl::chorusctl;
use chorus_tests::skip;

use crate::home;

#[test]
fn one_page_is_printed_and_all_are_written() {
    let home = home();
    let page = chorusctl(&home, ["man"]).expect_success();
    assert!(page.contains(".TH chorusctl 1"), "{page}");
    let dir = home.temp_dir().join("man/man1");
    let dir_name = dir.to_str().expect("UTF-8");
    chorusctl(&home, ["man", "--output", dir_name]).expect_success();
    assert_eq!(fs::read_to_string(dir.join("chorusctl.1")).expect("the page"), page);
    let saved = fs::read_to_string(dir.join("chorusctl-context-save.1")).expect("the page");
    assert!(saved.contains("no\\-wait") && saved.contains("DESCRIPTION"), "{saved}");
    assert!(!home.path.exists(), "a daemon was started");
    if Command::new("man").arg("--version").output().is_err() {
        skip("man is not installed");
        return;
    }
    let shown = home.command("man").args(["--warnings", "-l"]).arg(dir.join("chorusctl-context-save.1")).output();
    let shown = shown.expect("man runs");
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Save a checkpoint"), "{shown:?}");
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let home = home();
    chorusctl(&home, ["man", "--output", "/dev/null/pages"]).expect_failure(1);
}
