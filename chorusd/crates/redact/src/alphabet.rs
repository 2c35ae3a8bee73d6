//! Alphabets of tokens.

/// A set of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alphabet {
    pub contains: fn(u8) -> bool,
    /// The name in the table of SECRETS.md.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the table in SECRETS.md has it"))]
    pub name: &'static str,
}

pub(crate) const ALNUM: Alphabet = Alphabet { contains: is_alnum, name: "letters and digits" };
pub(crate) const LOWER: Alphabet = Alphabet { contains: is_lower_alnum, name: "lowercase letters and digits" };
pub(crate) const UPPER: Alphabet = Alphabet { contains: is_upper_alnum, name: "uppercase letters and digits" };
pub(crate) const LETTERS: Alphabet = Alphabet { contains: |byte| byte.is_ascii_alphabetic(), name: "letters" };
pub(crate) const HEX: Alphabet = Alphabet { contains: |byte| byte.is_ascii_hexdigit(), name: "hexadecimal digits" };
pub(crate) const BASE32: Alphabet = Alphabet { contains: is_base32, name: "base32" };
pub(crate) const WORD: Alphabet = Alphabet { contains: is_word_byte, name: "letters, digits and `_`" };
pub(crate) const DASHED: Alphabet = Alphabet { contains: is_alnum_or_dash, name: "letters, digits and `-`" };
pub(crate) const BASE64URL: Alphabet = Alphabet { contains: is_base64url, name: "base64 for URLs" };
pub(crate) const BASE64URL_DOT: Alphabet = Alphabet { contains: is_base64url_or_dot, name: "base64 for URLs and `.`" };
pub(crate) const BASE64URL_PADDED: Alphabet =
    Alphabet { contains: |byte| is_base64url_or_dot(byte) || byte == b'=', name: "base64 for URLs, `.` and `=`" };
pub(crate) const BASE64: Alphabet = Alphabet { contains: is_base64, name: "base64" };
pub(crate) const BEARER: Alphabet = Alphabet { contains: is_bearer_byte, name: "characters of a `Bearer` token" };
pub(crate) const COOKIE: Alphabet = Alphabet { contains: is_cookie_byte, name: "characters of a cookie" };

pub(crate) fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_lower_alnum(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_upper_alnum(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// Letters, digits and `_`.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    is_alnum(byte) || byte == b'_'
}

/// The alphabet of base64 for URLs.
pub(crate) fn is_base64url(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'-'
}

/// The alphabet of tokens with several parts.
pub(crate) fn is_base64url_or_dot(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

/// The standard alphabet of base64, including padding.
pub(crate) fn is_base64(byte: u8) -> bool {
    is_alnum(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// The bytes allowed in a `Bearer` token: RFC 6750.
pub(crate) fn is_bearer_byte(byte: u8) -> bool {
    is_base64url_or_dot(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

fn is_alnum_or_dash(byte: u8) -> bool {
    is_alnum(byte) || byte == b'-'
}

fn is_base32(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7')
}

/// Slack's cookies are sent with URL escapes.
fn is_cookie_byte(byte: u8) -> bool {
    is_base64url(byte) || is_base64(byte) || byte == b'%'
}
