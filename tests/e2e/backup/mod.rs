//! `chorusctl backup`, `backup verify` and `backup restore`: nothing acknowledged is missing in what comes back.

mod damaged;
mod destinations;
mod generations;
mod incremental;
mod interrupted;
mod round_trip;
mod under_load;

use std::fs::File;
use std::path::{Path, PathBuf};

use chorus_proto::methods::backup::{Summary, Verified};
use chorus_tests::Home;
use chorus_tests::ctl::chorusctl;

use crate::home;

/// Backs up into `dir`.
fn back_up(home: &Home, dir: &Path) -> Summary {
    let raw = chorusctl(home, ["--json", "backup", path(dir)]).expect_success();
    serde_json::from_str(&raw).expect("a summary")
}

/// Returns the report of `backup verify` on a sound backup.
fn verified(home: &Home, source: &Path) -> Verified {
    let raw = chorusctl(home, ["--json", "backup", "verify", path(source)]).expect_success();
    let found: Verified = serde_json::from_str(&raw).expect("what was found");
    assert!(found.ok && found.problems.is_empty(), "{found:?}");
    found
}

/// A new home with what is in a backup.
fn restored(source: &Path) -> Home {
    let home = home();
    chorusctl(&home, ["backup", "restore", path(source)]).expect_success();
    home
}

/// Backs up as an archive into a file.
fn archived(home: &Home, name: &str) -> PathBuf {
    let file = home.temp_dir().join(name);
    let mut command = home.command(home.bins.chorusctl);
    let out = File::create(&file).expect("a file");
    let status = command.args(["backup", "-"]).stdout(out).status().expect("chorusctl runs");
    assert!(status.success(), "{status}");
    file
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Everything that is kept of a backup, by its hash.
fn objects(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(dir.join("objects")).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            found.push(file.path());
        }
    }
    found.sort();
    found
}
