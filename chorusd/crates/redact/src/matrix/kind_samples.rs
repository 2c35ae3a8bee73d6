//! Samples of each kind, generated here so that the source contains none that a scanner would find.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

use super::super::alphabet::Alphabet;
use super::super::pattern_types::PatternPart;
use super::super::patterns::PATTERNS;

pub(crate) const ALNUM: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const TOKEN: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A key of the daemon's own.
pub(crate) const OWN_KEY: &str = "local/key+with\"odd=bytes-and-0123456789";

/// A secret: the text that contains it, and the part that must not survive.
pub(crate) struct Sample {
    pub kind: &'static str,
    pub before: String,
    pub hidden: String,
    pub after: String,
}

impl Sample {
    pub(crate) fn text(&self) -> String {
        format!("{}{}{}", self.before, self.hidden, self.after)
    }

    /// Returns whether it is found without any text before it.
    pub(crate) fn is_alone(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Returns whether it is a private key without its first line.
    pub(crate) fn is_headless(&self) -> bool {
        self.is_block() && self.before.is_empty() && !self.hidden.starts_with("-----BEGIN")
    }

    /// Returns whether it has lines of its own.
    pub(crate) fn is_block(&self) -> bool {
        self.text().contains('\n')
    }
}

/// Returns pseudo-random letters, the same for each seed.
pub(crate) fn made(alphabet: &str, count: usize, seed: u64) -> String {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let envelopes = alphabet.as_bytes();
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(envelopes[usize::try_from(state >> 33).unwrap() % envelopes.len()])
    };
    (0..count).map(|_| next()).collect()
}

