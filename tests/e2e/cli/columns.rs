//! Tables have the same columns on a narrow and on a wide terminal, and no line is wider than the terminal.

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home, InteractiveCommand};

use crate::home;

/// Runs `chorusctl` on a terminal of this width; returns the lines of the screen without colors.
fn shown(home: &Home, width: u16, args: &[&str]) -> Vec<String> {
    let mut command = home.command(home.bins.chorusctl);
    command.env("NO_COLOR", "1").args(args).arg("--no-pager");
    let (status, shown, _) = InteractiveCommand::on_terminal_of(&command, width, 40).wait_for_exit();
    assert_eq!(status.code(), Some(0), "{args:?}: {shown}");
    let lines: Vec<String> = shown.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect();
    for line in &lines {
        assert!(line.chars().count() <= usize::from(width), "{args:?} at {width}: {line}");
    }
    lines
}

#[test]
fn a_table_has_the_same_columns_at_any_width() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for name in ["a", "an-agent-with-a-long-name"] {
        client.init(name);
        client.append_all(name, vec![NewMessage::text(Role::User, "word ".repeat(60))]);
        client.save(name, &"A title that is longer than any terminal is wide, ".repeat(5));
    }
    client.append("a", "more");
    for (key, value) in [("permissions", "open"), ("system_prompt", &*"Be brief. ".repeat(40))] {
        chorusctl(&home, ["agent", "config", "a", key, value]).expect_success();
    }
    chorusctl(&home, ["memory", "add", "--agent", "a", &"remember this, ".repeat(20)]).expect_success();
    let gone = client.save("an-agent-with-a-long-name", "to the trash").header.id.to_string();
    chorusctl(&home, ["--agent", "an-agent-with-a-long-name", "rm", &gone]).expect_success();
    for (args, due) in [
        (&["history", "--all-agents"][..], "# ID WHEN AGENT MESSAGES TITLE"),
        (&["agent", "list"], "NAME STATE MESSAGES ACTIVITY PERMISSIONS"),
        (&["trash", "list"], "ID DELETED WHAT AGENT NAME"),
        (&["memory", "list", "--agent", "a"], "ID WHEN BY WHAT"),
    ] {
        for width in [80, 200] {
            let lines = shown(&home, width, args);
            let title = lines[0].split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(title.starts_with(due), "{args:?} at {width}: {lines:?}");
        }
    }
    for width in [80, 200] {
        let audit = shown(&home, width, &["audit"]);
        let said = audit.iter().find(|line| line.contains("owner changed the permissions of a")).expect("an entry");
        assert_eq!(said.find("owner"), Some(26), "{audit:?}");
        let tree = shown(&home, width, &["session", "tree", "--agent", "a"]);
        assert!(tree[0].ends_with("ago") || tree[0].ends_with("just now"), "the facts are not cut: {tree:?}");
    }
}
