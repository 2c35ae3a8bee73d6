//! Requests of real conversations stay within the limit of their window.

use chorus_proto::methods::context::{Show, ShowParams};
use chorus_session::token_estimate::tokens_of_text;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::fixture::{ANTHROPIC_MODEL, OPENAI_MODEL};
use chorus_tests::model_server::Response;
use chorus_tests::{Fixture, real_data};

use crate::home;

/// Tokens that working set and messages may have together.
const LIMIT: u64 = 15_000;

#[test]
fn no_request_of_a_real_conversation_passes_the_limit_of_its_window() {
    let Some(folder) = real_data::data_dir() else { return };
    let paths = real_data::conversations(&folder);
    for model in [ANTHROPIC_MODEL, OPENAI_MODEL] {
        let fixture = Fixture::builder(home()).models().model(model).start();
        fixture.create_agent("a", None);
        let mut client = fixture.client();
        let mut import = vec!["--agent", "a", "--quiet", "session", "import"];
        import.extend(paths.iter().map(|path| path.to_str().expect("a path")));
        chorusctl(&fixture.home, import).expect_success();
        let sessions = client.history("a");
        for queue in [fixture.models().anthropic(), fixture.models().openai()] {
            queue.set_fallback(Response::text(["I see."]));
        }
        let mut largest = 0;
        for session in &sessions {
            client.restore("a", &session.header.id.to_string());
            let params = ShowParams { agent: Some("a".into()), window: true, ..ShowParams::default() };
            let budget = client.call::<Show>(&params).expect("shown").window.expect("a window").budget;
            let id = &session.header.session_id;
            assert!(budget.working_set + budget.messages <= LIMIT, "{id}: {budget:?}");
            fixture.send("a", "Go on.").expect("a turn");
            let body = fixture.models().requests().pop().expect("a request").body;
            assert!(body["messages"].to_string().contains("Go on."), "{id}: the newest request is not the turn's");
            // With everything that JSON needs: quotes, escapes, names of fields.
            let messages = tokens_of_text(&body["messages"].to_string());
            // OpenAI's have the system prompt among them.
            let system = if model == OPENAI_MODEL { budget.system } else { 0 };
            assert!(messages <= LIMIT + system, "{id}: {messages} tokens of messages are sent, {budget:?}");
            largest = largest.max(messages);
        }
        println!("{model}: {} sessions, at most {largest} tokens of messages", sessions.len());
    }
}
