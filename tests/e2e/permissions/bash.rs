//! The reader of plain commands against bash itself: whatever a command without a guard runs or writes was judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_permissions::{Profile, ProfileSpec};
use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_tests::rng::{Rng, rounds_from_env};
use serde_json::json;

use super::action;
use super::random_commands::random;

/// Notes the words of every command that is run, in place of running it, and what it could read.
const NOTED: &str = r#"() {
    printf '%s\0' "$#" "$@" >> "$NOTES"
    local line
    while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line" >> "$INPUTS"; line=; done
}"#;

/// A bash that runs nothing but itself.
pub struct Bash {
    folder: tempfile::TempDir,
}

/// The result of a command.
pub struct Ran {
    /// The words of each command that it ran.
    pub commands: Vec<Vec<String>>,
    /// The text on standard input of these.
    pub inputs: String,
    /// The directory that it ran in.
    pub work: PathBuf,
}

impl Ran {
    /// Lists the files that the command left.
    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.work).expect("the directory");
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Bash {
    pub fn find() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a directory");
        Path::new("/bin/bash").exists().then_some(Self { folder })
    }

    /// Runs a command in an empty directory that `prepare` has filled.
    pub fn run(&self, command: &str, prepare: impl FnOnce(&Path)) -> Ran {
        let [notes, inputs, work] = ["notes", "inputs", "work"].map(|name| self.folder.path().join(name));
        for file in [&notes, &inputs] {
            let _ = fs::remove_file(file);
        }
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).expect("a directory");
        prepare(&work);
        Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-c", command])
            .current_dir(&work)
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("NOTES", &notes)
            .env("INPUTS", &inputs)
            .env("BASH_FUNC_command_not_found_handle%%", NOTED)
            .output()
            .expect("bash");
        let text = fs::read(&notes).unwrap_or_default();
        let mut parts = text.split(|b| *b == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let mut commands = Vec::new();
        while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
            commands.push(parts.by_ref().take(count).collect());
        }
        let inputs = fs::read(&inputs).unwrap_or_default();
        Ran { commands, inputs: String::from_utf8_lossy(&inputs).into_owned(), work }
    }
}

/// The words of an action, its quotes removed by hand: they are only those that the engine writes.
fn words(action: &str) -> Vec<String> {
    let text = action.strip_prefix("tool:bash:").unwrap_or_default();
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            ' ' => words.push(std::mem::take(&mut word)),
            '\'' => {
                let (inside, after) = rest.split_once('\'').expect("a closing quote");
                word.push_str(inside);
                rest = after;
            }
            '\\' => {
                word.push('\'');
                rest = &rest[1..];
            }
            _ => word.push(c),
        }
    }
    words.push(word);
    words
}

#[test]
fn bash_runs_nothing_that_was_not_judged() {
    let Some(bash) = Bash::find() else { return chorus_tests::skip("bash is not installed") };
    let everything =
        ProfileSpec::from_json(json!({"allow": [".*"]}).as_object().expect("an object")).expect("a profile");
    let everything = Profile::new(everything).expect("a profile");
    let mut rng = Rng::new(20);
    let (mut allowed, mut tried) = (0, 0);
    let wanted = rounds_from_env("CHORUS_BASH_ROUNDS", 300);
    while allowed < wanted && tried < wanted * 400 {
        tried += 1;
        let command = random(&mut rng);
        let verdict = everything.judge(&action(&command));
        // No program of these is known to run nothing else; what was read of them is as good as allowed.
        let unnamed = |rule: &Rule| matches!(rule, Rule::Shell { reason } if reason.contains("matches any program"));
        let read = verdict.parts.iter().all(|part| part.decision == Decision::Allow || unnamed(&part.rule));
        if !read || !(verdict.decision == Decision::Allow || unnamed(&verdict.rule)) || !command.contains('a') {
            continue;
        }
        allowed += 1;
        let judged: Vec<Vec<String>> = verdict.parts.iter().map(|part| words(&part.action)).collect();
        let ran = bash.run(&command, |_| {});
        for words in &ran.commands {
            assert!(judged.contains(words), "{command:?} ran {words:?}; judged were {judged:?}");
        }
        for file in ran.files() {
            let judged = verdict.parts.iter().any(|part| part.action == format!("tool:create_file:{file}"));
            assert!(judged, "{command:?} wrote {file:?}; judged were {:?}", verdict.parts);
        }
    }
    assert_eq!(allowed, wanted, "of {tried} commands");
}
