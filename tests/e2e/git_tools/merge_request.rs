//! Merge requests, through a program that stands for `gh` or `glab` and notes what it is given.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_tests::{Daemon, Home};
use serde_json::json;

use super::{git, workspace};
use crate::selfedit::Rig;

/// A daemon in whose PATH these stand before all others.
fn with(programs: &[&str]) -> Rig {
    Rig::with("open", "", |home: &Home| {
        let bin = home.outside().join("bin");
        fs::create_dir(&bin).expect("a directory");
        for program in programs {
            let path = bin.join(program);
            let script = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" \"$@\" > \"$HOME/asked\"\npwd > \"$HOME/where\"\nls -A | wc -l >> \"$HOME/where\"\n\
                          env > \"$HOME/env\"\necho https://example.org/1\n";
            fs::write(&path, script).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        let mut command = home.command(home.bins.chorusd);
        let path = std::env::var("PATH").expect("PATH");
        command.env("PATH", format!("{}:{path}", bin.display())).env("SECRET", "x").env("GH_TOKEN", "t");
        Daemon::start_by(home, command)
    })
}

#[test]
fn it_is_opened_by_the_program_for_that_server() {
    for (program, url, repo) in [
        ("gh", "https://github.com/me/it.git", "--repo=github.com/me/it"),
        ("glab", "git@gitlab.com:group/me/it.git", "--repo=https://gitlab.com/group/me/it"),
    ] {
        let rig = with(&["gh", "glab"]);
        let dir = workspace(&rig);
        git(&dir, &["remote", "add", "origin", url]);
        rig.done("git_checkout", json!({"branch": "topic", "create": true}));
        let params = json!({"title": "--web", "description": "Why\n-x", "target": "main"});
        let said = rig.done("git_merge_request", params);
        assert!(said.contains("from topic into main") && said.contains("https://example.org/1"), "{said}");
        let user = |name: &str| fs::read_to_string(rig.home.user.join(name)).expect("a note");
        let asked = user("asked");
        let lines: Vec<&str> = asked.lines().collect();
        assert_eq!(lines[0], program);
        assert!(lines.contains(&repo) && lines.contains(&"--title=--web"), "{asked}");
        // It sees neither the workspace nor the daemon's other secrets.
        assert!(user("where").trim_end().ends_with("\n0") && !user("where").contains("workspace"), "{}", user("where"));
        assert!(user("env").contains("GH_TOKEN=t") && !user("env").contains("SECRET"));
    }
}

#[test]
fn what_is_missing_is_told() {
    let rig = with(&[]);
    let dir = workspace(&rig);
    let params = json!({"title": "x", "target": "main"});
    let said = rig.fails("git_merge_request", params.clone());
    assert!(said.contains("there is no remote origin"), "{said}");
    git(&dir, &["remote", "add", "origin", "https://gitlab.com/me/it.git"]);
    let said = rig.fails("git_merge_request", params.clone());
    assert!(said.contains("which is the target"), "{said}");
    rig.done("git_checkout", json!({"branch": "topic", "create": true}));
    if ["gh", "glab"].iter().all(|program| std::process::Command::new(program).arg("--version").output().is_err()) {
        let said = rig.fails("git_merge_request", params.clone());
        assert!(said.contains("no program is installed") && said.contains("https://gitlab.com/me/it"), "{said}");
    }
    git(&dir, &["remote", "set-url", "origin", "https://evil.example/me/it.git"]);
    let said = rig.fails("git_merge_request", params.clone());
    assert!(said.contains("neither github.com"), "{said}");
    git(&dir, &["remote", "set-url", "origin", "./bare.git"]);
    let said = rig.fails("git_merge_request", params);
    assert!(said.contains("leads to no repository on a server"), "{said}");
}
