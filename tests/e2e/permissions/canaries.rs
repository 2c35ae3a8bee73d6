//! Denied programs, reached in other spellings: whatever the engine allows is run, in a directory whose canaries show whether the
//! denied program, or any program of the directory, ran after all.
//!
//! `CHORUS_FAULTS=all` tries more; `--nocapture` prints the figures of docs/PERMISSIONS.md.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use chorus_permissions::{Profile, ProfileSpec};
use chorus_proto::methods::permissions::Decision;
use chorus_tests::program::write_program;
use chorus_tests::rng::Rng;
use serde_json::json;

use super::action;
use super::spellings::{CARRIERS, DENIED, OPTIONS, READERS, WRAPPERS, reached};

/// The content of the file `victim`.
const CONTENT: &str = "one\ntwo\n";

/// Counts of one run.
#[derive(Debug, Default)]
struct Figures {
    tried: usize,
    allowed: usize,
    asked: usize,
    denied: usize,
    touched: Vec<String>,
}

/// How often each is tried: `CHORUS_FAULTS=all` takes more.
fn rounds(few: usize, many: usize) -> usize {
    if std::env::var("CHORUS_FAULTS").is_ok_and(|value| value == "all") { many } else { few }
}

/// Makes the files of a directory: the victim, a script that is its own canary, links to programs, files that tools read
/// their options from, and a repository whose configuration and attributes name the script wherever they can.
fn prepare(scratch: &Path, denied: &str) {
    let write = |name: &str, text: &str| fs::write(scratch.join(name), text).expect("a file");
    write("victim", CONTENT);
    write_program(scratch.join("script"), "#!/bin/sh\n> marker\ncat\n");
    write("options", "-wrapper ./script\n-c\na.c\n");
    write("a.c", "int main(void) { return 0; }\n");
    write("list", "victim\n");
    write("Makefile", "all:\n\t./script\n");
    write("package.json", r#"{"name": "x", "version": "1.0.0", "scripts": {"x": "./script", "test": "./script"}}"#);
    fs::create_dir_all(scratch.join("home")).expect("a directory");
    for (from, to) in [(format!("/bin/{denied}"), "link"), ("/bin".into(), "bin"), ("/bin/bash".into(), "ls")] {
        symlink(from, scratch.join(to)).expect("a link");
    }
}

/// Adds a repository that names the script in its hooks, configuration and attributes.
fn repository(scratch: &Path) {
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        let done = Command::new("git").args(identity).args(args).current_dir(scratch).output().expect("git");
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet"]);
    git(&["add", "victim", "a.c"]);
    git(&["commit", "--quiet", "--message", "one"]);
    fs::write(scratch.join("a.c"), "int main(void) { return 1; }\n").expect("a file");
    // Signed, so that whoever shows it may run what verifies.
    let signer = scratch.join("home/signer");
    let text = "#!/bin/sh\ncat > /dev/null\necho '-----BEGIN PGP SIGNATURE-----'\necho '-----END PGP SIGNATURE-----'\n\
                printf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n";
    write_program(&signer, text);
    let program = format!("gpg.program={}", signer.display());
    git(&["-c", &program, "commit", "--quiet", "--gpg-sign=x", "--message", "two", "a.c"]);
    fs::write(scratch.join("a.c"), "int main(void) { return 2; }\n").expect("a file");
    git(&["add", "a.c"]);
    fs::write(scratch.join(".gitattributes"), "* filter=x diff=x merge=x\n").expect("a file");
    let script = scratch.join("script");
    let script = script.to_str().expect("a path");
    for key in [
        "filter.x.clean",
        "filter.x.smudge",
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
        "merge.x.driver",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "interactive.diffFilter",
        "core.alternateRefsCommand",
        "pager.log",
        "pager.diff",
        "alias.log",
        "remote.origin.uploadpack",
        "remote.origin.url",
    ] {
        git(&["config", key, script]);
    }
    for (key, value) in [("log.showSignature", "true"), ("format.pretty", "%G? %H"), ("tag.sort", "refname")] {
        git(&["config", key, value]);
    }
    for hook in ["pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction"] {
        fs::copy(script, scratch.join(".git/hooks").join(hook)).expect("a hook");
    }
    let _ = fs::remove_file(scratch.join("marker"));
}

/// Runs a command as the daemon would, but for the sandbox, and says what it touched.
fn run(scratch: &Path, command: &str) -> Option<&'static str> {
    let environment = chorus_sandbox::environment(std::env::vars_os(), &scratch.join("home"), None, &[]);
    let status = Command::new("timeout")
        .args(["-k", "1", "5", "/bin/bash", "--noprofile", "--norc", "-c", command])
        .env_clear()
        .envs(environment)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("a command");
    let victim = scratch.join("victim");
    if fs::read_to_string(&victim).ok().as_deref() != Some(CONTENT) {
        return Some("the victim is not what it was");
    }
    if fs::metadata(&victim).is_ok_and(|victim| victim.permissions().mode() & 0o777 == 0) {
        return Some("the victim cannot be read any more");
    }
    scratch.join("marker").symlink_metadata().is_ok().then_some("there is a marker")
}

