//! Derives the `session_id` (date and slug) of a session.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

/// Length of the longest slug in characters.
const MAX_SLUG_CHARS: usize = 40;

/// Derives a slug from a description: lower case, white space becomes hyphens, characters outside `[a-z0-9-]` are
/// dropped, runs of hyphens are merged, and the result is truncated to 40 characters. Returns `None` if nothing is
/// left.
#[must_use]
pub fn from_description(description: &str) -> Option<String> {
    let mut slug = String::with_capacity(MAX_SLUG_CHARS);
    for c in description.chars().flat_map(char::to_lowercase) {
        let c = match c {
            'a'..='z' | '0'..='9' => c,
            '-' => '-',
            c if c.is_whitespace() => '-',
            _ => continue,
        };
        if c == '-' && (slug.is_empty() || slug.ends_with('-')) {
            continue;
        }
        slug.push(c);
        if slug.len() == MAX_SLUG_CHARS {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// Derives the slug of a session without a description: the first 6 hex digits of the SHA-256 of the first message's
/// content.
#[must_use]
pub fn from_content(first_content: &str) -> String {
    let hash = Sha256::digest(first_content.as_bytes());
    hash[..3].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns `<YYYY-MM-DD>_<slug>` with the date in UTC.
#[must_use]
pub fn session_id(saved_at: Timestamp, slug: &str) -> String {
    let date = saved_at.to_zoned(TimeZone::UTC).date();
    format!("{date}_{slug}")
}

/// Returns whether a session with this description and `slug` wanted the slug `base`, and got it with or without a number.
#[must_use]
pub fn is_numbered(slug: &str, base: &str, description: Option<&str>) -> bool {
    let Some(rest) = slug.strip_prefix(base) else { return false };
    let number = rest.strip_prefix('-').filter(|number| !number.is_empty());
    let is_number = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    // A slug that was made of the content says nothing of the description, which may have been written later.
    let of_content = base.len() == 6 && base.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    rest.is_empty() || is_number && (of_content || description.and_then(from_description).as_deref() == Some(base))
}

/// Returns `wanted` if it is free, else the first free name of `wanted-2`, `wanted-3` and so on.
#[must_use]
pub fn free_name(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let mut n = 2_u64;
    loop {
        let name = format!("{wanted}-{n}");
        if !taken(&name) {
            return name;
        }
        n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_become_slugs() {
        for (description, slug) in [
            ("Before the migration", Some("before-the-migration")),
            ("  Auth / refactor -- part 2!  ", Some("auth-refactor-part-2")),
            ("../../x", Some("x")),
            ("line\nbreak\ttab", Some("line-break-tab")),
            ("🎉🚀", None),
            ("\u{202e}abc\0", Some("abc")),
            ("---", None),
            ("", None),
        ] {
            assert_eq!(from_description(description).as_deref(), slug, "{description:?}");
        }
        assert_eq!(from_description(&"a".repeat(10_000)).unwrap().len(), 40);
        assert_eq!(from_description(&format!("{} b", "a".repeat(39))).unwrap(), "a".repeat(39));
    }

    #[test]
    fn taken_names_are_numbered() {
        let taken = ["2026-02-12_a", "2026-02-12_a-2"];
        assert_eq!(free_name("2026-02-12_a", |n| taken.contains(&n)), "2026-02-12_a-3");
        assert_eq!(free_name("2026-02-12_b", |n| taken.contains(&n)), "2026-02-12_b");
    }

    #[test]
    fn a_number_at_the_end_may_be_of_the_description() {
        for (slug, base, description, numbered) in [
            ("nightly", "nightly", Some("Nightly"), true),
            ("nightly-2", "nightly", Some("Nightly"), true),
            ("nightly-2", "nightly", Some("Nightly 2"), false),
            ("nightly-run", "nightly", Some("nightly"), false),
            ("nightly-", "nightly", Some("nightly"), false),
            ("941d38-2", "941d38", Some("A title written later"), true),
            ("nightly", "night", Some("night"), false),
        ] {
            assert_eq!(is_numbered(slug, base, description), numbered, "{slug}");
        }
    }

    #[test]
    fn no_description_is_a_hash() {
        // sha256("abc") begins ba7816
        assert_eq!(from_content("abc"), "ba7816");
    }
}
