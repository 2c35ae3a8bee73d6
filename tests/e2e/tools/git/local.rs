//! A day's work with git.

use std::fs;

use serde_json::json;

use super::{git, workspace, write};
use crate::tools::self_edit::{expect_tool, expect_tool_error, results, start_fixture};

#[test]
fn changes_are_shown_committed_and_listed() {
    let fixture = start_fixture("standard");
    assert_eq!(expect_tool(&fixture, "git_diff", json!({})), "no changes");
    write(&fixture, "a.txt", "one\n");
    write(&fixture, "src/b.txt", "two\n");
    let said = expect_tool(&fixture, "git_diff", json!({}));
    assert!(said.contains("untracked:") && said.contains("a.txt") && said.contains("src/b.txt"), "{said}");
    expect_tool(&fixture, "git_commit", json!({"message": "-m\nOnly one", "paths": ["src"]}));
    assert_eq!(git(&workspace(&fixture), &["status", "--porcelain"]), "?? a.txt");
    expect_tool(&fixture, "git_commit", json!({"message": "The rest"}));
    assert_eq!(git(&workspace(&fixture), &["status", "--porcelain"]), "");
    assert_eq!(
        git(&workspace(&fixture), &["log", "--format=%an %ae %s", "-2"]),
        "a a@chorus.localhost The rest\na a@chorus.localhost -m Only one"
    );
    write(&fixture, "a.txt", "three\n");
    fs::remove_file(workspace(&fixture).join("src/b.txt")).expect("gone");
    let said = expect_tool(&fixture, "git_diff", json!({"path": "a.txt"}));
    assert!(said.contains("-one\n+three") && !said.contains("b.txt"), "{said}");
    expect_tool(&fixture, "git_commit", json!({"message": "Gone", "paths": ["src/b.txt"]}));
    assert_eq!(git(&workspace(&fixture), &["show", "--name-status", "--format=", "HEAD"]), "D\tsrc/b.txt");
    git(&workspace(&fixture), &["add", "a.txt"]);
    assert!(expect_tool(&fixture, "git_diff", json!({"staged": true})).contains("+three"));
    let said = expect_tool(&fixture, "git_log", json!({"count": 2}));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0].ends_with(" a: Gone") && lines[1].ends_with(" a: The rest"), "{said}");
    expect_tool(&fixture, "git_commit", json!({"message": "a"}));
    let said = expect_tool_error(&fixture, "git_commit", json!({"message": "again"}));
    assert!(said.contains("nothing to commit"), "{said}");
}

#[test]
fn an_identity_that_is_configured_is_kept() {
    let fixture = start_fixture("standard");
    git(&workspace(&fixture), &["config", "user.name", "Ada"]);
    write(&fixture, "a.txt", "one");
    expect_tool(&fixture, "git_commit", json!({"message": "One"}));
    assert_eq!(git(&workspace(&fixture), &["log", "--format=%an %ae", "-1"]), "Ada a@chorus.localhost");
}

#[test]
fn branches_are_made_listed_and_changed_to() {
    let fixture = start_fixture("standard");
    expect_tool(&fixture, "git_branch", json!({"name": "topic/one"}));
    assert_eq!(expect_tool(&fixture, "git_branch", json!({})), "* main\n  topic/one");
    expect_tool(&fixture, "git_checkout", json!({"branch": "topic/one"}));
    expect_tool(&fixture, "git_checkout", json!({"branch": "two", "create": true}));
    assert_eq!(git(&workspace(&fixture), &["branch", "--show-current"]), "two");
    git(&workspace(&fixture), &["tag", "v1"]);
    for (tool, params, why) in [
        ("git_checkout", json!({"branch": "v1"}), "branch v1 does not exist"),
        ("git_checkout", json!({"branch": "HEAD~1"}), "not a valid branch name"),
        ("git_checkout", json!({"branch": "--orphan"}), "not a valid branch name"),
        ("git_branch", json!({"name": "-D"}), "not a valid branch name"),
        ("git_branch", json!({"name": "two"}), "already exists"),
        ("git_diff", json!({"path": "../agent.json"}), "not a path in the workspace"),
        ("git_diff", json!({"path": ".git/config"}), "not a path in the workspace"),
        ("git_commit", json!({"message": " "}), "must be a non-empty text"),
        ("git_commit", json!({"message": "x", "paths": ["--all"]}), "--all"),
        ("git_commit", json!({"message": "x", "paths": [":(top)"]}), ":(top)"),
        ("git_init", json!({}), "already has a .git"),
    ] {
        let said = expect_tool_error(&fixture, tool, params);
        assert!(said.contains(why), "{tool}: {said}");
    }
}

#[test]
fn a_workspace_without_a_repository_gets_one() {
    let fixture = start_fixture("standard");
    fs::remove_dir_all(workspace(&fixture).join(".git")).expect("gone");
    let said = expect_tool_error(&fixture, "git_log", json!({}));
    assert!(said.contains("initialize it with git_init"), "{said}");
    expect_tool(&fixture, "git_init", json!({}));
    assert_eq!(expect_tool(&fixture, "git_log", json!({})), "no commits yet");
    assert_eq!(expect_tool(&fixture, "git_branch", json!({})), "no branches yet: nothing was committed");
    write(&fixture, "a.txt", "one");
    expect_tool(&fixture, "git_commit", json!({"message": "One"}));
    assert_eq!(git(&workspace(&fixture), &["branch", "--show-current"]), "main");
}

#[test]
fn calls_of_one_answer_do_not_get_in_each_others_way() {
    let fixture = start_fixture("standard");
    let mut answer = chorus_tests::model_server::Response::empty();
    for number in 0..8 {
        write(&fixture, &format!("{number}.txt"), "x");
        let params = json!({"message": number.to_string(), "paths": [format!("{number}.txt")]});
        answer = answer.then_call(&format!("c{number}"), "git_commit", &params);
    }
    fixture.models().anthropic().queue(answer);
    fixture.models().anthropic().queue_text(["Done."]);
    fixture.send("a", "commit each").expect("a turn");
    for came in results(&fixture, "a") {
        assert!(!came.is_error, "{}", came.text);
    }
    assert_eq!(git(&workspace(&fixture), &["rev-list", "--count", "HEAD"]), "9");
}
