//! Charts: bars for days, and bars for names, as SVG. The numbers stand in text beside or below them.

use maud::{Markup, html};

/// A day with a value for each series.
#[derive(Debug)]
pub(crate) struct Day {
    pub(crate) label: String,
    pub(crate) values: Vec<f64>,
}

/// The height of the picture; its width is that of its bars.
const HEIGHT: f64 = 100.0;
const BAR: usize = 10;
const GAP: usize = 2;

/// Draws a bar for each day, with the series on top of each other. `format` writes a value.
pub(crate) fn days(days: &[Day], series: &[String], label: &str, format: impl Fn(f64) -> String) -> Markup {
    let total = |day: &Day| day.values.iter().sum::<f64>();
    let most = days.iter().map(total).fold(0.0, f64::max);
    let width = days.len() * (BAR + GAP);
    html! {
        figure.chart {
            figcaption.line { (label) @if most > 0.0 { ", at most " (format(most)) " on a day" } }
            svg viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                @for (index, day) in days.iter().enumerate() {
                    g {
                        title { (day.label) ": " (format(total(day))) }
                        rect.ground x=(index * (BAR + GAP)) y="0" width=(BAR) height=(HEIGHT) {}
                        @for (number, (top, height)) in stack(&day.values, most).into_iter().enumerate() {
                            @if height > 0.0 {
                                rect class=(format!("s{}", number % 6)) x=(index * (BAR + GAP)) y=(decimal(top)) width=(BAR) height=(decimal(height)) {}
                            }
                        }
                    }
                }
            }
            div.axis aria-hidden="true" {
                @if let Some(first) = days.first() { span { (first.label) } }
                @if days.len() > 1 && let Some(last) = days.last() { span { (last.label) } }
            }
            @if series.len() > 1 {
                ul.legend { @for (number, name) in series.iter().enumerate() { li { span class=(format!("key s{}", number % 6)) {} (name) } } }
            }
        }
    }
}

/// Returns top and height of each value in a bar, the first at the bottom.
fn stack(values: &[f64], most: f64) -> Vec<(f64, f64)> {
    let mut top = HEIGHT;
    let mut parts = Vec::with_capacity(values.len());
    for value in values {
        let height = if most > 0.0 { value / most * HEIGHT } else { 0.0 };
        top -= height;
        parts.push((top, height));
    }
    parts
}

fn decimal(number: f64) -> String {
    format!("{:.2}", number.max(0.0))
}

/// Draws a bar for each name, with its value in words.
pub(crate) fn names(rows: &[(String, f64, String)]) -> Markup {
    let most = rows.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    html! {
        ul.bars {
            @for (name, value, text) in rows {
                li {
                    span.label { (name) }
                    svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                        rect.ground x="0" y="0" width="100" height="8" {}
                        @if most > 0.0 { rect.s0 x="0" y="0" width=(decimal(value / most * 100.0)) height="8" {} }
                    }
                    span.value { (text) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_bar_stand_on_each_other() {
        assert_eq!(stack(&[1.0, 3.0], 4.0), [(75.0, 25.0), (0.0, 75.0)]);
        assert_eq!(stack(&[0.0], 0.0), [(100.0, 0.0)]);
    }

    #[test]
    fn nothing_in_a_name_is_markup() {
        let drawn = names(&[("<script>".into(), 2.0, "$2".into()), ("b".into(), 1.0, "$1".into())]).into_string();
        assert!(drawn.contains("&lt;script&gt;") && !drawn.contains("<script"), "{drawn}");
        assert!(drawn.contains("width=\"100.00\"") && drawn.contains("width=\"50.00\""), "{drawn}");
    }
}
