//! What a model may answer, and what becomes of it.

use chorus_proto::SummarySource;
use chorus_tests::model_server::{ModelServer, Response};

use super::{SUMMARY, TALK, TITLE, answer, is_by_model, now, ready, save, talked};
use crate::home;

#[test]
fn a_good_one_takes_the_place_of_the_own_words() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue_text([answer()]);
    let saved = save(&mut client, None);
    let before = saved.session.header;
    assert!(saved.summary_pending && before.summary_source == SummarySource::Extractive && before.summary.is_some());
    is_by_model(&mut client, before.id);
    let (after, _) = now(&mut client, before.id);
    assert_eq!(after.header.description.as_deref(), Some(TITLE));
    assert_eq!(after.header.session_id, before.session_id, "the file keeps its name");
    let file = std::fs::read_to_string(&after.file_path).expect("the file");
    assert!(file.contains(SUMMARY) && file.contains("\"llm\""), "{file}");
    assert!(
        chorus_tests::client_ext::ClientExt::restore(&mut client, "a", "latest").warnings.is_empty(),
        "the messages are as they were"
    );
}

#[test]
fn the_transcript_is_quoted_in_one_message() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue_text([answer()]);
    let saved = save(&mut client, None);
    ready(&mut client, saved.session.header.id);
    let request = &server.wait_for_requests(1)[0].body;
    let messages = request["messages"].as_array().expect("messages");
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &"user".into()), "{request}");
    let text = messages[0]["content"].to_string();
    for (_, said) in TALK {
        assert!(text.contains(&format!("> {said}")), "{said}: {text}");
    }
    assert!(request.get("tools").is_none_or(|tools| tools.as_array().is_some_and(Vec::is_empty)), "{request}");
}

#[test]
fn a_description_that_was_given_stays() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue_text([answer()]);
    let saved = save(&mut client, Some("by hand"));
    is_by_model(&mut client, saved.session.header.id);
    assert_eq!(now(&mut client, saved.session.header.id).0.header.description.as_deref(), Some("by hand"));
}

/// Answers that cannot be used, each twice: the second try brings nothing better.
#[test]
fn what_cannot_be_used_leaves_the_own_words() {
    let megabyte = format!("<|im_start|>Title\n\n{}<|im_end|>", "Row after row was kept. ".repeat(45_000));
    let unusable = [
        Response::error(500, "{}"),
        Response::empty(),
        Response::text(["  \n"]),
        Response::text(["I'm sorry, but I can't help with that."]),
        Response::text(["Something"]).stop_reason("refusal"),
        Response::text([answer().repeat(20)]),
        Response::text([megabyte]),
        Response::text(["Rows\n\nThe loader"]).disconnect(),
    ];
    for bad in unusable {
        let (home, server) = (home(), ModelServer::start_for_summaries());
        let (mut daemon, mut client) = talked(&home, &server);
        server.anthropic().set_fallback(bad.clone());
        let saved = save(&mut client, None);
        let before = saved.session.header;
        let told = ready(&mut client, before.id);
        assert_eq!(
            (&told["summary"], &told["source"]),
            (&before.summary.clone().into(), &"extractive".into()),
            "{bad:?}"
        );
        let (after, pending) = now(&mut client, before.id);
        assert!(after.header == before && !pending, "{after:?}");
        assert_eq!(server.requests().len(), 2, "one retry: {bad:?}");
        daemon.assert_alive();
    }
}

#[test]
fn the_second_try_may_be_better() {
    for first in [Response::error(500, "{}"), Response::empty(), Response::text(["I cannot assist with that."])] {
        let (home, server) = (home(), ModelServer::start_for_summaries());
        let (_daemon, mut client) = talked(&home, &server);
        server.anthropic().queue(first);
        server.anthropic().queue_text([answer()]);
        let saved = save(&mut client, None);
        is_by_model(&mut client, saved.session.header.id);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn what_no_second_try_can_help_is_tried_once() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().set_fallback(Response::error(
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#,
    ));
    let saved = save(&mut client, None);
    assert_eq!(ready(&mut client, saved.session.header.id)["source"], "extractive");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_model_that_takes_less_is_asked_about_less() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    for _ in 0..20 {
        chorus_tests::client_ext::ClientExt::append(
            &mut client,
            "a",
            &"Another thousand words about rows. ".repeat(100),
        );
    }
    let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
    server.anthropic().queue(Response::error(400, long));
    server.anthropic().queue_text([answer()]);
    let saved = save(&mut client, None);
    is_by_model(&mut client, saved.session.header.id);
    let sizes: Vec<usize> = server.requests().iter().map(|request| request.text.len()).collect();
    assert!(sizes[0] < 64 << 10 && sizes[1] * 2 < sizes[0], "{sizes:?}");
}

#[test]
fn markers_and_control_characters_are_not_kept() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    let dressed = format!("<think>Hm.</think>```\n## {TITLE}\n\n\u{1b}[31m**{SUMMARY}**\u{202e}<|im_end|>\n```");
    server.anthropic().queue_text([dressed]);
    let saved = save(&mut client, None);
    is_by_model(&mut client, saved.session.header.id);
}

#[test]
fn at_most_a_thousand_characters_are_kept() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    chorus_tests::client_ext::ClientExt::append(&mut client, "a", &"Much more was said. ".repeat(200));
    server.anthropic().queue_text([format!("{TITLE}\n\n{}", "The rows were kept. ".repeat(80))]);
    let saved = save(&mut client, None);
    assert_eq!(ready(&mut client, saved.session.header.id)["source"], "llm");
    let summary = now(&mut client, saved.session.header.id).0.header.summary.expect("a summary");
    assert!(summary.chars().count() <= 1000 && summary.ends_with("kept."), "{summary}");
}

#[test]
fn without_a_model_and_with_next_to_nothing_said_none_is_asked() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = chorus_tests::Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    use chorus_tests::client_ext::ClientExt as _;
    client.init("a");
    client.append("a", "Hello!");
    let saved = save(&mut client, None);
    assert!(!saved.summary_pending);
    assert_eq!(ready(&mut client, saved.session.header.id)["source"], "extractive");
    assert!(server.requests().is_empty());
}
