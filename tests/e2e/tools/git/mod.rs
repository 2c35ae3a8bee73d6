//! git as agents have it: plain work, pushes, merge requests; and workspaces that would have git run programs.

mod hostile_repository;
mod local;
mod merge_request;
pub mod push;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_tests::Fixture;

/// git in a directory, as nobody in particular; what it says.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn workspace(fixture: &Fixture) -> PathBuf {
    fixture.home.agent_dir("a").join("workspace")
}

fn write(fixture: &Fixture, path: &str, text: &str) {
    let path = workspace(fixture).join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}
