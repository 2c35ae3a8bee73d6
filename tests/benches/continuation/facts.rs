//! The facts that are planted: sentences, calls and outputs with key words by which a reader finds them.

use chorus_tests::rng::Rng;

use super::pick;

/// How a fact is said, or in which other part of a conversation it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Decision,
    Task,
    Preference,
    /// A number or a name in a sentence.
    Detail,
    /// The path of a file that a call edits. Every other time, the reply names it, too.
    Path,
    /// The arguments of a command. No text repeats them.
    Command,
    /// A line in the output of a tool. No text repeats it.
    Output,
}

impl Kind {
    pub const ALL: [Self; 7] =
        [Self::Decision, Self::Task, Self::Preference, Self::Detail, Self::Path, Self::Command, Self::Output];

    pub fn name(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Task => "to-do",
            Self::Preference => "preference",
            Self::Detail => "detail",
            Self::Path => "path",
            Self::Command => "command",
            Self::Output => "output",
        }
    }
}

/// A third of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Early,
    Middle,
    Late,
}

impl Place {
    pub const ALL: [Self; 3] = [Self::Early, Self::Middle, Self::Late];

    pub fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Middle => "middle",
            Self::Late => "late",
        }
    }
}

/// A fact of a conversation.
#[derive(Debug)]
pub struct Fact {
    pub kind: Kind,
    pub place: Place,
    /// A reader has found the fact if all of them stand in one line of a text.
    pub words: Vec<String>,
}

impl Fact {
    pub fn is_in(&self, line: &str) -> bool {
        self.words.iter().all(|word| line.contains(word))
    }
}

/// A fact before it has a place.
#[derive(Debug)]
pub struct Saying {
    pub text: String,
    pub words: Vec<String>,
}

/// Sentences in people's own words; `{s}` is what they are about, `{v}` what they say of it. Chorus's rules know some of
/// the phrases and not others.
const DECISIONS: [&str; 12] = [
    "We decided to keep {s} on {v}.",
    "Let's go with {v} for {s}.",
    "For {s} we settled on {v} after all.",
    "{v} it is for {s}, then.",
    "Going forward {s} runs on {v}.",
    "I went with {v} for {s}, because the other one was slower.",
    "We ruled out everything but {v} for {s}.",
    "The team picked {v} for {s} this morning.",
    "We agreed that {s} gets {v}.",
    "Yes, move {s} to {v}, and leave the rest as it is.",
    "After the second test there is no doubt: {v} for {s}.",
    "Management wants {v} behind {s}, so that is what we build.",
];

const TASKS: [&str; 12] = [
    "TODO: add a retry to {s} ({v}).",
    "The rollback of {s} is still missing, see {v}.",
    "Don't forget to rotate the keys of {s}, ticket {v}.",
    "Someone has to review {s} before the release ({v}).",
    "Next step: profile {s}, that is {v}.",
    "{v} is about the missing test of {s}.",
    "We should look at {s} later; I opened {v} for it.",
    "Open: who owns {s}? {v} asks for it.",
    "I could not finish {s} today, {v} has the rest.",
    "Before Friday {s} needs its limits back, {v}.",
    "The docs of {s} are out of date; please take {v} next time.",
    "Remember to tell the customer about {s} once {v} is closed.",
];

const PREFERENCES: [&str; 8] = [
    "I prefer {v} in {s}.",
    "Please always use {v} when you touch {s}.",
    "Never use anything but {v} in {s}.",
    "In {s} I like {v} best.",
    "I'd rather have {v} in {s}, it reads better.",
    "When you write for {s}, keep to {v}.",
    "As a rule {s} has {v}.",
    "You know that I want {v} in {s}.",
];

const DETAILS: [&str; 8] = [
    "{s} listens on port {v}.",
    "The extension of whoever is on call for {s} is {v}.",
    "{s} has {v} rows in production.",
    "The customer number behind {s} is {v}.",
    "The provider allows {s} {v} requests a minute.",
    "{s} costs us {v} euros a year.",
    "The invoice for {s} had the number {v}.",
    "Last night {s} took {v} seconds.",
];

