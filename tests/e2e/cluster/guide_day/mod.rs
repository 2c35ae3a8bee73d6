//! A day of docs/GUIDE.md, once with SQLite and once with PostgreSQL: each command says and does the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use chorus_base::private_fs::write_private;
use chorus_tests::ctl::{Output, run_command};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::postgres::Database;
use chorus_tests::{DEADLINE, Home, home, skip, wait_until};
use regex::Regex;
use serde_json::Value;

const DAY: &str = include_str!("day.txt");

/// Commands of the guide that the day leaves out: those that need a terminal or another machine.
const LEFT_OUT: [&str; 12] = [
    "agent import",
    "chat",
    "daemon install",
    "events",
    "hooks",
    "import",
    "notes edit",
    "notes resolve",
    "notes rm",
    "search model",
    "tasks logs",
    "approvals approve",
];

/// A user's home, whose daemon is started by the first command.
struct Day {
    home: Home,
    _models: ModelServer,
}

impl Day {
    fn new(store: &str) -> Self {
        let (home, models) = (home!(), ModelServer::start());
        models.anthropic().set_fallback(Response::text(["We keep the old column."]));
        home.write_config(&format!("{}\n{store}", models.config_toml()));
        let bin = home.temp_dir().join("bin");
        fs::create_dir(&bin).expect("a directory");
        symlink(home.bins.chorusctl, bin.join("chorusctl")).expect("a link");
        Self { home, _models: models }
    }

    fn wait_until_indexed(&self) {
        wait_until("the index", DEADLINE, || {
            let status = self.run("chorusctl status --json").expect_json();
            (status["search"]["complete"] == true).then_some(())
        });
    }

    /// The model writes summaries while other commands run.
    fn wait_until_summarized(&self) {
        wait_until("the summaries", DEADLINE, || {
            let history = self.run("chorusctl history --all-agents --limit 100 --json").expect_json();
            let sessions = history["sessions"].as_array().expect("the sessions").clone();
            let is_pending = |session: &Value| {
                let (agent, id) = (&session["agent_name"], &session["id"]);
                let shown = self.run(&format!("chorusctl --agent {agent} show {id} --json")).expect_json();
                shown["summary_pending"] == true
            };
            (!sessions.iter().any(is_pending)).then_some(())
        });
    }

    fn run(&self, line: &str) -> Output {
        let mut shell = self.home.command("bash");
        let path = std::env::var("PATH").expect("PATH");
        shell.env("PATH", format!("{}:{path}", self.home.temp_dir().join("bin").display()));
        // Whatever other tests use: config.toml says it.
        for name in ["KIND", "URL_ENV"] {
            shell.env_remove(format!("CHORUS_STORE_{name}"));
        }
        shell.env_remove("CHORUS_CLUSTER_NODE").args(["-c", line]);
        run_command(shell, b"")
    }
}

