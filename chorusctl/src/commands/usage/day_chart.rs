//! Bars by day, above the table of `chorusctl usage` on a terminal.

use std::collections::BTreeMap;

use chorus_proto::methods::usage::{UsageResult, UsageSums};
use jiff::civil::Date;

use crate::error::Error;
use crate::ui::column_chart::column_chart;
use crate::ui::meter::BarStyle;
use crate::ui::units::{format_dollars, format_tokens, group_digits};
use crate::ui::{Stdout, Style, terminal, text};

/// Height of the bars in lines.
const HEIGHT: usize = 6;
/// Widest bar and gap.
const MAX_BAR: (usize, usize) = (3, 1);
/// With fewer days the table says the same.
const MIN_DAYS: usize = 3;

/// Sums by day, of which the missing ones are filled in: the oldest first.
pub(super) fn sum_by_day(used: &UsageResult) -> Vec<(Date, UsageSums)> {
    let of_groups = used.groups.iter().filter_map(|row| Some((row.day?, &row.sums)));
    let mut days: BTreeMap<Date, UsageSums> = BTreeMap::new();
    for (day, sums) in used.days.iter().map(|row| (row.day, &row.sums)).chain(of_groups) {
        add(days.entry(day).or_default(), sums);
    }
    let Some((first, last)) = days.keys().next().copied().zip(days.keys().next_back().copied()) else {
        return Vec::new();
    };
    let days_between = first.series(jiff::ToSpan::days(1)).take_while(|day| *day <= last);
    days_between.map(|day| (day, days.get(&day).copied().unwrap_or_default())).collect()
}

/// Adds `more` to `sums`.
pub(super) fn add(sums: &mut UsageSums, more: &UsageSums) {
    sums.calls += more.calls;
    sums.input_tokens += more.input_tokens;
    sums.output_tokens += more.output_tokens;
    sums.cache_read_tokens += more.cache_read_tokens;
    sums.cost_usd = match (sums.cost_usd, more.cost_usd) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    };
    sums.unpriced_calls += more.unpriced_calls;
}

/// The quantity that the bars measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Cost,
    Tokens,
}

impl Measure {
    /// Measures the cost, unless nothing had a price.
    pub(super) fn of(total: &UsageSums) -> Self {
        if total.cost_usd.is_some_and(|cost| cost > 0.0) { Self::Cost } else { Self::Tokens }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }

    pub(super) fn value(self, sums: &UsageSums) -> f64 {
        match self {
            Self::Cost => sums.cost_usd.unwrap_or(0.0),
            Self::Tokens => sums.input_tokens.saturating_add(sums.output_tokens) as f64,
        }
    }

    pub(super) fn format(self, value: f64) -> String {
        match self {
            Self::Cost => format_dollars(value),
            Self::Tokens => format_tokens(value as u64),
        }
    }

    /// Formats a round number, such as of a scale.
    pub(super) fn format_scale(self, value: f64) -> String {
        match self {
            Self::Cost if value >= 0.01 => format!("${value:.2}"),
            _ => self.format(value).trim_start_matches('~').to_owned(),
        }
    }
}

/// Formats `3 older days`.
fn text_of_days(days: usize) -> String {
    match days {
        1 => "1 older day".to_owned(),
        days => format!("{} older days", group_digits(days as u64)),
    }
}

/// Prints the bars on a terminal, as many of the newest days as have room.
pub(super) fn print(out: &mut Stdout, used: &UsageResult) -> Result<(), Error> {
    let Some(width) = out.width().filter(|_| !out.is_quiet()) else { return Ok(()) };
    let days = sum_by_day(used);
    if days.len() < MIN_DAYS {
        return Ok(());
    }
    let measure = Measure::of(&used.total);
    let values: Vec<f64> = days.iter().map(|(_, sums)| measure.value(sums)).collect();
    let most = measure.format(values.iter().copied().fold(0.0, f64::max));
    let lead = text::width(&most) + 2;
    let room = width.saturating_sub(lead);
    // Narrower bars before fewer days.
    let takes = |(bar, gap): (usize, usize), count: usize| count * (bar + gap) - gap;
    let size = [MAX_BAR, (2, 1), (1, 1), (1, 0)].into_iter().find(|size| takes(*size, days.len()) <= room);
    let size = size.unwrap_or((1, 0));
    let shown = days.len().min(room.max(1));
    let skipped = days.len() - shown;
    let (first, last) = (days[skipped].0, days[days.len() - 1].0);
    let mut heading = format!("{} by day, {first} to {last}", measure.name());
    let older = (skipped > 0).then(|| format!("{} not shown", text_of_days(skipped)));
    let (beside, below) = match older {
        Some(older) if text::width(&heading) + text::width(&older) + 3 <= width => (Some(older), None),
        older => (None, older),
    };
    if let Some(older) = beside {
        heading.push_str(&format!(" ({older})"));
    }
    writeln!(out, "{}", out.style(Style::Strong, &text::truncate(&heading, width)))?;
    if let Some(older) = below {
        writeln!(out, "{}", text::truncate(&older, width))?;
    }
    let style = BarStyle::new(terminal::has_box_drawing());
    for (row, bars) in column_chart(&values[skipped..], HEIGHT, size, style).into_iter().enumerate() {
        let scale = match row {
            0 => &*most,
            row if row + 1 == HEIGHT => "0",
            _ => "",
        };
        let mut label = String::new();
        text::pad(&mut label, scale, lead - 2, true);
        let line = format!("{}  {bars}", out.style(Style::Faint, &label));
        writeln!(out, "{}", line.trim_end())?;
    }
    out.text("\n")
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn days_without_room_are_counted() -> Result<(), Error> {
        let sums = UsageSums { calls: 1, output_tokens: 900, ..UsageSums::default() };
        let first = Date::constant(2026, 1, 1);
        let days = first.series(1.day()).take(90).map(|day| {
            let mut row = serde_json::to_value(sums).unwrap_or_default();
            row["day"] = day.to_string().into();
            row["source"] = "chorus".into();
            row
        });
        let used = serde_json::json!({"days": [], "groups": days.collect::<Vec<_>>(), "total": sums});
        let used: UsageResult = serde_json::from_value(used).unwrap();
        let shown = |width| {
            let mut out = Stdout::captured(Some(width));
            print(&mut out, &used).map(|()| out.captured_text().lines().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(shown(80)?[0], "tokens by day, 2026-01-16 to 2026-03-31 (15 older days not shown)");
        let narrow = shown(40)?;
        assert_eq!(narrow[..2], ["tokens by day, 2026-02-25 to 2026-03-31", "55 older days not shown"]);
        assert_eq!(shown(200)?[0], "tokens by day, 2026-01-01 to 2026-03-31");
        Ok(())
    }
}
