//! Prints what was measured.

use std::io::{self, Write as _};
use std::time::Duration;

use super::corpus::Sample;
use super::evaluate::{Measured, SESSIONS_AMONG, Sums, TURNS_AMONG};
use crate::error::{Error, Result};

/// Prints a line.
pub fn line(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").map_err(|error| Error::new(format!("cannot print: {error}")))
}

/// Prints the table of categories, and the times.
pub fn table(measured: &Measured) -> Result<()> {
    let rate = measured.messages as f64 / measured.index_time.as_secs_f64();
    line(&format!("{} messages, indexed at {rate:.0}/s; searched by words", measured.messages))?;
    line("")?;
    let turns = TURNS_AMONG.map(|among| format!("turns@{among}")).join("  ");
    let sessions = SESSIONS_AMONG.map(|among| format!("session@{among}")).join("  ");
    line(&format!("{:28}{:>9}  {turns}   MRR  {sessions}", "category", "questions"))?;
    for (category, sums) in &measured.by_category {
        row(category, sums)?;
    }
    row("all", &measured.all)?;
    line("")?;
    line(&format!("a search: p50 {}, p99 {}", at(&measured.latencies, 0.5), at(&measured.latencies, 0.99)))
}

fn row(name: &str, sums: &Sums) -> Result<()> {
    let mut text = format!("{name:28}{:>9}", sums.questions);
    for (sum, among) in sums.turns.iter().zip(TURNS_AMONG) {
        let width = format!("turns@{among}").len();
        let share = share(*sum, sums.with_turns);
        text.push_str(&format!("  {share:>width$}"));
    }
    text.push_str(&format!("  {:>4}", share(sums.reciprocal_rank, sums.with_turns)));
    for (sum, among) in sums.sessions.iter().zip(SESSIONS_AMONG) {
        let width = format!("session@{among}").len();
        let share = share(*sum as f64, sums.questions);
        text.push_str(&format!("  {share:>width$}"));
    }
    line(&text)
}

/// Prints the questions without a right turn among the first ten hits.
pub fn missed(samples: &[Sample], measured: &Measured) -> Result<()> {
    for (sample, question) in &measured.missed {
        let question = &samples[*sample].questions[*question];
        line(&format!("missed ({}): {} [{}]", question.category, question.text, question.turns.join(", ")))?;
    }
    Ok(())
}

fn share(sum: f64, count: usize) -> String {
    if count == 0 { "-".into() } else { format!("{:.2}", sum / count as f64).trim_start_matches('0').to_owned() }
}

fn at(sorted: &[Duration], share: f64) -> String {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or_else(|| "-".into(), |time| format!("{time:.1?}"))
}