/// Takes out of the output of a command all that differs between two runs: identifiers are numbered in the order in which they come.
struct Plain {
    home: String,
    ids: Vec<String>,
    id: Regex,
    other: Vec<(Regex, &'static str)>,
}

impl Plain {
    fn new(home: &Path) -> Self {
        let regex = |text: &str| Regex::new(text).expect("a pattern");
        Self {
            home: home.display().to_string(),
            ids: Vec::new(),
            id: regex(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?\b"),
            other: vec![
                (regex(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?)?"), "DATE"),
                (regex(r"\d{2}:\d{2}(:\d{2})?"), "TIME"),
                (regex(r"\d+(\.\d+)? (ms|s|min|bytes|B|KB|KiB|MB|MiB)\b|just now|\d+ (second|minute)s? ago"), "AMOUNT"),
                (regex(r"pid \d+"), "pid"),
                (regex(r"127\.0\.0\.1:\d+"), "ADDRESS"),
                (regex(r"\b[0-9a-f]{7,64}\b"), "HASH"),
                (regex(r" +"), " "),
                (regex(r"─+"), "─"),
            ],
        }
    }

    fn of(&mut self, text: &str) -> String {
        let text = text.replace(&self.home, "HOME");
        let (ids, id) = (&mut self.ids, &self.id);
        let text = id.replace_all(&text, |found: &regex::Captures<'_>| {
            let short = found[0][..8].to_owned();
            let place = ids.iter().position(|id| *id == short).unwrap_or_else(|| {
                ids.push(short);
                ids.len() - 1
            });
            format!("ID{place}")
        });
        self.other.iter().fold(text.into_owned(), |text, (pattern, to)| pattern.replace_all(&text, *to).into_owned())
    }
}

#[test]
fn the_guide_works_the_same_with_both_stores() {
    let Ok(url) = Database::create_blocking() else {
        skip("PostgreSQL is not installed here");
        return;
    };
    let bucket = tempfile::tempdir().expect("a directory");
    let shared = format!(
        "[store]\nkind = \"postgres\"\nurl_file = \"url\"\n[store.sessions]\nkind = \"dir\"\npath = {:?}\n\
         [cluster]\nnode = \"a\"\n",
        bucket.path()
    );
    let days = [Day::new(""), Day::new(&shared)];
    write_private(&days[1].home.path.join("url"), url.as_bytes()).expect("the URL");
    let mut plain = days.each_ref().map(|day| Plain::new(day.home.temp_dir()));
    let mut differing = String::new();
    let mut sessions = [0, 0];
    for line in DAY.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let marked = line.strip_prefix("! ").or_else(|| line.strip_prefix("~ ")).and_then(|rest| rest.split_once(' '));
        let differs = line.starts_with('~');
        let (status, line) = marked.map_or((0, line), |(status, line)| (status.parse().expect("a status"), line));
        if line.starts_with("chorusctl search") {
            // A search waits a moment only, which is not enough on a busy machine.
            days.iter().for_each(Day::wait_until_indexed);
        }
        if line.contains(" restore ") {
            days.iter().for_each(Day::wait_until_summarized);
        }
        let outputs = days.each_ref().map(|day| day.run(line));
        let mut said = [const { String::new() }; 2];
        for (n, output) in outputs.iter().enumerate() {
            if output.status != if differs && n == 0 { 0 } else { status } {
                let (out, err) = (&output.stdout, &output.stderr);
                differing += &format!("{line}\n  store {n}: status {}\n{out}{err}", output.status);
            }
            said[n] = plain[n].of(&format!("{}{}", output.stdout, output.stderr));
            sessions[n] += usize::from(line.starts_with("chorusctl save") && output.status == 0);
        }
        if said[0] != said[1] && !differs {
            differing += &format!("{line}\n--- SQLite\n{}--- PostgreSQL\n{}", said[0], said[1]);
        }
    }
    assert!(differing.is_empty(), "{differing}");
    assert_eq!(sessions, [4, 4]);
}

#[test]
fn the_day_has_every_command_of_the_guide() {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/GUIDE.md")).expect("GUIDE.md");
    let code = guide.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("chorusctl "));
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    // The group and the subcommand, if it is one: other words are arguments.
    let named: Vec<String> = code
        .filter_map(|code| {
            let mut words = code.split_whitespace().skip_while(|word| word.starts_with('-')).take_while(is_word);
            let first = words.next()?;
            let groups = ["agent", "context", "session", "conversations", "permissions", "trash", "daemon", "backup"];
            let groups_too = ["audit", "tasks", "approvals", "notes"];
            let second = words.next().filter(|_| groups.contains(&first) || groups_too.contains(&first));
            Some(second.map_or_else(|| first.to_owned(), |second| format!("{first} {second}")))
        })
        .collect();
    assert!(named.len() > 60, "{named:?}");
    for command in named {
        let is_there = DAY.contains(&format!("chorusctl {command}"))
            || DAY.lines().any(|line| line.contains(&format!(" {command}")))
            || LEFT_OUT.contains(&&*command);
        assert!(is_there, "the guide has `chorusctl {command}`, the day has not");
    }
}
