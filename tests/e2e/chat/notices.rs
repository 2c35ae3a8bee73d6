//! What happens to the conversation while one types.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, InteractiveCommand};
use serde_json::json;

use crate::home;
use crate::send::cli::command;
use crate::send::send;

/// The end of the screen with a half-typed line, the cursor behind it.
const HALF_TYPED: &str = "a> half a li\r\u{1b}[12C\u{1b}[?2026l";

#[test]
fn what_others_write_and_idle_saves_are_shown_above_the_line_that_is_edited() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    server.anthropic().queue_text(["Mine."]);
    let mut running = InteractiveCommand::on_terminal(&command(&home, &["--agent", "a", "chat"]));
    running.stdout.wait_for("type /help for commands");
    running.stdout.wait_for_end("a> \r\u{1b}[3C\u{1b}[?2026l");
    let shown = running.type_and_wait("hello\r", "Mine.");
    assert!(!shown.contains("another client"), "its own messages are no news: {shown}");
    running.stdout.wait_for_end("a> \r\u{1b}[3C\u{1b}[?2026l");
    running.type_and_wait("half a li", "half a li");
    server.anthropic().queue(Response::text(["To another."]));
    send(&mut client, "From elsewhere?").expect("a turn");
    running.stdout.wait_for("another client: From elsewhere?");
    running.stdout.wait_for("a: To another.");
    running.stdout.wait_for_end(HALF_TYPED);
    let params = ConfigParams { name: "a".into(), key: Some("idle_timeout".into()), value: Some(json!("200ms")) };
    client.call::<Config>(&params).expect("agent.config");
    client.append("a", "The last word.");
    running.stdout.wait_for("Session saved: ");
    running.stdout.wait_for_end(HALF_TYPED);
    let text = running.stdout.text().replace("\r\n", " ");
    assert!(text.contains("Use /restore ") && !text.contains("/context restore"), "{text}");
    server.anthropic().queue_text(["Anew."]);
    running.type_and_wait("ne\r", "Anew.");
    running.leave_chat("a> ");
}
