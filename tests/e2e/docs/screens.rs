//! docs/screens: what every command shows on a terminal of 80x24 and of 120x40. The texts of help are compared as they are. Of the rest, which
//! has times, ids and sizes of one run, only the commands and their exit statuses are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::model_server::Response;
use chorus_tests::screen::Screen;
use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::json;

use crate::home;

/// Columns and rows.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// Arguments of `chorusctl` as a shell splits them. After each ` < `: what is shown, ` => `, and what is typed then.
const COMMANDS: &[&str] = &[
    "status",
    "import --yes",
    "capture on",
    "capture status",
    "capture exclude /home/mara/diary",
    "capture off",
    "history",
    "send 'Which tests are slow?'",
    "send 'Run the tests.' < Allow? => y\r",
    "show",
    "show --last 1",
    "show --around 2",
    "context show --window",
    "context pin 'Amounts are integers of cents.'",
    "notes add --task 'Back-fill March.'",
    "notes add --decision 'We keep the rows.'",
    "notes",
    "notes edit d1 'We keep the rows, marked.'",
    "notes done 1",
    "notes rm f1",
    "save 'before the migration' --tag release",
    "context append 'And the release notes.'",
    "undo",
    "context compact",
    "context compact --undo",
    "context rewind",
    "restore decorators",
    "history",
    "history --long",
    "history --all-agents",
    "show 1",
    "search functions",
    "search functions -wrap",
    "search redis",
    "search < type => functions < wrap => \t < move => \u{1b}",
    "session list",
    "session show latest --last 2",
    "session tag latest billing",
    "session untag latest billing",
    "session tree",
    "context branch decorators",
    "session tree",
    "session diff decorators migration",
    "export latest --output page.html",
    "export decorators --output page.md",
    "resume migration",
    "chat < > => /help\r < /exit =>  < default> => /exit\r",
    "agent init beta --permissions locked",
    "agent list",
    "agent show default",
    "agent use default",
    "agent config default",
    "agent config default idle_timeout 1h",
    "agent export beta --output beta.tar",
    "agent destroy beta --yes",
    "agent import beta.tar",
    "memory add 'The office closes at six.'",
    "memory list",
    "memory search office",
    "models",
    "models validate",
    "tasks",
    "schedule add standup --every 4h 'What is due today?'",
    "schedule list",
    "schedule show standup",
    "config",
    "config set defaults.idle_timeout 45m",
    "usage",
    "approvals",
    "permissions",
    "permissions show standard",
    "permissions check default 'tool:bash:git push'",
    "rm decorators",
    "trash list",
    "trash empty < [y/N] => n\r",
    "session expire --dry-run --unused-for 30d",
    "events",
    "audit",
    "audit verify",
    "status",
    "status default",
    "daemon status",
    "doctor",
    "backup saved",
    "backup verify saved",
    "cancel",
    "histroy",
    "show nothing-like-it",
    "conversations new review --title 'Review of the parser'",
    "context append 'Is the parser sound?' -C review",
    "conversations",
    "show -C review",
    "status default",
    "conversations use review",
    "conversations close",
    "context clear --save",
    "history",
    "status",
    "top < today => q",
    "daemon stop",
];

#[test]
fn the_screens_of_all_commands_are_up_to_date() {
    for (columns, rows) in SIZES {
        let mut pages: BTreeMap<String, String> = BTreeMap::new();
        let fixture = fixture();
        for command in COMMANDS {
            let mut pieces = command.split(" < ");
            let line = pieces.next().unwrap_or_default();
            let typed: Vec<_> = pieces.filter_map(|piece| piece.split_once(" => ")).collect();
            if line.starts_with("search") {
                wait_until("the search index", DEADLINE, || {
                    let status = fixture.client().call::<Status>(&StatusParams::default()).expect("status");
                    status.search.filter(|index| index.complete)
                });
            }
            // Shown if the command does not end.
            println!("$ chorusctl {line}");
            let mut shell = fixture.home.command("sh");
            shell.env_remove("NO_COLOR").args(["-c", &format!("{} {line}", fixture.home.bins.chorusctl)]);
            let screen = Screen::of(&shell, columns, rows, &typed, |text| hide_surroundings(text, &fixture));
            let name = group_of(line);
            let text = screen.text();
            let status = if screen.status == 0 { String::new() } else { format!("\n[exit status {}]", screen.status) };
            _ = write!(pages.entry(name).or_default(), "$ chorusctl {line}\n{text}{status}\n\n");
        }
        compare_pages(&format!("{columns}x{rows}"), &pages);
    }
}

