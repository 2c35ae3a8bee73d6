//! Commands with the verdict they must get: tests/fixtures/permissions/commands.txt.

use chorus_proto::methods::permissions::{Decision, Rule, Verdict};

use super::{action, own_profiles, profiles};
use crate::tidy::source::root;

/// A line of the corpus: decision, profile, command.
pub fn lines() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("tests/fixtures/permissions/commands.txt")).expect("the corpus");
    let read = |line: &str| {
        let (decision, rest) = line.split_at(7);
        let (profile, command) = rest.split_at(rest.len().min(10));
        (decision.trim().to_owned(), profile.trim().to_owned(), unwritten(command))
    };
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(read).collect()
}

/// The characters that a line cannot hold.
fn unwritten(text: &str) -> String {
    let text = text.replace('␤', "\n").replace('␍', "\r").replace('␉', "\t");
    let mut parts = text.split('‹');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('›').expect("a number and its end");
        out.push(u32::from_str_radix(number, 16).ok().and_then(char::from_u32).expect("a character"));
        out.push_str(rest);
    }
    out
}

#[test]
fn every_command_gets_the_wanted_verdict() {
    let (profiles, lines) = (profiles(), lines());
    assert!(lines.len() >= 200, "only {} commands", lines.len());
    let mut wrong = Vec::new();
    for (wanted, profile, command) in &lines {
        let verdict = profiles[profile].judge(&action(command));
        if verdict.decision.as_str() != wanted {
            wrong
                .push(format!("{profile}: {command:?} is {}, wanted {wanted}: {verdict:?}", verdict.decision.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

#[test]
fn a_verdict_names_the_rule_and_judges_every_part() {
    let free = &own_profiles()["free"];
    let verdict = free.judge(&action("ls 'a b' && env X=1 curl x > out"));
    let parts: Vec<(&str, Decision)> = verdict.parts.iter().map(|part| (&*part.action, part.decision)).collect();
    assert_eq!(
        parts,
        [
            ("tool:bash:ls 'a b'", Decision::Allow),
            ("tool:bash:env X=1 curl x", Decision::Deny),
            ("tool:create_file:out", Decision::Allow),
        ]
    );
    let denied = Rule::Pattern { list: Decision::Deny, index: 1, pattern: "tool:bash:curl .*".into() };
    assert_eq!((verdict.decision, verdict.rule), (Decision::Deny, denied));
    let verdict = free.judge(&action("ls $x"));
    assert!(matches!(&verdict.rule, Rule::Shell { reason } if reason.contains("expansion")), "{verdict:?}");
    // What cannot be seen through is the reason, not what follows of it.
    let verdict = free.judge(&action("ls $(date) > a"));
    let reason =
        |verdict: &Verdict| if let Rule::Shell { reason } = &verdict.rule { reason.clone() } else { String::new() };
    assert!(!reason(&verdict).is_empty() && !reason(&verdict).contains("directory"), "{verdict:?}");
    let verdict = free.judge(&action("cd a && ls > b"));
    assert!(reason(&verdict).contains("changing the directory"), "{verdict:?}");
    let verdict = own_profiles()["careful"].judge("tool:remember:x");
    assert_eq!((verdict.decision, verdict.rule), (Decision::Deny, Rule::Default));
}

#[test]
fn ten_thousand_parts_are_all_judged() {
    let free = &own_profiles()["free"];
    let many = "ls;".repeat(9_999);
    let verdict = free.judge(&action(&format!("{many}pwd")));
    assert_eq!((verdict.decision, verdict.parts.len()), (Decision::Allow, 10_000));
    let verdict = free.judge(&action(&format!("{many}rm x")));
    assert_eq!((verdict.decision, verdict.parts.len()), (Decision::Deny, 10_000));
}

#[test]
fn commands_deep_inside_others_take_little_memory() {
    let free = &own_profiles()["free"];
    for (open, inside, close, count) in [
        ("sh <(", "b", ")", 10_900),
        ("a $(", "b", ")", 12_000),
        ("a=$(", "b", ")", 13_000),
        ("a >$(", "b", ")", 10_900),
        ("a \"$(", "b", ")\"", 9_000),
        ("sh $(", "$x", ")", 65),
        ("sh -c $x ", "rm x", "", 7_000),
        ("$x ", "((", "(", 20_000),
    ] {
        let command = open.repeat(count) + inside + &close.repeat(count);
        let verdict = free.judge(&action(&command));
        assert_ne!(verdict.decision, Decision::Allow, "{count} times {open:?}");
        let judged: usize = verdict.parts.iter().map(|part| part.action.len()).sum();
        assert!(judged < 1 << 20, "{count} times {open:?}: {judged} bytes of actions");
    }
    let verdict = free.judge(&action(&format!("{}rm x{}", "echo $(".repeat(1000), ")".repeat(1000))));
    assert_eq!(verdict.decision, Decision::Deny);
}

#[test]
fn what_is_made_to_exhaust_the_parser_is_asked_about() {
    let free = &own_profiles()["free"];
    for piece in [
        "(",
        "$(",
        "{ ",
        "if ",
        "`",
        "\"$(",
        "<<A ",
        "case a in (",
        "[[ ( ",
        "$((",
        "${a:-",
        "a|",
        "x=",
        "\\\n",
        "'",
        "<(",
    ] {
        for count in [500, (8 << 10) / piece.len(), (1 << 20) / piece.len()] {
            let verdict = free.judge(&action(&piece.repeat(count)));
            assert_ne!(verdict.decision, Decision::Allow, "{count} times {piece:?}");
        }
    }
}
