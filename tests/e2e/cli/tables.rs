//! Tables: the columns and rows that one chooses, on terminals of any width, also with wide characters.

use ::chorusctl::ui::text::width;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, InteractiveCommand, wait_until};

use crate::home;

/// Titles with characters that take two columns, several code points or none.
const TITLES: [&str; 4] = [
    "👩‍👩‍👧‍👦 a family, and what it said in a conversation that is longer than any line",
    "世界 の天気 and the weather in the north of it, which is longer than any line",
    "🇩🇪🇫🇷 flags, and e\u{301}\u{308} with marks above it, in a title that is longer than any line",
    "short",
];

/// Every command that prints a table, with a column of it.
const COMMANDS: [(&[&str], &str); 20] = [
    (&["history"], "title"),
    (&["agent", "list"], "name"),
    (&["status"], "agent"),
    (&["tasks"], "command"),
    (&["tasks", "list"], "command"),
    (&["conversations"], "name"),
    (&["trash"], "name"),
    (&["memory"], "what"),
    (&["models"], "model"),
    (&["permissions"], "profile"),
    (&["permissions", "rules"], "allows"),
    (&["config"], "key"),
    (&["usage"], "model"),
    (&["capture", "status"], "source"),
    (&["audit"], "action"),
    (&["notes"], "text"),
    (&["approvals"], "action"),
    (&["cluster"], "node"),
    (&["search", "hello"], "text"),
    (&["memory", "search", "hello"], "what"),
];

/// Starts a home with an agent `a` that has a session with each of the titles.
fn with_sessions() -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for title in TITLES {
        client.append("a", "hello");
        client.save("a", title);
    }
    (home, daemon)
}

