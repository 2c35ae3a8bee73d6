//! The layout of the screen.

use ratatui_core::layout::Rect;

/// Rows of a hit: its place and its text.
pub(super) const HIT_ROWS: u16 = 2;

/// A screen of this width has the preview beside the list, which has room for all of a result in half of it.
const MIN_COLUMNS_BESIDE: u16 = 160;
/// One of this height has it below the list.
const MIN_ROWS_BELOW: u16 = 34;

/// The parts of the screen. What has no room is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) query: Rect,
    pub(super) status: Rect,
    pub(super) list: Rect,
    /// The line between list and preview.
    pub(super) border: Rect,
    pub(super) preview: Rect,
    pub(super) footer: Rect,
}

impl Layout {
    pub(super) fn of(area: Rect) -> Self {
        let rows = |from: u16, count: u16| Rect { y: area.y + from, height: count, ..area };
        // In a small window the results come first, then the keys, then the status.
        let (footer, status) = (u16::from(area.height >= 4), u16::from(area.height >= 6));
        let query = area.height.min(1);
        let body = rows(query + status, area.height.saturating_sub(query + status + footer));
        let mut layout = Self {
            query: rows(0, query),
            status: rows(query, status),
            list: body,
            footer: rows(area.height - footer.min(area.height), footer),
            ..Self::default()
        };
        if area.width >= MIN_COLUMNS_BESIDE {
            let list = area.width / 2;
            let columns = |from: u16, count: u16| Rect { x: body.x + from, width: count, ..body };
            layout.list = columns(0, list);
            layout.border = columns(list, 1);
            // A column is left free beside the line.
            layout.preview = columns(list + 2, area.width - list - 2);
        } else if area.height >= MIN_ROWS_BELOW {
            let list = body.height / 2 / HIT_ROWS * HIT_ROWS;
            let rows = |from: u16, count: u16| Rect { y: body.y + from, height: count, ..body };
            layout.list = rows(0, list);
            layout.border = rows(list, 1);
            layout.preview = rows(list + 1, body.height - list - 1);
        }
        layout
    }

    /// Returns the number of hits that fit.
    pub(super) fn hits(&self) -> usize {
        usize::from(self.list.height / HIT_ROWS)
    }

    pub(super) fn has_preview(&self) -> bool {
        !self.preview.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_parts_inside() {
        for (width, height) in (0..=200).step_by(5).flat_map(|width| (0..=60).map(move |height| (width, height))) {
            let area = Rect::new(0, 0, width, height);
            let layout = Layout::of(area);
            let Layout { query, status, list, border, preview, footer } = layout;
            for part in [query, status, list, border, preview, footer].into_iter().filter(|part| !part.is_empty()) {
                assert_eq!(part.intersection(area), part, "{width}x{height}");
            }
            let used = query.height + status.height + footer.height;
            let beside = width >= MIN_COLUMNS_BESIDE;
            let below = if beside { 0 } else { border.height + preview.height };
            assert_eq!(used + list.height + below, height, "{width}x{height}");
        }
    }

    #[test]
    fn a_terminal_of_80x24_has_ten_hits_and_a_larger_one_a_preview() {
        let of = |width, height| {
            let layout = Layout::of(Rect::new(0, 0, width, height));
            (layout.hits(), layout.has_preview())
        };
        assert_eq!(of(80, 24), (10, false));
        assert_eq!(of(120, 40), (9, true));
        assert_eq!(of(160, 24), (10, true));
        assert_eq!(of(80, 40), (9, true));
        assert_eq!(of(40, 8), (2, false));
    }
}
