//! Turns of eight conversations that work in one workspace at once.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::{results, start_fixture, text};

const OTHERS: [&str; 7] = ["b", "c", "d", "e", "f", "g", "h"];
/// Lines that each conversation adds to each file: as many as fit into 50 calls if all others come first each time.
const LINES: usize = 2;

/// A tool call that a model made, and its result.
struct Call<'a> {
    tool: &'a str,
    result: &'a str,
    is_error: bool,
}

fn blocks(body: &Value) -> impl Iterator<Item = &Value> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.flat_map(|message| message["content"].as_array().into_iter().flatten())
}

fn calls(body: &Value) -> Vec<Call<'_>> {
    let made = blocks(body).filter(|block| block["type"] == "tool_use");
    let of = |call: &Value| blocks(body).find(|block| block["tool_use_id"] == call["id"]).expect("a result");
    let to_call = |call| {
        let result = of(call);
        let text = result["content"].as_str().or(result["content"][0]["text"].as_str());
        Call {
            tool: call["name"].as_str().expect("a name"),
            result: text.expect("a text"),
            is_error: result["is_error"] == true,
        }
    };
    made.map(to_call).collect()
}

/// What a model has done in a turn. The requests of a long turn do not contain all of its calls.
#[derive(Default)]
struct Progress {
    calls: usize,
    lines: usize,
}

/// Acts as a model that adds lines to the files `g`, by a command, and `f`: it views that and replaces it by what it saw and
/// one line more. If that is refused, it views it again.
fn answer(body: &Value, progress: &mut HashMap<String, Progress>) -> Response {
    let asked = blocks(body).find_map(|block| block["text"].as_str()).expect("a text");
    let name = asked.rsplit(' ').next().expect("a name");
    let Progress { calls: made, lines } = progress.entry(name.to_owned()).or_default();
    let calls = calls(body);
    let last = calls.last();
    if let Some(Call { tool: "create_file", is_error: false, .. }) = last {
        *lines += 1;
    }
    let (id, line) = (format!("{name}{made}"), format!("{name} {lines}"));
    *made += 1;
    match last {
        _ if *lines == LINES => Response::text(["Done."]),
        Some(Call { tool: "view" | "bash", is_error: true, result }) => Response::text([*result]),
        Some(Call { tool: "view", result, .. }) => {
            let seen: String =
                result.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned() + "\n")).collect();
            Response::tool_call(&id, "create_file", &json!({"path": "f", "content": seen + &line + "\n"}))
        }
        Some(Call { tool: "bash", .. } | Call { tool: "create_file", is_error: true, .. }) => {
            Response::tool_call(&id, "view", &json!({"path": "f"}))
        }
        _ => Response::tool_call(&id, "bash", &json!({"command": format!("echo {line} >> g")})),
    }
}

#[test]
fn eight_at_once_lose_nothing_and_overwrite_nothing_unseen() {
    let fixture = start_fixture(&OTHERS);
    let config = ConfigParams { name: "a".into(), key: Some("concurrent_turns".into()), value: Some("8".into()) };
    fixture.client().call::<Config>(&config).expect("agent.config");
    std::fs::write(fixture.workspace("a").join("f"), "start\n").expect("a file");
    let progress = Mutex::new(HashMap::new());
    fixture.models().on_turn_request(move |body| answer(body, &mut progress.lock().expect("no panic")));
    let names: Vec<&str> = OTHERS.into_iter().chain(["main"]).collect();
    thread::scope(|scope| {
        for name in &names {
            let mut client = fixture.client();
            scope.spawn(move || {
                let conversation = Some((*name).to_owned());
                let text = format!("You are {name}");
                let params = SendParams { agent: Some("a".into()), conversation, text, ..Default::default() };
                assert_eq!(client.call::<Send>(&params).expect("a turn").reply, "Done.");
            });
        }
    });
    let mut due: Vec<String> =
        names.iter().flat_map(|name| (0..LINES).map(move |line| format!("{name} {line}"))).collect();
    due.sort_unstable();
    let lines_of = |file: &str| {
        let mut lines: Vec<String> = text(&fixture, file).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lines_of("g"), due);
    due.push("start".into());
    due.sort_unstable();
    assert_eq!(lines_of("f"), due);
    // Each has what it did, and nothing of the others.
    let mut refused = 0;
    for name in &names {
        let mut client = fixture.client();
        let said = client.messages_in("a", name);
        assert_eq!(said.first().map(|message| &*message.content), Some(&*format!("You are {name}")));
        let failed: Vec<_> = results(&mut client, name).into_iter().filter(|result| result.is_error).collect();
        assert!(failed.iter().all(|result| result.text.starts_with("edited meanwhile by ")), "{failed:?}");
        refused += failed.len();
    }
    assert!(refused > 0, "they did not work at once");
}

/// P8: a server that refuses what the real ones refuse is asked after calls of several conversations were cut at once.
#[test]
fn after_a_kill_in_the_middle_of_calls_every_conversation_goes_on_with_legal_requests() {
    let fixture = start_fixture(&OTHERS);
    fixture.models().enable_strict_mode();
    let names: Vec<&str> = OTHERS.into_iter().chain(["main"]).collect();
    let asks =
        |body: &Value| blocks(body).filter_map(|block| block["text"].as_str()).map(str::to_owned).collect::<String>();
    fixture.models().on_turn_request(move |body| {
        let (said, count) = (asks(body), calls(body).len());
        let name = said.rsplit(' ').next().unwrap_or_default().to_owned();
        match said.contains("again") {
            true => Response::text(["Still here."]),
            // One call is over when the other is cut.
            false if count == 0 => Response::tool_call("c0", "bash", &json!({"command": "echo first"})),
            false => Response::tool_call("c1", "bash", &json!({"command": format!("touch at-{name}; sleep 600")})),
        }
    });
    let limit = ConfigParams { name: "a".into(), key: Some("concurrent_turns".into()), value: Some("8".into()) };
    fixture.client().call::<Config>(&limit).expect("agent.config");
    let ask = |text: String, name: &str| {
        let conversation = Some(name.to_owned());
        SendParams { agent: Some("a".into()), conversation, text, ..Default::default() }
    };
    let cut: Vec<_> = names
        .iter()
        .map(|name| {
            let (mut client, params) = (fixture.client(), ask(format!("You are {name}"), name));
            thread::spawn(move || client.call::<Send>(&params).map(drop))
        })
        .collect();
    wait_until("the commands", DEADLINE, || {
        let runs = |name: &&&str| fixture.workspace("a").join(format!("at-{name}")).exists();
        (names.iter().filter(runs).count() == names.len()).then_some(())
    });
    let fixture = fixture.crash();
    for turn in cut {
        turn.join().expect("the client").expect_err("it was cut");
    }
    for name in &names {
        let mut client = fixture.client();
        let told = client.call::<Send>(&ask("And again?".into(), name)).expect("a turn");
        assert_eq!(told.reply, "Still here.", "{name}");
        let results = results(&mut client, name);
        assert_eq!((results.len(), results[0].text.contains("first")), (2, true), "{name}: {results:?}");
        assert!(results[1].is_error, "{name}: {results:?}");
    }
}
