//! Tests of the rules of agents, against commands that try to get past a pattern.

use serde_json::json;

use super::super::Profiles;
use super::*;

fn profile(permissions: &Value) -> Arc<Profile> {
    Profiles::default().resolve(permissions).unwrap()
}

fn bash(command: &str) -> String {
    format!("{BASH_PREFIX}{command}")
}

fn offered(profile: &Profile, command: &str) -> String {
    profile.propose_patterns(&bash(command), &WorkspacePaths::default()).join(", ")
}

/// The profile once `patterns` were approved for good.
fn with(profile: &Profile, patterns: &[&str]) -> Profile {
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    profile.with_agent_rules(profile.extended_agent_rules(
        AgentRuleKind::Command,
        &patterns,
        (Timestamp::UNIX_EPOCH, "owner"),
        None,
    ))
}

fn decision(profile: &Profile, command: &str) -> Decision {
    profile.judge(&bash(command)).decision
}

#[test]
fn a_pattern_is_offered_for_each_part_that_is_not_allowed_and_makes_the_command_allowed() {
    let standard = profile(&json!("standard"));
    let some = profile(&json!({"allow": ["tool:bash:cargo( .*)?", "tool:create_file:.*"], "default": "ask"}));
    for (profile, command, wanted) in [
        (&standard, "git status", "git status *"),
        (&standard, "git --no-pager log -3", "git --no-pager log *"),
        (&standard, "cargo test && git status", "cargo test *, git status *"),
        (&standard, "ls | wc -l; ls src", "ls *, wc *"),
        (&standard, "npm run build -- --watch", "npm run build *"),
        (&standard, "cd src && cargo test", "cd *, cargo test *"),
        (&standard, "git log > log.txt", "git log *"),
        (&standard, "grep -rn 'a b' src", "grep *"),
        (&some, "cargo build && git diff", "git diff *"),
        (&some, "cargo fmt && ls > x", "ls *"),
    ] {
        assert_eq!(offered(profile, command), wanted, "{command}");
        let patterns: Vec<&str> = wanted.split(", ").collect();
        assert_eq!(decision(&with(profile, &patterns), command), Decision::Allow, "{command}");
    }
}

#[test]
fn no_pattern_is_offered_where_none_is_proven() {
    let standard = profile(&json!("standard"));
    for command in [
        "sudo ls",
        "env ls",
        "sh -c ls",
        "bash x.sh",
        "xargs ls",
        "python x.py",
        "node x.js",
        "make",
        "rm -rf build",
        "curl https://x",
        "ssh host ls",
        "./run.sh",
        "frobnicate x",
        "git",
        "git push origin main",
        "git -c core.pager=x log",
        "git log --output=x",
        "git status | sh",
        "git status $(ls)",
        "git status $x",
        "ls *",
        "ls && rm x",
        "x=1 ls",
        "if true; then ls; fi",
        "cd x && git status",
        "sort -o x y",
        "find . -delete",
        "cargo test --config x",
        "git status\n\tsh x",
        "ls; pwd; wc x; cat x; head x; tail x",
        "",
    ] {
        assert_eq!(offered(&standard, command), "", "{command}");
    }
    let whole = profile(&json!({"bash": "whole", "default": "ask"}));
    assert_eq!(offered(&whole, "git status"), "", "a profile that does not take commands apart");
    let fenced = profile(&json!({"default": "ask", "ask": [r"tool:bash:.*&&.*"]}));
    assert_eq!(offered(&fenced, "ls && pwd"), "", "it would be asked about all the same");
    assert_eq!(offered(&profile(&json!({"deny": ["tool:bash:ls.*"], "default": "ask"})), "ls"), "");
}

