//! Rows of sessions as a generator with a fixed seed makes them: of few agents, names, tags and times, so that they collide.

use chorus_catalog::{SessionRow, place_of};
use chorus_proto::SessionHeader;
use chorus_tests::rng::Rng;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::Result;

/// The agents. Nobody made a row of the last one active.
pub(super) const AGENTS: [Uuid; 4] =
    [Uuid::from_u128(0xa1), Uuid::from_u128(0xa2), Uuid::from_u128(0xa3), Uuid::from_u128(0xa4)];

/// Conversations besides `main`, of the first agent.
pub(super) const CONVERSATIONS: [(Uuid, &str); 2] =
    [(Uuid::from_u128(0xc1), "review"), (Uuid::from_u128(0xc2), "Büro \"2\"")];

const TITLES: [&str; 8] = [
    "Größe der ÄRGER-Queue",
    "drop redis",
    "Drop Redis!",
    "redis dropped",
    "a \"quoted\" C:\\path",
    "with\u{0}nul",
    "2026",
    "Σίσυφος",
];
const TAGS: [&str; 4] = ["work", "Übung", "a\"b", "work-2"];
const SLUGS: [&str; 7] = ["drop-redis", "drop-redis-2", "drop", "drop-", "drop.x", "\u{fc}ber_uns", "a1b2c3"];
const PROJECTS: [&str; 9] =
    ["/home/a", "/home/a/b", "/home/a.b", "/home/ab", "/home", "/home/a0", "/srv/a", "/srv/xa", "/home/a/\u{10ffff}"];
const PROGRAMS: [&str; 3] = ["claude-code", "codex", "chatgpt"];

pub(super) fn pick<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    let place = usize::try_from(rng.below(list.len() as u64)).unwrap_or_default();
    list[place]
}

pub(super) fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

/// A time in one of a thousand hours.
pub(super) fn time(rng: &mut Rng) -> Timestamp {
    let hour = i64::try_from(rng.below(1000)).unwrap_or_default();
    super::super::at(hour * 3600)
}

/// One of 48 ids, which share starts of every length.
pub(super) fn id(rng: &mut Rng) -> Uuid {
    let (start, digit, place) = (rng.below(4), rng.below(3), rng.below(4));
    let base = 0x1f3a_9c02_1111_4000_8000_0000_0000_0000_u128;
    Uuid::from_u128(base ^ (u128::from(start) << 124) ^ (u128::from(digit + 1) << (20 + place * 28)))
}

pub(super) fn slug(rng: &mut Rng) -> &'static str {
    pick(rng, &SLUGS)
}

pub(super) fn word(rng: &mut Rng) -> String {
    let words = [
        "redis",
        "REDIS",
        "drop",
        "größe",
        "GRÖSSE",
        "ärger",
        "\"quoted\"",
        "c:\\path",
        "nul",
        "with\u{0}nul",
        "2026",
        "work",
        "übung",
        "a",
        "ed",
        "review",
        "büro",
        "nothing",
        "σίσυφος",
        "ΣΊΣΥΦΟΣ",
        "drop redis",
    ];
    pick(rng, &words).to_owned()
}

pub(super) fn tag(rng: &mut Rng) -> String {
    pick(rng, &TAGS).to_owned()
}

pub(super) fn program(rng: &mut Rng) -> String {
    pick(rng, &PROGRAMS).to_owned()
}

pub(super) fn project(rng: &mut Rng) -> String {
    pick(rng, &PROJECTS).to_owned()
}

fn source(rng: &mut Rng, saved_at: Timestamp) -> Value {
    let (conversation, revision) = (rng.below(4), rng.below(3));
    let project = if one_in(rng, 4) { Value::Null } else { json!(pick(rng, &PROJECTS)) };
    let mut source = json!({
        "program": pick(rng, &PROGRAMS), "conversation": format!("c{conversation}"), "project": project,
        "ended_at": saved_at - jiff::SignedDuration::from_secs(i64::try_from(rng.below(9)).unwrap_or_default()),
        "revision": revision, "messages_sha256": "m",
    });
    if project.is_null() {
        source.as_object_mut().map(|source| source.remove("project"));
    }
    source
}

/// A header of an agent. The number of its messages follows from its source, because of rows of the same revision no
/// particular one counts.
pub(super) fn header(rng: &mut Rng, agent: Uuid) -> Result<SessionHeader> {
    let saved_at = time(rng);
    let started_at = saved_at - jiff::SignedDuration::from_hours(i64::try_from(rng.below(30)).unwrap_or_default());
    let date = started_at.to_string().chars().take(10).collect::<String>();
    let is_import = one_in(rng, 3);
    let text = |rng: &mut Rng| if one_in(rng, 3) { Value::Null } else { json!(pick(rng, &TITLES)) };
    let tags: Vec<&str> = TAGS.into_iter().filter(|_| one_in(rng, 3)).collect();
    let mut header = json!({
        "schema": 2, "id": id(rng), "session_id": format!("{date}_{}", slug(rng)), "agent_id": agent, "agent_name": "a",
        "description": text(rng), "summary": text(rng), "saved_at": saved_at, "started_at": started_at,
        "trigger": if is_import { "import" } else { "manual_save" }, "model": null, "message_count": rng.below(9),
        "query_count": 1, "token_estimate": 1, "parent_id": null, "tags": tags,
    });
    if is_import && !one_in(rng, 3) {
        header["source"] = source(rng, saved_at);
        let of = |name: &str| header["source"][name].to_string().bytes().map(u64::from).sum::<u64>();
        header["message_count"] = json!(of("program") + of("conversation") + of("revision"));
    } else if agent == AGENTS[0] && one_in(rng, 2) {
        let (id, name) = pick(rng, &CONVERSATIONS);
        header["conversation"] = json!({"id": id, "name": name});
    }
    Ok(serde_json::from_value(header)?)
}

pub(super) fn row_of(rng: &mut Rng, header: SessionHeader) -> SessionRow {
    SessionRow {
        sha256: format!("sha {}", rng.below(3)),
        file_stamp: format!("stamp {}", rng.below(3)),
        corrupt: one_in(rng, 5).then(|| "no JSON".to_owned()),
        last_used_at: time(rng),
        place: place_of(&header),
        header,
        body: None,
    }
}

/// A row of any agent but the last.
pub(super) fn row(rng: &mut Rng) -> Result<SessionRow> {
    let agent = pick(rng, &AGENTS[..3]);
    let header = header(rng, agent)?;
    Ok(row_of(rng, header))
}