#[test]
fn the_screens_of_help_are_up_to_date() {
    let home = home();
    for (columns, rows) in SIZES {
        let mut pages: BTreeMap<String, String> = BTreeMap::new();
        for path in command_paths() {
            let mut command = home.command(home.bins.chorusctl);
            command.args(&path).arg("--help");
            let text = Screen::of(&command, columns, rows, &[], str::to_owned).text();
            let name = path.first().map_or("chorusctl", String::as_str).to_owned();
            let line = [&["chorusctl".to_owned()], path.as_slice(), &["--help".to_owned()]].concat().join(" ");
            _ = write!(pages.entry(name).or_default(), "$ {line}\n{text}\n\n");
        }
        compare_pages(&format!("help-{columns}x{rows}"), &pages);
    }
}

/// A home with a scripted model and a transcript to import.
fn fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().start();
    let models = fixture.models();
    models
        .anthropic()
        .queue(Response::text(["The slow ones are in `ledger`:\n\n- **import**: 41 s\n- **export**: 12 s\n"]));
    models.anthropic().queue(Response::tool_call("t1", "bash", &json!({"command": "git status --short"})));
    models.anthropic().set_fallback(Response::text(["All 31 tests pass."]));
    let project = fixture.home.user_home.join(".claude/projects/-home-mara-ledger");
    fs::create_dir_all(&project).expect("a directory");
    let line = |id: u32, role: &str, text: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{id}\",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:05Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let talk = line(1, "user", "Explain Python decorators.") + &line(2, "assistant", "They wrap functions.");
    fs::write(project.join("decorators.jsonl"), talk).expect("written");
    fixture
}

/// The file that a command belongs to: its first word.
fn group_of(line: &str) -> String {
    line.split(' ').next().unwrap_or_default().to_owned()
}

/// Every command with its groups, as words.
fn command_paths() -> Vec<Vec<String>> {
    fn collect(command: &clap::Command, path: &[String], paths: &mut Vec<Vec<String>>) {
        paths.push(path.to_vec());
        for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
            collect(below, &[path, &[below.get_name().to_owned()]].concat(), paths);
        }
    }
    let mut paths = Vec::new();
    collect(&chorusctl::cli::command_tree(), &[], &mut paths);
    paths
}

/// Replaces the paths of this machine.
fn hide_surroundings(text: &str, fixture: &Fixture) -> String {
    let (home, user) = (&fixture.home.path, &fixture.home.user_home);
    text.replace(&*home.to_string_lossy(), "~/.chorus-agents").replace(&*user.to_string_lossy(), "~")
}

/// Compares the pages in docs/screens/`folder` with `pages`; `cargo xtask bless` writes those that differ.
fn compare_pages(folder: &str, pages: &BTreeMap<String, String>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/screens").join(folder);
    let bless = std::env::var_os("CHORUS_BLESS").is_some();
    if bless {
        fs::create_dir_all(&dir).expect("a directory");
    }
    let path = |name: &str| -> PathBuf { dir.join(format!("{name}.txt")) };
    for (name, page) in pages {
        let written = fs::read_to_string(path(name)).unwrap_or_default();
        if bless {
            if normalize(page) != normalize(&written) {
                fs::write(path(name), page).expect("writes the page");
            }
            continue;
        }
        let compared = if folder.starts_with("help") { str::to_owned } else { outline };
        let (now, before) = (compared(page), compared(&written));
        assert!(
            now == before,
            "docs/screens/{folder}/{name}.txt is out of date: run `cargo xtask bless`\n{}",
            first_difference(&now, &before)
        );
    }
}

/// The commands of a page and their exit statuses.
fn outline(page: &str) -> String {
    let kept = page.lines().filter(|line| line.starts_with("$ ") || line.starts_with("[exit status "));
    kept.collect::<Vec<_>>().join("\n")
}

fn first_difference(now: &str, before: &str) -> String {
    let differs = now.lines().zip(before.lines()).find(|(now, before)| now != before);
    differs.map_or_else(|| "the lengths differ".to_owned(), |(now, before)| format!("now:    {now}\nbefore: {before}"))
}

/// The words of a text without those that differ from run to run, because they have digits or are units. Where lines wrap does
/// not matter.
pub(super) fn normalize(text: &str) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const UNITS: [&str; 12] = ["s", "ms", "min", "h", "now", "just", "ago", "B", "KiB", "MiB", "GiB", "kB"];
    let varies = |word: &&str| {
        let bare = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.chars().any(|c| c.is_ascii_digit()) || UNITS.contains(&bare) || DAYS.contains(&bare)
    };
    text.split_whitespace().filter(|word| !varies(word)).collect::<Vec<_>>().join("\n")
}
