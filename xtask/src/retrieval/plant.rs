//! A corpus of real conversations into which facts are planted, with a question about each.
//!
//! The conversations are read from a directory, the facts and questions are in `planted.json`. Where a fact stands, who says it
//! and when is decided by a fixed seed, so every run has the same corpus.

use std::fs;
use std::path::Path;

use jiff::civil::{Date, date};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde::Deserialize;
use serde_json::Value;

use super::corpus::{Question, Sample, Session, Turn};
use crate::error::{Error, Result};

const FACTS: &str = include_str!("planted.json");

/// The day on which the questions are asked: a Tuesday.
const TODAY: Date = date(2026, 5, 19);

/// How far the conversations go back, in days; most are recent.
const DAYS: u64 = 300;

/// How far the same fact with another value is away in time from the one that is asked for, in days.
const OTHERS_APART: i32 = 40;

const SEED: u64 = 24;

/// A fact as it is said, and the question about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    category: String,
    said: String,
    /// The same with other values, said at other times.
    others: Vec<String>,
    /// `{when}` stands for the time at which it was said.
    asked: String,
}

/// Reads the conversations of a directory and plants the facts into them.
pub fn read(dir: &Path) -> Result<Sample> {
    let conversations = read_conversations(dir)?;
    Ok(plant(conversations, read_facts()?))
}

fn read_facts() -> Result<Vec<Fact>> {
    #[derive(Deserialize)]
    struct Facts(std::collections::BTreeMap<String, Vec<Vec<String>>>);
    let invalid = || Error::new("planted.json has an entry that is not [said, asked, value...]".to_owned());
    let Facts(categories) = serde_json::from_str(FACTS).map_err(|_| invalid())?;
    let mut facts = Vec::new();
    for (category, entries) in categories {
        for entry in entries {
            let [said, asked, values @ ..] = &entry[..] else { return Err(invalid()) };
            let mut said = values.iter().map(|value| said.replace("{}", value)).chain([said.clone()]);
            let first = said.next().ok_or_else(invalid)?;
            let others = said.take(values.len().saturating_sub(1)).collect();
            facts.push(Fact { category: category.clone(), said: first, others, asked: asked.clone() });
        }
    }
    Ok(facts)
}

/// Reads lists of `{role, content}`: what users and assistants said.
fn read_conversations(dir: &Path) -> Result<Vec<Vec<Turn>>> {
    let entries = fs::read_dir(dir).map_err(|error| Error::file("read", dir, &error))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut conversations = Vec::new();
    for file in files {
        let text = fs::read(&file).map_err(|error| Error::file("read", &file, &error))?;
        let messages: Vec<Value> = serde_json::from_slice(&text)
            .map_err(|error| Error::new(format!("{} is not a JSON list: {error}", file.display())))?;
        let number = conversations.len();
        let turns = messages.iter().enumerate().filter_map(|(place, message)| {
            let role = message.get("role").and_then(Value::as_str)?;
            let text = message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty())?;
            matches!(role, "user" | "assistant")
                .then(|| turn(format!("{number}:{place}"), role == "assistant", text.to_owned()))
        });
        let turns: Vec<Turn> = turns.collect();
        if !turns.is_empty() {
            conversations.push(turns);
        }
    }
    if conversations.is_empty() {
        return Err(Error::new(format!("{} holds no conversations", dir.display()))
            .hint("name a directory of JSON files, each a list of messages with `role` and `content`"));
    }
    Ok(conversations)
}

fn turn(id: String, is_assistant: bool, text: String) -> Turn {
    Turn { id, speaker: String::new(), is_assistant, text }
}

/// Plants facts into conversations.
fn plant(conversations: Vec<Vec<Turn>>, mut facts: Vec<Fact>) -> Sample {
    let mut random = Random(SEED);
    let mut days: Vec<Date> = conversations.iter().map(|_| random.day()).collect();
    days.sort();
    let sessions = conversations.into_iter().zip(&days).enumerate().map(|(number, (turns, day))| Session {
        id: number.to_string(),
        at: noon(*day),
        turns,
    });
    let mut sample = Sample { sessions: sessions.collect(), questions: Vec::new() };
    random.shuffle(&mut facts);
    for (number, fact) in facts.iter().enumerate() {
        // Each conversation has about as many as any other.
        let place = number % sample.sessions.len();
        let day = days[place];
        let id = plant_one(&mut sample.sessions[place], &fact.said, &mut random);
        let elsewhere: Vec<usize> = (0..days.len()).filter(|other| is_apart(days[*other], day)).collect();
        for other in &fact.others {
            if !elsewhere.is_empty() {
                let place = elsewhere[random.below(elsewhere.len())];
                plant_one(&mut sample.sessions[place], other, &mut random);
            }
        }
        sample.questions.push(Question {
            text: fact.asked.replace("{when}", &name_of(day, &mut random)),
            category: fact.category.clone(),
            at: Some(noon(TODAY)),
            turns: vec![id],
            sessions: vec![sample.sessions[place].id.clone()],
        });
    }
    sample
}

/// Returns true if a fact of the first day cannot be taken for one of the second.
fn is_apart(other: Date, day: Date) -> bool {
    other.until(day).is_ok_and(|span| span.get_days().abs() >= OTHERS_APART)
}

/// Puts a text behind a turn, or at its end, and returns the id of the turn that has it.
fn plant_one(session: &mut Session, text: &str, random: &mut Random) -> String {
    let place = random.below(session.turns.len());
    if random.below(2) == 0 {
        let turn = &mut session.turns[place];
        turn.text = format!("{} {text}", turn.text);
        return turn.id.clone();
    }
    let id = format!("{}:planted-{}", session.id, session.turns.len());
    session.turns.insert(place + 1, turn(id.clone(), random.below(2) == 0, text.to_owned()));
    id
}

