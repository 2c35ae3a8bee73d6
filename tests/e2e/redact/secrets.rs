//! Secrets that are made here: none stands in the code as it would be found.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const ALNUM: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const DIGITS: &str = "123456789";
const HEX: &str = "0123456789abcdef";

/// A secret: how it stands in a text, and the part that must not be found anywhere.
#[derive(Debug, Clone)]
pub struct Secret {
    pub text: String,
    pub hidden: String,
}

impl Secret {
    fn whole(text: String) -> Self {
        Self { hidden: text.clone(), text }
    }

    fn within(before: &str, hidden: String, after: &str) -> Self {
        Self { text: format!("{before}{hidden}{after}"), hidden }
    }
}

/// Letters by chance, the same each time.
pub fn made(alphabet: &str, count: usize, seed: u64) -> String {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = alphabet.as_bytes();
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(letters[(state >> 33) as usize % letters.len()])
    };
    (0..count).map(|_| next()).collect()
}

/// Sixty of them, of twenty kinds. None has a line break.
pub fn sixty() -> Vec<Secret> {
    (0..3).flat_map(twenty).collect()
}

fn twenty(round: u64) -> Vec<Secret> {
    let of = |alphabet, count, salt: u64| made(alphabet, count, round * 1000 + salt);
    let start = |start: &str, count: usize, salt| Secret::whole(format!("{start}{}", of(ALNUM, count, salt)));
    let jwt = [r#"{"alg":"HS256","typ":"JWT"}"#, r#"{"sub":"1234567890"}"#].map(|part| URL_SAFE_NO_PAD.encode(part));
    let label = ["RSA PRIVATE", "KEY"].join(" ");
    let lines: Vec<_> = (0..4).map(|line| of(ALNUM, 64, 900 + line)).collect();
    vec![
        Secret::whole(format!("AKIA{}", of(UPPER, 16, 1))),
        Secret::within("aws_secret_access_key = ", of(ALNUM, 40, 2), " "),
        start("ghp_", 36, 3),
        Secret::whole(format!("github_pat_{}_{}", of(ALNUM, 22, 4), of(ALNUM, 59, 5))),
        start("glpat-", 20, 6),
        Secret::whole(format!("xoxb-{}-{}-{}", of(DIGITS, 12, 7), of(DIGITS, 13, 8), of(ALNUM, 24, 9))),
        start("sk_live_", 24, 10),
        start("sk-proj-", 80, 11),
        start("sk-ant-api03-", 95, 12),
        Secret::whole(format!("sk-or-v1-{}", of(HEX, 64, 13))),
        start("AIza", 35, 14),
        start("npm_", 36, 15),
        start("pypi-AgEIcHlwaS5vcmc", 80, 16),
        Secret::whole(format!("{}.{}.{}", jwt[0], jwt[1], of(ALNUM, 43, 17))),
        Secret::within(&format!("-----BEGIN {label}-----\\n"), lines.join("\\n"), &format!("\\n-----END {label}-----")),
        Secret::whole(format!(
            "{}.{}.{}",
            URL_SAFE_NO_PAD.encode(format!("19862248347192{:04}", round)),
            of(ALNUM, 6, 18),
            of(ALNUM, 38, 19)
        )),
        Secret::within("postgres://app:", of(ALNUM, 18, 20), "@db.example.com/app"),
        Secret::within("Authorization: Bearer ", format!("7{}4", of(ALNUM, 38, 21)), " "),
        start("hf_", 34, 22),
        Secret::whole(format!("SG.{}.{}", of(ALNUM, 22, 23), of(ALNUM, 43, 24))),
    ]
}
