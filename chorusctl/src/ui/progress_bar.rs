//! A progress bar on standard error for work that takes longer than a second, with its rate and the time that is left.

use std::cell::Cell;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::ProgressDrawTarget;

use super::interruption::Interruption;
use super::{terminal, text, units};

const SHOW_DELAY: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Columns of the bar and of its label on a terminal of at least `WIDE_COLUMNS`, and on a narrower one.
const WIDE: (usize, usize) = (24, 30);
const NARROW: (usize, usize) = (10, 18);
const WIDE_COLUMNS: usize = 110;
/// A bar that is full.
const FULL_PERMILLE: u64 = 1000;

/// A progress bar, shown only on a terminal. It names the phase of the work, and never runs backwards: each phase has
/// its share of the bar. Rate and time left are those of the phase.
#[derive(Debug)]
pub struct ProgressBar {
    label: String,
    phases: &'static [&'static str],
    phase: usize,
    /// Position of the bar when it was last drawn.
    permille: u64,
    /// Columns of the line that is on the screen.
    drawn_columns: Cell<usize>,
    /// When the line is composed again; `None` if the bar is not shown at all.
    next_draw: Option<Instant>,
    /// The work that was done when the rate was first measured, and last: what a former connection has done took no time here.
    measured: Option<(u64, u64)>,
    /// Measures the rate. It is never shown: it would take a terminal that becomes narrower for as wide as before.
    bar: indicatif::ProgressBar,
    /// The words of Ctrl-C.
    interruption: Option<Interruption>,
}

impl ProgressBar {
    /// Creates a bar with this label for work that has these phases; `wanted` is false with --quiet.
    #[must_use]
    pub fn new(label: String, phases: &'static [&'static str], wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        let next_draw = shown.then(|| Instant::now() + SHOW_DELAY);
        let bar = indicatif::ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self {
            label,
            phases,
            phase: 0,
            permille: 0,
            drawn_columns: Cell::default(),
            next_draw,
            measured: None,
            bar,
            interruption: None,
        }
    }

    /// Lets Ctrl-C say how far the work came, and what is said of `interruption`, until the bar is dropped.
    #[must_use]
    pub fn with_interruption(mut self, interruption: Interruption) -> Self {
        self.interruption = Some(interruption);
        self
    }

    /// Shows the bar at once, and not only after a second.
    #[must_use]
    pub fn from_the_start(mut self) -> Self {
        self.next_draw = self.next_draw.map(|_| Instant::now());
        self.update(0, 0, "");
        self
    }

    /// Starts the next phase.
    pub fn next_phase(&mut self) {
        self.phase = (self.phase + 1).min(self.phases.len().saturating_sub(1));
        self.bar.reset();
        self.measured = None;
    }

    /// Notes how much is done, for the rate: since the first time, or since it was last less than before.
    fn measure(&mut self, done: u64, total: u64) {
        let start = match self.measured {
            Some((start, last)) if done >= last => start,
            _ => {
                self.bar.reset();
                done
            }
        };
        self.measured = Some((start, done));
        match total {
            0 => self.bar.unset_length(),
            total => self.bar.set_length(total.saturating_sub(start)),
        }
        self.bar.set_position(done - start);
    }

    /// Updates the bar. `done` and `total` are those of the phase; `total` 0 means that the total is unknown.
    pub fn update(&mut self, done: u64, total: u64, unit: &str) {
        if let Some(interruption) = &self.interruption {
            interruption.note(done, total, unit);
        }
        let Some(next_draw) = self.next_draw else { return };
        self.measure(done, total);
        let now = Instant::now();
        if now < next_draw {
            return;
        }
        self.next_draw = Some(now + REDRAW_INTERVAL);
        let pace = Pace { per_second: self.bar.per_sec(), left: self.bar.eta() };
        let columns = terminal::columns(io::stderr());
        let line = self.line((done, total, unit), pace, columns);
        let line = text::truncate(&line, columns.saturating_sub(1));
        let cleared = clear_sequence(self.drawn_columns.replace(text::width(&line)), columns);
        // Not wrapped: a terminal may be narrower for a moment before it says so.
        write_stderr(&format!("{cleared}\x1b[?7l{line}\x1b[K\x1b[?7h"));
    }

    /// Clears the line if it is on the screen.
    fn clear(&self) {
        let drawn = self.drawn_columns.take();
        if drawn > 0 {
            write_stderr(&format!("{}\x1b[K", clear_sequence(drawn, terminal::columns(io::stderr()))));
        }
    }

    /// Prints something else while the bar is not on the screen.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.clear();
        print()
    }

    /// Removes the bar. Ctrl-C says nothing more of it.
    pub fn finish(&mut self) {
        self.interruption = None;
        if self.next_draw.take().is_some() {
            self.clear();
        }
    }

    /// Returns the line to draw, and remembers how far the bar got.
    fn line(&mut self, (done, total, unit): (u64, u64, &str), pace: Pace, columns: usize) -> String {
        let phases = self.phases.len().max(1) as u64;
        let within = if total == 0 { 0 } else { permille(done.min(total), total) };
        self.permille = self.permille.max((self.phase as u64 * FULL_PERMILLE + within) / phases);
        let phase = self.phases.get(self.phase).copied().unwrap_or_default();
        let (bar_columns, label_columns) = if columns < WIDE_COLUMNS { NARROW } else { WIDE };
        let label = text::truncate(&self.label, label_columns);
        let amount = format_amount(if total == 0 { done } else { total }, unit);
        let pace = pace.describe(unit);
        if (done, total, self.permille) == (0, 0, 0) && unit.is_empty() {
            return format!("{label}  {phase}");
        }
        if total == 0 && self.permille == 0 {
            return format!("{label}  {phase} {amount}{pace}");
        }
        let full = usize::try_from(self.permille * bar_columns as u64 / FULL_PERMILLE).unwrap_or(bar_columns);
        let bar = format!("{}{}", "━".repeat(full), "─".repeat(bar_columns - full));
        let percent = self.permille * 100 / FULL_PERMILLE;
        format!("{label}  {bar} {percent:>3} %  {phase} {amount}{pace}")
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The speed of the work.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Units per second; 0 if it is not known.
    per_second: f64,
    /// Time left; zero if it is not known.
    left: Duration,
}