/// Forms as issuers and the lists of other scanners describe them, written down independently of the patterns: the
/// kind, and the form with `{` alphabet count `}` for the random parts: a, letters and digits; x, hexadecimal; u,
/// capitals and digits; l, lower case and digits; b, base64; t, base64 for URLs; c, base32; 9, digits.
const PUBLISHED: &[(&str, &str)] = &[
    ("twilio-key", "SK{x32}"),
    ("mailgun-key", "key-{x32}"),
    ("square-token", "sq0atp-{t22}"),
    ("square-token", "sq0csp-{t43}"),
    ("square-token", "EAAA{t60}"),
    ("newrelic-key", "NRAK-{u27}"),
    ("newrelic-key", "NRJS-{x19}"),
    ("newrelic-key", "NRII-{t32}"),
    ("digitalocean-token", "dop_v1_{x64}"),
    ("digitalocean-token", "dor_v1_{x64}"),
    ("doppler-token", "dp.pt.{a43}"),
    ("doppler-token", "dp.st.prd.{a43}"),
    ("onepassword-token", "ops_eyJ{b280}"),
    ("onepassword-key", "A3-{u6}-{u11}-{u5}-{u5}-{u5}"),
    ("netlify-token", "nfp_{a36}"),
    ("nvidia-key", "nvapi-{t64}"),
    ("tavily-key", "tvly-{a32}"),
    ("tavily-key", "tvly-dev-{a32}"),
    ("langsmith-key", "lsv2_pt_{x32}_{x10}"),
    ("elevenlabs-key", "sk_{x48}"),
    ("resend-key", "re_{a8}_{a24}"),
    ("circleci-token", "CCIPAT_{a22}_{x40}"),
    ("bitbucket-token", "ATBB{a32}"),
    ("bitbucket-token", "BBDC-{b44}"),
    ("sonar-token", "sqp_{x40}"),
    ("sonar-token", "squ_{x40}"),
    ("mapbox-token", "sk.eyJ{a80}.{t22}"),
    ("brevo-key", "xkeysib-{x64}-{a16}"),
    ("aws-bedrock-key", "ABSK{b128}"),
    ("alibaba-access-key", "LTAI{a20}"),
    ("pulumi-token", "pul-{x40}"),
    ("heroku-key", "HRKU-AA{t58}"),
    ("heroku-key", "HRKU-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("fly-token", "fo1_{t43}"),
    ("fly-token", "fm2_{b120}"),
    ("supabase-key", "sbp_{x40}"),
    ("supabase-key", "sb_secret_{t31}"),
    ("hubspot-token", "pat-na1-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("fireworks-key", "fw_{a24}"),
    ("artifactory-key", "AKCp{a69}"),
    ("artifactory-token", "cmVmdGtu{a56}"),
    ("dynatrace-token", "dt0c01.{u24}.{u64}"),
    ("docker-token", "dckr_pat_{t27}"),
    ("docker-token", "dckr_oat_{t32}"),
    ("vercel-token", "vcp_{a56}"),
    ("aws-access-key", "AKIA{c16}"),
    ("github-token", "ghp_{a36}"),
    ("github-token", "ghs_{a36}"),
    ("github-token", "github_pat_{a22}_{a59}"),
    ("gitlab-token", "glpat-{t20}"),
    ("gitlab-token", "glptt-{x40}"),
    ("slack-token", "xoxb-{912}-{913}-{a24}"),
    ("slack-token", "xapp-1-A{u10}-{913}-{x64}"),
    ("stripe-key", "sk_live_{a24}"),
    ("stripe-key", "rk_test_{a99}"),
    ("openai-key", "sk-proj-{t74}T3BlbkFJ{t74}"),
    ("openai-key", "sk-{a20}T3BlbkFJ{a20}"),
    ("anthropic-key", "sk-ant-api03-{t93}AA"),
    ("anthropic-key", "sk-ant-admin01-{t93}AA"),
    ("api-key", "sk-or-v1-{x64}"),
    ("api-key", "sk-{x32}"),
    ("google-key", "AIza{t35}"),
    ("google-secret", "GOCSPX-{t28}"),
    ("npm-token", "npm_{a36}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{t150}"),
    ("sendgrid-key", "SG.{t22}.{t43}"),
    ("huggingface-token", "hf_{a34}"),
    ("shopify-token", "shpat_{x32}"),
    ("shopify-token", "shpca_{x32}"),
    ("linear-key", "lin_api_{a40}"),
    ("notion-token", "ntn_{911}{a35}"),
    ("vault-token", "hvs.{t95}"),
    ("age-key", "AGE-SECRET-KEY-1{u58}"),
    ("groq-key", "gsk_{a52}"),
    ("xai-key", "xai-{a80}"),
    ("perplexity-key", "pplx-{a48}"),
    ("replicate-token", "r8_{a37}"),
    ("grafana-token", "glsa_{a32}_{x8}"),
    ("grafana-token", "glc_eyJ{b120}"),
    ("rubygems-key", "rubygems_{x48}"),
    ("tailscale-key", "tskey-auth-{a12}CNTRL-{a32}"),
    ("planetscale-token", "pscale_tkn_{t43}"),
    ("atlassian-token", "ATATT3{t186}"),
    ("figma-token", "figd_{t40}"),
    ("postman-key", "PMAK-{x24}-{x34}"),
    ("databricks-token", "dapi{x32}"),
    ("airtable-token", "pat{a14}.{x64}"),
    ("adobe-secret", "p8e-{x32}"),
    ("clojars-token", "CLOJARS_{l60}"),
    ("nuget-key", "oy2{l43}"),
    ("octopus-key", "API-{u26}"),
    ("openshift-token", "sha256~{t43}"),
    ("plaid-token", "access-production-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("sourcegraph-token", "sgp_{x16}_{x40}"),
    ("sourcegraph-token", "sgp_local_{x40}"),
    ("sentry-token", "sntryu_{x64}"),
    ("pinecone-key", "pcsk_{a6}_{a63}"),
    ("flutterwave-key", "FLWSECK_TEST-{x32}-X"),
    ("slack-token", "xoxe.xoxp-1-{u166}"),
];

/// Generates a sample of a published form.
fn published(kind: &'static str, form: &str, seed: u64) -> Sample {
    let mut text = String::new();
    let mut rest = form;
    let mut number = seed * 100;
    while let Some((plain, more)) = rest.split_once('{') {
        let (random, more) = more.split_once('}').unwrap();
        let alphabet = match &random[..1] {
            "a" => ALNUM,
            "x" => HEX,
            "u" => UPPER,
            "l" => LOWER,
            "b" => BASE64,
            "t" => TOKEN,
            "c" => BASE32,
            "9" => DIGITS,
            other => panic!("{other}"),
        };
        number += 1;
        text.push_str(plain);
        text.push_str(&made(alphabet, random[1..].parse().unwrap(), number));
        rest = more;
    }
    Sample { kind, before: String::new(), hidden: text + rest, after: String::new() }
}

/// Generates a sample of a pattern.
fn ruled(kind: &'static str, start: &str, parts: &[PatternPart], seed: u64) -> Sample {
    let envelopes = |of: &Alphabet| -> String {
        // The end of a token is recognised by a byte that is not a letter or digit.
        let all = (b'!'..=b'~').filter(|byte| (of.contains)(*byte) && byte.is_ascii_alphanumeric());
        all.map(char::from)
            .filter(|envelope| of.name != "hexadecimal digits" || !envelope.is_ascii_uppercase())
            .collect()
    };
    let mut text = start.to_owned();
    for (number, part) in parts.iter().enumerate() {
        match part {
            PatternPart::Text(envelopes) => text.push_str(envelopes),
            PatternPart::Run { of, least, most, .. } => {
                let count = if most == least { *least } else { least + 8 };
                text.push_str(&made(&envelopes(of), count, seed * 10 + number as u64));
            }
        }
    }
    Sample { kind, before: String::new(), hidden: text, after: String::new() }
}

fn within(kind: &'static str, before: &str, hidden: String, after: &str) -> Sample {
    Sample { kind, before: before.into(), hidden, after: after.into() }
}

/// Generates the lines of a private key, with its first and last line.
fn block(label: &str, lines: u64) -> String {
    let body: Vec<_> =
        (0..lines).map(|line| made(BASE64, if line + 1 == lines { 52 } else { 64 }, 700 + line)).collect();
    let label = [label, "KEY"].join(" ");
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", body.join("\n"))
}

fn jwt(seed: u64) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.{}",
        part(r#"{"alg":"HS256","typ":"JWT"}"#),
        part(r#"{"sub":"1234567890","iat":1516239022}"#),
        made(ALNUM, 43, seed)
    )
}

/// Generates samples that follow other text, and those of custom matchers.
fn special() -> Vec<Sample> {
    let alone = |kind, hidden| within(kind, "", hidden, "");
    let pair = STANDARD.encode(format!("admin:{}", made(ALNUM, 24, 21)));
    let mut all = vec![
        alone("jwt", jwt(3)),
        alone("private-key", block("RSA PRIVATE", 12)),
        alone("private-key", block("OPENSSH PRIVATE", 6)),
        within("aws-secret-key", "aws_secret_access_key = ", made(ALNUM, 40, 31), ""),
        within("aws-secret-key", "AWS_SECRET_ACCESS_KEY=", made(ALNUM, 40, 32), ""),
        within("aws-secret-key", "\"SecretAccessKey\": \"", made(ALNUM, 40, 33), "\""),
        within("aws-session-token", "aws_session_token = ", made(BASE64, 160, 34), ""),
        within("aws-session-token", "AWS_SESSION_TOKEN=", made(BASE64, 160, 35), ""),
        within("aws-session-token", "\"SessionToken\": \"", made(BASE64, 160, 36), "\""),
        within("azure-key", "AccountKey=", made(ALNUM, 86, 37) + "==", ""),
        within("azure-key", "SharedAccessKey=", made(ALNUM, 43, 38) + "=", ""),
        within("azure-client-secret", "abc8Q~", made(ALNUM, 34, 39), ""),
        within("azure-client-secret", "abc7Q~", made(ALNUM, 34, 40), ""),
        within("terraform-token", &format!("{}.atlasv1.", made(ALNUM, 14, 41)), made(ALNUM, 67, 42), ""),
        within(
            "slack-webhook",
            "https://hooks.slack.com/services/",
            format!("T{}/B{}/{}", made(UPPER, 8, 1), made(UPPER, 10, 2), made(ALNUM, 24, 3)),
            "",
        ),
        within(
            "teams-webhook",
            "https://a.webhook.office.com/webhookb2/",
            format!("{}@{}/IncomingWebhook/{}", made(HEX, 36, 4), made(HEX, 36, 5), made(HEX, 68, 6)),
            "",
        ),
        within(
            "zapier-webhook",
            "https://hooks.zapier.com/hooks/catch/",
            made(DIGITS, 7, 7) + "/" + &made(ALNUM, 8, 8),
            "",
        ),
        within("discord-webhook", "https://discord.com/api/webhooks/198622483471925248/", made(ALNUM, 68, 43), ""),
        within("telegram-token", "bot1234567890:", format!("AA{}", made(ALNUM, 33, 44)), ""),
        within("url-password", "postgres://app:", made(ALNUM, 18, 45), "@db.example.com:5432/app"),
        within(
            "url-password",
            "https://app:",
            format!("a{}/{}", made(ALNUM, 12, 46), made(ALNUM, 12, 47)),
            "@db.example.com/x",
        ),
        within("bearer-token", "Authorization: Bearer ", format!("7{}4", made(ALNUM, 38, 48)), ""),
        within("bearer-token", "authorization: bearer ", format!("7{}4", made(ALNUM, 38, 49)), ""),
        within("bearer-token", "BEARER ", format!("7{}4", made(ALNUM, 38, 50)), ""),
        within("basic-auth", "Authorization: Basic ", pair.clone(), ""),
        within("basic-auth", "authorization: basic ", pair.clone(), ""),
        within("authorization", "Authorization: token ", format!("7{}4", made(ALNUM, 38, 51)), ""),
        within("authorization", "AUTHORIZATION: ApiKey ", format!("7{}4", made(ALNUM, 38, 52)), ""),
        within(
            "authorization",
            "Authorization: AWS4-HMAC-SHA256 ",
            format!("Credential=me/20260101/x,SignedHeaders=host,Signature={}", made(HEX, 64, 53)),
            "",
        ),
        within("npm-auth", "//registry.example.com/:_authToken=", format!("7{}4", made(ALNUM, 34, 55)), ""),
        within("npm-auth", "_auth=", pair.clone(), ""),
        within("npm-auth", "//registry.example.com/:_password=", STANDARD.encode(made(ALNUM, 20, 56)), ""),
        within("netrc-password", "machine example.com login me password ", made(ALNUM, 20, 57), ""),
        within("docker-auth", "{\"auths\":{\"example.com\":{\"auth\": \"", pair.clone(), "\"}}}"),
        within("docker-auth", "{\\\"auths\\\":{\\\"example.com\\\":{\\\"auth\\\": \\\"", pair, "\\\"}}}"),
    ];
    for (number, start) in [":5432:", ":5433:", ":6432:", ":*:"].into_iter().enumerate() {
        all.push(within(
            "pgpass-password",
            &format!("db.example.com{start}app:me:"),
            made(ALNUM, 20, 58 + number as u64),
            "",
        ));
    }
    for id in [
        "198622483471925248",
        "298622483471925248",
        "398622483471925248",
        "498622483471925248",
        "598622483471925248",
        "698622483471925248",
        "798622483471925248",
        "898622483471925248",
        "998622483471925248",
        "098622483471925248",
    ] {
        let id = URL_SAFE_NO_PAD.encode(id);
        all.push(alone("discord-token", format!("{id}.{}.{}", made(ALNUM, 6, 60), made(ALNUM, 38, 61))));
    }
    let body: Vec<_> = (0..6).map(|line| made(BASE64, 64, 800 + line)).collect();
    let label = ["RSA PRIVATE", "KEY"].join(" ");
    all.push(within("private-key", "", format!("{}\n-----END {label}-----", body.join("\n")), ""));
    all.push(within(
        "private-key",
        "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 6\n",
        body.join("\n"),
        "\nPrivate-MAC: 00",
    ));
    all
}

/// Returns at least one sample of each pattern, and one of each published form.
pub(crate) fn samples() -> Vec<Sample> {
    let mut all: Vec<Sample> =
        PUBLISHED.iter().zip(1..).map(|((kind, form), seed)| published(kind, form, seed)).collect();
    let ruled = PATTERNS.iter().zip(5000..).filter(|(shape, _)| !shape.parts().is_empty());
    all.extend(ruled.map(|(shape, seed)| ruled_of(shape, seed)));
    all.extend(special());
    all
}

fn ruled_of(shape: &super::super::pattern_types::Pattern, seed: u64) -> Sample {
    ruled(shape.kind, shape.prefix, shape.parts(), seed)
}

/// Returns the daemon's own key in its forms, and whether each may be broken anywhere.
pub(crate) fn own() -> Vec<(&'static str, String, bool)> {
    let key = OWN_KEY;
    let hex = |between: &str| key.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between);
    let columns = |text: &str, end: &str| {
        let lines: Vec<_> = text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        lines.join(end)
    };
    let json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    let quoted = |text: &str| {
        let all = serde_json::to_string(text).unwrap();
        all[1..all.len() - 1].to_owned()
    };
    let percent = |text: &str| {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect::<String>()
    };
    let mut all = vec![
        ("plain", key.to_owned(), true),
        ("json", json(key), true),
        ("json twice", quoted(&quoted(key)), true),
        ("percent", percent(key), true),
        ("percent twice", percent(&percent(key)), true),
        ("hex", hex(""), true),
        ("hex, blanks", hex(" "), false),
        ("hex, colons", hex(":"), true),
        ("hex, dashes", hex("-"), false),
        ("hex, C", format!("0x{}", hex(", 0x")), false),
        ("hex, escapes", format!("\\x{}", hex("\\x")), false),
        ("hex, two lines", format!("{}\n{}", &hex(" ")[..29], &hex(" ")[30..]), false),
    ];
    for before in ["", "a", "ab", "abc", "abcd"] {
        let text = format!("{before}{key} and what follows it");
        let long = format!("{}{text}{}", "x".repeat(50), "y".repeat(80));
        all.push(("base64", STANDARD.encode(&text), true));
        all.push(("base64 for URLs", URL_SAFE.encode(&text), true));
        all.push(("base64 of MIME", columns(&STANDARD.encode(&long), "\n"), false));
        all.push(("base64 of MIME, CRLF", columns(&STANDARD.encode(&long), "\r\n"), false));
        all.push(("base64 in JSON", columns(&STANDARD.encode(&long), "\\n"), false));
        all.push(("base64 of base64", STANDARD.encode(STANDARD.encode(&text)), true));
        all.push(("base64 of base64 for URLs", URL_SAFE.encode(STANDARD.encode(format!("x{text}"))), true));
        all.push(("base64 in a URL", percent(&STANDARD.encode(&text)), true));
        all.push((
            "base64 of hex",
            STANDARD.encode(text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
            true,
        ));
        all.push(("hex of base64", STANDARD.encode(&text).bytes().map(|byte| format!("{byte:02x}")).collect(), true));
        for padded in [true, false] {
            all.push(("base32", base32(text.as_bytes(), padded), true));
        }
        all.push(("base32, lower case", base32(text.as_bytes(), true).to_lowercase(), true));
    }
    all
}

fn base32(bytes: &[u8], padded: bool) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let envelopes: Vec<char> = BASE32.chars().collect();
    let digit = |bits: &str| envelopes[usize::from_str_radix(&format!("{bits:0<5}"), 2).unwrap()];
    let mut text: String = bits.as_bytes().chunks(5).map(|bits| digit(std::str::from_utf8(bits).unwrap())).collect();
    while padded && !text.len().is_multiple_of(8) {
        text.push('=');
    }
    text
}
