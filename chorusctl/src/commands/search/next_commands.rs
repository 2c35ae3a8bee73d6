//! The commands that show the place of a hit, and continue from there.

use chorus_proto::methods::search::SearchHit;
use chorus_proto::shell_word::shell_word;

use super::hit::session_name;

/// Returns the hint below the hits. `named` is the agent that the command line named, `searched` the one that was searched, if
/// it was only one.
pub(super) fn hint(hit: &SearchHit, named: Option<&str>, searched: Option<&str>) -> String {
    let agent =
        agent_to_name(hit, named, searched).map(|name| format!("--agent {} ", shell_word(name))).unwrap_or_default();
    let session = session_name(hit);
    let session = shell_word(&session);
    let number = |option: &str| hit.message.map(|number| format!(" --{option} {number}")).unwrap_or_default();
    let show = format!("show the first result: `chorusctl {agent}show {session}{}`", number("around"));
    if hit.session.is_none() {
        return show;
    }
    let at = number("at");
    format!(
        "{show}; continue from there: `chorusctl {agent}restore {session}{at}`, or in a branch: \
         `chorusctl {agent}session branch {session}{at}`"
    )
}

/// Returns the agent that commands about the hit must name.
pub(super) fn agent_to_name<'a>(hit: &'a SearchHit, named: Option<&'a str>, searched: Option<&str>) -> Option<&'a str> {
    // Imported sessions are used by the current agent.
    let is_current = hit.imported || searched == Some(&hit.agent_name);
    if is_current { named } else { Some(&*hit.agent_name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(session: bool, imported: bool) -> SearchHit {
        let id = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604";
        let session = session.then(|| serde_json::json!({"id": id, "short_id": "9f1c27d4", "session_id": "s"}));
        serde_json::from_value(serde_json::json!({
            "agent_name": "api", "imported": imported, "session": session, "title": null, "message": 16,
            "role": "user", "speaker": "mara", "at": "2026-11-20T09:05:00Z", "snippet": "x", "marks": [], "score": 1.0,
        }))
        .expect("a hit")
    }

    #[test]
    fn the_agent_is_named_if_it_must_be() {
        let commands = |hit: &SearchHit, named, searched| {
            hint(hit, named, searched).split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            commands(&hit(true, false), None, Some("api")),
            [
                "chorusctl show 9f1c27d4 --around 16",
                "chorusctl restore 9f1c27d4 --at 16",
                "chorusctl session branch 9f1c27d4 --at 16",
            ]
        );
        let first = |hit: &SearchHit, named, searched| commands(hit, named, searched).remove(0);
        let (plain, named) = ("chorusctl show 9f1c27d4 --around 16", "chorusctl --agent api show 9f1c27d4 --around 16");
        assert_eq!(first(&hit(true, false), Some("api"), Some("api")), named);
        assert_eq!([first(&hit(true, false), None, None), first(&hit(true, false), None, Some("web"))], [named; 2]);
        assert_eq!([first(&hit(true, true), None, None), first(&hit(true, true), None, Some("web"))], [plain; 2]);
        assert_eq!(
            first(&hit(true, true), Some("web"), Some("web")),
            "chorusctl --agent web show 9f1c27d4 --around 16"
        );
        assert_eq!(commands(&hit(false, false), None, Some("api")), ["chorusctl show @main --around 16"]);
    }

    #[test]
    fn a_title_that_was_found_is_no_message() {
        let found = SearchHit { message: None, ..hit(true, false) };
        assert!(hint(&found, None, Some("api")).ends_with("`chorusctl session branch 9f1c27d4`"));
    }
}