/// Returns words that name a day, as seen from the day on which the questions are asked.
fn name_of(day: Date, random: &mut Random) -> String {
    let days = day.until(TODAY).map_or(0, |span| span.get_days());
    // Monday to Sunday of the week before.
    let is_last_week = (2..=8).contains(&days);
    let mut names = vec![day.strftime("on %-d %B").to_string(), day.strftime("in %B").to_string()];
    match days {
        1 => return "yesterday".into(),
        _ if is_last_week => names = vec!["last week".into(), day.strftime("last %A").to_string()],
        9..=60 => names.push(format!("{} weeks ago", (days + 3) / 7)),
        _ => {}
    }
    if days > 60 {
        names.push(format!("{} months ago", (days + 15) / 30));
    }
    names.swap_remove(random.below(names.len()))
}

fn noon(day: Date) -> Timestamp {
    day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).map(|time| time.timestamp()).unwrap_or_default()
}

/// SplitMix64, the same in every version.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or_default()
    }

    /// A day before today, rather a recent one.
    fn day(&mut self) -> Date {
        let share = (self.next() % 1000) as f64 / 1000.0;
        let ago = (DAYS as f64 * share * share) as i32 + 1;
        TODAY.checked_sub(ago.days()).unwrap_or(TODAY)
    }

    fn shuffle<T>(&mut self, entries: &mut [T]) {
        for end in (1..entries.len()).rev() {
            entries.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::*;

    /// Words that every question has.
    const COMMON: [&str; 69] = [
        "a", "about", "after", "all", "an", "and", "are", "as", "at", "be", "because", "before", "by", "can", "did",
        "do", "does", "every", "for", "from", "had", "has", "he", "her", "his", "how", "i", "in", "into", "is", "it",
        "its", "much", "my", "not", "of", "off", "on", "or", "our", "out", "over", "she", "so", "than", "that", "the",
        "their", "they", "this", "to", "up", "was", "we", "were", "what", "when", "where", "which", "while", "who",
        "whom", "whose", "why", "will", "with", "would", "you", "your",
    ];

    fn words(text: &str) -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        words.filter(|word| !word.is_empty() && !COMMON.contains(&&**word)).collect()
    }

    #[test]
    fn there_are_two_hundred_different_facts() {
        let facts = read_facts().unwrap();
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        facts.iter().for_each(|fact| *count.entry(&fact.category).or_default() += 1);
        assert_eq!(count.into_values().collect::<Vec<_>>(), [40; 5]);
        let different = |text: fn(&Fact) -> &str| facts.iter().map(text).collect::<HashSet<_>>().len();
        assert_eq!((different(|fact| &fact.said), different(|fact| &fact.asked)), (200, 200));
    }

    #[test]
    fn questions_have_as_many_words_of_the_fact_as_their_category_says() {
        for fact in read_facts().unwrap() {
            let (said, asked) = (words(&fact.said), words(&fact.asked));
            let (shared, new) = (said.intersection(&asked).count(), asked.difference(&said).count());
            match &*fact.category {
                "same words" => assert!(shared >= 2 && new <= 2, "{fact:?}"),
                "inflected" => assert!(new >= 2, "{fact:?}"),
                "synonym" => assert!(shared >= 1 && new >= 1, "{fact:?}"),
                "paraphrase" => assert_eq!(shared, 0, "{fact:?}"),
                "with time" => assert!(fact.asked.contains("{when}") && fact.others.len() == 2, "{fact:?}"),
                other => panic!("{other}"),
            }
        }
    }

    fn conversations() -> Vec<Vec<Turn>> {
        let turns = |number: usize| {
            (0..4).map(|place| turn(format!("{number}:{place}"), place % 2 == 1, "hello".into())).collect()
        };
        (0..60).map(turns).collect()
    }

    #[test]
    fn each_fact_stands_where_its_question_says_and_the_same_in_every_run() {
        let facts = read_facts().unwrap();
        let (sample, again) = (plant(conversations(), facts.clone()), plant(conversations(), facts.clone()));
        assert_eq!(format!("{sample:?}"), format!("{again:?}"));
        assert_eq!(sample.questions.len(), 200);
        let mut ids = HashSet::new();
        let turns = sample.sessions.iter().flat_map(|session| &session.turns);
        assert!(turns.into_iter().all(|turn| ids.insert(&turn.id)), "an id is twice");
        for question in &sample.questions {
            let session = sample.sessions.iter().find(|session| session.id == question.sessions[0]).unwrap();
            let turn = session.turns.iter().find(|turn| turn.id == question.turns[0]).unwrap();
            assert!(!question.text.contains('{'), "{question:?}");
            let is_said = |fact: &&Fact| turn.text.ends_with(&fact.said) || turn.text.contains(&*fact.said);
            let said: Vec<&Fact> = facts.iter().filter(is_said).collect();
            assert!(said.iter().any(|fact| fact.category == question.category), "{question:?}");
        }
    }

    #[test]
    fn days_are_named_as_people_do() {
        let name = |day: Date, random| name_of(day, &mut Random(random));
        let names = |day: Date| (0..20).map(|random| name(day, random)).collect::<HashSet<_>>();
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
        assert_eq!(names(date(2026, 5, 18)), all(&["yesterday"]));
        assert_eq!(names(date(2026, 5, 11)), all(&["last week", "last Monday"]));
        assert_eq!(names(date(2026, 4, 21)), all(&["on 21 April", "in April", "4 weeks ago"]));
        assert_eq!(names(date(2025, 12, 20)), all(&["on 20 December", "in December", "5 months ago"]));
    }
}
