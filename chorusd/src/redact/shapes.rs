//! What secrets of others look like: how each kind begins, and what must follow. Written from what their issuers document;
//! only shapes that ordinary text does not have.

use super::look::{self, Bytes, Look};

/// One way in which a secret begins.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub kind: &'static str,
    pub start: &'static str,
    pub rule: Rule,
}

/// What follows the beginning.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// As many bytes of `of` as there are: at least `least`. The beginning is part of the secret.
    Run { of: fn(u8) -> bool, least: usize },
    /// Exactly so many.
    Exact { of: fn(u8) -> bool, count: usize },
    /// Looked at by a function of its own.
    By(Looks),
    /// As `By`, but the beginning only says that a secret follows.
    After(Looks),
}

/// Looks at a place, given with its kind.
pub type Looks = fn(&Bytes<'_>, usize, &'static str) -> Look;

const fn run(kind: &'static str, start: &'static str, of: fn(u8) -> bool, least: usize) -> Shape {
    Shape { kind, start, rule: Rule::Run { of, least } }
}

const fn exact(kind: &'static str, start: &'static str, of: fn(u8) -> bool, count: usize) -> Shape {
    Shape { kind, start, rule: Rule::Exact { of, count } }
}

const fn by(kind: &'static str, start: &'static str, look: Looks) -> Shape {
    Shape { kind, start, rule: Rule::By(look) }
}

const fn after(kind: &'static str, start: &'static str, look: Looks) -> Shape {
    Shape { kind, start, rule: Rule::After(look) }
}

