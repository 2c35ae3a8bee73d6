//! Tests of messages that were typed while the program worked. The lines have the shapes that public readers of such
//! files describe: a queue of `enqueue`, `dequeue`, `remove` and `popAll` (anthropics/claude-code issues 86614 and
//! 88357), the reason `absorbed_mid_turn` from version 2.1.246 on, and `attachment` lines of the kind `queued_command`
//! whose prompt is a text or, with images, a list of blocks (kenn-io/agentsview pull request 406).

use super::{ImportedSession, answer, call, line, main_of, now, part, read};

fn queue(operation: &str, content: Option<&str>, more: &str) -> String {
    let content = content.map(|text| format!(r#""content":{text:?},"#)).unwrap_or_default();
    format!(
        r#"{{"type":"queue-operation","operation":"{operation}",{content}{more}"timestamp":"2026-01-01T00:00:00Z","sessionId":"s"}}"#
    )
}

fn enqueue(text: &str) -> String {
    queue("enqueue", Some(text), "")
}

fn attached(uuid: &str, parent: &str, prompt: &str) -> String {
    let place = if uuid.is_empty() { String::new() } else { format!(r#""uuid":"{uuid}","parentUuid":"{parent}","#) };
    format!(
        r#"{{"type":"attachment",{place}"isSidechain":false,"attachment":{{"type":"queued_command","prompt":{prompt},"commandMode":"prompt"}},"timestamp":"2026-01-01T00:00:00Z","sessionId":"s"}}"#
    )
}

/// A turn that calls a tool and answers, with `before` in front of the tool result and `after` behind it.
fn turn(before: &[String], after: &[String], on: &str) -> Vec<String> {
    let mut lines = vec![line("user", "a", "", r#""q""#), part("b", "a", "m", &call("1"))];
    lines.extend_from_slice(before);
    lines.push(answer("r", "b", "1"));
    lines.extend_from_slice(after);
    lines.push(part("c", on, "n", r#"{"type":"text","text":"done"}"#));
    lines
}

const TURN: [&str; 5] = ["user: q", "assistant: ", "tool_result: out 1", "user: typed", "assistant: done"];

#[test]
fn a_message_that_a_running_turn_took_up_stands_where_the_model_got_it() {
    let absorbed = r#""reason":"absorbed_mid_turn","#;
    let remove = |more: &str| queue("remove", Some("typed"), more);
    let nameless = queue("remove", None, "");
    let hung = attached("t", "r", r#""typed""#);
    let loose = attached("", "", r#""typed""#);
    for (before, after, on) in [
        // Only the queue: with the reason, without it, without the text, never taken out.
        (vec![enqueue("typed")], vec![remove(absorbed)], "r"),
        (vec![enqueue("typed")], vec![remove("")], "r"),
        (vec![enqueue("typed")], vec![nameless.clone()], "r"),
        (vec![enqueue("typed")], vec![], "r"),
        // Taken out and never seen again.
        (vec![enqueue("typed")], vec![queue("dequeue", None, "")], "r"),
        // Only the attachment: in the tree, as a sibling, and off the path to the leaf.
        (vec![], vec![hung.clone()], "t"),
        (vec![], vec![hung.clone()], "r"),
        (vec![], vec![loose.clone()], "r"),
        // Both, in every order.
        (vec![enqueue("typed")], vec![hung.clone(), remove(absorbed)], "t"),
        (vec![enqueue("typed")], vec![remove(absorbed), hung.clone()], "t"),
        (vec![enqueue("typed")], vec![remove(""), hung.clone()], "t"),
        (vec![enqueue("typed")], vec![nameless, loose.clone()], "r"),
        (vec![enqueue("typed"), queue("dequeue", None, "")], vec![loose], "r"),
    ] {
        let lines = turn(&before, &after, on);
        assert_eq!(main_of(&lines).role_texts(), TURN, "{lines:#?}");
    }
}

#[test]
fn a_message_that_was_sent_as_an_ordinary_one_comes_in_once() {
    let dequeue = queue("dequeue", None, "");
    let next = |content: &str| line("user", "d", "c", content);
    let talk_of = |before: &[String], behind: &[String]| {
        let mut lines = turn(before, &[], "r");
        lines.extend_from_slice(behind);
        main_of(&lines).role_texts()
    };
    let due = ["user: q", "assistant: ", "tool_result: out 1", "assistant: done", "user: typed"];
    for behind in [
        vec![dequeue.clone(), next(r#""typed""#)],
        vec![dequeue.clone(), next(r#"[{"type":"text","text":"typed"}]"#)],
        vec![next(r#""typed""#), dequeue.clone()],
        // Taken back and sent unchanged.
        vec![queue("popAll", Some("typed"), ""), next(r#""typed""#)],
    ] {
        assert_eq!(talk_of(&[enqueue("typed")], &behind), due, "{behind:#?}");
    }
    // Given to the model as an attachment, and then as a line, too.
    let twice = [turn(&[], &[attached("t", "r", r#""typed""#)], "t"), vec![next(r#""typed""#)]].concat();
    assert_eq!(main_of(&twice).role_texts(), due);
    // Several messages at once become one line.
    let both = talk_of(&[enqueue("one"), enqueue("two\nlines")], &[dequeue.clone(), next(r#""one\ntwo\nlines""#)]);
    assert_eq!(both[4..], ["user: one\ntwo\nlines"]);
    // A command has another form.
    let command = r#""<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>""#;
    assert_eq!(talk_of(&[enqueue("/review 12")], &[dequeue, next(command)]).len(), 5);
}

#[test]
fn the_same_words_said_again_are_another_message() {
    let absorbed = queue("remove", Some("go on"), r#""reason":"absorbed_mid_turn","#);
    let lines = [
        turn(&[enqueue("go on")], &[attached("t", "r", r#""go on""#), absorbed], "t"),
        vec![
            line("user", "d", "c", r#""go on""#),
            line("assistant", "e", "d", r#""went on""#),
            enqueue("go on"),
            queue("dequeue", None, ""),
            line("user", "f", "e", r#""go on""#),
        ],
    ]
    .concat();
    let said = main_of(&lines).role_texts();
    assert_eq!(
        said[3..],
        ["user: go on", "assistant: done", "user: go on", "assistant: went on", "user: go on"],
        "each once"
    );
}

#[test]
fn pictures_of_such_a_message_stay_with_it() {
    let prompt = r#"[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]"#;
    let lines = turn(&[enqueue("look")], &[attached("t", "r", prompt), queue("remove", None, "")], "t");
    let ImportedSession { messages, .. } = main_of(&lines);
    assert_eq!((messages[3].id.as_str(), messages[3].content.as_str()), ("t", "look"));
    assert_eq!(messages[3].attachments[0].data.as_deref(), Some("aGk="));
    assert_eq!(messages[3].timestamp.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(messages.len(), 5);
}

#[test]
fn what_was_taken_back_is_told_and_an_abandoned_branch_keeps_its_own() {
    let back = [turn(&[enqueue("typed")], &[queue("popAll", Some("typed"), "")], "r")].concat();
    let memory = read(&back);
    assert_eq!(memory.sessions[0].messages.len(), 4);
    assert_eq!(memory.skipped, [(3, "removed before it was sent".into())]);

    let memory = read(&[
        line("user", "a", "", r#""q""#),
        line("assistant", "b", "a", r#""first""#),
        attached("t", "b", r#""to the first""#),
        line("assistant", "c", "a", r#""second""#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: second"]);
    let lines: Vec<_> = memory.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn other_attachments_and_operations_are_bookkeeping() {
    let found = main_of(&[
        line("user", "a", "", r#""q""#),
        r#"{"type":"attachment","uuid":"t","parentUuid":"a","attachment":{"type":"todo_reminder","content":[]}}"#
            .into(),
        queue("enqueue", None, ""),
        queue("paint", Some("x"), ""),
        line("assistant", "b", "t", r#""r""#),
    ]);
    assert_eq!(found.role_texts(), ["user: q", "assistant: r"]);
}

#[test]
fn a_file_with_nothing_but_waiting_messages_is_a_conversation() {
    assert_eq!(main_of(&[enqueue("one"), enqueue("two")]).role_texts(), ["user: one", "user: two"]);
}

#[test]
fn a_message_that_will_be_sent_soon_comes_in_when_it_was() {
    let recent = |operation: &str, content: Option<&str>| {
        queue(operation, content, "").replace("2026-01-01T00:00:00Z", &now().to_string())
    };
    let (typed, taken) = (recent("enqueue", Some("typed")), recent("dequeue", None));
    let sent = line("user", "d", "c", r#""typed""#);
    for (before, skipped) in
        [(vec![typed.clone()], 1), (vec![typed.clone(), taken.clone()], 1), (vec![enqueue("typed")], 0)]
    {
        let mut lines = turn(&before, &[], "r");
        let memory = read(&lines);
        assert_eq!((memory.sessions[0].messages.len(), memory.skipped.len()), (5 - skipped, skipped), "{before:#?}");
        lines.extend([taken.clone(), sent.clone()]);
        assert_eq!(main_of(&lines).role_texts()[3..], ["assistant: done", "user: typed"]);
    }
    // A turn that took it up has it.
    let absorbed = queue("remove", Some("typed"), r#""reason":"absorbed_mid_turn","#);
    assert_eq!(main_of(&turn(std::slice::from_ref(&typed), &[absorbed], "r")).role_texts(), TURN);
    assert_eq!(main_of(&turn(&[typed], &[attached("t", "r", r#""typed""#)], "t")).role_texts(), TURN);
}

/// Each message is searched by its text among those with the same text.
#[test]
fn many_messages_of_one_text_are_read_like_any_other() {
    let many = 20_000;
    let mut lines = vec![line("user", "a", "", r#""q""#)];
    lines
        .extend((0..many).flat_map(|_| [enqueue("x"), queue("remove", Some("x"), r#""reason":"absorbed_mid_turn","#)]));
    assert_eq!(main_of(&lines).messages.len(), many + 1);
}
