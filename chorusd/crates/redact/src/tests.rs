//! Tests with secrets that are generated here, so that the source contains none that a scanner would find.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chorus_base::Secret;
use serde_json::value::RawValue;

use super::Redactor;
use super::matrix::kind_samples::{ALNUM, made};

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new(|| [7; 32]))
}

fn jwt(seed: u64) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(r#"{"alg":"HS256","typ":"JWT"}"#), part(r#"{"sub":"1234567890"}"#), made(ALNUM, 43, seed))
}

fn block(line_end: &str) -> String {
    let lines: Vec<_> = (0..12).map(|line| made(ALNUM, 64, 100 + line)).collect();
    let label = ["RSA PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {label}-----{line_end}{}{line_end}-----END {label}-----", lines.join(line_end))
}

/// One secret of each kind.
fn secrets() -> Vec<(&'static str, String)> {
    let a = |start: &str, count: usize| format!("{start}{}", made(ALNUM, count, start.len() as u64 + count as u64));
    let discord =
        format!("{}.{}.{}", URL_SAFE_NO_PAD.encode("198622483471925248"), made(ALNUM, 6, 3), made(ALNUM, 38, 4));
    vec![
        ("aws-access-key", format!("AKIA{}", made(UPPER, 16, 1))),
        ("github-token", a("ghp_", 36)),
        ("github-token", format!("github_pat_{}_{}", made(ALNUM, 22, 5), made(ALNUM, 59, 6))),
        ("gitlab-token", a("glpat-", 20)),
        (
            "slack-token",
            format!("xoxb-{}-{}-{}", made("123456789", 12, 7), made("123456789", 13, 8), made(ALNUM, 24, 9)),
        ),
        ("stripe-key", a("sk_live_", 24)),
        ("openai-key", a("sk-proj-", 80)),
        ("anthropic-key", a("sk-ant-api03-", 95)),
        ("api-key", format!("sk-or-v1-{}", made(HEX, 64, 10))),
        ("google-key", a("AIza", 35)),
        ("google-secret", a("GOCSPX-", 28)),
        ("npm-token", a("npm_", 36)),
        ("pypi-token", a("pypi-AgEIcHlwaS5vcmc", 80)),
        ("jwt", jwt(11)),
        ("private-key", block("\n")),
        ("private-key", block("\\n")),
        ("discord-token", discord),
        ("sendgrid-key", format!("SG.{}.{}", made(ALNUM, 22, 12), made(ALNUM, 43, 13))),
        ("huggingface-token", a("hf_", 34)),
    ]
}

#[test]
fn each_kind_is_found_wherever_it_stands() {
    let redactor = redactor();
    for (kind, secret) in secrets() {
        for (before, after) in [
            ("", ""),
            ("the key is ", "."),
            ("KEY=", "\n"),
            ("\"", "\""),
            ("'", "', "),
            ("\u{1b}[31m", "\u{1b}[0m"),
            ("é", "é"),
            ("a\\n", ""),
        ] {
            let text = format!("{before}{secret}{after}");
            let clean = redactor.redact_text(&text);
            assert!(clean.starts_with(&format!("{before}[redacted:{kind}:")), "{kind}: {text} became {clean}");
            assert!(clean.ends_with(&format!("]{after}")), "{kind}: {text} became {clean}");
            assert_eq!(redactor.redact_text(&clean), clean, "once is enough");
        }
    }
}

#[test]
fn the_beginning_of_a_private_key_is_found_under_the_numbers_of_its_lines() {
    let (redactor, whole) = (redactor(), block("\n"));
    let first = whole.lines().take(3).enumerate();
    for between in ["\t", ":", " | "] {
        let text: String = first.clone().map(|(number, line)| format!("{:>6}{between}{line}\n", number + 1)).collect();
        let clean = redactor.redact_text(&format!("{text}[lines 1 to 3 of 9]")).into_owned();
        assert!(whole.lines().skip(1).take(2).all(|line| !clean.contains(line)), "{clean}");
        assert!(clean.ends_with("[lines 1 to 3 of 9]"), "{clean}");
    }
}

