//! Bars below each other, each under its name and value.

use std::fmt::Write as _;

use crate::Bar;
use crate::markup::{coordinate, escape, open_svg, push_item, shorten};

const WIDTH: f64 = 640.0;
/// Height of a bar with its line of text.
const ROW: f64 = 38.0;
/// A bar that is not empty is at least so long.
const MIN_BAR: f64 = 2.0;
/// Columns of a name, beside which the value has room.
const LABEL_COLUMNS: usize = 52;

/// Draws bars in their order. Empty without bars.
#[must_use]
pub fn bars(title: &str, bars: &[Bar]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let most = bars.iter().map(Bar::length).fold(0.0, f64::max);
    let mut svg = open_svg("bars", (WIDTH, ROW * bars.len() as f64), title);
    for (row, bar) in bars.iter().enumerate() {
        let top = ROW * row as f64;
        let length = if bar.length() > 0.0 { (WIDTH * bar.length() / most).max(MIN_BAR) } else { 0.0 };
        let mut inner = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            inner,
            "<text class=\"label\" x=\"0\" y=\"{baseline}\">{}</text>\
             <text class=\"value\" x=\"{WIDTH}\" y=\"{baseline}\">{}</text>\
             <rect class=\"track\" x=\"0\" y=\"{y}\" width=\"{WIDTH}\" height=\"10\" rx=\"3\"/>\
             <rect class=\"bar\" x=\"0\" y=\"{y}\" width=\"{}\" height=\"10\" rx=\"3\"/>",
            escape(&shorten(&bar.label, LABEL_COLUMNS)),
            escape(&bar.text),
            coordinate(length),
            baseline = coordinate(top + 14.0),
            y = coordinate(top + 20.0),
        );
        push_item(&mut svg, &bar.tooltip(), bar.link.as_deref(), &inner);
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar { label: label.into(), value, text: format!("{value}"), ..Bar::default() }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg = bars("By <model>", &[bar("a", 4.0), bar("b\"", 1.0), bar("none", 0.0), bar("odd", f64::NAN)]);
        let widths: Vec<&str> = svg
            .split("class=\"bar\"")
            .skip(1)
            .filter_map(|rest| rest.split_once("width=\"")?.1.split_once('"'))
            .map(|(width, _)| width)
            .collect();
        assert_eq!(widths, ["640", "160", "0", "0"]);
        assert!(svg.contains("aria-label=\"By &lt;model&gt;\"") && svg.contains("<title>b&quot; · 1</title>"), "{svg}");
        assert_eq!(bars("nothing", &[]), "");
    }
}
