//! The first minute: no agent has to be created by hand.

use std::fs;

use chorus_tests::ctl::{self, chorusctl, chorusctl_with};
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::{Daemon, Home};

use crate::home;

/// The message about the first agent.
fn created(home: &Home, first: &str) -> String {
    let workspace = home.agent_dir("default").join("workspace");
    format!("created agent default{first}\nits tools work in {}, not in this directory\n", workspace.display())
}

const FIRST: &str = " (your first; `chorusctl agent init` creates others)";

fn agents(home: &Home) -> Vec<String> {
    let list = chorusctl(home, ["agent", "list", "--json"]).expect_json();
    list["agents"].as_array().expect("a list").iter().map(|agent| agent["name"].to_string()).collect()
}

#[test]
fn the_first_append_creates_an_agent_and_says_so_once() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let first = chorusctl(&home, ["context", "append", "hello"]);
    assert_eq!((first.status, &*first.stderr), (0, &*created(&home, FIRST)), "{}", first.stdout);
    let second = chorusctl(&home, ["context", "append", "again"]);
    assert_eq!((second.status, &*second.stderr), (0, ""));
    assert_eq!(agents(&home), ["\"default\""]);
    assert!(chorusctl(&home, ["show"]).expect_success().contains("again"));
}

/// `chorusctl context append TEXT &`, many times, in a home without an agent.
#[test]
fn first_appends_at_the_same_moment_create_one_agent_and_all_of_them_count() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let append = |n: usize| chorusctl(&home, ["context", "append", &format!("d {n}")]);
    let failed: Vec<_> = std::thread::scope(|scope| {
        let append = &append;
        let threads: Vec<_> = (0..64).map(|n| scope.spawn(move || append(n))).collect();
        let outputs = threads.into_iter().map(|thread| thread.join().expect("a command"));
        outputs.filter(|output| output.status != 0).collect()
    });
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(agents(&home), ["\"default\""]);
    let shown = chorusctl(&home, ["show", "--json"]).expect_json();
    assert_eq!(shown["messages"].as_array().map(Vec::len), Some(64));
}

#[test]
fn it_is_named_after_the_repository_that_one_is_in() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let inside = home.temp_dir().join("Web Shop/src");
    fs::create_dir_all(&inside).expect("a directory");
    fs::create_dir(home.temp_dir().join("Web Shop/.git")).expect("a directory");
    let mut command = home.command(home.bins.chorusctl);
    command.current_dir(&inside).args(["context", "append", "hello"]);
    let output = ctl::run_command(command, b"");
    assert!(output.stderr.starts_with("created agent web-shop ("), "{output:?}");
    assert_eq!(agents(&home), ["\"web-shop\""]);
}

#[test]
fn a_chat_creates_one_too() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let chat = chorusctl_with(&home, ["chat"], b"");
    assert!(chat.stderr.starts_with(&created(&home, FIRST)), "{chat:?}");
    assert_eq!(agents(&home), ["\"default\""]);
}

#[test]
fn what_only_reads_creates_none_and_several_are_not_guessed() {
    let home = home();
    let _daemon = Daemon::start(&home);
    for args in [&["history"][..], &["show"], &["save"], &["undo"]] {
        chorusctl(&home, args.iter().copied()).expect_failure(3);
    }
    assert_eq!(agents(&home), Vec::<String>::new());
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    chorusctl(&home, ["agent", "init", "b"]).expect_success();
    chorusctl(&home, ["context", "append", "hello"]).expect_failure(3);
    assert_eq!(agents(&home).len(), 2);
}