#[test]
fn what_follows_a_name_is_found() {
    let redactor = redactor();
    let secret = made(ALNUM, 40, 20);
    let pair = STANDARD.encode(format!("admin:{}", made(ALNUM, 12, 21)));
    for text in [
        format!("aws_secret_access_key = {secret}"),
        format!("export AWS_SECRET_ACCESS_KEY=\"{secret}\""),
        format!("{{\\\"SecretAccessKey\\\": \\\"{secret}\\\"}}"),
        format!("Authorization: Bearer {secret}"),
        format!("Authorization: Basic {pair}"),
        format!("postgres://app:{secret}@db.example.com:5432/app"),
        format!("git clone https://x:{secret}@github.com/a/b.git"),
        format!("https://hooks.slack.com/services/{}/{}/{}", made(UPPER, 9, 1), made(UPPER, 11, 2), made(ALNUM, 24, 3)),
        format!("https://discord.com/api/webhooks/198622483471925248/{}", made(ALNUM, 68, 22)),
        format!("bot{}:AA{}", "1234567890", made(ALNUM, 33, 23)),
    ] {
        let clean = redactor.redact_text(&text);
        let kept = text.split([' ', '=', ':', '/']).next().unwrap();
        assert!(clean.contains("[redacted:") && clean.starts_with(kept), "{text} became {clean}");
        assert!(!clean.contains(&secret) && !clean.contains(&pair), "{clean}");
    }
}

#[test]
fn plain_text_stays() {
    let redactor = redactor();
    for text in [
        "see https://example.com:8080/a@b and mailto:me@example.com, ssh://git@github.com/a",
        "postgres://user:password@localhost/db, redis://:$REDIS_PASSWORD@host, https://{user}:{pass}@host, http://u:***@h",
        "a risk-averse task-force, the disk-usage-of-the-whole-thing-in-the-background-of-it-all",
        "sk-circle-fade-dot-container-element-wrapper-outer, sk-ant-... and ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "Bearer authentication is required; Bearer <token>, Basic authentication, Basic knowledge",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY----- stands before it",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 550e8400-e29b-41d4-a716-446655440000",
        "AKIA is how they begin, eyJ how those do; MTIz.NDU2.Nzg5 is none; e.g. MDN, NTFS, OTel, OData",
        "let secret_access_key = config.secret_access_key(); session_token: Option<String>",
        "std::fs::read, core::ops::Range<usize>, a://b, x: ://, ://",
    ] {
        assert_eq!(redactor.redact_text(text), text);
    }
}

#[test]
fn own_keys_are_found_in_every_form() {
    let redactor = redactor();
    let key = "local/key+with\"odd=bytes";
    assert_eq!(redactor.redact_text(key), key, "nobody knows it");
    redactor.add_own_key(&Secret::new(key.into()));
    redactor.add_own_key(&Secret::new("short".into()));
    let percent = "local%2Fkey%2Bwith%22odd%3Dbytes";
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut prints = std::collections::HashSet::new();
    for form in [key.to_owned(), percent.into(), percent.to_lowercase(), serde_json::to_string(key).unwrap(), hex] {
        let clean = redactor.redact_text(&form).into_owned();
        prints.insert(clean.trim_matches('"').to_owned());
    }
    assert_eq!(prints.len(), 1, "one key has one fingerprint: {prints:?}");
    assert!(prints.iter().all(|print| print.starts_with("[redacted:chorus-key:")), "{prints:?}");
    for before in ["", "a", "ab", "abc", "user:"] {
        let clean = redactor.redact_text(&STANDARD.encode(format!("{before}{key}-after"))).into_owned();
        assert!(clean.contains("[redacted:chorus-key:"), "{before}: {clean}");
    }
    assert_eq!(redactor.redact_text("in short: nothing"), "in short: nothing");
}

#[test]
fn pieces_come_to_the_same_as_the_whole() {
    let redactor = redactor();
    redactor.add_own_key(&Secret::new("own-key-0123456789".into()));
    let mut text = String::from("Ordinary text, a risk; ");
    for (_, secret) in secrets() {
        text.push_str(&format!("the key «{secret}» é and so on, with https://a:b1c2d3@host/x. Bearer {secret}\n"));
    }
    text.push_str("own-key-0123456789 own-key-012345678");
    let whole = redactor.redact_text(&text).into_owned();
    for size in [1, 2, 3, 5, 7, 16, 64, 1000, 100_000] {
        let mut flow = redactor.stream();
        let envelopes: Vec<char> = text.chars().collect();
        let mut out: String = envelopes.chunks(size).map(|piece| flow.push(piece.iter().collect())).collect();
        out.push_str(&flow.finish(false));
        assert_eq!(out, whole, "pieces of {size}");
        let (mut flow, mut written) = (redactor.stream(), Vec::new());
        text.as_bytes().chunks(size).for_each(|piece| flow.push_bytes(piece, &mut written));
        flow.finish_bytes(false, &mut written);
        assert_eq!(String::from_utf8(written).unwrap(), whole, "bytes of {size}");
    }
}

