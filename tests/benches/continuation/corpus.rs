//! Conversations with a coding agent, made from a seed: questions, calls of tools with their outputs, replies, and among
//! them the facts.

use chorus_proto::{NewMessage, Role, ToolCall};
use chorus_tests::rng::Rng;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::facts::{Fact, Kind, Place, Saying, make, shuffle, subjects};
use super::pick;

const SEED: u64 = 25;
/// Messages of the shortest and of the longest conversation, about.
const SHORTEST: usize = 60;
const LONGEST: usize = 400;
/// A conversation has a fact of each kind for so many messages.
const MESSAGES_PER_FACT_OF_A_KIND: usize = 60;

const QUESTIONS: [&str; 14] = [
    "The page is slow again since the last deploy.",
    "Can you look at the log of this morning?",
    "Why does the second column stay empty?",
    "I get a stack trace when I open the form.",
    "What does this function do with an empty list?",
    "The numbers of Tuesday look odd to me.",
    "Could you explain the difference between the two variants?",
    "It fails on my machine and works on hers.",
    "How long would it take to change that everywhere?",
    "Here is what the tester wrote about it.",
    "Show me the part that reads the header.",
    "Does the same happen with the older file?",
    "The spacing is off by one in the printed version.",
    "Is there a shorter way to say that?",
];

const REPLIES: [&str; 18] = [
    "The function returns early when the list has no entries, so nothing is written.",
    "I read the file from top to bottom and found two places that look alike.",
    "Both calls end in the same helper, which trims the text and counts the lines.",
    "The log shows three attempts within a minute, and the last one came through.",
    "It compiles without warnings, and the tests of the module pass.",
    "The header is read twice because the reader is created inside the loop.",
    "That explains the empty column: the key has a trailing space in one of the files.",
    "The change is small: one condition, and the message of the error.",
    "On an empty input the old code printed a zero, and the new code prints nothing.",
    "The trace points at the line that joins the two tables.",
    "I compared the output with that of yesterday, and they differ in two lines.",
    "The older file has the same shape, only the date is written differently.",
    "You can see it in the third line of the output above.",
    "The spacing comes from the font, not from the layout.",
    "There were two copies of the same constant in different files.",
    "A shorter form exists, but it hides the order of the steps.",
    "The test covers the empty case, the usual case and a very long line.",
    "With the smaller batch it runs through in one pass.",
];

const LOOKS: [&str; 6] = [
    "I look at the file.",
    "I run the tests once more.",
    "I compare both versions.",
    "I search for other uses of it.",
    "I read the log.",
    "",
];

const CODE: [&str; 12] = [
    "    let mut rows = reader.rows().collect::<Vec<_>>();",
    "    if rows.is_empty() { return Ok(()); }",
    "    for row in &rows { writer.write(row)?; }",
    "    // The header is not counted.",
    "    let total: u64 = rows.iter().map(|row| row.amount).sum();",
    "    writer.flush()?;",
    "}",
    "",
    "fn name_of(row: &Row) -> &str { row.name.trim() }",
    "test reader::reads_an_empty_file ... ok",
    "test reader::keeps_the_order ... ok",
    "test writer::ends_with_a_newline ... ok",
];

/// A conversation and what is to be found in it.
#[derive(Debug)]
pub struct Conversation {
    pub messages: Vec<NewMessage>,
    pub facts: Vec<Fact>,
}

/// Returns the conversations, the shortest first. They are the same in every run.
pub fn conversations(count: usize) -> Vec<Conversation> {
    let length = |n: usize| SHORTEST + (LONGEST - SHORTEST) * n / (count - 1).max(1);
    (0..count).map(|n| Writer::new(SEED + n as u64 * 1000, length(n)).write()).collect()
}

struct Writer {
    rng: Rng,
    length: usize,
    messages: Vec<NewMessage>,
    /// The facts, and the index of the message with each.
    planted: Vec<(Kind, Vec<String>, usize)>,
    calls: usize,
}

impl Writer {
    fn new(seed: u64, length: usize) -> Self {
        Self { rng: Rng::new(seed), length, messages: Vec::new(), planted: Vec::new(), calls: 0 }
    }

    fn write(mut self) -> Conversation {
        let mut due = self.facts_to_plant();
        let all = due.len();
        due.reverse();
        while self.messages.len() < self.length || !due.is_empty() {
            let next = (2 * (all - due.len()) + 1) * self.length / (2 * all);
            let fact = if self.messages.len() + 2 >= next { due.pop() } else { None };
            self.write_turn(fact);
        }
        let count = self.messages.len();
        let place = |at: usize| Place::ALL[(at * 3 / count).min(2)];
        let facts = self.planted.into_iter().map(|(kind, words, at)| Fact { kind, place: place(at), words });
        Conversation { facts: facts.collect(), messages: self.messages }
    }