/// Judges a command, and runs it if it is allowed.
fn attempt(profile: &Profile, scratch: &Path, command: &str, figures: &mut Figures) {
    figures.tried += 1;
    match profile.judge(&action(command)).decision {
        Decision::Deny => figures.denied += 1,
        Decision::Ask => figures.asked += 1,
        Decision::Allow => {
            figures.allowed += 1;
            if let Some(what) = run(scratch, command) {
                figures.touched.push(format!("{command:?}: {what}"));
            }
        }
    }
}

/// A profile that denies a program, and files that would be taken for a canary.
fn profile(denied: &str, allow: &[String]) -> Profile {
    let deny = [format!("tool:bash:{denied}( .*)?"), "tool:create_file:(marker|victim|script|ls|link)".to_owned()];
    let spec = json!({"deny": deny, "allow": allow, "default": "ask"});
    Profile::new(ProfileSpec::from_json(spec.as_object().expect("an object")).expect("a profile")).expect("a profile")
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

/// Prints what docs/PERMISSIONS.md says of a run, and fails on any canary.
#[expect(clippy::print_stdout, reason = "the figures are for the documentation")]
fn report(name: &str, figures: &Figures) {
    let Figures { tried, allowed, asked, denied, touched } = figures;
    println!(
        "{name}: {tried} tried, {allowed} allowed and run, {asked} asked, {denied} denied, {} touched",
        touched.len()
    );
    assert!(touched.is_empty(), "{} canaries were touched:\n{}", touched.len(), touched.join("\n"));
    assert!(*allowed > tried / 50, "{name}: only {allowed} of {tried} were allowed, which shows little");
}

/// The denied programs that this machine has.
fn installed() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    DENIED.iter().filter(|(denied, _)| Path::new("/bin").join(denied).exists())
}

/// Returns true if the programs that the tests run are there.
fn has_tools() -> bool {
    let there = ["/bin/bash", "/usr/bin/timeout", "/usr/bin/git"].iter().all(|path| Path::new(path).exists());
    if !there {
        chorus_tests::skip("bash, timeout or git is missing in /usr/bin");
    }
    there
}

