//! A chart of bars beside each other.

use crate::meter::BarStyle;

/// Parts into which a character divides its height.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws a bar for each value in `height` lines, the highest one first. Each bar is `width` columns wide, with `gap` columns
/// between two. A value above zero is never invisible.
#[must_use]
pub fn column_chart(values: &[f64], height: usize, (width, gap): (usize, usize), style: BarStyle) -> Vec<String> {
    let length = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
    let most = values.iter().copied().map(length).fold(0.0, f64::max);
    let eighths = |value: f64| {
        if length(value) == 0.0 {
            return 0;
        }
        // Between 0 and the height: no number is lost.
        ((length(value) / most * (height * 8) as f64).round() as usize).clamp(1, height * 8)
    };
    let bars: Vec<usize> = values.iter().copied().map(eighths).collect();
    let line = |row: usize| {
        let below = (height - 1 - row) * 8;
        let mut text = String::new();
        for (at, bar) in bars.iter().enumerate() {
            if at > 0 {
                text.push_str(&" ".repeat(gap));
            }
            let part = bar.saturating_sub(below).min(8);
            let cell = match style {
                BarStyle::Blocks => EIGHTHS[part],
                BarStyle::Ascii if part >= 4 || (part > 0 && below == 0) => "#",
                BarStyle::Ascii => " ",
            };
            text.push_str(&cell.repeat(width));
        }
        text.truncate(text.trim_end().len());
        text
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_height_of_their_values() {
        let values = [8.0, 0.0, 3.0, 0.01, f64::NAN];
        assert_eq!(column_chart(&values, 2, (1, 1), BarStyle::Blocks), ["█", "█   ▆ ▁"]);
        assert_eq!(column_chart(&values, 2, (2, 1), BarStyle::Ascii), ["##", "##    ## ##"]);
        assert_eq!(column_chart(&[0.0, 0.0], 2, (1, 1), BarStyle::Blocks), ["", ""]);
        assert_eq!(column_chart(&[], 1, (1, 1), BarStyle::Blocks), [""]);
    }
}
