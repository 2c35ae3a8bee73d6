//! The scripts in the shells they are for, where those are installed.

use std::os::unix::fs::symlink;
use std::process::Command;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::{Daemon, Home, skip};

use crate::home;

/// What `shell` answers to `script`, with `chorusctl` in its PATH and the completions in `$1`.
fn run(home: &Home, shell: &str, script: &str) -> Option<String> {
    if Command::new(shell).arg("--version").output().is_err() {
        skip(&format!("{shell} is not installed"));
        return None;
    }
    let bin = home.temp_dir().join("bin");
    std::fs::create_dir_all(&bin).expect("a directory");
    symlink(home.bins.chorusctl, bin.join("chorusctl")).expect("a link");
    let file = home.temp_dir().join("completions");
    std::fs::write(&file, chorusctl(home, ["completions", shell]).expect_success()).expect("a file");
    let mut command = home.command(shell);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display())).env("COMPLETIONS", &file).args(["-c", script]);
    Some(ctl::run_command(command, b"").expect_success())
}

fn with_agents(home: &Home) -> Daemon {
    let daemon = Daemon::start(home);
    for agent in ["atlas", "atoll", "zephyr"] {
        daemon.client().init(agent);
    }
    daemon
}

#[test]
fn bash_completes() {
    let home = home();
    let _daemon = with_agents(&home);
    let script = r#"source "$COMPLETIONS"; complete -p chorusctl
        COMP_WORDS=(chorusctl agent show at); COMP_CWORD=3
        # Where the daemon has other things to do for as long as a prompt waits, the next try has the names.
        for _ in {1..50}; do _clap_complete_chorusctl chorusctl at show; [ ${#COMPREPLY[@]} -gt 0 ] && break; done
        printf '<%s>' "${COMPREPLY[@]}""#;
    let Some(said) = run(&home, "bash", script) else { return };
    assert!(said.contains("-F _clap_complete_chorusctl chorusctl"), "{said}");
    let said: String = said.chars().filter(|c| !c.is_whitespace()).collect();
    assert!(said.contains("atlas") && said.contains("atoll") && !said.contains("zephyr"), "{said}");
}

#[test]
fn bash_completes_a_word_of_a_title_and_inserts_no_hyphens() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("atlas");
    client.append("atlas", "hello");
    client.save("atlas", "Crypto baseline");
    let script = r#"source "$COMPLETIONS"
        for word in cry ""; do
            COMP_WORDS=(chorusctl restore "$word"); COMP_CWORD=2
            for _ in {1..50}; do _clap_complete_chorusctl chorusctl "$word" restore; [ ${#COMPREPLY[@]} -gt 0 ] && break; done
            printf '<%s>' "${COMPREPLY[@]}"; echo
        done"#;
    let Some(said) = run(&home, "bash", script) else { return };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0].replace(' ', ""), "<crypto-baseline>", "{said}");
    assert!(lines[1].contains("_crypto-baseline") && !lines[1].contains("--"), "{said}");
}

#[test]
fn fish_completes() {
    let home = home();
    let _daemon = with_agents(&home);
    let script = r#"source $COMPLETIONS; for try in (seq 50); set names (complete -C "chorusctl agent show at"); test -n "$names"; and break; end
        printf '%s\n' $names; complete -C "chorusctl stat""#;
    let Some(said) = run(&home, "fish", script) else { return };
    let names: Vec<&str> = said.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["atlas", "atoll", "status"], "{said}");
}

#[test]
fn zsh_takes_the_script() {
    let home = home();
    let script = r#"autoload -Uz compinit; compinit -D -u; source "$COMPLETIONS"; print -r -- $_comps[chorusctl]"#;
    let Some(said) = run(&home, "zsh", script) else { return };
    assert_eq!(said.trim(), "_clap_dynamic_completer_chorusctl");
}

#[test]
fn bash_completes_what_it_splits_at_an_at_sign() {
    let home = home();
    let _daemon = with_agents(&home);
    chorusctl(&home, ["agent", "use", "atlas"]).expect_success();
    chorusctl(&home, ["-C", "review", "context", "append", "hello"]).expect_success();
    // What bash passes for `show @re`.
    let script = r#"source "$COMPLETIONS"
        COMP_WORDS=(chorusctl show @ re); COMP_CWORD=3
        for _ in {1..50}; do _clap_complete_chorusctl chorusctl @re @; [ ${#COMPREPLY[@]} -gt 0 ] && break; done
        printf '<%s>' "${COMPREPLY[@]}""#;
    let Some(said) = run(&home, "bash", script) else { return };
    assert_eq!(said.replace(' ', ""), "<@review>");
}
