//! The daemon's own keys, in the forms in which they come back.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter ones are words that texts have for other reasons: a local server takes any key.
pub const SHORTEST: usize = 8;

/// The forms of `key`: as it is, in JSON, in a URL, in hexadecimal, and in base64 wherever in it the key stands. No form
/// comes twice.
#[must_use]
pub fn forms(key: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![key.as_bytes().to_vec()];
    let mut add = |form: Vec<u8>| {
        if form.len() >= SHORTEST && !forms.contains(&form) {
            forms.push(form);
        }
    };
    let json = serde_json::to_string(key).unwrap_or_default();
    add(json.trim_matches('"').as_bytes().to_vec());
    add(json.trim_matches('"').replace('/', "\\/").into_bytes());
    for upper in [true, false] {
        add(percent(key, upper));
        add(key.bytes().flat_map(|byte| hex(byte, upper)).collect());
    }
    for before in 0..3_usize {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(key.as_bytes());
        // Of the first and the last letters some bits are of what stands beside the key.
        let (first, last) = ([0, 2, 3][before], usize::from(bytes.len() % 3 != 0));
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes);
            add(text.as_bytes().get(first..text.len() - last).unwrap_or_default().to_vec());
        }
    }
    forms
}

fn percent(key: &str, upper: bool) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let one = |byte: u8| if plain(&byte) { vec![byte] } else { [vec![b'%'], hex(byte, upper).to_vec()].concat() };
    key.bytes().flat_map(one).collect()
}

fn hex(byte: u8, upper: bool) -> [u8; 2] {
    let digits = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}
