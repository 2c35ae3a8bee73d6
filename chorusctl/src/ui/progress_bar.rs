//! A progress bar on standard error for work that takes longer than a second.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::{text, units};

const SHOW_DELAY: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 24;

/// A progress bar, shown only on a terminal.
#[derive(Debug)]
pub struct ProgressBar {
    label: String,
    next_draw: Option<Instant>,
    drawn: bool,
}

impl ProgressBar {
    /// Creates a bar with this label; `wanted` is false with --quiet.
    #[must_use]
    pub fn new(label: String, wanted: bool) -> Self {
        let shown = wanted && io::stderr().is_terminal();
        Self { label, next_draw: shown.then(|| Instant::now() + SHOW_DELAY), drawn: false }
    }

    /// Updates the bar. `total` 0 means that the total is unknown.
    pub fn update(&mut self, done: u64, total: u64, unit: &str) {
        let now = Instant::now();
        if self.next_draw.is_none_or(|next| now < next) {
            return;
        }
        self.next_draw = Some(now + REDRAW_INTERVAL);
        self.drawn = true;
        let _ = write!(io::stderr(), "\r\x1b[K{}", format_line(&self.label, done, total, unit));
        let _ = io::stderr().flush();
    }

    /// Removes the bar.
    pub fn finish(&mut self) {
        self.next_draw = None;
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.finish();
    }
}

fn format_line(label: &str, done: u64, total: u64, unit: &str) -> String {
    let amount = |number| if unit == "bytes" { units::format_bytes(number) } else { format!("{number} {unit}") };
    let label = text::truncate(label, 30);
    if total == 0 {
        return format!("{label}  {}", amount(done));
    }
    let done = done.min(total);
    let full = usize::try_from(u128::from(done) * BAR_COLUMNS as u128 / u128::from(total)).unwrap_or(BAR_COLUMNS);
    let percent = u128::from(done) * 100 / u128::from(total);
    format!("{label}  {}{} {percent:>3} %  {}", "━".repeat(full), "─".repeat(BAR_COLUMNS - full), amount(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        assert_eq!(format_line("a", 1, 2, "bytes"), format!("a  {}{}  50 %  2 B", "━".repeat(12), "─".repeat(12)));
        assert_eq!(format_line("a", 5, 0, "lines"), "a  5 lines");
        assert_eq!(format_line("a", 9, 3, "lines"), format!("a  {} 100 %  3 lines", "━".repeat(24)));
    }
}
