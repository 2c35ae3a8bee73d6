//! Whatever happened to a backup is found, named, and not restored.

use std::fs;
use std::path::Path;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use super::{archived, back_up, objects, path, verified};
use crate::home;

fn filled() -> (Home, Daemon) {
    let one = home();
    let daemon = Daemon::start(&one);
    let mut client = daemon.client();
    client.init("atlas");
    for n in 0..3 {
        client.append("atlas", &format!("message {n}"));
        client.save("atlas", &format!("save {n}"));
    }
    (one, daemon)
}

/// Neither verified nor restored; what `verify` names.
fn is_refused(home: &Home, source: &Path) -> Vec<String> {
    let told = chorusctl(home, ["--json", "backup", "verify", path(source)]);
    assert_eq!(told.status, 1, "{}{}", told.stdout, told.stderr);
    let target = home.temp_dir().join("target");
    let restore = chorusctl(home, ["backup", "restore", path(source), "--home", path(&target)]);
    restore.expect_failure_with_hint(1);
    assert!(!target.exists(), "nothing is left of a restore that was refused");
    match serde_json::from_str::<Value>(&told.stdout) {
        Ok(found) => {
            assert_eq!(found["ok"], false);
            let problems = found["problems"].as_array().expect("problems");
            problems.iter().map(|problem| problem.as_str().expect("text").to_owned()).collect()
        }
        Err(_) => vec![told.stderr],
    }
}

#[test]
fn a_flipped_or_missing_byte_of_a_directory_is_found() {
    let (one, daemon) = filled();
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    daemon.terminate();
    let damaged: Vec<_> =
        objects(&dir).into_iter().filter(|file| fs::metadata(file).expect("a file").len() > 0).collect();
    assert!(damaged.len() > 10);
    for file in damaged.iter().step_by(damaged.len() / 8) {
        let whole = fs::read(file).expect("a content");
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        for bad in [Some(&flipped[..]), Some(&whole[..whole.len() - 1]), None] {
            match bad {
                Some(bad) => fs::write(file, bad).expect("written"),
                None => fs::remove_file(file).expect("removed"),
            }
            assert!(!is_refused(&one, &dir).is_empty());
            fs::write(file, &whole).expect("put back");
        }
    }
    let manifest = dir.join("manifest.jsonl");
    let whole = fs::read(&manifest).expect("the manifest");
    for at in [3, whole.len() / 2, whole.len() - 30] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for bad in [&flipped[..], &whole[..at]] {
            fs::write(&manifest, bad).expect("written");
            assert!(is_refused(&one, &dir)[0].contains("manifest"));
        }
    }
    fs::write(&manifest, &whole).expect("put back");
    verified(&one, &dir);
}

#[test]
fn a_damaged_session_is_named() {
    let (one, _daemon) = filled();
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let file = objects(&dir).into_iter().find(|file| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("\"session_id\"") && text.contains("message 1"))
    });
    let file = file.expect("a session");
    let text = fs::read_to_string(&file).expect("a session").replacen("message 1", "message 7", 1);
    fs::write(&file, text).expect("written");
    let problems = is_refused(&one, &dir);
    assert!(
        problems[0].starts_with("agents/atlas/sessions/") && problems[0].contains("its content was changed"),
        "{problems:?}"
    );
    // The next backup does not notice by itself: it trusts what it wrote. A missing one it writes again.
    fs::remove_file(&file).expect("removed");
    back_up(&one, &dir);
    verified(&one, &dir);
}

#[test]
fn a_truncated_or_changed_archive_is_found() {
    let (one, _daemon) = filled();
    let archive = archived(&one, "backup.tar");
    let whole = fs::read(&archive).expect("the archive");
    let bad = one.temp_dir().join("bad.tar");
    for share in [1, 30, 60, 99] {
        fs::write(&bad, &whole[..whole.len() * share / 100]).expect("written");
        is_refused(&one, &bad);
    }
    let needle = b"message 1";
    let at = whole.windows(needle.len()).position(|window| window == needle).expect("a message");
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    fs::write(&bad, &flipped).expect("written");
    assert!(!is_refused(&one, &bad).is_empty());
    fs::write(&bad, b"no archive at all").expect("written");
    is_refused(&one, &bad);
    let mut command = one.command(one.bins.chorusctl);
    command.args(["backup", "verify", "-"]);
    assert_eq!(run_command(command, b"").status, 1);
}

#[test]
fn what_was_wrong_in_the_home_is_warned_of_and_restored_as_it_is() {
    let (one, _daemon) = filled();
    let dir = one.sessions_dir("atlas");
    let mut files: Vec<_> =
        fs::read_dir(&dir).expect("sessions").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let text = fs::read_to_string(&files[0]).expect("a session").replace("message 0", "message 9");
    fs::write(&files[0], text).expect("changed by hand");
    fs::write(&files[1], "{\"schema\": 2").expect("cut off by hand");
    fs::remove_file(&files[2]).expect("removed by hand");
    let backup = one.temp_dir().join("backup");
    back_up(&one, &backup);
    let warnings = verified(&one, &backup).warnings;
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let two = super::restored(&backup);
    assert_eq!(
        fs::read(two.sessions_dir("atlas").join(files[1].file_name().expect("a name"))).expect("it"),
        b"{\"schema\": 2"
    );
}
