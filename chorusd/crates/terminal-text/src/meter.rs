//! How full a context is, as a bar with its percentage.

use chorus_proto::Meter;

use crate::units;

/// The characters of bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarStyle {
    Blocks,
    /// For terminals whose locale is not UTF-8.
    Ascii,
}

impl BarStyle {
    /// Returns `Blocks` if the terminal can show them.
    #[must_use]
    pub fn new(has_blocks: bool) -> Self {
        if has_blocks { Self::Blocks } else { Self::Ascii }
    }
}

/// Formats `█████████░░░░░ 62 %` in `columns` columns; the tokens if the length of the context is not known, and the percentage
/// alone if a bar has no room.
#[must_use]
pub fn format_meter(meter: &Meter, columns: usize, style: BarStyle) -> String {
    let Some(percent) = percent_used(meter) else { return units::format_tokens(meter.used) };
    let number = format!("{percent:>3} %");
    let Some(cells) = columns.checked_sub(number.len() + 1).filter(|cells| *cells > 0) else { return number };
    let filled = usize::try_from(percent.min(100)).unwrap_or_default() * cells;
    // A context that is not empty shows at least one cell.
    let filled = filled.div_ceil(100).min(cells);
    let (full, empty) = match style {
        BarStyle::Blocks => ("█", "░"),
        BarStyle::Ascii => ("#", "-"),
    };
    format!("{}{} {number}", full.repeat(filled), empty.repeat(cells - filled))
}

/// Returns the part of the context that is used; `None` if its length is not known.
#[must_use]
pub fn percent_used(meter: &Meter) -> Option<u64> {
    let window = meter.window.filter(|window| *window > 0)?;
    Some((meter.used.saturating_mul(100) / window).min(999))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_fills_and_always_has_its_number() {
        let shown = |used, window, columns, style| {
            let meter = Meter { used, window, calibrated: false, tools: None, source: None };
            format_meter(&meter, columns, style)
        };
        assert_eq!(shown(62, Some(100), 11, BarStyle::Blocks), "████░  62 %");
        assert_eq!(shown(1, Some(1000), 11, BarStyle::Ascii), "-----   0 %");
        assert_eq!(shown(10, Some(1000), 11, BarStyle::Ascii), "#----   1 %");
        assert_eq!(shown(300, Some(100), 11, BarStyle::Ascii), "##### 300 %");
        assert_eq!([shown(62, Some(100), 5, BarStyle::Blocks), shown(62, None, 11, BarStyle::Blocks)], [" 62 %", "62"]);
    }
}
