//! What holds for any command: joining others to a denied one never allows it.

use std::collections::BTreeMap;

use chorus_permissions::Profile;
use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_tests::rng::{Rng, rounds_from_env};

use super::corpus::lines;
use super::{action, own_profiles};

/// What may stand between commands, or around them.
const JOINTS: [(&str, &str, &str); 34] = [
    ("", "; ", ""),
    ("", ";", ""),
    ("", " && ", ""),
    ("", " || ", ""),
    ("", " | ", ""),
    ("", " |& ", ""),
    ("", " & ", ""),
    ("", "\n", ""),
    ("", " # x\n", ""),
    ("", " \\\n; ", ""),
    ("(", "); ", ""),
    ("( ", " ; ", " )"),
    ("{ ", "; ", "; }"),
    ("if ", "; then ", "; fi"),
    ("while ", "; do ", "; done"),
    ("until ", "; do ", "; done"),
    ("for f in a; do ", "; ", "; done"),
    ("case a in a) ", ";; *) ", ";; esac"),
    ("f() { ", "; }; ", ""),
    ("echo $(", "); ", ""),
    ("echo \"$(", ")\" && ", ""),
    ("echo `", "`; ", ""),
    ("cat <(", ") <(", ")"),
    ("! ", "; ! ", ""),
    ("time ", "; ", ""),
    ("", " > out; ", " 2>&1"),
    ("X=y ", "; Y=z ", ""),
    ("echo ${x:=$(", ")}; ", ""),
    ("env ", "; env ", ""),
    ("cat <<E\n$(", ")\nE\n", ""),
    ("", " < in; ", " < in"),
    ("", " <<< 'it'\"'\"'s'; ", ""),
    ("< in ", " | ", " > out"),
    ("", " # it's\n", ""),
];

const HARMLESS: [&str; 14] = [
    "ls",
    "pwd",
    "echo \"a; b\"",
    "cat 'x y'",
    "git status",
    "true",
    ":",
    "echo a\\ b",
    "[ -f x ]",
    "cargo test --all",
    "RUST_LOG=x ls",
    "cat <<'E'\nx\nE",
    "grep -n \"it's\" x",
    "echo '\"'",
];

#[test]
fn joining_more_to_a_denied_command_never_allows_it() {
    let free = &own_profiles()["free"];
    let corpus = lines();
    let denied: Vec<&str> =
        corpus.iter().filter(|line| line.0 == "deny" && line.1 == "free").map(|line| &*line.2).collect();
    assert!(denied.len() > 50);
    let mut rng = Rng::new(18);
    let (mut kept, all) = (0, rounds_from_env("CHORUS_PERMISSION_ROUNDS", 1500));
    for round in 0..all {
        let mut command = denied[rng.below(denied.len() as u64) as usize].to_owned();
        for _ in 0..=rng.below(3) {
            let (before, between, after) = JOINTS[rng.below(JOINTS.len() as u64) as usize];
            let other = HARMLESS[rng.below(HARMLESS.len() as u64) as usize];
            let (one, two) = if rng.below(2) == 0 { (&*command, other) } else { (other, &*command) };
            command = format!("{before}{one}{between}{two}{after}");
        }
        let verdict = free.judge(&action(&command));
        assert_ne!(verdict.decision, Decision::Allow, "round {round}: {command:?}: {verdict:?}");
        kept += u64::from(verdict.decision == Decision::Deny);
    }
    // Some of it is no shell any more; of what is, a denied command stays denied.
    assert!(kept * 10 > all * 8, "only {kept} of {all} are still denied");
}

