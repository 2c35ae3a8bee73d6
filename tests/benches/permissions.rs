//! Bench: a verdict from a profile with 100 rules, and verdicts on commands that are hard to parse.

use std::hint::black_box;
use std::time::Duration;

use chorus_permissions::{Profile, ProfileSpec};
use chorus_tests::measure::{print_report, time, use_realtime_scheduler};

const ROUNDS: usize = 20_000;
const TARGET: Duration = Duration::from_micros(20);

/// Bytes of the commands that are hard to parse: the longest that is parsed.
const MAX_COMMAND_BYTES: usize = 64 << 10;

/// Builds a profile with 100 typical rules.
fn profile() -> Profile {
    let numbered = |count: usize, pattern: &str| -> Vec<String> {
        (0..count).map(|at| pattern.replace('#', &at.to_string())).collect()
    };
    let mut deny = numbered(30, "tool:bash:danger#( .*)?");
    deny.push("tool:bash:.*/etc/shadow.*".into());
    let mut allow = numbered(35, "tool:bash:tool# (build|test)( .*)?");
    let own = ["tool:create_file:.*", "tool:view:.*", "tool:bash:ls.*", "tool:bash:(git|cargo|grep|head|sort|cat) .*"];
    allow.extend(own.map(str::to_owned));
    let spec = ProfileSpec {
        deny,
        ask: numbered(30, "tool:(bash:deploy#|create_file:config#/).*"),
        allow,
        ..ProfileSpec::default()
    };
    assert_eq!(spec.deny.len() + spec.ask.len() + spec.allow.len(), 100);
    Profile::new(spec).expect("a profile")
}

/// Judges each action many times, and prints its median.
fn judge_all(profile: &Profile, what: &str, actions: &[&str]) {
    print_report(format_args!("{what}:"));
    for action in actions {
        let mut times: Vec<_> =
            (0..ROUNDS).map(|_| time(|| drop(black_box(profile.judge(black_box(action)))))).collect();
        times.sort_unstable();
        let (median, p99) = (times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
        let verdict = if median <= TARGET { "met" } else { "MISSED" };
        print_report(format_args!("  {action}: median {median:?}, p99 {p99:?}; target 20 us  {verdict}"));
    }
}

fn main() {
    use_realtime_scheduler();
    let profile = profile();
    judge_all(
        &profile,
        "of one or two parts",
        &[
            "tool:create_file:src/some/folder/file.rs",
            "tool:bash:git status",
            "tool:bash:cargo test --workspace 2>&1",
            "tool:bash:cat notes.md | sort -u > names.txt",
            "tool:bash:cargo build > build.log 2>&1; grep -c error build.log",
            "tool:bash:for f in a b; do ls $f; done",
        ],
    );
    judge_all(
        &profile,
        "of three and more parts, plain words",
        &[
            "tool:bash:cargo test --workspace 2>&1 | grep -c FAILED | head -n 3",
            "tool:bash:git log --oneline | grep fix | sort -u | head -n 5",
            "tool:bash:ls -la; git status; git diff; cat notes.md; grep -rn todo src",
        ],
    );
    judge_all(
        &profile,
        "of three and more parts, with quotes, globs or expansions",
        &[
            "tool:bash:cargo test --workspace 2>&1 | grep -c 'test FAILED' | head -n 3",
            "tool:bash:git log --oneline | grep \"fix: .*\" | sort -u | head -n 5",
            "tool:bash:ls -la src/*.rs; git status; git diff; cat notes/*.md; grep -rn todo src",
            "tool:bash:cat $HOME/notes.md | grep -c fix | head -n 3",
        ],
    );
    let hard = ["(", "$(", "{ ", "`", "<<A ", "case a in (", "[[ ( ", "$((", "a|", "<(", "ls;"].map(|piece| {
        let action = format!("tool:bash:{}", piece.repeat(MAX_COMMAND_BYTES / piece.len()));
        (time(|| drop(black_box(profile.judge(&action)))), piece)
    });
    let (took, piece) = hard.into_iter().max().expect("some");
    print_report(format_args!("64 KiB of {piece:?}, the hardest of these: {took:?}"));
}
