//! A chart of what benches measured: a bar for each ratio, beside its target.

use std::fmt::Write as _;

/// A ratio that a bench printed with its target.
#[derive(Debug, PartialEq)]
pub struct Ratio {
    name: String,
    ratio: f64,
    target: f64,
    /// True if more is better.
    is_rate: bool,
}

const ROW_HEIGHT: usize = 22;
const TOP: usize = 44;
const NAMES_WIDTH: usize = 430;
/// Width of a bar that is exactly on its target.
const TARGET_WIDTH: f64 = 160.0;
/// Longer bars are cut there, in multiples of the target.
const MOST: f64 = 2.6;
const WIDTH: usize = 1000;

impl Ratio {
    /// Parses a line such as `append, one client   floor 133 us  chorus 266 us  ratio  2.00  target 1.50  MISSED`; for a rate, the
    /// target comes after `>=`. `None` if the line is another one.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(" floor ")?;
        let (_, rest) = rest.split_once("ratio")?;
        let (ratio, target) = rest.split_once("target")?;
        let target = target.trim();
        let (is_rate, target) = target.strip_prefix(">=").map_or((false, target), |target| (true, target));
        let number = |text: &str| text.split_whitespace().next()?.parse().ok();
        Some(Self { name: name.trim().to_owned(), ratio: number(ratio)?, target: number(target)?, is_rate })
    }

    /// How far it is from its target: at most 1 if that is met.
    fn distance(&self) -> f64 {
        if self.is_rate { self.target / self.ratio } else { self.ratio / self.target }
    }
}

/// Draws an SVG.
pub fn draw(ratios: &[Ratio]) -> String {
    let height = TOP + ratios.len() * ROW_HEIGHT + 16;
    let line = NAMES_WIDTH as f64 + TARGET_WIDTH;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"22\" font-weight=\"bold\">Chorus over its floors, by target: shorter is better</text>\n\
         <text x=\"{line}\" y=\"38\" text-anchor=\"middle\" fill=\"#555\">target</text>\n"
    );
    for (row, ratio) in ratios.iter().enumerate() {
        let y = TOP + row * ROW_HEIGHT;
        let distance = ratio.distance();
        let width = distance.min(MOST) * TARGET_WIDTH;
        let color = if distance <= 1.0 { "#3b8f5a" } else { "#c0603a" };
        let sign = if ratio.is_rate { "at least " } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text x=\"10\" y=\"{}\">{}</text><rect x=\"{NAMES_WIDTH}\" y=\"{}\" width=\"{width:.0}\" height=\"14\" fill=\"{color}\"/>\
             <text x=\"{:.0}\" y=\"{}\" fill=\"#333\">{:.2} (target {sign}{})</text>",
            y + 15,
            escape(&ratio.name),
            y + 4,
            NAMES_WIDTH as f64 + width + 6.0,
            y + 15,
            ratio.ratio,
            ratio.target,
        );
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{line}\" y1=\"{TOP}\" x2=\"{line}\" y2=\"{}\" stroke=\"#555\" stroke-dasharray=\"4 3\"/>\n</svg>",
        height - 12
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_benches_become_bars_and_others_do_not() {
        let lines = "(under chrt -f 20)\n\
            append 1 KB, one client, over write + fdatasync floor  133.000us  chorus  266.000us  ratio  2.00  target 1.50  MISSED\n\
            append 1 KB, 64 clients, over Redis           floor    50000/s  chorus    60000/s  ratio  1.20  target >= 1.20  met\n\
            processor time of an append there: 20.0 us  target <= 20 us  met\n";
        let ratios: Vec<_> = lines.lines().filter_map(Ratio::parse).collect();
        let [one, rate] = &ratios[..] else { panic!("{ratios:?}") };
        assert_eq!(
            (one.name.as_str(), one.ratio, one.target),
            ("append 1 KB, one client, over write + fdatasync", 2.0, 1.5)
        );
        assert!(!one.is_rate && one.distance() > 1.3 && rate.is_rate && rate.distance() <= 1.0);
        let svg = draw(&ratios);
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("2.00 (target 1.5)") && svg.contains("1.20 (target at least 1.2)"), "{svg}");
    }
}
