//! A conversation of 20,000 messages with 300 facts in it: some are pinned, some stand in results of tools, some are contradicted later.

use std::collections::{HashMap, HashSet};

use chorus_proto::{NewMessage, Role, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub const MESSAGES: usize = 20_000;
pub const FACTS: usize = 300;
/// Of them.
pub const PINNED: usize = 40;
const CONTRADICTED: usize = 60;

/// Messages of a turn: a question, a call, its result, an answer.
const TURN: usize = 4;

/// What is pinned by hand of a fact.
pub fn pin(fact: usize) -> String {
    format!("fact {fact:03} is  held – „{}“", value(fact))
}

fn value(fact: usize) -> usize {
    1000 + fact * 7
}

/// `Fact 017 is 1119.`, and what is said against it later.
pub fn said(fact: usize) -> String {
    format!("Fact {fact:03} is {}.", value(fact))
}

fn against(fact: usize) -> String {
    format!("Fact {fact:03} is {}.", value(fact) + 1)
}

/// The message of a number. A fact stands in every 60th message or so; the first of them are contradicted in the second half.
pub fn message(number: usize) -> NewMessage {
    let (turn, part) = (number / TURN, number % TURN);
    let every = MESSAGES / TURN / (FACTS + CONTRADICTED);
    let (planted, is_due) = (turn / every, turn.is_multiple_of(every));
    let fact = match planted {
        fact if fact < FACTS => said(fact),
        fact => against((fact - FACTS) % CONTRADICTED),
    };
    // One fact of three is in what a tool answered.
    let here = is_due && part == if planted.is_multiple_of(3) { 2 } else { 0 };
    let fact = if here { fact } else { String::new() };
    let id = format!("call-{turn}");
    match part {
        0 => NewMessage::text(Role::User, format!("Step {turn} of the plan, please. {fact}")),
        1 => {
            let params = RawValue::from_string(format!("{{\"path\":\"src/part_{}.rs\"}}", turn % 90)).expect("JSON");
            let call = ToolCall { id, name: "view".into(), params };
            NewMessage { tool_calls: vec![call], ..NewMessage::text(Role::Assistant, "") }
        }
        2 => NewMessage {
            tool_call_id: Some(id),
            name: Some("view".into()),
            ..NewMessage::text(Role::ToolResult, format!("{fact} {}", "let x = 1; ".repeat(16)))
        },
        _ if turn.is_multiple_of(STATED) => {
            NewMessage::text(Role::Assistant, format!("{} {}", decision(turn), task(turn)))
        }
        _ => NewMessage::text(Role::Assistant, format!("Step {turn} is done; the next one may begin.")),
    }
}

/// Every how many turns something is decided, and something is left to do.
const STATED: usize = 50;

/// The decisions and the to-dos of the whole conversation, a hundred each.
pub fn statements() -> (Vec<String>, Vec<String>) {
    let turns = (0..MESSAGES / TURN).step_by(STATED);
    turns.map(|turn| (decision(turn), task(turn))).unzip()
}

fn decision(turn: usize) -> String {
    format!("We decided on plan {turn}.")
}

fn task(turn: usize) -> String {
    format!("The test of step {turn} is still to do.")
}

/// The messages of a part.
pub fn messages(range: std::ops::Range<usize>) -> Vec<NewMessage> {
    range.map(message).collect()
}

/// What a careful model writes down of a request: each fact with the message that says it, contradictions, what was decided, opened and
/// done, files, and some that nobody said.
pub fn notes(asked: &str) -> Value {
    let (mut number, mut facts, mut conflicts) = (0_u64, Vec::new(), Vec::new());
    let (mut decisions, mut pending, mut done, mut files) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut seen: HashMap<&str, (u64, &str)> = HashMap::new();
    let mut paths: HashSet<&str> = HashSet::new();
    let item = |(source, text): (u64, &str)| json!({"text": text, "source": source});
    let mut head = "";
    for line in asked.lines() {
        if let Some(said) = line.strip_prefix('[') {
            head = said;
            number = said.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(number);
        }
        let Some(said) = line.strip_prefix("> ") else { continue };
        if head.ends_with(" pending]") {
            // Every other task is done when it is seen again.
            done.extend(said.ends_with("00 is still to do.").then_some(number));
            continue;
        }
        if let Some((decided, open)) = said.split_once(". ").filter(|_| said.starts_with("We decided")) {
            decisions.push(item((number, decided)));
            pending.push(item((number, open)));
        }
        if let Some(path) = said.strip_prefix("{\"path\":\"").and_then(|path| path.strip_suffix("\"}"))
            && paths.insert(path)
        {
            files.push(item((number, path)));
        }
        let Some(at) = said.find("Fact ") else { continue };
        let fact = said[at..].split('.').next().expect("a sentence");
        match seen.get(&fact[..8]) {
            Some(earlier) if earlier.1 != fact => {
                conflicts.push(json!({"earlier": item(*earlier), "later": item((number, fact))}));
            }
            Some(_) => {}
            None => _ = seen.insert(&fact[..8], (number, fact)),
        }
        facts.push(item((number, fact)));
    }
    let topic = facts.last().map(|fact| json!({"text": format!("talk of {}", fact["text"]), "source": fact["source"]}));
    facts.push(json!({"text": "nobody said this", "source": 100_000}));
    json!({
        "background": "A plan is worked off, step by step.",
        "topics": topic.into_iter().collect::<Vec<_>>(),
        "decisions": decisions, "pending": pending, "done": done, "facts": facts, "files": files, "conflicts": conflicts,
    })
}
