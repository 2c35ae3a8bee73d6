//! Formats numbers with their units.

pub use chorus_proto::pluralize::{group_digits, pluralize};

/// Formats `1 message`, `9,940 messages`.
#[must_use]
pub fn count_messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{} messages", group_digits(count)),
    }
}

/// Formats `1 token`, `~12k tokens`.
#[must_use]
pub fn format_token_count(number: u64) -> String {
    format!("{} token{}", format_tokens(number), if number == 1 { "" } else { "s" })
}

/// Formats a rounded number of tokens: `950`, `~12k`, `~1.2M`.
#[must_use]
pub fn format_tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..10_000 => format!("~{}.{}k", number / 1_000, number % 1_000 / 100),
        10_000..1_000_000 => format!("~{}k", number / 1_000),
        _ => format!("~{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Formats US dollars: `$12.50`, and below one dollar `$0.0042`.
#[must_use]
pub fn format_dollars(amount: f64) -> String {
    if amount >= 1.0 || amount == 0.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// Formats a rounded number of bytes: `512 B`, `14 MiB`.
#[must_use]
pub fn format_bytes(number: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let Some(power) = number.checked_ilog2().map(|bits| bits / 10).filter(|power| *power > 0) else {
        return format!("{number} B");
    };
    let power = power.min(4);
    let scaled = number * 10 / (1 << (10 * power.min(5)));
    let unit = units[power as usize - 1];
    if scaled < 100 { format!("{}.{} {unit}", scaled / 10, scaled % 10) } else { format!("{} {unit}", scaled / 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        assert_eq!([0, 999, 1_000, 9_940, 1_234_567].map(group_digits), ["0", "999", "1,000", "9,940", "1,234,567"]);
    }

    #[test]
    fn tokens_are_rounded() {
        assert_eq!([999, 1_234, 47_999, 1_250_000].map(format_tokens), ["999", "~1.2k", "~47k", "~1.2M"]);
    }

    #[test]
    fn small_amounts_have_more_digits() {
        assert_eq!([0.0, 0.00421, 0.5, 12.5].map(format_dollars), ["$0.00", "$0.0042", "$0.5000", "$12.50"]);
    }

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(
            [0, 1_023, 1_536, 14 << 20, 3 << 40].map(format_bytes),
            ["0 B", "1023 B", "1.5 KiB", "14 MiB", "3.0 TiB"]
        );
    }
}