pub fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
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

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// What may stand in a `Bearer`: RFC 6750.
pub fn bearer(byte: u8) -> bool {
    dotted(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

fn dashed(byte: u8) -> bool {
    alnum(byte) || byte == b'-'
}

/// The alphabet of AWS's ids.
fn aws(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7')
}

/// A cookie of Slack is sent with its escapes.
fn cookie(byte: u8) -> bool {
    token(byte) || base64(byte) || byte == b'%'
}

/// All of them. A beginning stands here once; the longest that fits is looked at first.
pub const SHAPES: &[Shape] = &[
    exact("aws-access-key", "AKIA", aws, 16),
    exact("aws-access-key", "ASIA", aws, 16),
    exact("aws-access-key", "ABIA", aws, 16),
    exact("aws-access-key", "ACCA", aws, 16),
    after("aws-secret-key", "secret_access_key", look::assigned_secret),
    after("aws-secret-key", "SECRET_ACCESS_KEY", look::assigned_secret),
    after("aws-secret-key", "ecretAccessKey", look::assigned_secret),
    after("aws-session-token", "session_token", look::assigned_session),
    after("aws-session-token", "SESSION_TOKEN", look::assigned_session),
    after("aws-session-token", "essionToken", look::assigned_session),
    run("github-token", "ghp_", word, 36),
    run("github-token", "gho_", word, 36),
    run("github-token", "ghu_", word, 36),
    run("github-token", "ghs_", dotted, 36),
    run("github-token", "ghr_", word, 36),
    run("github-token", "github_pat_", word, 60),
    run("gitlab-token", "glpat-", dotted, 20),
    run("gitlab-token", "gldt-", dotted, 20),
    run("gitlab-token", "glrt-", dotted, 20),
    run("gitlab-token", "glptt-", dotted, 20),
    run("gitlab-token", "glft-", dotted, 20),
    run("gitlab-token", "glsoat-", dotted, 20),
    run("gitlab-token", "glcbt-", dotted, 20),
    run("gitlab-token", "glimt-", dotted, 20),
    run("gitlab-token", "glagent-", dotted, 20),
    run("gitlab-token", "gloas-", dotted, 20),
    run("gitlab-token", "glffct-", dotted, 20),
    run("gitlab-token", "GR1348941", token, 20),
    run("slack-token", "xoxb-", dashed, 20),
    run("slack-token", "xoxp-", dashed, 20),
    run("slack-token", "xoxa-", dashed, 20),
    run("slack-token", "xoxr-", dashed, 20),
    run("slack-token", "xoxs-", dashed, 20),
    run("slack-token", "xoxo-", dashed, 20),
    run("slack-token", "xoxc-", dashed, 20),
    run("slack-token", "xoxd-", cookie, 20),
    run("slack-token", "xoxe-", dashed, 20),
    run("slack-token", "xapp-", dashed, 20),
    after("slack-webhook", "hooks.slack.com/", look::slack_webhook),
    run("stripe-key", "sk_live_", alnum, 16),
    run("stripe-key", "sk_test_", alnum, 16),
    run("stripe-key", "sk_prod_", alnum, 16),
    run("stripe-key", "rk_live_", alnum, 16),
    run("stripe-key", "rk_test_", alnum, 16),
    run("stripe-key", "rk_prod_", alnum, 16),
    run("webhook-secret", "whsec_", base64, 32),
    by("api-key", "sk-", look::dashed_key),
    exact("google-key", "AIza", token, 35),
    run("google-token", "ya29.", dotted, 30),
    run("google-secret", "GOCSPX-", token, 24),
    run("google-token", "1//0", token, 40),
    exact("npm-token", "npm_", alnum, 36),
    run("pypi-token", "pypi-Ag", token, 60),
    by("jwt", "eyJ", look::jwt),
    by("private-key", "-----BEGIN ", look::private_key),
    after("url-password", "://", look::url_password),
    after("bearer-token", "Bearer ", look::bearer_token),
    after("bearer-token", "bearer ", look::bearer_token),
    after("bearer-token", "BEARER ", look::bearer_token),
    after("basic-auth", "Basic ", look::basic_auth),
    after("basic-auth", "basic ", look::basic_auth),
    by("discord-token", "MD", look::discord_token),
    by("discord-token", "MT", look::discord_token),
    by("discord-token", "Mj", look::discord_token),
    by("discord-token", "Mz", look::discord_token),
    by("discord-token", "ND", look::discord_token),
    by("discord-token", "NT", look::discord_token),
    by("discord-token", "Nj", look::discord_token),
    by("discord-token", "Nz", look::discord_token),
    by("discord-token", "OD", look::discord_token),
    by("discord-token", "OT", look::discord_token),
    run("discord-token", "mfa.", token, 60),
    after("discord-webhook", "/api/webhooks/", look::discord_webhook),
    after("telegram-token", ":AA", look::telegram_token),
    run("sendgrid-key", "SG.", dotted, 60),
    run("huggingface-token", "hf_", alnum, 34),
    run("digitalocean-token", "dop_v1_", hex, 64),
    run("digitalocean-token", "doo_v1_", hex, 64),
    run("shopify-token", "shpat_", hex, 32),
    run("shopify-token", "shpss_", hex, 32),
    run("linear-key", "lin_api_", alnum, 32),
    run("notion-token", "ntn_", alnum, 40),
    run("docker-token", "dckr_pat_", token, 24),
    run("vault-token", "hvs.", token, 80),
    run("vault-token", "hvb.", token, 80),
    run("age-key", "AGE-SECRET-KEY-1", alnum, 58),
    after("azure-key", "AccountKey=", look::azure_key),
    run("groq-key", "gsk_", alnum, 48),
    run("xai-key", "xai-", alnum, 64),
    run("perplexity-key", "pplx-", alnum, 40),
    run("replicate-token", "r8_", alnum, 36),
    run("grafana-token", "glsa_", word, 36),
    run("sentry-token", "sntrys_", bearer, 40),
    run("rubygems-key", "rubygems_", hex, 48),
    run("tailscale-key", "tskey-", dashed, 24),
    run("supabase-key", "sbp_", hex, 40),
    run("planetscale-token", "pscale_tkn_", dotted, 32),
    run("atlassian-token", "ATATT3", bearer, 100),
    run("figma-token", "figd_", token, 36),
    run("postman-key", "PMAK-", dashed, 40),
    run("databricks-token", "dapi", hex, 32),
];
