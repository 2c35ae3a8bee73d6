//! Characters for terminals that show ASCII only.

use ratatui_core::buffer::Buffer;

/// Replaces everything else than ASCII: the signs of the screen by similar ones, other characters by `?`.
pub(super) fn replace(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let sign = match cell.symbol() {
                "─" | "├" | "└" => "-",
                "│" | "▌" => "|",
                "█" => "#",
                "░" => ".",
                "…" => "~",
                "→" => ">",
                "↑" => "^",
                "↓" => "v",
                "·" => "-",
                "␤" => "\\",
                _ => "?",
            };
            cell.set_symbol(sign);
        }
    }
}