/// Runs `chorusctl` on a terminal that is `columns` wide; returns the lines that it printed.
fn on_terminal(home: &Home, columns: u16, args: &[&str]) -> Vec<String> {
    let mut command = home.command(home.bins.chorusctl);
    command.env("NO_COLOR", "1").args(args).arg("--no-pager");
    let (status, shown, _) = InteractiveCommand::on_terminal_of(&command, columns, 40).wait_for_exit();
    assert_eq!(status.code(), Some(0), "{args:?}: {shown}");
    shown.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

/// Returns the column of the terminal in which `word` begins.
fn column_of(line: &str, word: &str) -> usize {
    width(&line[..line.find(word).unwrap_or_else(|| panic!("no {word:?} in {line:?}"))])
}

#[test]
fn no_line_is_wider_than_the_terminal_and_wide_characters_are_measured() {
    let (home, _daemon) = with_sessions();
    let whole = chorusctl(&home, ["history"]).expect_success();
    for columns in [80, 40] {
        // Without a cluster that fails.
        for (args, column) in COMMANDS.into_iter().filter(|(args, _)| *args != ["cluster"]) {
            let lines = on_terminal(&home, columns, args);
            let is_heading = |line: &&String| line.contains(&column.to_uppercase());
            // Those without entries have no table.
            for line in lines.iter().skip_while(|line| !is_heading(line)).take_while(|line| !line.is_empty()) {
                assert!(width(line) <= usize::from(columns), "{args:?} at {columns}: {line:?}");
            }
        }
        let lines = on_terminal(&home, columns, &["history"]);
        for (line, entry) in lines[1..=TITLES.len()].iter().zip(whole.lines().skip(1)) {
            // The number, ID and time are whole, however narrow the terminal is; and the titles stand below each other.
            let [number, id, day, time] = entry.split_whitespace().collect::<Vec<_>>()[..4] else { panic!("{entry}") };
            for word in [number, id, day, time] {
                assert!(line.contains(word), "{word:?} at {columns}: {lines:?}");
            }
            let title = TITLES.iter().find_map(|title| line.find(title.split_whitespace().next()?));
            let title = title.unwrap_or_else(|| panic!("no title: {line:?}"));
            assert_eq!(width(&line[..title]), column_of(&lines[0], "TITLE"), "at {columns}: {lines:?}");
        }
    }
    // Columns that have no room are left out, and a mark says so.
    let narrow = on_terminal(&home, 40, &["history"]);
    assert!(narrow[0].starts_with(" #  ID") || narrow[0].starts_with("#  ID"), "{narrow:?}");
    assert!(!narrow[0].contains("MESSAGES") && narrow[0].ends_with('…'), "{narrow:?}");
    assert!(on_terminal(&home, 80, &["history"])[0].contains("MESSAGES"));
}

#[test]
fn long_and_pipes_cut_nothing() {
    let (home, _daemon) = with_sessions();
    let piped = chorusctl(&home, ["history"]).expect_success();
    let agents = on_terminal(&home, 40, &["history", "--columns", "title,id", "--long"]);
    for title in TITLES {
        assert!(piped.contains(title), "{piped}");
        assert!(agents.iter().any(|line| line.starts_with(title)), "{agents:?}");
    }
    let settings = on_terminal(&home, 40, &["settings", "--long"]);
    assert!(settings.iter().any(|line| width(line) > 40), "{settings:?}");
    assert!(on_terminal(&home, 40, &["settings"]).iter().any(|line| line.contains('…')));
}

#[test]
fn columns_are_chosen_ordered_sorted_and_filtered() {
    let (home, _daemon) = with_sessions();
    let rows = |args: &[&str]| {
        let shown = chorusctl(&home, args).expect_success();
        let table = shown.split("\n\n").next().unwrap_or_default();
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    // The messages of the sessions are 1, 2, 3 and 4, in the order in which they were saved.
    let messages = |args: &[&str]| rows(&[&["history", "--columns", "messages"], args].concat()).split_off(1).concat();
    assert_eq!(rows(&["history", "--columns", "Messages,number"])[..2], ["MESSAGES #", "4 1"]);
    assert_eq!(messages(&[]), "4321");
    assert_eq!(messages(&["--sort", "messages"]), "1234");
    assert_eq!(messages(&["--sort", "-messages"]), "4321");
    assert_eq!(messages(&["--sort", "agent,messages", "-n", "3"]), "123");
    assert_eq!(messages(&["--sort", "messages", "-n", "3", "--page", "2"]), "4");
    assert_eq!(messages(&["--sort", "title"]), "4231", "short comes before what is not ASCII");
    assert_eq!(messages(&["--sort", "when"]), "1234");
    assert_eq!(messages(&["--filter", "LONGER"]), "321");
    assert_eq!(messages(&["--filter", "longer", "--filter", "title=天気"]), "2");
    // A number selects the same session whether the list was sorted or not.
    let sorted = rows(&["history", "--sort", "messages", "--columns", "number,messages"]);
    assert_eq!(sorted[1..], ["4 1", "3 2", "2 3", "1 4"]);
    assert!(chorusctl(&home, ["show", "4"]).expect_success().contains("family"));
    for (args, due) in [(&["history"][..], "no sessions match\n"), (&["agent", "list"], "no row matches\n")] {
        let none = chorusctl(&home, args.iter().chain(&["--filter", "nothing has this"]));
        assert_eq!((none.status, &*none.stdout, &*none.stderr), (0, "", due));
    }
    assert_eq!(rows(&["agent", "list", "--columns", "name,node"]), ["NAME NODE", "a"]);
}

#[test]
fn what_is_no_table_is_one_with_these_options() {
    let (home, _daemon) = with_sessions();
    chorusctl(&home, ["agent", "config", "a", "permissions", "open"]).expect_success();
    chorusctl(&home, ["notes", "add", "--task", "write the test"]).expect_success();
    let table = |args: &[&str]| {
        let shown = chorusctl(&home, args).expect_success();
        shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let audit = table(&["audit", "--columns", "agent,action,decision", "--filter", "action=permissions"]);
    assert_eq!(audit[0], "AGENT ACTION DECISION");
    assert!(audit[1..].iter().any(|row| row.starts_with("a ") && row.ends_with(" changed")), "{audit:?}");
    assert_eq!(table(&["notes", "--sort", "id", "--columns", "kind,text"]), ["KIND TEXT", "task write the test"]);
    let hits = wait_until("the hits", DEADLINE, || {
        let hits = table(&["search", "hello", "--columns", "agent,title", "--sort", "title", "--all-agents"]);
        hits.iter().any(|row| row == "a short").then_some(hits)
    });
    assert_eq!(hits[0], "AGENT TITLE");
    // A group takes the options of its list, and none of them for another subcommand.
    assert_eq!(table(&["permissions", "--columns", "profile", "--filter", "locked"]), ["PROFILE", "locked"]);
    chorusctl(&home, ["trash", "--sort", "name", "restore", "x"]).expect_failure(2);
}

#[test]
fn every_table_refuses_a_column_that_it_does_not_have() {
    let home = home();
    for (args, column) in COMMANDS {
        for option in ["--columns=nothing", "--sort=-nothing", "--filter=nothing=x"] {
            let refused = chorusctl(&home, args.iter().chain(&[option, "--no-autostart"]));
            let refused = refused.expect_failure(2);
            assert!(
                refused.starts_with("error: no column is called \"nothing\"\nhint: columns: "),
                "{args:?}: {refused}"
            );
            assert!(refused.contains(column), "{args:?}: {refused}");
        }
        let refused = chorusctl(&home, args.iter().chain(&["--json", "--sort", column]));
        assert!(refused.expect_failure_with_hint(2).contains("--sort"), "{args:?}: {refused:?}");
    }
}
