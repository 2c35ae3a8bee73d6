//! The encodings in which the daemon's own keys may appear.

use super::normalized_text::{LineMark, View};

/// Shorter keys are ordinary words that texts contain for other reasons: a local server accepts any key.
pub(crate) const MIN_KEY_BYTES: usize = 8;

/// Length of the prefix that is skipped for another form of separated hexadecimal pairs, since a line may end inside
/// the part that the automaton searches for.
const SKIPPED_PREFIX_BYTES: usize = 4;

const BASE64_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64URL_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE32_LOWER_DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns the forms of `key` as a view shows them: plain and in JSON, URLs, hexadecimal, base64 and base32, at any
/// position of a longer text that was encoded, and some of these encodings nested. Contains no form twice.
#[must_use]
pub(crate) fn encoded_forms(key: &str) -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> = Vec::new();
    let mut add = |form: &[u8]| {
        let form = View::new(form, true, Some(LineMark::default())).bytes.into_owned();
        if form.len() >= MIN_KEY_BYTES && !forms.contains(&form) {
            forms.push(form);
        }
    };
    let bytes = key.as_bytes();
    add(bytes);
    let once = json_escaped(key);
    for text in [once.clone(), json_escaped(&once)] {
        add(text.as_bytes());
        add(text.replace('/', "\\/").as_bytes());
    }
    add(once.replace('/', "\\/").replace('\\', "\\\\").as_bytes());
    for upper in [true, false] {
        let url = percent_encoded(bytes, upper);
        add(&percent_encoded(&url, upper));
        add(&url);
        for between in ["", " ", ":", "-", ", ", ",", "\\x", ", 0x", ",0x", "%"] {
            add(&hex_separated(bytes, upper, between));
        }
        add(&hex_separated(&bytes[SKIPPED_PREFIX_BYTES..], upper, " "));
        for from in 0..2 {
            add(&hex_words(&bytes[from..], upper));
        }
    }
    let hex = hex_separated(bytes, false, "");
    for outer in [BASE64_DIGITS, BASE64URL_DIGITS] {
        (0..3).for_each(|before| add(&encode_digits(&hex, before, 6, outer)));
    }
    for alphabet in [BASE32_DIGITS, BASE32_LOWER_DIGITS] {
        (0..5).for_each(|before| add(&encode_digits(bytes, before, 5, alphabet)));
    }
    for alphabet in [BASE64_DIGITS, BASE64URL_DIGITS] {
        for before in 0..3 {
            let inner = encode_digits(bytes, before, 6, alphabet);
            add(&inner);
            add(&percent_encoded(&inner, true));
            add(&percent_encoded(&inner, false));
            add(String::from_utf8_lossy(&inner).replace('/', "\\/").as_bytes());
            add(&hex_separated(&inner, false, ""));
            for outer in [BASE64_DIGITS, BASE64URL_DIGITS] {
                (0..3).for_each(|before| add(&encode_digits(&inner, before, 6, outer)));
            }
        }
    }
    forms
}

fn json_escaped(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

fn percent_encoded(bytes: &[u8], upper: bool) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let one =
        |byte: &u8| if plain(byte) { vec![*byte] } else { [vec![b'%'], hex_digits(*byte, upper).to_vec()].concat() };
    bytes.iter().flat_map(one).collect()
}

fn hex_separated(bytes: &[u8], upper: bool, between: &str) -> Vec<u8> {
    let pairs: Vec<[u8; 2]> = bytes.iter().map(|byte| hex_digits(*byte, upper)).collect();
    pairs.join(between.as_bytes())
}

/// Formats pairs of bytes as `xxd` does.
fn hex_words(bytes: &[u8], upper: bool) -> Vec<u8> {
    bytes.chunks_exact(2).map(|pair| hex_separated(pair, upper, "")).collect::<Vec<_>>().join(&b' ')
}

fn hex_digits(byte: u8, upper: bool) -> [u8; 2] {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

/// Encodes `bytes` in digits of `width` bits, beginning `before` bytes after the start of a group. Leaves out digits
/// that contain bits of neighbouring bytes.
fn encode_digits(bytes: &[u8], before: usize, width: usize, alphabet: &[u8]) -> Vec<u8> {
    let first = (8 * before).div_ceil(width);
    let bit = |at: usize| {
        let at = at - 8 * before;
        usize::from(bytes[at / 8] >> (7 - at % 8) & 1)
    };
    (first..8 * (before + bytes.len()) / width)
        .map(|digit| alphabet[(digit * width..(digit + 1) * width).fold(0, |value, at| value << 1 | bit(at))])
        .collect()
}