impl Pace {
    /// Returns `, 12 MiB/s, 3 min left`; empty if nothing is known.
    fn describe(self, unit: &str) -> String {
        let mut said = String::new();
        if self.per_second.is_finite() && self.per_second > 0.0 {
            said.push_str(", ");
            said.push_str(&match (unit, self.per_second) {
                // The limits are far below what a u64 holds.
                ("bytes", rate) => format!("{}/s", units::format_bytes(rate.min(1e15) as u64)),
                (_, rate) if rate < 10.0 => format!("{rate:.1}/s"),
                (_, rate) => format!("{}/s", units::group_digits(rate.min(1e15) as u64)),
            });
        }
        if !self.left.is_zero() {
            said.push_str(", ");
            said.push_str(&format_left(self.left));
        }
        said
    }
}

/// Formats `340 files`, `1.2 GiB`.
pub(super) fn format_amount(number: u64, unit: &str) -> String {
    if unit == "bytes" { units::format_bytes(number) } else { format!("{} {unit}", units::group_digits(number)) }
}

/// Formats `45 s left`, `12 min left`, `3 h left`.
fn format_left(left: Duration) -> String {
    match left.as_secs().max(1) {
        seconds @ ..100 => format!("{seconds} s left"),
        seconds @ ..6_000 => format!("{} min left", seconds.div_ceil(60)),
        seconds @ ..360_000 => format!("{} h left", seconds.div_ceil(3_600)),
        seconds => format!("{} days left", seconds.div_ceil(86_400)),
    }
}

/// Returns what moves the cursor from the end of a line to its start, and clears the rows into which a terminal that became narrower has
/// wrapped it.
fn clear_sequence(drawn: usize, columns: usize) -> String {
    match wrapped_rows(drawn, columns) {
        1 => "\r".to_owned(),
        rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
    }
}

fn write_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Returns how many rows a line takes in a terminal with so many columns.
fn wrapped_rows(width: usize, columns: usize) -> usize {
    width.div_ceil(columns.max(1)).max(1)
}