    /// As many of each kind; each stretch of the conversation has one of each kind.
    fn facts_to_plant(&mut self) -> Vec<(Kind, Saying)> {
        let mut subjects = subjects(&mut self.rng).into_iter();
        let mut facts = Vec::new();
        for _ in 0..self.length / MESSAGES_PER_FACT_OF_A_KIND {
            let mut kinds = Kind::ALL;
            shuffle(&mut self.rng, &mut kinds);
            for kind in kinds {
                let subject = subjects.next().expect("enough to speak about");
                facts.push((kind, make(&mut self.rng, kind, &subject)));
            }
        }
        facts
    }

    /// Writes a question, some calls with their results, and a reply.
    fn write_turn(&mut self, fact: Option<(Kind, Saying)>) {
        let (mut question, mut reply) = (self.sentences(&QUESTIONS, 1, 2), self.sentences(&REPLIES, 2, 6));
        let mut calls: Vec<Option<(Kind, Saying)>> = (0..self.rng.below(3)).map(|_| None).collect();
        let mut in_question = None;
        let mut in_reply = None;
        match fact {
            Some((kind @ (Kind::Path | Kind::Command | Kind::Output), saying)) => {
                if kind == Kind::Path && self.rng.below(2) == 0 {
                    reply = format!("{reply} The change is in `{}`.", saying.text);
                }
                let at = self.rng.below(calls.len() as u64 + 1) as usize;
                calls.insert(at, Some((kind, saying)));
            }
            Some((kind, saying)) if kind == Kind::Preference || self.rng.below(2) == 0 => {
                question = self.insert(&question, &saying.text);
                in_question = Some((kind, saying.words));
            }
            Some((kind, saying)) => {
                reply = self.insert(&reply, &saying.text);
                in_reply = Some((kind, saying.words));
            }
            None => {}
        }
        self.push(NewMessage::text(Role::User, question), in_question);
        for fact in calls {
            self.write_call(fact);
        }
        self.push(NewMessage::text(Role::Assistant, reply), in_reply);
    }

    fn write_call(&mut self, fact: Option<(Kind, Saying)>) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let kind = fact.as_ref().map(|(kind, _)| *kind);
        let (text, words) = fact.map(|(_, saying)| (saying.text, saying.words)).unzip();
        let file = format!("src/part_{}.rs", self.rng.below(30));
        let (name, params) = match (kind, &text) {
            (Some(Kind::Path), Some(path)) => ("edit", json!({"path": path, "old": "rows", "new": "entries"})),
            (Some(Kind::Command), Some(command)) => ("bash", json!({"command": command})),
            _ if self.rng.below(2) == 0 => ("view", json!({"path": file})),
            _ => ("bash", json!({"command": format!("cargo test --quiet -- {}", self.calls)})),
        };
        let call = ToolCall { id: id.clone(), name: name.into(), params: to_raw_value(&params).expect("JSON") };
        let said = *pick(&mut self.rng, &LOOKS);
        let planted = kind.zip(words);
        let (in_call, in_output) = match kind {
            Some(Kind::Output) => (None, planted),
            _ => (planted, None),
        };
        self.push(NewMessage { tool_calls: vec![call], ..NewMessage::text(Role::Assistant, said) }, in_call);
        let mut lines: Vec<String> =
            (0..8 + self.rng.below(60)).map(|_| (*pick(&mut self.rng, &CODE)).to_owned()).collect();
        if let (Some(Kind::Output), Some(line)) = (kind, text) {
            let at = self.rng.below(lines.len() as u64) as usize;
            lines.insert(at, line);
        }
        let result = NewMessage::text(Role::ToolResult, lines.join("\n"));
        self.push(NewMessage { tool_call_id: Some(id), name: Some(name.into()), ..result }, in_output);
    }

    fn push(&mut self, message: NewMessage, fact: Option<(Kind, Vec<String>)>) {
        let at = self.messages.len();
        self.planted.extend(fact.map(|(kind, words)| (kind, words, at)));
        self.messages.push(message);
    }

    fn sentences(&mut self, from: &[&str], least: u64, most: u64) -> String {
        let count = least + self.rng.below(most - least + 1);
        (0..count).map(|_| *pick(&mut self.rng, from)).collect::<Vec<_>>().join(" ")
    }

    /// Puts a sentence before, between or after others.
    fn insert(&mut self, text: &str, sentence: &str) -> String {
        let mut ends: Vec<usize> = text.match_indices(['.', '?']).map(|(at, _)| at + 1).collect();
        ends.insert(0, 0);
        let at = *pick(&mut self.rng, &ends);
        let (before, after) = text.split_at(at);
        [before.trim(), sentence, after.trim()].join(" ").trim().to_owned()
    }
}
