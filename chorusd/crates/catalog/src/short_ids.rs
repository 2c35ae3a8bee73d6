//! Short ids of sessions: prefixes of UUIDs, counted in hex digits.

use uuid::Uuid;

/// Digits of a short id, at least.
const MIN_SHORT_DIGITS: usize = 8;
/// Digits that select a session, at least. So few that are all decimal are a number of the history.
const MIN_UNIQUE_DIGITS: usize = 4;

/// A short id, and how much of it is enough to name its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortId {
    pub text: String,
    /// The shortest prefix of `text` that selects the session and no other.
    pub unique_prefix: String,
}

impl ShortId {
    /// Returns the short id of a session: a prefix that no other session's id shares. `neighbours` are the next lower and
    /// the next higher id of a session, as far as they exist.
    #[must_use]
    pub fn new(id: Uuid, neighbours: impl IntoIterator<Item = Uuid>) -> Self {
        let unique = neighbours.into_iter().map(|other| shared_hex_digits(id, other) + 1);
        Self::of_digits(id, unique.fold(MIN_UNIQUE_DIGITS, usize::max))
    }

    /// Builds a short id that is unique with `unique` digits.
    fn of_digits(id: Uuid, unique: usize) -> Self {
        let prefix = first_digits(id, unique);
        let is_number = prefix.len() <= MIN_UNIQUE_DIGITS && prefix.bytes().all(|digit| digit.is_ascii_digit());
        let unique_prefix = if is_number { first_digits(id, MIN_UNIQUE_DIGITS + 1) } else { prefix };
        Self { text: first_digits(id, unique.max(MIN_SHORT_DIGITS)), unique_prefix }
    }
}

/// Returns the lowest and highest UUID that begin with the hex digits of `prefix`; `None` if it has other characters.
#[must_use]
pub fn uuid_range(prefix: &str) -> Option<([u8; 16], [u8; 16])> {
    let (mut low, mut high) = ([0_u8; 16], [0xFF_u8; 16]);
    for (index, c) in prefix.chars().filter(|c| *c != '-').enumerate() {
        let digit = u8::try_from(c.to_digit(16)?).ok()?;
        let (byte, shift) = (index / 2, if index % 2 == 0 { 4 } else { 0 });
        *low.get_mut(byte)? |= digit << shift;
        high[byte] &= (digit << shift) | !(0xF << shift);
    }
    Some((low, high))
}

/// Number of leading hex digits that two ids share.
fn shared_hex_digits(a: Uuid, b: Uuid) -> usize {
    (((a.as_u128() ^ b.as_u128()).leading_zeros()) / 4) as usize
}

/// The text of the id up to its `digits`th hex digit.
fn first_digits(id: Uuid, digits: usize) -> String {
    let mut seen = 0;
    id.to_string()
        .chars()
        .take_while(|c| {
            let more = seen < digits;
            seen += usize::from(*c != '-');
            more
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_become_ranges() {
        let (low, high) = uuid_range("1f3").unwrap();
        assert_eq!((low[0], low[1], high[0], high[1], high[2]), (0x1F, 0x30, 0x1F, 0x3F, 0xFF));
        assert_eq!(uuid_range("1f3a-9").unwrap().0[2], 0x90);
        assert!(uuid_range("2026_").is_none());
        assert!(uuid_range(&"0".repeat(33)).is_none());
    }

    #[test]
    fn short_ids_grow_where_two_are_alike() {
        let a = Uuid::parse_str("1f3a9c02-1111-4000-8000-000000000000").unwrap();
        let b = Uuid::parse_str("1f3a9c02-1211-4000-8000-000000000000").unwrap();
        assert_eq!(shared_hex_digits(a, b), 9);
        assert_eq!(first_digits(a, 8), "1f3a9c02");
        assert_eq!(first_digits(a, 10), "1f3a9c02-11");
        let short = |id, unique| ShortId::of_digits(id, unique).unique_prefix;
        assert_eq!((short(a, 4), short(a, 10)), ("1f3a".to_owned(), "1f3a9c02-11".to_owned()));
        let decimal = Uuid::parse_str("12345678-1111-4000-8000-000000000000").unwrap();
        assert_eq!((short(decimal, 4), short(decimal, 5)), ("12345".to_owned(), "12345".to_owned()));
        assert_eq!(ShortId::new(a, []).text, "1f3a9c02");
        assert_eq!(ShortId::new(a, [decimal, b]).text, "1f3a9c02-11");
    }
}
