//! Commands that put something into a `.git`: a hook is run by an innocent `git commit` later.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use chorus_permissions::{Profile, ProfileSpec};
use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_tests::rng::{Rng, rounds_from_env};
use serde_json::json;

use super::action;
use super::quoting::quoted;

/// Rules that name every program which the commands below begin with: what asks is the `.git`, not the program.
fn anything() -> Profile {
    let commands = PLACES.into_iter().chain(HIDDEN.map(|(command, _)| command));
    let programs: BTreeSet<_> = commands
        .flat_map(|command| command.split(' '))
        .chain(["split"])
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .collect();
    let rules: Vec<_> = programs.iter().map(|program| format!("tool:bash:{program}( .*)?")).collect();
    let allow = [rules, vec!["tool:bash:[^a-z].*".to_owned(), "tool:(view|create_file):.*".to_owned()]].concat();
    let spec = json!({"allow": allow});
    Profile::new(ProfileSpec::from_json(spec.as_object().expect("an object")).expect("a profile")).expect("a profile")
}

/// `%` is a path with a `.git` in it.
const PLACES: [&str; 28] = [
    "ls %",
    "git mv script %",
    "mv script %",
    "cp -t % script",
    "cp -t% script",
    "install -D script %",
    "ln -s % link",
    "ln script %",
    "cd %",
    "pushd %",
    "mkdir -p %",
    "touch %",
    "rm -r %",
    "chmod +x %",
    "tar -cf x.tar -C % .",
    "tar -cf x.tar -C% .",
    "tar -cf x.tar --directory=% .",
    "git clone x %",
    "dd if=script of=%",
    "tee % < script",
    "cat script > %",
    "cat script >> %",
    "cat < %",
    "< %",
    "cat <> %",
    "rsync -a script %",
    "curl -o% file:///script",
    "ls; mv script % && git commit -m x",
];

#[test]
fn whatever_names_a_git_is_asked_about() {
    let anything = anything();
    let paths = [".git", ".git/hooks/post-commit", "x/.git/config", ".GIT/hooks", "./.git//", "x/GIT~1/hooks", ".git."];
    let mut rng = Rng::new(50);
    let each = rounds_from_env("CHORUS_PERMISSION_ROUNDS", 4000).div_ceil(PLACES.len() as u64 * 4);
    for place in PLACES {
        for _ in 0..each {
            let path = paths[rng.below(paths.len() as u64) as usize];
            let command = place.replace('%', &quoted(&mut rng, path, 4));
            let verdict = anything.judge(&action(&command));
            assert_eq!(verdict.decision, Decision::Ask, "{command:?}: {verdict:?}");
            assert!(matches!(verdict.rule, Rule::Shell { .. }), "{command:?}: {verdict:?}");
        }
    }
}

/// Commands without a `.git` in their words that change what git runs, or make a repository elsewhere; `true`: also shown by bash here.
const HIDDEN: [(&str, bool); 22] = [
    ("tar xf hooks.tar", true),
    ("tar -xvf hooks.tar", true),
    ("tar --extract --file=hooks.tar", true),
    ("tar --get -f hooks.tar -C .", true),
    ("unzip -qo hooks.zip", false),
    ("unzip -ol hooks.zip -l-", false),
    ("cpio -id -F hooks.cpio", false),
    ("bsdtar -xf hooks.tar", false),
    ("7z x hooks.zip", false),
    ("patch -p1 -i hooks.patch", true),
    ("git apply link.patch", true),
    ("gunzip -N sub/named.gz", true),
    ("uudecode x", false),
    ("ar x lib.a", false),
    ("split -n 20 -a 1 letters sub/.gi", true),
    ("csplit -s -f sub/.gi -b t%.0d letters 1", true),
    ("csplit -s -fsub/.gi -b t%.0d letters 1", true),
    ("cp -b -S t hook sub/.gi", true),
    ("mv -b --suffix=t hook sub/.gi", true),
    ("git clone -q . ../outside", true),
    ("git clone -q --depth 1 . sub/../../outside", true),
    ("git init -q ../outside", true),
];

#[test]
fn what_puts_something_into_a_git_without_naming_it_is_asked_about() {
    let anything = anything();
    let folder = tempfile::tempdir().expect("a directory");
    let template = folder.path().join("template/work");
    fs::create_dir_all(&template).expect("a directory");
    prepare(&template);
    for (at, (command, shown)) in HIDDEN.into_iter().enumerate() {
        let verdict = anything.judge(&action(command));
        assert_eq!(verdict.decision, Decision::Ask, "{command:?}: {verdict:?}");
        if shown {
            let copy = folder.path().join(at.to_string());
            bash(folder.path(), &format!("cp -a template {at}"));
            let before = state(&copy);
            bash(&copy.join("work"), command);
            assert_ne!(state(&copy), before, "{command:?} changes nothing, so it shows nothing");
        }
    }
    for command in [
        "tar cf x.tar sub",
        "tar tf hooks.tar",
        "cp hook sub",
        "git init -q sub",
        "git clone -q . sub/x",
        "split letters sub/x",
    ] {
        assert_eq!(anything.judge(&action(command)).decision, Decision::Allow, "{command}");
    }
}

fn bash(work: &Path, command: &str) -> String {
    let mut bash = Command::new("/bin/bash");
    bash.args(["--noprofile", "--norc", "-c", command]).current_dir(work).env("HOME", work);
    let out = bash.stdin(std::process::Stdio::null()).output().expect("bash");
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

/// A repository, and what could be put into it.
fn prepare(work: &Path) {
    let write = |name: &str, text: &str| fs::write(work.join(name), text).expect("a file");
    fs::create_dir(work.join("sub")).expect("a directory");
    write("hook", "#!/bin/sh\n");
    write("sub/.gi", "gitdir: elsewhere\n");
    write("letters", "abcdefghijklmnopqrstuvwxyz\nx\n");
    write("hooks.patch", "--- /dev/null\n+++ b/.git/hooks/post-commit\n@@ -0,0 +1 @@\n+x\n");
    let link = "--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+.git\n\\ No newline at end of file\n";
    write("link.patch", &format!("diff --git a/l b/l\nnew file mode 120000\n{link}"));
    let said = bash(
        work,
        "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && \
         mkdir -p t/.git/hooks && cp hook t/.git/hooks/post-commit && tar cf hooks.tar -C t . && rm -r t && \
         cd sub && cp ../hook .git && gzip -N .git && mv .git.gz named.gz",
    );
    assert!(work.join("sub/named.gz").exists(), "{said}");
}

/// Lists what decides which programs git runs below a directory: every `.git`, its hooks and configuration, and links.
fn state(folder: &Path) -> String {
    bash(folder, "find . -ipath '*.git/hooks/*' -o -ipath '*.git/config' -o -iname .git -o -type l | sort")
}