/// An action that was approved for ever is allowed where it would be asked about, and never where it is denied or cannot be seen
/// through.
#[test]
fn what_is_approved_for_ever_never_beats_a_deny_nor_the_guard_of_the_shell() {
    let commands = corpus_and_joined();
    // Each profile twice, as compiling one takes long: with one half of the actions, and with the other.
    let halves: BTreeMap<String, (Profile, [Profile; 2])> = super::profiles()
        .into_iter()
        .map(|(name, plain)| {
            let half = |odd: usize| {
                let of = |(at, (_, command)): (usize, &(String, String))| (at % 2 == odd).then(|| action(command));
                let mut spec = plain.spec().clone();
                spec.examples.clear();
                spec.always = commands.iter().filter(|(of, _)| *of == name).enumerate().filter_map(of).collect();
                Profile::new(spec).expect("a profile")
            };
            let both = [half(0), half(1)];
            (name, (plain, both))
        })
        .collect();
    let mut seen = [0; 3];
    for (name, command) in &commands {
        let (plain, both) = &halves[name];
        let before = plain.judge(&action(command));
        let (with, without): (Vec<_>, Vec<_>) =
            both.iter().partition(|half| half.spec().always.contains(&action(command)));
        for other in without {
            assert_eq!(other.judge(&action(command)), before, "{name}: {command:?} beside others");
        }
        let after = with[0].judge(&action(command));
        match before.decision {
            Decision::Deny => assert_eq!(after.decision, Decision::Deny, "{name}: {command:?}: {after:?}"),
            Decision::Allow => assert_eq!(after, before, "{name}: {command:?}"),
            Decision::Ask => match plain.ensure_always_allowable(&action(command)) {
                Ok(()) => assert_eq!(after.decision, Decision::Allow, "{name}: {command:?}: {after:?}"),
                Err(_) => assert_eq!(after, before, "{name}: {command:?}"),
            },
        }
        // A rule that says too little is not a guard of the shell: the whole action says enough.
        let says_little =
            |reason: &str| ["matches any program", "no rule names that"].iter().any(|why| reason.contains(why));
        if matches!(&before.rule, Rule::Shell { reason } if !says_little(reason)) {
            assert_eq!(after, before, "{name}: {command:?} cannot be seen through");
        }
        seen[before.decision as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

/// The corpus with its profiles, and as much again joined at random.
fn corpus_and_joined() -> Vec<(String, String)> {
    let corpus: Vec<(String, String)> = lines().into_iter().map(|(_, profile, command)| (profile, command)).collect();
    let mut rng = Rng::new(22);
    let joined = corpus.clone().into_iter().map(|(profile, command)| {
        let (before, between, after) = JOINTS[rng.below(JOINTS.len() as u64) as usize];
        let other = HARMLESS[rng.below(HARMLESS.len() as u64) as usize];
        (profile, format!("{before}{command}{between}{other}{after}"))
    });
    let joined: Vec<_> = joined.collect();
    corpus.into_iter().chain(joined).collect()
}

/// Pieces of commands that a reader may get wrong.
pub const PIECES: [&str; 54] = [
    " ",
    " ",
    " ",
    "\n",
    "\t",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ">>",
    "<<",
    "<<-",
    "<<<",
    ">&",
    "&>",
    "'",
    "\"",
    "\\",
    "\\\n",
    "#",
    " #",
    "$",
    "`",
    "$(",
    "${",
    "$'",
    "!",
    "=",
    "~",
    "*",
    "[",
    "]",
    "2",
    "a",
    "aa",
    "E",
    "x=1",
    "'E'",
    "\r",
    "\u{a0}",
    "é",
    "-",
    "-a",
    "(\\\n(",
    "<<E\\\nE",
    "${x:-`aa`}",
    "'$(aa)'",
];

/// A command of pieces that are put together at random.
pub fn random(rng: &mut Rng) -> String {
    (0..1 + rng.below(14)).map(|_| PIECES[rng.below(PIECES.len() as u64) as usize]).collect()
}

#[test]
fn any_text_gets_a_verdict_and_the_same_one_again() {
    let free = &own_profiles()["free"];
    let mut rng = Rng::new(19);
    for _ in 0..rounds_from_env("CHORUS_PERMISSION_ROUNDS", 1500) {
        let command = action(&random(&mut rng));
        assert_eq!(free.judge(&command), free.judge(&command));
    }
}
