//! Merge requests, through a program that stands for `gh` or `glab` and notes what it is given.

use std::fs;
use std::time::{Duration, Instant};

use chorus_tests::Fixture;
use chorus_tests::program::write_program;
use chorus_tests::{DEADLINE, process, wait_until};
use serde_json::json;

use super::{git, workspace};
use crate::home;
use crate::tools::self_edit::{build_fixture, call_tool, expect_tool, expect_tool_error};

/// A daemon in whose PATH these stand before all others.
fn with(programs: &[&str]) -> Fixture {
    with_script(
        programs,
        "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" \"$@\" > \"$HOME/asked\"\npwd > \"$HOME/where\"\nls -A | wc -l >> \"$HOME/where\"\n\
         env > \"$HOME/env\"\necho https://example.org/1\n",
    )
}

fn with_script(programs: &[&str], script: &str) -> Fixture {
    let home = home();
    let bin = home.temp_dir().join("bin");
    fs::create_dir(&bin).expect("a directory");
    for program in programs {
        let path = bin.join(program);
        write_program(&path, script);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    let builder = build_fixture(home, "").env("PATH", &path).env("SECRET", "x").env("GH_TOKEN", "t");
    let fixture = builder.start();
    fixture.create_agent("a", Some("open"));
    fixture
}

#[test]
fn it_is_opened_by_the_program_for_that_server() {
    for (program, url, repo) in [
        ("gh", "https://github.com/me/it.git", "--repo=github.com/me/it"),
        ("glab", "git@gitlab.com:group/me/it.git", "--repo=https://gitlab.com/group/me/it"),
    ] {
        let fixture = with(&["gh", "glab"]);
        let dir = workspace(&fixture);
        git(&dir, &["remote", "add", "origin", url]);
        expect_tool(&fixture, "git_checkout", json!({"branch": "topic", "create": true}));
        let params = json!({"title": "--web", "description": "Why\n-x", "target": "main"});
        let said = expect_tool(&fixture, "git_merge_request", params);
        assert!(said.contains("from topic into main") && said.contains("https://example.org/1"), "{said}");
        let user = |name: &str| fs::read_to_string(fixture.home.user_home.join(name)).expect("a note");
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
    let fixture = with(&[]);
    let dir = workspace(&fixture);
    let params = json!({"title": "x", "target": "main"});
    let said = expect_tool_error(&fixture, "git_merge_request", params.clone());
    assert!(said.contains("remote origin does not exist"), "{said}");
    git(&dir, &["remote", "add", "origin", "https://gitlab.com/me/it.git"]);
    let said = expect_tool_error(&fixture, "git_merge_request", params.clone());
    assert!(said.contains("is also the target"), "{said}");
    expect_tool(&fixture, "git_checkout", json!({"branch": "topic", "create": true}));
    if ["gh", "glab"].iter().all(|program| std::process::Command::new(program).arg("--version").output().is_err()) {
        let said = expect_tool_error(&fixture, "git_merge_request", params.clone());
        assert!(
            said.contains("no program to open merge requests") && said.contains("https://gitlab.com/me/it"),
            "{said}"
        );
    }
    git(&dir, &["remote", "set-url", "origin", "https://evil.example/me/it.git"]);
    let said = expect_tool_error(&fixture, "git_merge_request", params.clone());
    assert!(said.contains("is not github.com"), "{said}");
    git(&dir, &["remote", "set-url", "origin", "./bare.git"]);
    let said = expect_tool_error(&fixture, "git_merge_request", params);
    assert!(said.contains("is not a repository on a server"), "{said}");
}

#[test]
fn a_flood_and_what_is_left_running_harm_nobody() {
    // It prints more than is kept, and leaves one behind that holds the pipe and is deaf.
    let mark = format!("9100.{:05}", std::process::id() % 100_000);
    let script = format!(
        "#!/bin/sh\necho https://example.org/1\n(trap '' TERM HUP; sleep {mark}) &\nhead -c 64M /dev/zero | tr '\\0' x\nexit $(cat \"$HOME/status\")\n"
    );
    let fixture = with_script(&["gh"], &script);
    let dir = workspace(&fixture);
    git(&dir, &["remote", "add", "origin", "https://github.com/me/it.git"]);
    expect_tool(&fixture, "git_checkout", json!({"branch": "topic", "create": true}));
    let before = process::rss(fixture.daemon().pid);
    for (status, begin) in [("0", "opened a merge request from topic"), ("1", "no merge request was opened: https://")]
    {
        fs::write(fixture.home.user_home.join("status"), status).expect("a status");
        let begun = Instant::now();
        let came = call_tool(&fixture, "git_merge_request", json!({"title": "x", "target": "main"}));
        assert_eq!(came.is_error, status == "1");
        assert!(came.text.starts_with(begin) && came.text.len() < 10 << 10, "{}", came.text.len());
        assert!(begun.elapsed() < Duration::from_secs(30));
        wait_until("nobody is left", DEADLINE, || {
            let mut commands =
                fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path().join("cmdline"));
            let left =
                commands.any(|line| fs::read(line).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark)));
            (!left).then_some(())
        });
    }
    assert!(process::peak_rss(fixture.daemon().pid) < before + (32 << 20));
}
