//! Bars beside each other on an axis of time.

use std::fmt::Write as _;

use crate::Bar;
use crate::markup::{coordinate, escape, open_svg, push_item};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
/// Room for the numbers of the scale, to the left.
const LEFT: f64 = 56.0;
const TOP: f64 = 12.0;
/// Room for the days, below.
const BOTTOM: f64 = 24.0;
/// The widest bar.
const MAX_BAR: f64 = 40.0;
/// The limit on days that are named below the bars.
const MAX_LABELS: usize = 5;
/// A bar that is not empty is at least so high.
const MIN_BAR: f64 = 1.5;

/// Draws a bar for each day, the oldest first. `scale` formats the numbers of the scale. Empty without days.
#[must_use]
pub fn days(title: &str, days: &[Bar], scale: impl Fn(f64) -> String) -> String {
    if days.is_empty() {
        return String::new();
    }
    let most = round_up(days.iter().map(Bar::length).fold(0.0, f64::max));
    let (room, height) = (WIDTH - LEFT, HEIGHT - TOP - BOTTOM);
    let step = room / days.len() as f64;
    let mut svg = open_svg("days", (WIDTH, HEIGHT), title);
    for part in [0.0, 0.5, 1.0] {
        let y = coordinate(TOP + height * (1.0 - part));
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/>\
             <text class=\"scale\" x=\"{}\" y=\"{y}\" dy=\"4\">{}</text>",
            LEFT - 8.0,
            escape(&scale(most * part))
        );
    }
    let every = days.len().div_ceil(MAX_LABELS);
    for (at, day) in days.iter().enumerate() {
        let width = (step * 0.8).min(MAX_BAR);
        let center = LEFT + step * (at as f64 + 0.5);
        let bar = if day.length() > 0.0 { (height * day.length() / most).max(MIN_BAR) } else { 0.0 };
        let inner = format!(
            "<rect class=\"hover\" x=\"{}\" y=\"{TOP}\" width=\"{}\" height=\"{height}\"/>\
             <rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
            coordinate(center - step / 2.0),
            coordinate(step),
            coordinate(center - width / 2.0),
            coordinate(TOP + height - bar),
            coordinate(width),
            coordinate(bar),
            coordinate((width / 4.0).min(3.0)),
        );
        push_item(&mut svg, &day.tooltip(), day.link.as_deref(), &inner);
        // Counted from the newest day, so that it is always named.
        if (days.len() - 1 - at).is_multiple_of(every) {
            let (x, y) = (coordinate(center), HEIGHT - 6.0);
            let anchor = if days.len() > 1 && at == days.len() - 1 { " last" } else { "" };
            let x = if anchor.is_empty() { x } else { coordinate(WIDTH) };
            let _ = writeln!(svg, "<text class=\"day{anchor}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(&day.label));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(number: f64) -> f64 {
    if number <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(number.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= number);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_with_a_round_number() {
        let rounded = [0.0, 0.003, 1.0, 1.1, 4.2, 7.0, 120_000.0].map(round_up);
        assert_eq!(rounded.map(|number| format!("{number}")), ["1", "0.005", "1", "2", "5", "10", "200000"]);
    }

    #[test]
    fn each_day_has_a_bar_and_some_have_a_label() {
        let year: Vec<Bar> =
            (1..=365).map(|day| Bar { label: format!("day {day}"), value: f64::from(day), ..Bar::default() }).collect();
        let svg = days("A year", &year, |number| format!("{number}"));
        assert_eq!(svg.matches("class=\"bar\"").count(), 365);
        let labels = svg.matches("class=\"day").count();
        assert!((2..=MAX_LABELS).contains(&labels) && svg.contains(">day 365</text>"), "{labels}");
        assert!(svg.contains(">500</text>") && svg.contains("<title>day 1</title>"), "{svg}");
        assert_eq!(days("nothing", &[], |_| String::new()), "");
    }
}
