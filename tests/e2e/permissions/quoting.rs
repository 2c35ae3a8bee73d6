//! Denied words in any quoting, in every place where a command may have them: none is allowed.

use std::path::Path;

use chorus_permissions::{Profile, ProfileSpec, WorkspacePaths};
use chorus_proto::methods::permissions::Decision;
use chorus_tests::rng::{Rng, rounds_from_env};
use serde_json::json;

use super::action;
use super::bash::Bash;
use super::random_commands::PIECES;

/// Places in which a rule for commands sees a word; `%` is where the word stands. The strict reader understands all of
/// them.
const ARGUMENTS: [&str; 34] = [
    "cat %",
    "cat -n %",
    "cat a % b",
    "cat -- %",
    "cat ./%",
    "cat dir/%",
    "cat %.local",
    "cat x%",
    "cat --file=%",
    "grep -f% x",
    "ls; cat %",
    "ls && cat %",
    "ls || cat %",
    "ls | cat %",
    "ls |& cat %",
    "ls & cat %",
    "ls\ncat %",
    "(cat %)",
    "(ls; cat %)",
    "(ls) | (cat %)",
    "cat % | wc",
    "cat % > out",
    "cat % 2>&1",
    "> out cat %",
    "cat a \\\n  %",
    "cat % # a note",
    "ls # it's\ncat %",
    "LC_ALL=C cat %",
    "RUST_LOG=% cat",
    "cat <<< %",
    "cat <<<%",
    "<<< % cat",
    "ls | cat <<< % | wc",
    "cat <<'E' %\nit's\nE",
];

/// Files that the shell reads for a command.
const READS: [&str; 24] = [
    "cat < %",
    "cat <%",
    "cat 0< %",
    "cat 0<%",
    "cat 3< %",
    "< % cat",
    "<% cat",
    "cat < ./%",
    "cat <\t%",
    "cat -n < % | wc",
    "ls | cat < %",
    "ls |& cat < %",
    "ls; cat < %",
    "ls & cat < % &",
    "(cat) < %",
    "(cat < %)",
    "((ls); cat) < %",
    "cat < x < %",
    "< %",
    "cat < % > out",
    "cat > out < %",
    "cat <<'E' < %\nit's\nE",
    "cat < % <<'E'\nit's \"\nE",
    "ls # it's\ncat < %",
];

/// Files that the shell, or a program in a pipe, writes.
const WRITES: [&str; 16] = [
    "ls > %",
    "ls >%",
    "ls >> %",
    "ls >| %",
    "ls &> %",
    "ls &>> %",
    "ls 2> %",
    "ls 1>>%",
    "ls <> %",
    "> %",
    ">% ls",
    "(ls) > %",
    "ls | tee %",
    "ls | tee -a x %",
    "dd if=x of=%",
    "ls < x > %",
];

/// Commands that only the parser understands: asked about in any case, and denied where the word is seen.
const OPAQUE: [&str; 26] = [
    "if true; then cat < %; fi",
    "while read x; do ls; done < %",
    "for x in a; do cat; done < %",
    "{ cat; } < %",
    "cat $(< %)",
    "echo \"$(cat < %)\"",
    "cat `cat < %`",
    "cat <(cat < %)",
    "ls > >(cat < %)",
    "f() { cat < %; }; f",
    "! cat < %",
    "time cat < %",
    "case a in a) cat < %;; esac",
    "until cat < %; do ls; done",
    "env cat < %",
    "xargs cat < %",
    "sh -c cat < %",
    "cat < \\\n %",
    "if true; then cat %; fi",
    "cat $(echo %)",
    "echo \"$(cat %)\"",
    "f() { cat %; }; f",
    "X=% cat",
    "X=%",
    "cat <<E\n$(cat %)\nE",
    "eval cat %",
];

/// How a character may be written; the first `PLAIN` of these the strict reader understands.
const PLAIN: u64 = 4;
const ALL: u64 = 8;

/// A word as somebody may write it who does not want it to be seen.
pub fn quoted(rng: &mut Rng, word: &str, kinds: u64) -> String {
    let characters: Vec<char> = word.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while at < characters.len() {
        if rng.below(6) == 0 {
            out.push_str(["''", "\"\""][rng.below(2) as usize]);
        }
        let length = 1 + rng.below((characters.len() - at) as u64) as usize;
        let piece: String = characters[at..at + length].iter().collect();
        at += length;
        // A redirection takes a word of digits alone for a number, and a bare word may be anything.
        let escaped = |radix: &str| -> String {
            let code = |c: char| match radix {
                "x" => format!("\\x{:02x}", c as u32),
                "{" => format!("\\x{{{:x}}}", c as u32),
                "8" => format!("\\{:03o}", c as u32),
                _ => format!("\\u{:04x}", c as u32),
            };
            format!("$'{}'", piece.chars().map(code).collect::<String>())
        };
        out.push_str(&match rng.below(kinds) {
            0 => piece,
            1 => format!("'{piece}'"),
            2 => format!("\"{piece}\""),
            3 => piece.chars().flat_map(|c| ['\\', c]).collect(),
            4 => escaped("x"),
            5 => escaped("8"),
            6 => escaped("{"),
            _ => escaped("u"),
        });
    }
    out
}

