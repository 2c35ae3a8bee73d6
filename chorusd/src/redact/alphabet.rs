//! The letters that tokens are made of.

/// A set of letters.
#[derive(Debug, Clone, Copy)]
pub struct Alphabet {
    pub has: fn(u8) -> bool,
    /// As SECRETS.md names it.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the table in SECRETS.md has it"))]
    pub name: &'static str,
}

pub const ALNUM: Alphabet = Alphabet { has: alnum, name: "letters and digits" };
pub const LOWER: Alphabet = Alphabet { has: lower, name: "lower-case letters and digits" };
pub const UPPER: Alphabet = Alphabet { has: upper, name: "capitals and digits" };
pub const LETTERS: Alphabet = Alphabet { has: |byte| byte.is_ascii_alphabetic(), name: "letters" };
pub const HEX: Alphabet = Alphabet { has: |byte| byte.is_ascii_hexdigit(), name: "hexadecimal digits" };
pub const BASE32: Alphabet = Alphabet { has: base32, name: "base32" };
pub const WORD: Alphabet = Alphabet { has: word, name: "letters, digits and `_`" };
pub const DASHED: Alphabet = Alphabet { has: dashed, name: "letters, digits and `-`" };
pub const TOKEN: Alphabet = Alphabet { has: token, name: "base64 for URLs" };
pub const DOTTED: Alphabet = Alphabet { has: dotted, name: "base64 for URLs and `.`" };
pub const PADDED: Alphabet =
    Alphabet { has: |byte| dotted(byte) || byte == b'=', name: "base64 for URLs, `.` and `=`" };
pub const BASE64: Alphabet = Alphabet { has: base64, name: "base64" };
pub const BEARER: Alphabet = Alphabet { has: bearer, name: "the letters of a `Bearer`" };
pub const COOKIE: Alphabet = Alphabet { has: cookie, name: "the letters of a cookie" };

pub fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Letters, digits and `_`.
pub fn word(byte: u8) -> bool {
    alnum(byte) || byte == b'_'
}

/// The alphabet of base64 for URLs.
pub fn token(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

/// Tokens in parts.
pub fn dotted(byte: u8) -> bool {
    token(byte) || byte == b'.'
}

/// The usual alphabet of base64, with its padding.
pub fn base64(byte: u8) -> bool {
    alnum(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// What may stand in a `Bearer`: RFC 6750.
pub fn bearer(byte: u8) -> bool {
    dotted(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

fn dashed(byte: u8) -> bool {
    alnum(byte) || byte == b'-'
}

fn base32(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7')
}

/// A cookie of Slack is sent with its escapes.
fn cookie(byte: u8) -> bool {
    token(byte) || base64(byte) || byte == b'%'
}
