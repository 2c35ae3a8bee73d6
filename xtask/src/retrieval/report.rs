//! Prints what was measured.

use std::io::{self, Write as _};
use std::time::Duration;

use super::corpus::Sample;
use super::evaluate::{Found, Measured, SESSIONS_AMONG, Sums, TURNS_AMONG};
use super::mode::Mode;
use crate::error::{Error, Result};

/// Prints a line.
pub fn line(text: &str) -> Result<()> {
    writeln!(io::stdout(), "{text}").map_err(|error| Error::new(format!("cannot print: {error}")))
}

/// Prints a table of categories for each mode, and the times.
pub fn tables(measured: &Measured) -> Result<()> {
    let rate = measured.messages as f64 / measured.index_time.as_secs_f64();
    line(&format!("{} messages, indexed at {rate:.0}/s", measured.messages))?;
    measured.modes.iter().try_for_each(|(mode, found)| table(*mode, found))
}

fn table(mode: Mode, found: &Found) -> Result<()> {
    line("")?;
    line(&format!("mode: {mode}"))?;
    let turns = TURNS_AMONG.map(|among| format!("turns@{among}")).join("  ");
    let sessions = SESSIONS_AMONG.map(|among| format!("session@{among}")).join("  ");
    line(&format!("{:28}{:>9}  {turns}   MRR  {sessions}", "category", "questions"))?;
    for (category, sums) in &found.by_category {
        row(category, sums)?;
    }
    row("all", &found.all)?;
    line("")?;
    line(&format!("a search: p50 {}, p99 {}", at(&found.latencies, 0.5), at(&found.latencies, 0.99)))
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
    for (mode, found) in &measured.modes {
        for (sample, question) in &found.missed {
            let question = &samples[*sample].questions[*question];
            let turns = question.turns.join(", ");
            line(&format!("missed by {mode} ({}): {} [{turns}]", question.category, question.text))?;
        }
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