#[test]
fn imported_conversations_belong_to_their_program_and_are_found_by_everybody() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let line = |id: &str, role: &str, text: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{id}\",\"parentUuid\":null,\"sessionId\":\"7d444840-9dc0-41d1-b245-5ffdce74fad2\",\
             \"timestamp\":\"2026-01-02T03:04:05Z\",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let transcripts = home.temp_dir().join("transcripts/deep");
    fs::create_dir_all(&transcripts).expect("a directory");
    let file = transcripts.join("talk.jsonl");
    fs::write(&file, line("1", "user", "about the shop")).expect("written");
    fs::write(transcripts.join("other.jsonl"), "not a transcript\n").expect("written");
    let dir = home.temp_dir().join("transcripts");
    let dir = dir.to_str().expect("UTF-8");
    let imported = chorusctl(&home, ["import", dir]);
    assert!(imported.stdout.contains("imported 1 conversation (1 message) from 1 file; 1 file failed"), "{imported:?}");
    assert_eq!(agents(&home), ["\"claude-code\""]);
    // It does not count as the one that is meant, and its conversations are found all the same.
    assert!(chorusctl(&home, ["history"]).expect_success().contains("about the shop"));
    assert!(chorusctl(&home, ["show", "latest"]).expect_success().contains("about the shop"));
    // Nothing is created for a conversation that does not exist.
    chorusctl(&home, ["restore", "nothing-like-it"]).expect_failure(3);
    assert_eq!(agents(&home), ["\"claude-code\""]);
    // An imported conversation is dated by its own time.
    assert!(chorusctl(&home, ["history"]).expect_success().contains("2026-01-02 03:04"));
    let restored = chorusctl(&home, ["restore", "latest"]);
    assert_eq!((restored.status, &*restored.stderr), (0, &*created(&home, "")), "{}", restored.stdout);
    assert!(chorusctl(&home, ["show"]).expect_success().contains("about the shop"));
    chorusctl(&home, ["context", "append", "more"]).expect_success();
    chorusctl(&home, ["save", "mine"]).expect_success();
    let both = chorusctl(&home, ["history", "--json"]).expect_json();
    assert_eq!(both["total"], 2, "{both}");
    let own = chorusctl(&home, ["history", "--agent", "default", "--json"]).expect_json();
    assert_eq!(own["total"], 1, "{own}");
    // Again: nothing is imported twice, except what has grown.
    assert!(chorusctl(&home, ["import", dir]).stdout.contains("1 conversation up to date"));
    fs::write(&file, line("1", "user", "about the shop") + &line("2", "assistant", "yes")).expect("written");
    assert!(chorusctl(&home, ["import", dir]).stdout.contains("added 1 message to 1 conversation from 1 file"));
    assert_eq!(chorusctl_with(&home, ["agent", "config", "claude-code", "import_source", "x"], b"").status, 2);
}

#[test]
fn transcripts_on_this_machine_are_found_and_asked_about() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let user = home.temp_dir().join("user");
    let project = user.join(".claude/projects/p");
    fs::create_dir_all(&project).expect("a directory");
    let import = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("HOME", &user).arg("import").args(args);
        ctl::run_command(command, b"")
    };
    let none = import(&[]);
    assert_eq!(none.status, 3, "{none:?}");
    let line = "{\"type\":\"user\",\"uuid\":\"1\",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:05Z\",\
                \"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n";
    fs::write(project.join("a.jsonl"), line).expect("written");
    let asked = import(&[]);
    assert_eq!(asked.status, 6, "it is not a terminal: {asked:?}");
    let done = import(&["--yes"]);
    assert!(done.stdout.contains("imported 1 conversation"), "{done:?}");
    assert_eq!(import(&["--yes"]).stdout, "1 conversation up to date\n");
    // Nothing to ask about if all of it is known.
    let again = import(&[]);
    assert_eq!((again.status, &*again.stdout), (0, "1 conversation up to date\n"), "{again:?}");
    assert_eq!(again.stderr, "hint: find one: chorusctl history WORD; continue it: chorusctl restore ID\n");
    let status = chorusctl(&home, ["status", "claude-code"]).expect_success();
    assert!(status.contains("tools work in"), "{status}");
}

