//! What works: the workspace, and the tools of the machine.

use std::fs;

use serde_json::json;

use super::{call_bash, each_sandbox, run_command};

#[test]
fn the_workspace_is_there_under_its_own_path_and_keeps_what_is_written() {
    for fixture in each_sandbox() {
        let workspace = fixture.workspace("a");
        assert_eq!(run_command(&fixture, "pwd").ok(), format!("{}\n", workspace.display()));
        assert_eq!(
            run_command(&fixture, "echo hello > a.txt; mkdir -p d && mv a.txt d/ && cat d/a.txt").ok(),
            "hello\n"
        );
        assert_eq!(fs::read_to_string(workspace.join("d/a.txt")).expect("the file"), "hello\n");
        // Each call begins anew.
        assert_eq!(run_command(&fixture, "cd d; x=1; echo $HOME > /tmp/t; touch ~/kept").ok(), "");
        assert_eq!(
            run_command(&fixture, "pwd; echo \"[$x]\"; ls /tmp ~").text.lines().next(),
            Some(&*workspace.to_string_lossy())
        );
        assert!(run_command(&fixture, "ls ~/kept").is_error && run_command(&fixture, "cat /tmp/t").is_error);
        let status = run_command(&fixture, "exit 3");
        assert_eq!((status.text.as_str(), status.is_error), ("[exit status 3]", true));
        assert_eq!(run_command(&fixture, "kill -9 $$").text, "[killed by signal 9]");
        assert_eq!(run_command(&fixture, "echo out; echo err >&2; echo out").ok(), "out\nerr\nout\n");
        let missing = run_command(&fixture, "no-such-program");
        assert!(missing.is_error && missing.text.contains("[exit status 127]"), "{missing:?}");
    }
}

#[test]
fn git_and_a_build_work() {
    for fixture in each_sandbox() {
        let git = "git init -q repo && cd repo && echo x > f && git add f && \
                   git -c user.name=a -c user.email=a@b commit -qm first && git log --format=%s";
        assert_eq!(run_command(&fixture, git).ok(), "first\n");
        let build =
            "cat > m.c <<'X'\n#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\nX\ncc -o m m.c && ./m";
        assert_eq!(run_command(&fixture, build).ok(), "built\n");
        assert_eq!(run_command(&fixture, "printf 'all:\\n\\t@echo made\\n' > Makefile && make -s -j4").ok(), "made\n");
        // A folder of plain files is no repository, and names no programs to run.
        let bare = "git init -q --bare plain && cd plain && git status";
        let told = run_command(&fixture, bare);
        assert!(told.is_error && told.text.contains("safe.bareRepository"), "{told:?}");
    }
}

#[test]
fn git_runs_no_hooks_of_the_workspace_and_heeds_no_configuration_but_that_of_the_repository() {
    for fixture in each_sandbox() {
        let hook = "git init -q && git config user.name a && git config user.email a@b && \
                    printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit";
        assert_eq!(run_command(&fixture, hook).ok(), "");
        assert_eq!(run_command(&fixture, "git commit -q --allow-empty -m x; ls").ok(), "");
        assert_eq!(
            run_command(&fixture, "git -c core.hooksPath=.git/hooks commit -q --allow-empty -m y; ls").ok(),
            "hooked\n"
        );
        let other =
            "printf '[alias]\\n  planted = !echo planted\\n' | tee ~/.gitconfig > ~/.config-of-git; git planted";
        let told = run_command(&fixture, other);
        assert!(told.is_error && told.text.contains("'planted' is not a git command"), "{told:?}");
        let origins = run_command(&fixture, "git config --list --show-origin --show-scope | cut -f 1 | sort -u").ok();
        assert_eq!(origins, "command\nglobal\nlocal\n");
    }
}

#[test]
fn a_commit_is_by_the_agent_unless_the_repository_names_an_author() {
    for fixture in each_sandbox() {
        let commit = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>, %cn <%ce>'";
        let agent = "a <a@chorus.localhost>";
        let told = run_command(&fixture, &format!("git init -q && {commit}"));
        assert_eq!(told.ok(), format!("{agent}, {agent}\n"));
        let named = format!("git config user.name Mara && {commit}");
        assert_eq!(run_command(&fixture, &named).ok(), "Mara <a@chorus.localhost>, Mara <a@chorus.localhost>\n");
        let settings = run_command(&fixture, "echo '[alias] x = !id' >> $GIT_CONFIG_GLOBAL");
        assert!(settings.is_error, "{settings:?}");
    }
}

#[test]
fn everything_else_is_read_only() {
    for fixture in each_sandbox() {
        for place in ["/", "/etc", "/usr", "/usr/bin", "/opt", "/proc", "/sys/devices/system/cpu", "/dev"] {
            let told = run_command(&fixture, &format!("test ! -d {place} || touch {place}/chorus-was-here"));
            assert!(told.is_error, "{place}: {told:?}");
        }
        let agent = fixture.home.agent_dir("a");
        run_command(
            &fixture,
            &format!("echo '{{}}' > {0}/agent.json; mkdir {0}/docs; rm -rf {0}/../..", agent.display()),
        );
        assert!(agent.join("agent.json").metadata().expect("still there").len() > 10);
        assert!(agent.join("sessions").is_dir() && fixture.home.path.join("db/live.db").is_file());
        // A link out of the workspace leads nowhere else.
        assert!(run_command(&fixture, "ln -s /etc/hostname-of-chorus l; echo x > l").is_error);
    }
}

#[test]
fn wrong_arguments_are_told_and_nothing_runs() {
    for fixture in each_sandbox() {
        for (params, what) in [
            (json!({"command": "  "}), "empty"),
            (json!({"command": "a\u{0}b"}), "NUL"),
            (json!({"command": "true", "timeout": 0}), "from 1 to 600"),
            (json!({"command": "true", "timeout": 601}), "from 1 to 600"),
            (json!({"command": "true", "shell": "sh"}), "unknown field"),
            (json!({}), "missing field"),
        ] {
            let told = call_bash(&fixture, &params);
            assert!(told.is_error && told.text.contains(what), "{params}: {told:?}");
        }
        assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
    }
}