fn profile(deny: &[&str]) -> Profile {
    let spec = json!({"deny": deny, "allow": [".*"]});
    Profile::new(ProfileSpec::from_json(spec.as_object().expect("an object")).expect("a profile")).expect("a profile")
}

/// Puts denied words into places, and answers how many of the verdicts are not to deny. None may be to allow.
fn try_all(deny: &[&str], words: &[&str], places: &[&[&str]], kinds: u64, seed: u64) -> (u64, u64) {
    let profile = profile(deny);
    let workspace = WorkspacePaths::new(["/w".into()]);
    let mut rng = Rng::new(seed);
    let places: Vec<&str> = places.concat();
    let each = rounds_from_env("CHORUS_PERMISSION_ROUNDS", 4000).div_ceil(places.len() as u64 * 4);
    let (mut tried, mut asked) = (0, 0);
    for place in &places {
        for _ in 0..each {
            let word = words[rng.below(words.len() as u64) as usize];
            // Behind `./` it is another path.
            if word.starts_with('/') && place.contains("./%") {
                continue;
            }
            let command = place.replace('%', &quoted(&mut rng, word, kinds));
            let verdict = profile.judge_in_workspace(&action(&command), &workspace);
            assert_ne!(verdict.decision, Decision::Allow, "{deny:?}: {command:?}: {verdict:?}");
            let deny = verdict.decision == Decision::Deny;
            assert!(deny || kinds > PLAIN || OPAQUE.contains(place), "{command:?} is not denied: {verdict:?}");
            (tried, asked) = (tried + 1, asked + u64::from(!deny));
        }
    }
    (tried, asked)
}

#[test]
fn a_denied_word_is_denied_in_any_quoting_and_any_place() {
    let all = [&ARGUMENTS[..], &READS, &WRITES, &OPAQUE];
    for (seed, deny, words) in [
        (40, r"tool:bash:.*\.env.*", &[".env", "x/.env", ".env.local"][..]),
        (41, "tool:bash:.*secret.*", &["secret", "a/secret/b"]),
        (42, "tool:(bash|view):(.*[ /])?id_rsa([ .].*)?", &["id_rsa"]),
    ] {
        for kinds in [PLAIN, ALL] {
            let places: &[&[&str]] = if seed == 42 { &[&READS] } else { &all };
            let (tried, asked) = try_all(&[deny], words, places, kinds, seed);
            assert!(asked * 20 <= tried, "{deny}: {asked} of {tried} are not denied");
        }
    }
}

#[test]
fn what_is_read_is_judged_as_a_file_that_is_viewed_and_what_is_written_as_one_that_is_created() {
    for (seed, deny, words, places) in [
        (43, r"tool:view:(.*/)?\.env", &[".env", "x/.env", "./.env", "x//./.env"][..], &READS[..]),
        (44, r"tool:view:secret/.*", &["secret/x", "secret//x"], &READS),
        (45, r"tool:create_file:(.*/)?\.env", &[".env", "x/.env", "./.env"], &WRITES),
        (48, r"tool:view:secret/.*", &["a/../secret/x", "./secret/../secret/x", "/proc/self/cwd/secret/x"], &READS),
        (49, r"tool:view:secret/.*", &["/w/secret/x", "/w/a/../secret/x", "../w/secret/x"], &READS),
        (50, r"tool:create_file:secret/.*", &["a/../secret/x", "/w/secret/x", "../w/secret/x"], &WRITES),
    ] {
        for kinds in [PLAIN, ALL] {
            let (tried, asked) = try_all(&[deny], words, &[places], kinds, seed);
            assert!(asked * 4 <= tried, "{deny}: {asked} of {tried} are not denied");
        }
    }
    // Nothing has to allow what is read.
    let spec = json!({"deny": ["tool:view:x"], "ask": ["tool:view:y"], "allow": ["tool:bash:cat"]});
    let reads = Profile::new(ProfileSpec::from_json(spec.as_object().expect("an object")).expect("a profile"))
        .expect("a profile");
    for (command, wanted) in [("cat < a", Decision::Allow), ("cat < y", Decision::Ask), ("cat < ./x", Decision::Deny)] {
        assert_eq!(reads.judge(&action(command)).decision, wanted, "{command}");
    }
}