/// That one conversation of a program was imported is no consent to all of them.
#[test]
fn an_import_of_what_was_found_asks_once_with_a_list_unless_all_of_it_is_known() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let user = home.temp_dir().join("user");
    let (claude, codex) = (user.join(".claude/projects/p"), user.join(".codex/sessions"));
    let line = |text: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{text}\",\"sessionId\":\"{}\",\"timestamp\":\"2026-01-02T03:04:05Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n",
            text.split(' ').next().unwrap_or_default()
        )
    };
    fs::create_dir_all(&claude).expect("a directory");
    fs::create_dir_all(&codex).expect("a directory");
    fs::write(claude.join("a.jsonl"), line("alpha")).expect("written");
    fs::write(claude.join("b.jsonl"), line("beta")).expect("written");
    let command = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("HOME", &user).arg("import").args(args);
        command
    };
    let import = |args: &[&str]| ctl::run_command(command(args), b"");
    let on_terminal = |answer: &str| {
        let mut import = InteractiveCommand::on_terminal_of(&command(&[]), 80, 24);
        import.stdout.wait_for("[y/N] ");
        import.type_text(answer);
        let (status, shown, _) = import.wait_for_exit();
        let too_wide = shown.lines().find(|line| line.trim_end().chars().count() > 80);
        assert_eq!(too_wide, None, "{shown}");
        (status.code(), shown.replace('\r', ""))
    };
    let named = import(&[claude.join("a.jsonl").to_str().expect("UTF-8")]);
    assert!(named.stderr.starts_with("hint: continue it: chorusctl restore "), "{named:?}");
    assert_eq!(import(&[]).status, 6, "b.jsonl was not agreed to");
    fs::write(codex.join("notes.jsonl"), "no conversation\n").expect("written");
    let list = "Claude Code: 2 transcripts in ~/.claude/projects, 1 new or changed\n\
                Codex: 1 transcript in ~/.codex/sessions\nImport 2 transcripts? [y/N] ";
    let (status, shown) = on_terminal("n\n");
    assert!(status == Some(6) && shown.starts_with(list), "{shown}");
    let (status, shown) = on_terminal("y\n");
    assert!(shown.starts_with(list) && shown.matches("[y/N]").count() == 1, "{shown}");
    let totals = "imported 1 conversation (1 message) from 1 file; 1 up to date; 1 file failed\n";
    assert!(shown.contains(totals), "{shown}");
    assert_ne!(status, Some(0), "a file failed: {shown}");
    assert!(shown.contains("hint: continue it: chorusctl restore "), "{shown}");
    // What cannot be read is not asked about again.
    assert_eq!(import(&[]).stdout, "2 conversations up to date\n");
    // A conversation that was deleted stays so, until its file is named.
    chorusctl(&home, ["rm", "alpha"]).expect_success();
    assert_eq!(import(&[]).stdout, "1 conversation up to date; 1 left out: forgotten or excluded\n");
    fs::write(claude.join("b.jsonl"), line("beta") + &line("beta again")).expect("written");
    let (_, shown) = on_terminal("y\n");
    assert!(shown.contains("Import 1 transcript? [y/N] "), "{shown}");
    assert!(shown.contains("added 1 message to 1 conversation from 2 files; 1 left out"), "{shown}");
    // An agent that is named gets all of them, so all of them are asked about.
    chorusctl(&home, ["agent", "init", "mine"]).expect_success();
    assert_eq!(import(&["--agent", "mine"]).status, 6);
}

/// Copied directories lose the times of their files.
#[test]
fn transcripts_of_all_programs_are_listed_by_the_time_of_the_conversation() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let user = home.temp_dir().join("user");
    let line = |text: &str, at: &str| {
        let message = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{text}\",\"sessionId\":\"{text}\",\"timestamp\":\"{at}\",\"message\":{message}}}\n"
        )
    };
    let rollout = |text: &str, at: &str| {
        let message = format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}"
        );
        let of = |kind: &str, payload: &str| {
            format!("{{\"timestamp\":\"{at}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
        };
        of("session_meta", &format!("{{\"id\":\"{text}\",\"timestamp\":\"{at}\"}}")) + &of("response_item", &message)
    };
    let (claude, codex) = (user.join(".claude/projects/p"), user.join(".codex/sessions/2026"));
    for (dir, name, content) in [
        (&codex, "rollout-late.jsonl", rollout("fourth", "2026-04-01T00:00:00Z")),
        (&claude, "third.jsonl", line("third", "2026-03-01T00:00:00Z")),
        (&claude, "first.jsonl", line("first", "2026-01-01T00:00:00Z")),
        (&codex, "rollout-early.jsonl", rollout("second", "2026-02-01T00:00:00Z")),
    ] {
        fs::create_dir_all(dir).expect("a directory");
        fs::write(dir.join(name), content).expect("written");
    }
    let mut command = home.command(home.bins.chorusctl);
    command.env("HOME", &user).args(["import", "--yes"]);
    let done = ctl::run_command(command, b"");
    assert!(done.stdout.contains("imported 4 conversations"), "{done:?}");
    let listed = chorusctl(&home, ["history", "--json"]).expect_json();
    let titles: Vec<_> =
        listed["sessions"].as_array().expect("a list").iter().map(|one| one["description"].clone()).collect();
    assert_eq!(titles, ["fourth", "third", "second", "first"], "{listed}");
    assert!(chorusctl(&home, ["show", "latest"]).expect_success().contains("fourth"));
}