#[test]
fn ordinary_text_is_not_held_back() {
    let mut flow = redactor().stream();
    for piece in ["The", " quick", " brown", " fox:", " https", "://", "example.com/", "path", " is", " fine", ".\n"] {
        // Tokens of Airtable begin with `pat`.
        let held = matches!(piece, "://" | "example.com/" | "path");
        let out = flow.push(piece.into());
        assert!(out.ends_with(piece) || held, "{piece:?} became {out:?}");
    }
    assert_eq!(flow.finish(false), "");
}

#[test]
fn what_is_held_back_has_a_bound() {
    let mut flow = redactor().stream();
    let long = format!("{} and so on", made(ALNUM, 100_000, 30));
    let mut out = flow.push("a ghp_".into());
    for piece in long.as_bytes().chunks(7) {
        out.push_str(&flow.push(String::from_utf8(piece.to_vec()).unwrap()));
    }
    out.push_str(&flow.finish(false));
    assert!(out.starts_with("a [redacted:github-token:") && out.len() < 200, "{} bytes", out.len());
}

#[test]
fn what_was_cut_off_ends_with_no_piece() {
    let redactor = redactor();
    redactor.add_own_key(&Secret::new("own-key-0123456789".into()));
    let token = format!("ghp_{}", made(ALNUM, 20, 31));
    for secret in ["own-key-01234", &token] {
        let text = format!("here: {secret}");
        assert!(redactor.redact_truncated(text.clone()).starts_with("here: [redacted:"), "{secret}");
        let mut flow = redactor.stream();
        let out = flow.push(text.clone()) + &flow.finish(true);
        assert!(out.starts_with("here: [redacted:"), "{out}");
        assert_eq!(redactor.redact_text(&text), text, "a whole text says what it says");
    }
    assert_eq!(redactor.redact_truncated("a disk".into()), "a disk");
    assert!(redactor.redact_message(&format!("no: {token}…")).ends_with("]…"));
}

