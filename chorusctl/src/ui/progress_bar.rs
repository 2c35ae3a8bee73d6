//! A progress bar on standard error for work that takes longer than a second.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::{terminal, text, units};

const SHOW_DELAY: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 24;
/// A bar that is full.
const FULL_PERMILLE: u64 = 1000;

/// A progress bar, shown only on a terminal. It names the phase of the work, and never runs backwards: each phase has
/// its share of the bar.
#[derive(Debug)]
pub struct ProgressBar {
    label: String,
    phases: &'static [&'static str],
    phase: usize,
    /// Position of the bar when it was last drawn.
    permille: u64,
    next_draw: Option<Instant>,
    drawn: bool,
}

impl ProgressBar {
    /// Creates a bar with this label for work that has these phases; `wanted` is false with --quiet.
    #[must_use]
    pub fn new(label: String, phases: &'static [&'static str], wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        let next_draw = shown.then(|| Instant::now() + SHOW_DELAY);
        Self { label, phases, phase: 0, permille: 0, next_draw, drawn: false }
    }

    /// Starts the next phase.
    pub fn next_phase(&mut self) {
        self.phase = (self.phase + 1).min(self.phases.len().saturating_sub(1));
    }

    /// Updates the bar. `done` and `total` are those of the phase; `total` 0 means that the total is unknown.
    pub fn update(&mut self, done: u64, total: u64, unit: &str) {
        let now = Instant::now();
        if self.next_draw.is_none_or(|next| now < next) {
            return;
        }
        self.next_draw = Some(now + REDRAW_INTERVAL);
        self.drawn = true;
        let (line, columns) = (self.line(done, total, unit), terminal::columns(io::stderr()));
        // A line that wraps could not be drawn over.
        let _ = write!(io::stderr(), "\r\x1b[K{}", text::truncate(&line, columns));
        let _ = io::stderr().flush();
    }

    /// Removes the bar until the next update, so that a line can be printed in its place.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Removes the bar.
    pub fn finish(&mut self) {
        self.next_draw = None;
        self.clear();
    }

    /// Returns the line to draw, and remembers how far the bar got.
    fn line(&mut self, done: u64, total: u64, unit: &str) -> String {
        let phases = self.phases.len().max(1) as u64;
        let within = if total == 0 { 0 } else { permille(done.min(total), total) };
        self.permille = self.permille.max((self.phase as u64 * FULL_PERMILLE + within) / phases);
        let phase = self.phases.get(self.phase).copied().unwrap_or_default();
        let amount = |number| if unit == "bytes" { units::format_bytes(number) } else { format!("{number} {unit}") };
        let label = text::truncate(&self.label, 30);
        if total == 0 && self.permille == 0 {
            return format!("{label}  {phase} {}", amount(done));
        }
        let full = usize::try_from(self.permille * BAR_COLUMNS as u64 / FULL_PERMILLE).unwrap_or(BAR_COLUMNS);
        let bar = format!("{}{}", "━".repeat(full), "─".repeat(BAR_COLUMNS - full));
        let percent = self.permille * 100 / FULL_PERMILLE;
        format!("{label}  {bar} {percent:>3} %  {phase} {}", amount(if total == 0 { done } else { total }))
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.finish();
    }
}

fn permille(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * u128::from(FULL_PERMILLE) / u128::from(whole.max(1))).unwrap_or(FULL_PERMILLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(phases: &'static [&'static str]) -> ProgressBar {
        ProgressBar::new("a".into(), phases, false)
    }

    #[test]
    fn the_bar_fills_and_names_its_phase() {
        let half = format!("{}{}", "━".repeat(12), "─".repeat(12));
        assert_eq!(bar(&["writing"]).line(1, 2, "bytes"), format!("a  {half}  50 %  writing 2 B"));
        assert_eq!(bar(&["writing"]).line(5, 0, "lines"), "a  writing 5 lines");
        assert_eq!(bar(&["writing"]).line(9, 3, "lines"), format!("a  {} 100 %  writing 3 lines", "━".repeat(24)));
    }

    #[test]
    fn it_never_runs_backwards() {
        let mut bar = bar(&["sending", "reading"]);
        let mut last = 0;
        let mut steps = vec![(1, 10), (10, 10), (5, 10)];
        steps.extend([(0, 0); 1]);
        for (done, total) in steps {
            assert!(bar.line(done, total, "bytes").contains("sending"));
            assert!(bar.permille >= last && bar.permille <= 500, "{}", bar.permille);
            last = bar.permille;
        }
        bar.next_phase();
        for (done, total) in [(0, 7), (0, 0), (3, 7), (2, 7), (7, 7)] {
            assert!(bar.line(done, total, "bytes").contains("reading"));
            assert!(bar.permille >= last, "{}", bar.permille);
            last = bar.permille;
        }
        assert_eq!(last, FULL_PERMILLE);
    }
}