const OUTPUTS: [&str; 6] = [
    "warning: {s}: pool exhausted after {v} ms",
    "error: {s}: checksum {v} does not match",
    "FAIL {s} (expected 0, got {v})",
    "{s}: {v} rows skipped",
    "deployed {s} as build {v}",
    "INFO {s} finished, peak memory {v} KB",
];

const COMMANDS: [&str; 6] = [
    "pg_dump --table='{s}' --jobs {v} > dump.sql",
    "curl -s 'https://api.internal/{s}?page={v}' | jq .items",
    "ffmpeg -i '{s}.mov' -crf 23 -ss {v} out.mp4",
    "grep -rn '{s}' logs/ | tail -n {v}",
    "kubectl scale deploy '{s}' --replicas {v}",
    "git log --grep '{s}' -n {v} --oneline",
];

const ADJECTIVES: [&str; 14] = [
    "nightly", "billing", "customer", "staging", "public", "internal", "weekly", "mobile", "archive", "partner",
    "payroll", "shipping", "search", "audit",
];
const NOUNS: [&str; 14] = [
    "import",
    "export",
    "ledger",
    "gateway",
    "dashboard",
    "queue",
    "mailer",
    "cache",
    "report",
    "crawler",
    "resolver",
    "scheduler",
    "uploader",
    "catalogue",
];
const PRODUCTS: [&str; 10] = [
    "PostgreSQL",
    "zstd level",
    "plan",
    "Debian",
    "schema version",
    "Redis",
    "Node",
    "tier",
    "protocol version",
    "template",
];
const HABITS: [&str; 10] = [
    "snake_case names",
    "early returns",
    "British spelling",
    "double quotes",
    "short subjects",
    "named exports",
    "table-driven tests",
    "absolute paths",
    "plain SQL",
    "two-space tabs",
];
const FILES: [&str; 8] = ["loader", "parser", "retry", "schema", "limits", "pager", "totals", "session"];

/// All that facts can be about, in random order. Each conversation takes one after the other.
pub fn subjects(rng: &mut Rng) -> Vec<String> {
    let pairs = ADJECTIVES.iter().flat_map(|adjective| NOUNS.iter().map(move |noun| format!("{adjective} {noun}")));
    let mut all: Vec<_> = pairs.collect();
    shuffle(rng, &mut all);
    all
}

pub fn shuffle<T>(rng: &mut Rng, all: &mut [T]) {
    for end in (1..all.len()).rev() {
        all.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

/// Makes a fact of `kind` about `subject`. For a path the text is the path, for a command the command, for an output the
/// line; for the other kinds it is a sentence.
pub fn make(rng: &mut Rng, kind: Kind, subject: &str) -> Saying {
    let number = 1000 + rng.below(9000);
    let (templates, about, value): (&[&str], String, String) = match kind {
        Kind::Decision => {
            (&DECISIONS, format!("the {subject}"), format!("{} {}", pick(rng, &PRODUCTS), number % 90 + 7))
        }
        Kind::Task => (&TASKS, format!("the {subject}"), format!("OPS-{number}")),
        Kind::Preference => (&PREFERENCES, format!("the {subject}"), (*pick(rng, &HABITS)).to_owned()),
        Kind::Detail => (&DETAILS, format!("the {subject}"), number.to_string()),
        Kind::Command => (&COMMANDS, subject.replace(' ', "_"), number.to_string()),
        Kind::Output => (&OUTPUTS, subject.to_owned(), number.to_string()),
        Kind::Path => {
            let text = format!("services/{}/src/{}_{}.rs", subject.replace(' ', "-"), pick(rng, &FILES), number % 100);
            return Saying { words: vec![text.clone()], text };
        }
    };
    let text = pick(rng, templates).replace("{s}", &about).replace("{v}", &value);
    let key = if kind == Kind::Command { about } else { subject.to_owned() };
    let text = match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text,
    };
    Saying { text, words: vec![key, value] }
}
