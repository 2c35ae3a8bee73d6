//! The commands in the pages for users: those of GETTING_STARTED.md are run, in order; all others are at least commands that
//! exist, with options that they have.

use std::fs;
use std::path::Path;

use chorus_tests::Fixture;
use chorus_tests::ctl::run_command;
use chorus_tests::model_server::Response;
use clap::error::ErrorKind;

use crate::home;

/// The pages for users, relative to the repository.
const PAGES: [&str; 3] = ["README.md", "docs/GETTING_STARTED.md", "docs/GUIDE.md"];

fn read(page: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The commands in the indented blocks of a page.
fn block_commands(page: &str) -> Vec<String> {
    read(page).lines().filter_map(|line| line.strip_prefix("    chorusctl ")).map(str::to_owned).collect()
}

/// The commands between single backticks.
fn inline_commands(page: &str) -> Vec<String> {
    let text = read(page);
    let code = text.split('`').skip(1).step_by(2);
    code.filter_map(|code| code.strip_prefix("chorusctl ")).map(str::to_owned).collect()
}

#[test]
fn the_first_ten_minutes_work_as_written() {
    let fixture = Fixture::builder(home()).models().start();
    fixture.models().anthropic().set_fallback(Response::text(["We keep the old column."]));
    let home = &fixture.home;
    let user = home.temp_dir().join("user");
    let project = user.join(".claude/projects/p");
    fs::create_dir_all(&project).expect("a directory");
    let line = |id: u32, role: &str, text: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{id}\",\"sessionId\":\"s\",\"timestamp\":\"2026-01-02T03:04:05Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let talk = line(1, "user", "Explain Python decorators.") + &line(2, "assistant", "They wrap functions.");
    fs::write(project.join("talk.jsonl"), talk).expect("written");
    let commands = block_commands("docs/GETTING_STARTED.md");
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        // The model that the page names is not there.
        let command = command.replace("claude-sonnet-4-5", "claude-test");
        let mut shell = home.command("sh");
        shell.env("HOME", &user).current_dir(&user);
        shell.args(["-c", &format!("{} {command}", home.bins.chorusctl)]);
        let output = run_command(shell, b"");
        assert_eq!(output.status, 0, "{command}: {}{}", output.stdout, output.stderr);
    }
    assert!(user.join("notes.html").is_file() && user.join("notes.md").is_file());
}

#[test]
fn every_command_that_a_page_names_exists() {
    for page in PAGES {
        let commands = [block_commands(page), inline_commands(page)].concat();
        assert!(!commands.is_empty(), "{page}");
        for command in commands {
            let command = command.split([';', '|', '&', '>', '<']).next().unwrap_or_default();
            let words = split_words(command);
            let parsed = chorusctl::cli::parse(std::iter::once("chorusctl".to_owned()).chain(words).map(Into::into));
            let kind = parsed.err().map(|error| error.kind());
            // A page may name a group, or a command without its arguments.
            let is_incomplete = matches!(
                kind,
                Some(
                    ErrorKind::DisplayHelp
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                        | ErrorKind::MissingRequiredArgument
                )
            );
            assert!(kind.is_none() || is_incomplete, "{page}: chorusctl {command}: {kind:?}");
        }
    }
}

/// Splits a command line at spaces outside of quotes.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ' ') => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, c) => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