fn permille(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * u128::from(FULL_PERMILLE) / u128::from(whole.max(1))).unwrap_or(FULL_PERMILLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Pace = Pace { per_second: 0.0, left: Duration::ZERO };

    fn bar(phases: &'static [&'static str]) -> ProgressBar {
        ProgressBar::new("a".into(), phases, false)
    }

    #[test]
    fn the_bar_fills_and_names_its_phase() {
        let half = format!("{}{}", "━".repeat(12), "─".repeat(12));
        let line = |at, columns| bar(&["writing"]).line(at, UNKNOWN, columns);
        assert_eq!(line((1, 2, "bytes"), 120), format!("a  {half}  50 %  writing 2 B"));
        assert_eq!(line((5, 0, "lines"), 120), "a  writing 5 lines");
        assert_eq!(line((9, 3, "lines"), 120), format!("a  {} 100 %  writing 3 lines", "━".repeat(24)));
        assert_eq!(line((1, 2, "bytes"), 80), "a  ━━━━━─────  50 %  writing 2 B");
    }

    #[test]
    fn rate_and_time_left_are_named_if_they_are_known() {
        let line = |at: (u64, u64, &str), per_second, left| {
            let pace = Pace { per_second, left: Duration::from_secs(left) };
            bar(&["reading"]).line(at, pace, 80)
        };
        assert!(line((1 << 20, 4 << 20, "bytes"), 1_572_864.0, 2).ends_with("reading 4.0 MiB, 1.5 MiB/s, 2 s left"));
        assert!(line((2, 40, "files"), 0.25, 152).ends_with("reading 40 files, 0.2/s, 3 min left"));
        assert!(line((2, 90_000, "files"), 1_234.5, 7_201).ends_with("reading 90,000 files, 1,234/s, 3 h left"));
        assert_eq!(line((7, 0, "files"), 3.0, 0), "a  reading 7 files, 3.0/s");
        assert!(line((1, 9, "files"), f64::INFINITY, 0).ends_with("reading 9 files"));
    }

    #[test]
    fn the_line_of_a_long_name_fits_a_terminal() {
        let mut bar = ProgressBar::new("a-transcript-with-a-long-name.jsonl".into(), &["sending", "reading"], false);
        let pace = Pace { per_second: 104_857_600.0, left: Duration::from_secs(5_999) };
        let line = bar.line((1 << 30, 900 << 30, "bytes"), pace, 80);
        assert!(text::width(&line) <= 80, "{line}");
        assert!(line.ends_with("100 MiB/s, 100 min left"), "{line}");
    }

    #[test]
    fn a_line_is_wrapped_if_it_is_longer_than_the_terminal() {
        assert_eq!(
            [(0, 80), (79, 80), (80, 80), (81, 80), (79, 30), (79, 0)].map(|(w, c)| wrapped_rows(w, c)),
            [1, 1, 1, 2, 3, 79]
        );
    }

    #[test]
    fn the_rate_does_not_count_what_was_done_before() {
        let mut bar = bar(&["sending"]);
        bar.measure(1_000_000, 1_000_100);
        assert_eq!((bar.bar.position(), bar.bar.length()), (0, Some(100)));
        std::thread::sleep(Duration::from_millis(20));
        bar.measure(1_000_010, 1_000_100);
        assert_eq!(bar.bar.position(), 10);
        assert!(bar.bar.per_sec() <= 500.0, "{}", bar.bar.per_sec());
        // Another connection, to a daemon that has less of it.
        bar.measure(500, 1_000_100);
        assert_eq!((bar.bar.position(), bar.bar.length()), (0, Some(999_600)));
    }

    #[test]
    fn it_never_runs_backwards() {
        let mut bar = bar(&["sending", "reading"]);
        let mut last = 0;
        for (done, total) in [(1, 10), (10, 10), (5, 10), (0, 0)] {
            assert!(bar.line((done, total, "bytes"), UNKNOWN, 80).contains("sending"));
            assert!(bar.permille >= last && bar.permille <= 500, "{}", bar.permille);
            last = bar.permille;
        }
        bar.next_phase();
        for (done, total) in [(0, 7), (0, 0), (3, 7), (2, 7), (7, 7)] {
            assert!(bar.line((done, total, "bytes"), UNKNOWN, 80).contains("reading"));
            assert!(bar.permille >= last, "{}", bar.permille);
            last = bar.permille;
        }
        assert_eq!(last, FULL_PERMILLE);
    }
}
