//! Workspaces whose repository names programs to run, wherever git looks for some.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_tests::Fixture;
use chorus_tests::program::write_program;
use serde_json::{Value, json};

use super::{git, workspace, write};
use crate::tools::self_edit::{call_tool, expect_tool, expect_tool_error, start_fixture};

/// A program that leaves a trace when it runs, in the sandbox too.
fn trap(fixture: &Fixture) -> (PathBuf, PathBuf) {
    let (program, trace) = (workspace(fixture).join("trap"), workspace(fixture).join("trace"));
    let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat 2>/dev/null\nexit 0\n", trace.display());
    write_program(&program, script);
    (program, trace)
}

/// Every tool that works in the repository, whatever comes of it.
fn every_tool(fixture: &Fixture) {
    for number in 0..2 {
        write(fixture, "a.txt", &format!("{number}\n"));
        for (tool, params) in [
            ("git_diff", json!({})),
            ("git_commit", json!({"message": "x"})),
            ("git_branch", json!({"name": format!("b{number}")})),
            ("git_branch", json!({})),
            ("git_checkout", json!({"branch": format!("b{number}")})),
            ("git_checkout", json!({"branch": format!("c{number}"), "create": true})),
            ("git_log", json!({})),
            ("git_push", json!({"remote": "origin", "branch": "main"})),
        ] {
            call_tool(fixture, tool, params);
        }
    }
}

fn assert_untouched(trace: &Path) {
    assert!(!trace.exists(), "{}", fs::read_to_string(trace).unwrap_or_default());
}

#[test]
fn settings_and_hooks_that_name_programs_run_none() {
    let fixture = start_fixture("open");
    let (program, trace) = trap(&fixture);
    let (dir, program) = (workspace(&fixture), program.display().to_string());
    git(&dir, &["remote", "add", "origin", &format!("ext::{program} %S")]);
    git(&dir, &["config", "url.ext::x.insteadOf", "https://"]);
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "credential.helper",
        "credential.https://example.org.helper",
        "gpg.program",
        "gpg.openpgp.program",
        "gpg.ssh.program",
        "gpg.ssh.defaultKeyCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "merge.evil.driver",
        "interactive.diffFilter",
        "sequence.editor",
        "pager.log",
        "pager.diff",
        "alias.log",
        "alias.commit",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
        "uploadpack.packObjectsHook",
        "gc.recentObjectsHook",
        "trailer.x.command",
        "submodule.x.update",
    ] {
        git(&dir, &["config", key, &program]);
    }
    for (key, value) in [
        ("commit.gpgSign", "true"),
        ("tag.gpgSign", "true"),
        ("push.gpgSign", "true"),
        ("log.showSignature", "true"),
        ("commit.verbose", "true"),
        ("gc.auto", "1"),
        ("gc.autoDetach", "false"),
        ("submodule.recurse", "true"),
        ("protocol.ext.allow", "always"),
        ("protocol.allow", "always"),
        ("remote.origin.promisor", "true"),
        ("core.hooksPath", "hooks"),
    ] {
        git(&dir, &["config", key, value]);
    }
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
        "update",
        "fsmonitor-watchman",
    ] {
        for folder in ["hooks", ".git/hooks"] {
            write(&fixture, &format!("{folder}/{hook}"), "");
            fs::copy(&program, dir.join(folder).join(hook)).expect("a hook");
        }
    }
    write(&fixture, ".gitattributes", "* diff=evil merge=evil\n");
    write(&fixture, ".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::x\n");
    every_tool(&fixture);
    assert_untouched(&trace);
    assert_eq!(
        git(&dir, &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "rev-list", "--count", "HEAD"]),
        "3",
        "work goes on"
    );
}

#[test]
fn what_cannot_be_overridden_is_refused_by_name() {
    for (key, attributes) in [
        ("filter.evil.clean", "* filter=evil\n"),
        ("filter.Evil.smudge", "* filter=Evil\n"),
        ("filter.evil.process", "*.txt filter=evil\n"),
        ("hook.x.command", ""),
    ] {
        let fixture = start_fixture("open");
        let (program, trace) = trap(&fixture);
        let dir = workspace(&fixture);
        write(&fixture, ".gitattributes", attributes);
        write(&fixture, "a.txt", "x");
        git(&dir, &["config", key, &program.display().to_string()]);
        if key.starts_with("hook") {
            git(&dir, &["config", "hook.x.event", "pre-commit"]);
        }
        let said = expect_tool_error(&fixture, "git_commit", json!({"message": "x"}));
        assert!(said.contains(&format!("sets `{key}`, which runs a program")), "{said}");
        every_tool(&fixture);
        assert_untouched(&trace);
    }
}

