//! `/context search`: finds messages of the agent's past.

use chorus_base::error::Result;
use chorus_engine::ops::conversations::ConversationTarget;
use chorus_engine::ops::search_in_scope::{ScopedRequest, find_in_scope, full_text};
use chorus_proto::Role;
use chorus_proto::methods::search::SearchHit;
use chorus_proto::pluralize::pluralize;

use super::command_definition::Right;
use super::invocation::Invocation;
use super::response::Response;
use super::text_format::{Redact, inline_code, inline_text, marked_text, relative_time};

/// Results in a response, so that it fits into a message.
const MAX_HITS: u64 = 5;

/// The limit on characters of a quote. A snippet of the index is shorter.
const MAX_QUOTE_CHARS: usize = 200;

pub(super) async fn search(call: &Invocation) -> Result<Response> {
    let (by, query) = (&call.caller, call.args.require_text("query")?);
    let agent = by.resolve_agent(call.args.text("agent"))?;
    let (ops, viewer) = (by.ops(), by.session_viewer(&agent)?);
    let request = ScopedRequest { viewer, text: query, limit: MAX_HITS };
    let found =
        find_in_scope(&ops.agent_resolver, &ops.sessions, &ops.search, &ops.semantic, &ops.clock, request).await?;
    let target = ConversationTarget::new(agent.clone(), viewer);
    let restores = by.check_right(Right::Change).is_ok();
    let suffix = call.args.text("agent").map_or_else(String::new, |_| format!(" agent:{}", agent.settings.name));
    let mut lines = Vec::new();
    for hit in found.hits {
        let Some(whole) = full_text(&ops.sessions, &target, &hit).await? else { continue };
        let hit = without_secrets(by, hit, &whole);
        lines.push(format!("{}\\. {}", lines.len() + 1, hit_text(by, &hit, restores.then_some(&suffix))));
    }
    let name = inline_text(by, &agent.settings.name, 64);
    let shown = inline_code(by, query, 100);
    let mut text = match lines.len() as u64 {
        0 => format!("**{name}** · no results for {shown}. Try fewer words."),
        count => format!("**{name}** · {} for {shown}\n{}", pluralize(count, "result"), lines.join("\n")),
    };
    if let Some(note) = found.note {
        text.push_str(&format!("\nNote: {note}."));
    }
    Ok(Response::new(text))
}

/// Replaces the snippet of a text with a secret by what is left around the first word. The snippet alone may show a part of the
/// secret, which no pattern finds.
fn without_secrets(clean: &impl Redact, mut hit: SearchHit, whole: &str) -> SearchHit {
    let redacted = clean.redact(whole);
    if redacted == whole && clean.redact(&hit.snippet) == hit.snippet {
        return hit;
    }
    let (start, end) = hit.marks.first().map_or((0, 0), |(start, end)| (*start as usize, *end as usize));
    let word: String = hit.snippet.chars().skip(start).take(end.saturating_sub(start)).collect();
    let line = redacted.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = line.find(&word).unwrap_or(0);
    let from = line[..at].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
    hit.snippet = line[from..].chars().take(MAX_QUOTE_CHARS - 40).collect();
    hit.marks.clear();
    hit
}

/// Formats a hit: what it is, when and by whom it was said, the text, and, with `restores`, the command that restores the
/// conversation up to it. `restores` is the end of that command.
fn hit_text(clean: &impl Redact, hit: &SearchHit, restores: Option<&String>) -> String {
    let title = hit.title.as_deref().or(hit.session.as_ref().map(|session| &*session.session_id));
    let mut facts = vec![format!("**{}**", inline_text(clean, title.unwrap_or("Live conversation"), 80))];
    if let Some(conversation) = hit.conversation.as_ref().filter(|_| hit.session.is_none()) {
        facts.push(inline_text(clean, &conversation.name, 64));
    }
    facts.extend(hit.message.map(|number| format!("message {number}")));
    facts.extend(hit.role.map(|role| match (role, hit.speaker.as_deref()) {
        (Role::User | Role::Assistant, Some(name)) => inline_text(clean, name, 64),
        (role, _) => role.as_str().replace('_', " "),
    }));
    facts.push(relative_time(hit.at));
    let mut text =
        format!("{}\n> {}", facts.join(" · "), marked_text(clean, &hit.snippet, &hit.marks, MAX_QUOTE_CHARS));
    if let (Some(suffix), Some(session)) = (restores, &hit.session) {
        let at = hit.message.map_or_else(String::new, |number| format!(" at:{number}"));
        text.push_str(&format!(
            "\n-# To continue from there: `/context restore session:{}{at}{suffix}`",
            session.short_id
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::search::FoundSession;

    use super::super::text_format::tests::StarRedactor;
    use super::*;

    fn hit(snippet: &str, marks: &[(u64, u64)]) -> SearchHit {
        let session =
            FoundSession { id: Default::default(), short_id: "9f1c27d4".into(), session_id: "2026-03-02_rows".into() };
        SearchHit {
            agent_name: "api".into(),
            imported: false,
            session: Some(session),
            conversation: None,
            title: Some("**Rows**".into()),
            message: Some(16),
            role: Some(Role::User),
            speaker: Some("<@1>".into()),
            at: "2026-11-20T09:05:00Z".parse().unwrap(),
            snippet: snippet.into(),
            marks: marks.to_vec(),
            nearby: None,
            score: 1.0,
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_hit_has_its_place_and_text_and_the_command_for_whom_may_use_it() {
        let found = hit("@everyone we drop *Redis*", &[(13, 17), (19, 24)]);
        let text = hit_text(&StarRedactor, &found, Some(&String::new()));
        let expected = "**\\*\\*Rows\\*\\*** · message 16 · \\<\\@1\\> · <t:1795165500:R>\n\
            > \\@everyone we **drop** \\***Redis**\\*\n\
            -# To continue from there: `/context restore session:9f1c27d4 at:16`";
        assert_eq!(text, expected);
        assert_eq!(hit_text(&StarRedactor, &found, None).lines().count(), 2);
        let live = SearchHit { session: None, title: None, message: None, role: None, ..found };
        let text = hit_text(&StarRedactor, &live, Some(&String::new()));
        assert!(text.starts_with("**Live conversation** · <t:") && text.lines().count() == 2, "{text}");
    }

    #[test]
    fn a_part_of_a_secret_is_not_shown() {
        let kept = without_secrets(&StarRedactor, hit("no secrets, redis", &[(12, 17)]), "no secrets, redis");
        assert_eq!((&*kept.snippet, kept.marks.len()), ("no secrets, redis", 1));
        let cut = hit("cret of redis", &[(8, 13)]);
        let shown = without_secrets(&StarRedactor, cut.clone(), "an a_secret\nof redis");
        assert_eq!((&*shown.snippet, shown.marks.len()), ("an * of redis", 0));
        let gone = without_secrets(&StarRedactor, hit("cret", &[(0, 4)]), &format!("a_secret {}", "x".repeat(900)));
        assert!(gone.snippet.starts_with("* xxx") && gone.snippet.len() <= MAX_QUOTE_CHARS, "{}", gone.snippet);
    }
}