#[test]
fn a_denied_file_is_denied_after_a_change_of_directory_and_behind_an_expansion() {
    let profile = profile(&["tool:(view|create_file):secret/.*"]);
    let workspace = WorkspacePaths::new(["/w".into()]);
    for command in [
        "cd secret && cat < x",
        "cd a; cat < ../secret/x",
        "cd a/b && cat < ../../secret/x",
        "cd /w/a && cat < ../secret/x",
        "cd a; cat x > ../secret/x",
        "cd nope; cd secret; cat < x",
        "cd nope || cd secret; cat < x",
        "cd secret; cd /tmp; cd -; cat < x",
        "pushd secret; pushd t; popd; cat < x",
        "cd secret || cd nope; pushd; cat > x",
        "if cd secret; then cd nope; cat < x; fi",
        "cat < $PWD/secret/x",
        "cat < \"$(pwd)\"/secret/x",
        "cat < ~+/secret/x",
        "cat < ${PWD}/a/../secret/x",
        "ls > $PWD/secret/x",
        "if true; then cat < a/../secret/x; fi",
        "if true; then cat < /w/secret/x; fi",
        "if (cat < a/../secret/x",
        "if (ls > a/../secret/x",
    ] {
        assert_eq!(profile.judge_in_workspace(&action(command), &workspace).decision, Decision::Deny, "{command}");
    }
    // Directories that nobody can list.
    for (command, wanted) in [
        ("cd; cat < x", Decision::Ask),
        ("cd -; cat < x", Decision::Ask),
        ("cd a; cd b; cd c; cd d; cd e; cd f; cd g; cat < x", Decision::Ask),
        ("cd; cat < /x", Decision::Allow),
        ("cd; ls", Decision::Allow),
        ("cd a; cd b; cd c; cd d; cd e; cd f; cat < x", Decision::Allow),
    ] {
        assert_eq!(profile.judge_in_workspace(&action(command), &workspace).decision, wanted, "{command}");
    }
    for command in [
        "cat < ../secret/x",
        "cat < /v/secret/x",
        "cd a; cat < /secret/x",
        "cd secret && cat < /etc/x",
        "cat < secrets",
    ] {
        assert_ne!(profile.judge_in_workspace(&action(command), &workspace).decision, Decision::Deny, "{command}");
    }
}

#[test]
fn a_denied_program_is_denied_in_any_quoting() {
    let places = [
        "%",
        "% x",
        "ls; % x",
        "ls | % x",
        "(%)",
        "ls && % x",
        "< in % x",
        "> out %",
        "% < in",
        "% <<< x",
        "/bin/% x",
        "LC_ALL=C % x",
        "ls\n% x",
        "ls & %",
        "2>&1 % x",
        "% <<E\nE",
    ];
    for kinds in [PLAIN, ALL] {
        let (tried, asked) =
            try_all(&["tool:bash:rm( .*)?", "tool:bash:curl( .*)?"], &["rm", "curl"], &[&places], kinds, 46);
        assert!(asked * 50 <= tried, "{asked} of {tried} are not denied");
    }
}

/// Commands with a denied word in them, damaged at random. What is allowed of these runs in bash, and bash gives nobody that word and nobody
/// what the file of that name holds.
#[test]
fn bash_neither_names_nor_reads_what_is_denied() {
    let Some(bash) = Bash::find() else { return chorus_tests::skip("bash is not installed") };
    let profile = profile(&[r"tool:bash:.*\.env.*", "tool:(view|create_file):.*\\.env.*"]);
    let places = [&ARGUMENTS[..], &READS, &WRITES, &OPAQUE].concat();
    let mut rng = Rng::new(47);
    let (wanted, mut allowed, mut tried) = (rounds_from_env("CHORUS_BASH_ROUNDS", 300), 0, 0);
    while allowed < wanted && tried < wanted * 400 {
        tried += 1;
        let place = places[rng.below(places.len() as u64) as usize];
        let mut command = place.replace('%', &quoted(&mut rng, ".env", PLAIN + 1));
        for _ in 0..=rng.below(3) {
            damage(&mut rng, &mut command);
        }
        let verdict = profile.judge(&action(&command));
        if verdict.decision != Decision::Allow {
            continue;
        }
        allowed += 1;
        let ran = bash.run(&command, |work| {
            std::fs::write(work.join(".env"), "canary").expect("a file");
            std::fs::create_dir(work.join("dir")).expect("a directory");
            std::fs::write(work.join("dir/.env"), "canary").expect("a file");
        });
        let named = ran.commands.iter().flatten().find(|word| word.contains(".env"));
        assert_eq!(named, None, "{command:?} ran {:?}", ran.commands);
        assert!(!ran.inputs.contains("canary"), "{command:?} read a denied file");
        let kept = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text == "canary");
        assert!(kept(&ran.work.join(".env")) && kept(&ran.work.join("dir/.env")), "{command:?} wrote a denied file");
    }
    assert_eq!(allowed, wanted, "of {tried} commands");
}

/// Puts a piece in somewhere, or takes a character out.
fn damage(rng: &mut Rng, command: &mut String) {
    let places: Vec<usize> = command.char_indices().map(|(at, _)| at).collect();
    let Some(at) = places.get(rng.below(places.len().max(1) as u64) as usize).copied() else { return };
    if rng.below(3) == 0 {
        command.remove(at);
    } else {
        command.insert_str(at, PIECES[rng.below(PIECES.len() as u64) as usize]);
    }
}