#[test]
fn a_filter_in_an_included_file_or_behind_a_flood_of_settings_is_seen() {
    let fixture = start_fixture("open");
    let (program, trace) = trap(&fixture);
    let dir = workspace(&fixture);
    write(&fixture, ".gitattributes", "* filter=evil\n");
    write(&fixture, "evil.config", &format!("[filter \"evil\"]\n\tclean = {}\n", program.display()));
    git(&dir, &["config", "include.path", "../evil.config"]);
    let said = expect_tool_error(&fixture, "git_commit", json!({"message": "x"}));
    assert!(said.contains("filter.evil.clean"), "{said}");
    let flood = "\tname = x\n".repeat(100_000);
    let config = format!("[user]\n{flood}[include]\n\tpath = ../evil.config\n[user]\n{flood}");
    let mut text = fs::read_to_string(dir.join(".git/config")).expect("the configuration");
    text = text.replace("[include]\n\tpath = ../evil.config\n", "") + &config;
    fs::write(dir.join(".git/config"), text).expect("the configuration");
    expect_tool_error(&fixture, "git_commit", json!({"message": "x"}));
    every_tool(&fixture);
    assert_untouched(&trace);
}

#[test]
fn a_repository_that_is_elsewhere_is_not_followed() {
    let fixture = start_fixture("open");
    let (dir, elsewhere) = (workspace(&fixture), fixture.home.temp_dir().join("elsewhere"));
    fs::rename(dir.join(".git"), &elsewhere).expect("moved");
    let refused = |fixture: &Fixture| {
        for (tool, params) in [("git_log", Value::Object(Default::default())), ("git_commit", json!({"message": "x"}))]
        {
            let said = expect_tool_error(fixture, tool, params);
            assert!(said.contains("is not a directory"), "{said}");
        }
        expect_tool_error(fixture, "git_init", json!({}));
    };
    std::os::unix::fs::symlink(&elsewhere, dir.join(".git")).expect("a link");
    refused(&fixture);
    fs::remove_file(dir.join(".git")).expect("no link");
    fs::write(dir.join(".git"), format!("gitdir: {}\n", elsewhere.display())).expect("a file");
    refused(&fixture);
    assert_eq!(git(&elsewhere, &["--git-dir=.", "rev-list", "--count", "--all"]), "1");
}

#[test]
fn another_repository_in_the_workspace_is_left_alone() {
    let fixture = start_fixture("open");
    let (program, trace) = trap(&fixture);
    let dir = workspace(&fixture);
    fs::create_dir(dir.join("inner")).expect("a directory");
    git(&dir.join("inner"), &["init", "--quiet"]);
    write(&fixture, "inner/x.txt", "one\n");
    git(&dir.join("inner"), &["add", "--all"]);
    git(&dir.join("inner"), &["commit", "--quiet", "--message=inner"]);
    expect_tool(&fixture, "git_commit", json!({"message": "With it"}));
    git(&dir.join("inner"), &["config", "filter.evil.clean", &program.display().to_string()]);
    git(&dir.join("inner"), &["config", "core.fsmonitor", &program.display().to_string()]);
    write(&fixture, "inner/.gitattributes", "* filter=evil\n");
    // Of the same length, so that git has to look.
    write(&fixture, "inner/x.txt", "two\n");
    write(&fixture, ".gitmodules", "[submodule \"x\"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n");
    git(&dir, &["config", "submodule.x.ignore", "none"]);
    git(&dir, &["config", "submodule.x.active", "true"]);
    every_tool(&fixture);
    expect_tool_error(&fixture, "git_commit", json!({"message": "nothing"}));
    call_tool(&fixture, "git_commit", json!({"message": "x", "paths": ["inner"]}));
    expect_tool_error(&fixture, "git_commit", json!({"message": "x", "paths": ["inner/x.txt"]}));
    assert_untouched(&trace);
    git(&dir, &["add", "inner"]);
    assert!(trace.exists(), "git itself would have run it");
}
