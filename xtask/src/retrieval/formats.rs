//! Readers of the formats of LoCoMo and LongMemEval.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::corpus::{Question, Sample, Session, Turn};
use crate::error::{Error, Result};

/// The category of LongMemEval's questions that have no answer.
const ABSTENTION: &str = "abstention";

/// Reads a file, or the JSON files of a directory in the order of their names.
pub fn read(path: &Path) -> Result<Vec<Sample>> {
    let files: Vec<PathBuf> = if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| Error::file("read", path, &error))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        files
    } else {
        vec![path.to_owned()]
    };
    let mut samples = Vec::new();
    for file in files {
        let text = fs::read(&file).map_err(|error| Error::file("read", &file, &error))?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|error| Error::new(format!("{} is not JSON: {error}", file.display())))?;
        let before = samples.len();
        match value {
            Value::Array(entries) => samples.extend(entries.iter().filter_map(read_sample)),
            entry => samples.extend(read_sample(&entry)),
        }
        if samples.len() == before {
            return Err(Error::new(format!("{} holds no conversations with questions", file.display()))
                .hint("name a file in the format of LoCoMo (locomo10.json) or LongMemEval (longmemeval_s.json)"));
        }
    }
    Ok(samples)
}

fn read_sample(entry: &Value) -> Option<Sample> {
    if entry.get("haystack_sessions").is_some() { read_longmemeval(entry) } else { read_locomo(entry) }
}

/// `{conversation: {session_1: [{speaker, dia_id, text}], session_1_date_time}, qa: [{question, evidence, category}]}`; in
/// another edition the fields of `conversation` stand beside `qa`.
fn read_locomo(entry: &Value) -> Option<Sample> {
    let conversation = entry.get("conversation").unwrap_or(entry).as_object()?;
    let second_speaker = conversation.get("speaker_b").and_then(Value::as_str).unwrap_or_default();
    let mut sample = Sample::default();
    for number in 1.. {
        let name = format!("session_{number}");
        let Some(date) = conversation.get(&format!("{name}_date_time")) else { break };
        let Some(turns) = conversation.get(&name).and_then(Value::as_array) else { continue };
        let turns = turns.iter().filter_map(|turn| {
            let text = |key: &str| turn.get(key).and_then(Value::as_str);
            let speaker = text("speaker")?.to_owned();
            let said = text("text").unwrap_or_default();
            let caption = text("blip_caption").map(|caption| format!(" [shares {caption}]")).unwrap_or_default();
            Some(Turn {
                id: text("dia_id")?.to_owned(),
                is_assistant: speaker == second_speaker,
                speaker,
                text: format!("{said}{caption}"),
            })
        });
        let at = date.as_str().and_then(|date| parse_time("%I:%M %p on %d %B, %Y", date)).unwrap_or_default();
        sample.sessions.push(Session { turns: turns.collect(), id: name, at });
    }
    for asked in entry.get("qa")?.as_array()? {
        let Some(text) = asked.get("question").and_then(Value::as_str) else { continue };
        let evidence = asked.get("evidence").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        // Some entries hold several ids: "D8:6; D9:17".
        let turns: Vec<String> = evidence
            .flat_map(|ids| ids.split([';', ',', ' ']))
            .map(|id| id.trim().trim_matches(|c| "()".contains(c)).to_owned())
            .filter(|id| sample.sessions.iter().any(|session| session.turns.iter().any(|turn| turn.id == *id)))
            .collect();
        if turns.is_empty() {
            continue;
        }
        let holds = |session: &&Session| session.turns.iter().any(|turn| turns.contains(&turn.id));
        let sessions = sample.sessions.iter().filter(holds).map(|session| session.id.clone()).collect();
        let category = asked.get("category").map(|category| category.to_string().trim_matches('"').to_owned());
        let category = category.unwrap_or_default();
        sample.questions.push(Question { text: text.to_owned(), category, at: None, turns, sessions });
    }
    (!sample.sessions.is_empty()).then_some(sample)
}

