//! The reader of plain commands against bash itself: whatever a command without a guard runs or writes was judged.

use std::fs;
use std::process::Command;

use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_tests::rng::{Rng, rounds};
use chorusd::permissions::{Profile, Spec};
use serde_json::json;

use super::action;
use super::chance::random;

/// Notes the words of every command that is run, in place of running it.
const NOTED: &str = r#"() { printf '%s\0' "$#" "$@" >> "$NOTES"; }"#;

/// The words that bash ran of a command, command by command.
fn ran(folder: &std::path::Path, command: &str) -> Vec<Vec<String>> {
    let notes = folder.join("notes");
    let _ = fs::remove_file(&notes);
    let work = folder.join("work");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir(&work).expect("a directory");
    Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", command])
        .current_dir(&work)
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("NOTES", &notes)
        .env("BASH_FUNC_command_not_found_handle%%", NOTED)
        .output()
        .expect("bash");
    let text = fs::read(&notes).unwrap_or_default();
    let mut parts = text.split(|b| *b == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut found = Vec::new();
    while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
        found.push(parts.by_ref().take(count).collect());
    }
    found
}

/// The words of an action, its quotes removed by hand: they are only those that the engine writes.
fn words(action: &str) -> Vec<String> {
    let text = action.strip_prefix("tool:bash:").unwrap_or_default();
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            ' ' => words.push(std::mem::take(&mut word)),
            '\'' => {
                let (inside, after) = rest.split_once('\'').expect("a closing quote");
                word.push_str(inside);
                rest = after;
            }
            '\\' => {
                word.push('\'');
                rest = &rest[1..];
            }
            _ => word.push(c),
        }
    }
    words.push(word);
    words
}

/// The files that the command left.
fn written(folder: &std::path::Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("work")).expect("the directory");
    files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn bash_runs_nothing_that_was_not_judged() {
    if !std::path::Path::new("/bin/bash").exists() {
        return chorus_tests::skip("there is no bash");
    }
    let everything = Spec::read(json!({"allow": [".*"]}).as_object().expect("an object")).expect("a profile");
    let everything = Profile::new(everything).expect("a profile");
    let folder = tempfile::tempdir().expect("a directory");
    let mut rng = Rng::new(20);
    let (mut allowed, mut tried) = (0, 0);
    let wanted = rounds("CHORUS_BASH_ROUNDS", 300);
    while allowed < wanted && tried < wanted * 400 {
        tried += 1;
        let command = random(&mut rng);
        let verdict = everything.judge(&action(&command));
        // No program of these is known to run nothing else; what was read of them is as good as allowed.
        let unnamed = |rule: &Rule| matches!(rule, Rule::Shell { reason } if reason.contains("matches any program"));
        let read = verdict.parts.iter().all(|part| part.decision == Decision::Allow || unnamed(&part.rule));
        if !read || !(verdict.decision == Decision::Allow || unnamed(&verdict.rule)) || !command.contains('a') {
            continue;
        }
        allowed += 1;
        let judged: Vec<Vec<String>> = verdict.parts.iter().map(|part| words(&part.action)).collect();
        for ran in ran(folder.path(), &command) {
            assert!(judged.contains(&ran), "{command:?} ran {ran:?}; judged were {judged:?}");
        }
        for file in written(folder.path()) {
            let judged = verdict.parts.iter().any(|part| part.action == format!("tool:create_file:{file}"));
            assert!(judged, "{command:?} wrote {file:?}; judged were {:?}", verdict.parts);
        }
    }
    assert_eq!(allowed, wanted, "of {tried} commands");
}