#[test]
fn no_spelling_of_a_denied_program_is_allowed_and_runs_it() {
    if !has_tools() {
        return;
    }
    let mut rng = Rng::new(0x5eed);
    let mut figures = Figures::default();
    let wrappers = WRAPPERS.iter().chain(READERS).map(|form| form.split([' ', '{']).next().unwrap_or_default());
    let escaped = |name: &str| name.replace('.', r"\.").replace('[', r"\[").replace('+', r"\+");
    // A link of the directory that a rule names may run.
    let of_the_system = |name: &&str| !name.is_empty() && !name.contains(['/', '=']) && *name != "link";
    let named: Vec<String> =
        wrappers.filter(of_the_system).map(|name| format!("tool:bash:{}( .*)?", escaped(name))).collect();
    for (denied, words) in installed() {
        let any = profile(denied, &["tool:.*".into()]);
        let named = profile(denied, &named);
        let mut dir = tempfile::tempdir().expect("a directory");
        prepare(dir.path(), denied);
        for _ in 0..rounds(30, 1500) {
            let inner = reached(&mut rng, denied, words);
            let form = if rng.below(3) == 0 { pick(&mut rng, CARRIERS) } else { pick(&mut rng, WRAPPERS) };
            let command = match rng.below(8) {
                0 => inner,
                1 => format!("{} && {inner}", pick(&mut rng, READERS)),
                2 => format!("{} | {}", pick(&mut rng, READERS), form.replace("{}", &inner)),
                _ => form.replace("{}", &inner),
            };
            let profile = if rng.below(2) == 0 { &any } else { &named };
            let before = figures.touched.len();
            attempt(profile, dir.path(), &command, &mut figures);
            if figures.touched.len() > before {
                dir = tempfile::tempdir().expect("a directory");
                prepare(dir.path(), denied);
            }
        }
    }
    report("denied programs", &figures);
}

/// Programs that the reviewed table allows run nothing and write nothing, whatever options they are given.
#[test]
fn reviewed_programs_run_nothing_with_the_options_that_are_allowed() {
    if !has_tools() {
        return;
    }
    let mut rng = Rng::new(0xca11);
    let mut figures = Figures::default();
    let any = profile("rm", &["tool:.*".into()]);
    let mut dir = tempfile::tempdir().expect("a directory");
    prepare(dir.path(), "rm");
    repository(dir.path());
    let files =
        ["victim", "marker", "./script", "script", "5", "a.c", "HEAD", "options", "@options", "-", ".", "HEAD~1..HEAD"];
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    for _ in 0..rounds(400, 20_000) {
        let mut command = (*pick(&mut rng, READERS)).to_owned();
        for _ in 0..rng.below(4) {
            let file = pick(&mut rng, &files);
            let word = match rng.below(6) {
                0 => (*file).to_owned(),
                1 => format!("-{}", pick(&mut rng, &letters)),
                2 => format!("-{}{file}", pick(&mut rng, &letters)),
                3 => format!("-{}{}", pick(&mut rng, &letters), pick(&mut rng, &letters)),
                _ => pick(&mut rng, OPTIONS).replace("{}", file),
            };
            // Behind `--` nothing is an option, and nothing makes the rest harmless.
            let end = if rng.below(8) == 0 { " --" } else { "" };
            command = format!("{command}{end} {word}");
        }
        // These wait.
        if command.starts_with("tail") && command.contains(['f', 'F']) || command.starts_with("sleep") {
            continue;
        }
        let before = figures.touched.len();
        attempt(&any, dir.path(), &command, &mut figures);
        if figures.touched.len() > before {
            dir = tempfile::tempdir().expect("a directory");
            prepare(dir.path(), "rm");
            repository(dir.path());
        }
    }
    report("reviewed programs", &figures);
}

/// The canaries sing: what the engine asks about or denies, run all the same, touches them.
#[test]
fn the_canaries_show_what_runs() {
    if !has_tools() {
        return;
    }
    for (denied, words) in installed() {
        let dir = tempfile::tempdir().expect("a directory");
        prepare(dir.path(), denied);
        assert_eq!(run(dir.path(), "cat victim"), None);
        assert!(run(dir.path(), &format!("./link {words}")).is_some(), "{denied} {words}");
    }
    for command in [
        "git diff",
        "git log -p",
        "git status",
        "git show",
        "env ./script",
        "gcc @options",
        "find . -exec ./script {} ;",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        prepare(dir.path(), "rm");
        repository(dir.path());
        // The filter runs for a file that changed since it was added.
        fs::write(dir.path().join("a.c"), "int main(void) { return 3; }\n").expect("a file");
        let there = command.split(' ').next().is_some_and(|name| Path::new("/usr/bin").join(name).exists());
        let command = command.replace('{', "'{'").replace(';', "';'");
        assert!(!there || run(dir.path(), &command).is_some(), "{command}");
    }
}