/// `{question_id, question, question_type, question_date, haystack_sessions: [[{role, content, has_answer}]],
/// haystack_session_ids, haystack_dates, answer_session_ids}`. Questions that have no answer have an id that ends in `_abs`; published
/// figures leave them out.
fn read_longmemeval(entry: &Value) -> Option<Sample> {
    let list = |key: &str| entry.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let (ids, dates) = (list("haystack_session_ids"), list("haystack_dates"));
    let (mut sample, mut turns_with_answer) = (Sample::default(), Vec::new());
    for (number, turns) in list("haystack_sessions").iter().enumerate() {
        let id = ids.get(number).and_then(Value::as_str).map_or_else(|| number.to_string(), str::to_owned);
        let at = dates.get(number).and_then(Value::as_str).and_then(parse_longmemeval_time).unwrap_or_default();
        let mut session = Session { id: format!("{number}/{id}"), at, turns: Vec::new() };
        for (place, turn) in turns.as_array()?.iter().enumerate() {
            let turn_id = format!("{number}:{place}");
            let is_assistant = turn.get("role").and_then(Value::as_str) == Some("assistant");
            if turn.get("has_answer").and_then(Value::as_bool) == Some(true) {
                turns_with_answer.push(turn_id.clone());
            }
            let text = turn.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
            session.turns.push(Turn { id: turn_id, speaker: String::new(), is_assistant, text });
        }
        sample.sessions.push(session);
    }
    let answers = list("answer_session_ids");
    let is_right = |session: &&Session| {
        let id = session.id.split_once('/').map(|(_, id)| id);
        answers.iter().any(|answer| answer.as_str() == id)
    };
    let sessions: Vec<String> = sample.sessions.iter().filter(is_right).map(|session| session.id.clone()).collect();
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let has_no_answer = text("question_id").is_some_and(|id| id.ends_with("_abs"));
    let category = if has_no_answer { ABSTENTION } else { text("question_type").unwrap_or_default() };
    sample.questions.push(Question {
        text: text("question")?.to_owned(),
        category: category.to_owned(),
        at: text("question_date").and_then(parse_longmemeval_time),
        turns: turns_with_answer,
        sessions,
    });
    Some(sample)
}

/// Parses `2023/05/20 (Sat) 02:21`.
fn parse_longmemeval_time(text: &str) -> Option<Timestamp> {
    let (date, time) = (text.split_whitespace().next()?, text.split_whitespace().last()?);
    parse_time("%Y/%m/%d %H:%M", &format!("{date} {time}"))
}

fn parse_time(format: &str, text: &str) -> Option<Timestamp> {
    let time: DateTime = strtime::parse(format, text).ok()?.to_datetime().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn locomo_is_read_in_both_editions() {
        let conversation = json!({"speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Look", "blip_caption": "a photo of a cat"}]});
        let qa = json!([{"question": "Which animal?", "evidence": ["D1:2; D9:9"], "category": 4},
            {"question": "No evidence?", "evidence": [], "category": 5}]);
        let mut flat = conversation.clone();
        flat["qa"] = qa.clone();
        for entry in [json!({"conversation": conversation, "qa": qa}), flat] {
            let sample = read_sample(&entry).unwrap();
            let session = &sample.sessions[0];
            assert_eq!(session.at.to_string(), "2023-05-08T13:56:00Z");
            assert_eq!(session.turns[1].text, "Look [shares a photo of a cat]");
            assert!(session.turns[1].is_assistant && !session.turns[0].is_assistant);
            assert_eq!(sample.questions.len(), 1);
            let question = &sample.questions[0];
            assert_eq!((&question.turns[..], &*question.category), (&["D1:2".to_owned()][..], "4"));
            assert_eq!(question.sessions, ["session_1"]);
        }
    }

    #[test]
    fn longmemeval_is_read() {
        // All fields of the published files. A session id may be there twice, and an answer may be a number.
        let mut entry = json!({"question_id": "gpt4_1", "question": "Where?", "answer": 3,
            "question_type": "single-session-user", "question_date": "2023/05/30 (Tue) 23:40",
            "haystack_session_ids": ["s1", "answer_s2", "s1"], "answer_session_ids": ["answer_s2"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00", "2023/05/22 (Mon) 00:05"],
            "haystack_sessions": [[{"role": "user", "content": "a"}],
                [{"role": "user", "content": "b", "has_answer": false}, {"role": "assistant", "content": "c", "has_answer": true}],
                []]});
        let sample = read_sample(&entry).unwrap();
        let question = &sample.questions[0];
        let right = (&question.turns[..], &question.sessions[..]);
        assert_eq!(right, (&["1:1".to_owned()][..], &["1/answer_s2".to_owned()][..]));
        assert_eq!(question.category, "single-session-user");
        assert_eq!(question.at.unwrap().to_string(), "2023-05-30T23:40:00Z");
        assert_eq!(sample.sessions.len(), 3);
        assert_eq!(sample.sessions[0].at.to_string(), "2023-05-20T02:21:00Z");
        let (user, assistant) = (&sample.sessions[1].turns[0], &sample.sessions[1].turns[1]);
        assert_eq!((&*user.text, user.is_assistant), ("b", false));
        assert_eq!((&*assistant.text, assistant.is_assistant), ("c", true));
        entry["question_id"] = "gpt4_1_abs".into();
        assert_eq!(read_sample(&entry).unwrap().questions[0].category, ABSTENTION);
    }
}