#[test]
fn a_pattern_covers_no_other_program_however_a_command_is_written() {
    let patterns = ["git status *", "git log *", "cargo test *", "npm run build *", "ls *", "sort *", "cat *"];
    let own = with(&profile(&json!("standard")), &patterns);
    for command in
        ["git status", "git status -s .", "cargo test -- x", "ls -la | sort -u", "npm run build", "cat a 'b c'"]
    {
        assert_eq!(decision(&own, command), Decision::Allow, "{command}");
    }
    let hostile = [
        "git status; rm -rf x",
        "git status && rm -rf x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm -rf x",
        "git status\r\nrm x",
        "git status $(rm x)",
        "git status `rm x`",
        "git status \"$(rm x)\"",
        "git status <(rm x)",
        "git status > .git/hooks/pre-commit",
        "git status > /etc/passwd",
        "git status >> ../x",
        "git status <<< $(rm x)",
        "git status; git push",
        "git -c core.pager=x status",
        "git -c core.fsmonitor=x status",
        "git --exec-path=x status",
        "git -C x status",
        "git status --output=x",
        "git log --output=x",
        "git log --outp x",
        "git log --ext-diff",
        "git log --textconv",
        "git log --help",
        "git  stash drop",
        "git statusx",
        "git status-x",
        "gitstatus",
        "git push origin status",
        "GIT_PAGER=x git log",
        "PATH=. git status",
        "LD_PRELOAD=x ls",
        "sudo git status",
        "env git status",
        "xargs git status",
        "command git status",
        "/tmp/git status",
        "./git status",
        "'git' status",
        "g\\it status",
        "cd x && git status",
        "cd x; git log",
        "cargo test --config build.rustc-wrapper=x",
        "cargo run",
        "cargo testx",
        "cargo +x test",
        "npm run buildx",
        "npm run deploy",
        "npm run build --script-shell=x",
        "npm install",
        "lsof",
        "ls *",
        "ls ~",
        "ls --option-of-tomorrow",
        "ls {a,b}",
        "ls; python x.py",
        "sort -o x y",
        "sort --compress-program=x y",
        "cat x > .git/config",
        "cat x\u{202e}",
        "if ls; then cat x; fi",
        "ls() { rm x; }; ls",
        "alias ls=rm; ls",
        "{ ls; }",
        "! ls",
        "",
    ];
    for command in hostile {
        assert_ne!(decision(&own, command), Decision::Allow, "{command}");
    }
    // Joined to something that is covered, before and behind, they are not covered either.
    for command in hostile.iter().filter(|command| !command.is_empty()) {
        for joined in [format!("ls && {command}"), format!("{command} | cat"), format!("git log; {command}")] {
            assert_ne!(decision(&own, &joined), Decision::Allow, "{joined}");
        }
    }
}

#[test]
fn a_deny_and_a_narrower_ask_win_over_a_pattern() {
    let permissions = json!({
        "deny": ["tool:bash:git log .*secret.*", "tool:view:.*\\.env"],
        "ask": ["tool:bash:git .*--force.*", "tool:bash:git( .*)?", "tool:bash:.*"],
        "default": "deny",
    });
    let own = with(&profile(&permissions), &["git log *", "git checkout *", "cat *"]);
    for (command, wanted) in [
        ("git log", Decision::Allow),
        ("git log -3", Decision::Allow),
        ("git log --grep secret", Decision::Deny),
        ("git log -3 && git log secret", Decision::Deny),
        ("git checkout main", Decision::Allow),
        ("git checkout --force main", Decision::Ask),
        ("git checkout main && git checkout --force x", Decision::Ask),
        ("cat < .env", Decision::Deny),
    ] {
        assert_eq!(decision(&own, command), wanted, "{command}");
    }
    assert_eq!(decision(&with(&profile(&json!("locked")), &["ls *"]), "ls"), Decision::Deny);
}

#[test]
fn rules_come_back_from_their_file_and_wrong_ones_are_refused_with_their_place() {
    let own = with(&profile(&json!("standard")), &["git status *", "ls *", "ls *"]);
    let rules: Vec<AgentRule> = own.agent_rules().cloned().collect();
    assert_eq!(rules.iter().map(|rule| rule.number).collect::<Vec<_>>(), [1, 2], "each is there once");
    assert_eq!(parse_agent_rules(&agent_rules_to_json(&rules)).unwrap(), rules);
    let rule = |kind: &str, rule: &str| {
        let entry = json!({"kind": kind, "rule": rule, "created_at": "2026-01-01T00:00:00Z", "created_by": "x"});
        parse_agent_rules(&json!([entry]))
    };
    assert!(rule("action", "tool:bash:a 'b' *").is_ok() && rule("command", "git status *").is_ok());
    for wrong in
        ["git status", "git  status *", " *", "*", "git * *", "'git status *", "git 'status *", "g[i]t *", "~ *"]
    {
        assert!(rule("command", wrong).unwrap_err().contains("permission_rules[0]"), "{wrong}");
    }
    assert!(parse_agent_rules(&json!({})).is_err() && parse_agent_rules(&json!([{"kind": "action"}])).is_err());
}
