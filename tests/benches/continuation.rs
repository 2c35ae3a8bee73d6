//! Bench: the share of known facts that a reader of the window finds, by their words, after a conversation was continued:
//! restored, resumed from its summary, compacted, carried into another program. It measures no time.
//!
//! Forty conversations from a seed have 66 to 400 messages. A model takes no part: notes and summaries are made by rules.

#[path = "continuation/corpus.rs"]
mod corpus;
#[path = "continuation/facts.rs"]
mod facts;
#[path = "continuation/tool_files.rs"]
mod tool_files;
#[path = "continuation/windows.rs"]
mod windows;

use chorus_tests::home;
use chorus_tests::measure::print_report;
use chorus_tests::rng::Rng;
use corpus::Conversation;
use facts::{Fact, Kind, Place};
use windows::{Continuations, Texts};

const CONVERSATIONS: usize = 40;

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

/// Results of a way, over all conversations.
struct Results {
    way: String,
    /// Of each fact, whether it was found.
    found: Vec<(Kind, Place, bool)>,
    /// Of each conversation, a quarter of the bytes.
    tokens: Vec<usize>,
}

impl Results {
    fn add(&mut self, facts: &[Fact], texts: &Texts) {
        let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        self.found.extend(facts.iter().map(|fact| (fact.kind, fact.place, lines.iter().any(|line| fact.is_in(line)))));
        self.tokens.push(texts.iter().map(String::len).sum::<usize>() / 4);
    }

    fn share(&self, counts: impl Fn(Kind, Place) -> bool) -> f64 {
        let of: Vec<bool> =
            self.found.iter().filter(|(kind, place, _)| counts(*kind, *place)).map(|found| found.2).collect();
        of.iter().filter(|found| **found).count() as f64 / of.len() as f64
    }

    fn print(&mut self) {
        let places = Place::ALL.map(|place| self.share(|_, other| other == place));
        let kinds = Kind::ALL.map(|kind| self.share(|other, _| other == kind));
        let shares = [self.share(|_, _| true)].into_iter().chain(places).chain(kinds);
        let shares: String =
            shares.zip(columns()).map(|(share, name)| format!("  {share:>0$.2}", name.len())).collect();
        self.tokens.sort_unstable();
        print_report(format_args!("{:<39}{shares}{:>8}", self.way, self.tokens[self.tokens.len() / 2]));
    }
}

fn columns() -> impl Iterator<Item = &'static str> {
    [" all"].into_iter().chain(Place::ALL.map(Place::name)).chain(Kind::ALL.map(Kind::name))
}

fn print_head() {
    let names: String = columns().map(|name| format!("  {name}")).collect();
    print_report(format_args!("{:<39}{names}{:>8}", "facts found", "tokens"));
}

/// Panics unless each fact is in the conversation, in one message or in that of its path.
fn check_corpus(conversations: &[Conversation]) {
    for Conversation { messages, facts } in conversations {
        for fact in facts {
            let has = |text: &str| text.lines().any(|line| fact.is_in(line));
            let calls = |calls: &[chorus_proto::ToolCall]| calls.iter().any(|call| has(call.params.get()));
            let count = messages.iter().filter(|message| has(&message.content) || calls(&message.tool_calls)).count();
            assert!(count == 1 || (fact.kind == Kind::Path && count == 2), "{fact:?} stands in {count} messages");
        }
    }
}

fn main() {
    let conversations = corpus::conversations(CONVERSATIONS);
    check_corpus(&conversations);
    let count = |of: fn(&Conversation) -> usize| conversations.iter().map(of).sum::<usize>();
    let (messages, facts) = (count(|one| one.messages.len()), count(|one| one.facts.len()));
    let lengths = conversations.iter().map(|one| one.messages.len());
    let (shortest, longest) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
    print_report(format_args!(
        "{CONVERSATIONS} conversations of {shortest} to {longest} messages, together {messages}; {facts} facts"
    ));

    let continuations = Continuations::start(home!().without_index());
    let mut results: Vec<Results> = Vec::new();
    for (number, Conversation { messages, facts }) in conversations.iter().enumerate() {
        for (at, (way, texts)) in continuations.run(number, messages).into_iter().enumerate() {
            if at == results.len() {
                results.push(Results { way, found: Vec::new(), tokens: Vec::new() });
            }
            results[at].add(facts, &texts);
        }
    }
    print_head();
    results.iter_mut().for_each(Results::print);
}