#[test]
fn json_stays_json_and_digit_for_digit() {
    let redactor = redactor();
    let token = format!("ghp_{}", made(ALNUM, 36, 40));
    let json = format!(
        r#"{{"n":1.50e400,"a":"\u00e9 {token}\n","b":["x\/y",{{"{token}":-0}}],"c":"g\u0068p_{}"}}"#,
        &token[4..]
    );
    let (clean, count) = redactor.redact_json(&json);
    assert_eq!(count, 3, "{clean}");
    assert!(
        clean.starts_with(r#"{"n":1.50e400,"a":"é [redacted:github-token:"#)
            && clean.contains(r#"["x\/y",{"[redacted"#)
    );
    assert!(!clean.contains(&token[4..]));
    serde_json::from_str::<&RawValue>(&clean).unwrap();
    let plain = r#"{"a":"b\"c","n":0.10}"#;
    assert_eq!(redactor.redact_json(plain), (plain.into(), 0));
}

#[test]
fn a_fingerprint_tells_secrets_apart_and_homes_too() {
    let (one, other) = (format!("npm_{}", made(ALNUM, 36, 50)), format!("npm_{}", made(ALNUM, 36, 51)));
    let home = redactor();
    let elsewhere = Redactor::new(|| [8; 32]);
    assert_eq!(home.redact_text(&one), home.redact_text(&one));
    assert_ne!(home.redact_text(&one), home.redact_text(&other));
    assert_ne!(home.redact_text(&one), elsewhere.redact_text(&one));
}

#[test]
fn a_word_in_a_long_secret_is_there_by_chance() {
    let redactor = redactor();
    for word in ["your", "XXXX", "example"] {
        let key = block("\n");
        let key = format!("{}{word}{}", &key[..200], &key[200 + word.len()..]);
        assert!(redactor.redact_text(&key).starts_with("[redacted:private-key:"), "{word}");
        let token = format!("sk-ant-api03-{}{word}{}", made(ALNUM, 40, 60), made(ALNUM, 50, 61));
        assert!(redactor.redact_text(&token).starts_with("[redacted:anthropic-key:"), "{word}");
    }
    let text = "ghp_your_token_here ghp_yourTokenGoesHereYourTokenGoesHere1234";
    assert_eq!(redactor.redact_text(text), text);
}

/// Takes very long if every prefix scans all text that follows.
#[test]
fn many_beginnings_in_one_run_take_no_longer_than_one() {
    let redactor = redactor();
    for start in [
        "sk-",
        "eyJ-",
        "xoxb-",
        "secret_access_key",
        "_auth",
        "h:*:d:u:$",
        "x://u:pp/",
        "authorization",
        "Authorization: ",
        "sk-aBcDeFgH-\n",
        "-----BEGIN RSA ",
    ] {
        let text = start.repeat(60_000 / start.len());
        assert!(redactor.count_secrets(&text) <= 60_000 / start.len() as u64, "{start}");
    }
    let parts = format!("{}.{}.{}", "eyJ-".repeat(10_000), "_".repeat(40_000), "-".repeat(40_000));
    assert_eq!(redactor.count_secrets(&parts), 0);
    // Secrets in a run that is not a secret as a whole.
    let mixed = format!("h:*:d:u:xx,ghp_{}\"", made(ALNUM, 36, 64)).repeat(500);
    assert!(redactor.count_secrets(&mixed) >= 500);
}

#[test]
fn a_secret_longer_than_what_decides_goes_whole() {
    let redactor = redactor();
    let long = made(ALNUM, 20_000, 62);
    for (before, after) in
        [("sk-", ""), ("xoxb-", ""), ("ghp_", ""), ("Bearer ", ""), ("eyJhbGciOiJIUzI1NiJ9.eyJ", ".")]
    {
        let sign = if after.is_empty() { String::new() } else { made(ALNUM, 43, 63) };
        let clean = redactor.redact_text(&format!("see {before}{long}{after}{sign} there")).into_owned();
        assert!(clean.contains("[redacted:") && clean.ends_with("] there") && clean.len() < 100, "{before}: {clean}");
    }
}

#[test]
fn what_escapes_and_what_nobody_sees_hides_nothing() {
    let redactor = redactor();
    let token = format!("ghp_{}", made(ALNUM, 36, 70));
    let key = format!("sk-ant-api03-{}", made(ALNUM, 95, 71));
    for before in ["KEY^I", "^I", "a\\012", "a\\040", "a\\011"] {
        for secret in [&token, &key] {
            let clean = redactor.redact_text(&format!("{before}{secret}")).into_owned();
            assert!(clean.starts_with(&format!("{before}[redacted:")), "{before}: {clean}");
        }
    }
    let wide = format!("\u{1b}[{}m", "38;5;1;".repeat(20));
    for between in
        ["\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{9b}31m", "\u{9b}0;1m", &wide]
    {
        let text = format!("the {}{between}{}{between}{} x", &token[..2], &token[2..20], &token[20..]);
        let clean = redactor.redact_text(&text).into_owned();
        assert!(clean.starts_with("the [redacted:github-token:") && clean.ends_with("] x"), "{between:?}: {clean}");
        for size in [1, 2, 3, 7] {
            let (mut flow, mut written) = (redactor.stream(), Vec::new());
            text.as_bytes().chunks(size).for_each(|piece| flow.push_bytes(piece, &mut written));
            flow.finish_bytes(false, &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), clean, "{between:?} in pieces of {size}");
        }
    }
    let struck: String = token.chars().map(|envelope| format!("{envelope}\u{8}{envelope}")).collect();
    assert!(redactor.redact_text(&struck).starts_with("[redacted:github-token:"));
}

#[test]
fn a_password_that_begins_as_a_variable_does_is_one() {
    let redactor = redactor();
    for password in ["%40Secr3tPass9", "$ecr3tPass9", "$$ecr3t-9x"] {
        let clean = redactor.redact_text(&format!("postgres://app:{password}@db.example/x")).into_owned();
        assert!(clean.starts_with("postgres://app:[redacted:url-password:"), "{clean}");
    }
    for name in ["$PASS", "$DB_PASS1", "$password", "${pass:-x}", "$(cat x)", "%s", "%DB_PASS%", "$$PASS", "%(pw)s"] {
        let text = format!("postgres://app:{name}@db.example/x");
        assert_eq!(redactor.redact_text(&text), text);
    }
}
