//! Pushes: to a real server, to a repository in the workspace, and to nowhere else.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use chorus_tests::free_port::free_port;
use chorus_tests::program::write_program;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{git, workspace, write};
use crate::tools::self_edit::{expect_tool, expect_tool_error, start_fixture, start_fixture_with};

/// `git daemon` on loopback; it ends when this is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(base: &Path) -> Self {
        let port = free_port();
        // The program itself: `git` would leave it running when it is killed.
        let exec = git(base, &["--exec-path"]);
        let child = Command::new(Path::new(&exec).join("git-daemon"))
            .args(["--reuseaddr", "--listen=127.0.0.1", "--export-all", "--enable=receive-pack"])
            .args([format!("--port={port}"), format!("--base-path={}", base.display())])
            .arg(base)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("git daemon");
        wait_until("git daemon", DEADLINE, || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

pub fn bare(dir: &Path) {
    fs::create_dir_all(dir).expect("a directory");
    git(dir, &["init", "--quiet", "--bare", "--initial-branch=main"]);
}

#[test]
fn a_branch_is_pushed_to_a_server() {
    let fixture = start_fixture("open");
    let (base, dir) = (fixture.home.temp_dir().join("served"), workspace(&fixture));
    bare(&base.join("it.git"));
    let server = Server::start(&base);
    let url = format!("git://127.0.0.1:{}/it.git", server.port);
    git(&dir, &["remote", "add", "origin", &url]);
    write(&fixture, "a.txt", "one\n");
    expect_tool(&fixture, "git_commit", json!({"message": "One"}));
    let said = expect_tool(&fixture, "git_push", json!({"remote": "origin", "branch": "main"}));
    let head = git(&dir, &["rev-parse", "main"]);
    assert!(said.contains(&url) && said.contains(&head), "{said}");
    assert_eq!(git(&base.join("it.git"), &["rev-parse", "main"]), head);
    // What the workspace says of addresses and of how they are reached is not heeded.
    git(&dir, &["config", "url.git://127.0.0.1:1/.insteadOf", "git://"]);
    git(&dir, &["config", "core.gitProxy", "false"]);
    write(&fixture, "a.txt", "two\n");
    expect_tool(&fixture, "git_commit", json!({"message": "Two"}));
    expect_tool(&fixture, "git_push", json!({"remote": "origin", "branch": "main"}));
    // Never by force.
    git(&dir, &["reset", "--quiet", "--hard", "HEAD~2"]);
    write(&fixture, "b.txt", "other\n");
    expect_tool(&fixture, "git_commit", json!({"message": "Other"}));
    let said = expect_tool_error(&fixture, "git_push", json!({"remote": "origin", "branch": "main"}));
    assert!(said.contains("rejected") && said.contains(&url), "{said}");
}

#[test]
fn a_repository_in_the_workspace_is_pushed_to_and_its_hooks_do_not_run() {
    let fixture = start_fixture("open");
    let dir = workspace(&fixture);
    bare(&dir.join("bare.git"));
    let trace = dir.join("trace");
    for hook in ["pre-receive", "update", "post-receive", "post-update", "reference-transaction"] {
        let path = dir.join("bare.git/hooks").join(hook);
        write_program(&path, format!("#!/bin/sh\ntouch '{}'\n", trace.display()));
    }
    git(&dir, &["remote", "add", "up.stream", "./bare.git"]);
    expect_tool(&fixture, "git_push", json!({"remote": "up.stream", "branch": "main"}));
    assert_eq!(git(&dir.join("bare.git"), &["rev-parse", "main"]), git(&dir, &["rev-parse", "main"]));
    assert!(!trace.exists(), "a hook ran");
}

#[test]
fn pushes_go_nowhere_else() {
    let fixture = start_fixture("open");
    let (dir, outside) = (workspace(&fixture), fixture.home.temp_dir().join("outside.git"));
    bare(&outside);
    let trace = dir.join("trace");
    for (name, url, why) in [
        ("ext", format!("ext::touch%20{}", trace.display()), "is not https, git"),
        ("fd", "fd::3".into(), "is not https, git"),
        ("plain", "http://127.0.0.1:1/x.git".into(), "is not https, git"),
        ("ssh", "git@127.0.0.1:x.git".into(), "needs ssh"),
        ("path", outside.display().to_string(), "not a repository in the workspace"),
        ("file", format!("file://{}", outside.display()), "not a repository in the workspace"),
        ("up", "../docs".into(), "not a repository in the workspace"),
        ("option", "--upload-pack=x".into(), "unsupported address"),
        ("refused", "https://127.0.0.1:1/x/y.git".into(), "to https://127.0.0.1:1/x/y.git: "),
        ("refused2", "git://127.0.0.1:1/x.git".into(), "to git://127.0.0.1:1/x.git: "),
    ] {
        git(&dir, &["config", &format!("remote.{name}.url"), &url]);
        let said = expect_tool_error(&fixture, "git_push", json!({"remote": name, "branch": "main"}));
        assert!(said.contains(why), "{name}: {said}");
    }
    git(&dir, &["config", "--add", "remote.path.url", "./x"]);
    for (remote, branch, why) in [
        ("path", "main", "has 2 addresses"),
        ("none", "main", "remote none does not exist (remotes: ext, "),
        ("--mirror", "main", "not a valid remote name"),
        ("https://127.0.0.1/x", "main", "not a valid remote name"),
        ("refused", "--all", "not a valid branch name"),
        ("refused", "+main", "no branch +main with a commit"),
        ("refused", "main:other", "not a valid branch name"),
    ] {
        let said = expect_tool_error(&fixture, "git_push", json!({"remote": remote, "branch": branch}));
        assert!(said.contains(why), "{remote} {branch}: {said}");
    }
    assert!(!trace.exists() && git(&outside, &["for-each-ref"]).is_empty());
}

#[test]
fn without_the_network_this_machine_and_what_is_near_it_are_not_gone_to() {
    let profile = "[permissions.alone]\nallow = ['.*']\n";
    let fixture = start_fixture_with("alone", profile);
    let (base, dir) = (fixture.home.temp_dir().join("served"), workspace(&fixture));
    bare(&base.join("it.git"));
    let server = Server::start(&base);
    for (host, why) in [
        ("127.0.0.1", "a local or private address"),
        ("localhost", "a local or private address"),
        ("2130706433", "a local or private address"),
        ("0x7f.1", "a local or private address"),
        ("me@127.0.0.1", "cannot be checked"),
        ("[::1]", "cannot be checked"),
        ("nowhere.invalid", "cannot resolve"),
    ] {
        for (scheme, port) in [("git", server.port), ("https", 443)] {
            if host.starts_with("me@") && scheme == "https" {
                continue;
            }
            git(&dir, &["config", "remote.origin.url", &format!("{scheme}://{host}:{port}/it.git")]);
            let said = expect_tool_error(&fixture, "git_push", json!({"remote": "origin", "branch": "main"}));
            assert!(said.contains(why), "{scheme} {host}: {said}");
        }
    }
    assert!(git(&base.join("it.git"), &["for-each-ref"]).is_empty());
}
