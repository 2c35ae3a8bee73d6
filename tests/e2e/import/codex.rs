//! Codex rollouts, found out by themselves.

use chorus_proto::Role;
use chorus_tests::Daemon;
use chorus_tests::chat::Chat as _;
use chorus_tests::ctl::{chorusctl, chorusctl_with};

use crate::home;

const ROLLOUT: &str = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-11-02T09:59:59Z","cwd":"/w","instructions":null}}
{"timestamp":"2025-11-02T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]}}
{"timestamp":"2025-11-02T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"List the files."}}
{"timestamp":"2025-11-02T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"2025-11-02T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.py"}}
{"timestamp":"2025-11-02T10:00:04Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"There is a.py."}]}}
"#;

#[test]
fn a_rollout_comes_in_and_leaves_as_markdown_that_says_the_same() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let said = chorusctl_with(&home, ["session", "import", "-"], ROLLOUT.as_bytes());
    assert_eq!(said.stderr, "");
    let roles = |client: &mut chorus_proto::Client| -> Vec<(Role, String)> {
        client.session("a", "latest").1.into_iter().map(|message| (message.role, message.content)).collect()
    };
    let due = [
        (Role::User, "List the files."),
        (Role::Assistant, ""),
        (Role::ToolResult, "a.py"),
        (Role::Assistant, "There is a.py."),
    ];
    let due: Vec<_> = due.into_iter().map(|(role, text)| (role, text.to_owned())).collect();
    assert_eq!(roles(&mut client), due);
    let first = client.history("a").remove(0).header;
    assert_eq!(first.id.to_string(), "7d444840-9dc0-41d1-b245-5ffdce74fad2");
    let markdown = chorusctl(&home, ["session", "export", "latest", "--as", "md"]).ok();
    chorusctl_with(&home, ["session", "import", "-"], markdown.as_bytes()).ok();
    let named = chorusctl_with(&home, ["session", "import", "--from", "codex", "-"], markdown.as_bytes());
    named.failed_with_hint(2);
    assert_eq!(client.history("a").len(), 2);
    assert_eq!(roles(&mut client), due);
    let live = client.restore("a", "latest");
    assert_eq!(live.messages, 4);
}
