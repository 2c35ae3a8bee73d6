//! Messages are found by what they mean, with a small model in the daemon or one of a provider.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_embeddings::{LocalModel, TextUse};
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::search::{
    EmbeddingModel, EmbeddingSource, Model, ModelParams, SearchHit, SearchMode, SearchParams,
};
use chorus_proto::methods::session::{Purge, PurgeParams};
use chorus_proto::methods::usage::{Show, UsageParams};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::ModelServer;
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, Home, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;

use super::{query, search, wait_until_complete};
use crate::home;

fn model_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../chorusd/crates/embeddings/tests/model")
}

fn choose(client: &mut Client, params: &ModelParams) -> Option<EmbeddingModel> {
    client.call::<Model>(params).expect("search.model").model
}

fn choose_local(client: &mut Client) -> EmbeddingModel {
    let from = Some(model_dir().to_string_lossy().into_owned());
    choose(client, &ModelParams { from, ..Default::default() }).expect("a model")
}

/// Waits until every indexed message has a vector.
fn wait_for_vectors(client: &mut Client) -> EmbeddingModel {
    wait_until_complete(client);
    wait_until("the vectors", DEADLINE * 2, || {
        let status = client.call::<Status>(&StatusParams::default()).expect("status");
        status.search_model.filter(|model| model.complete)
    })
}

fn find(client: &mut Client, mode: Option<SearchMode>, text: &str) -> Vec<SearchHit> {
    search(client, &SearchParams { mode, ..query(text) }).hits
}

/// Waits until a search by meaning finds a text first.
fn wait_for_first(client: &mut Client, text: &str, first: &str) {
    wait_until(first, DEADLINE, || {
        let hits = find(client, Some(SearchMode::Semantic), text);
        hits.first().filter(|hit| hit.snippet.contains(first)).map(drop)
    });
}

/// Returns the bytes of all files with vectors.
fn vector_files(home: &Home) -> Vec<u8> {
    let files = fs::read_dir(home.path.join("embeddings")).expect("a directory").flatten();
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("vectors-"));
    files.flat_map(|file| fs::read(file.path()).unwrap_or_default()).collect()
}

#[test]
fn other_words_with_the_same_meaning_are_found() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for (agent, text) in [("api", "my automobile is fast"), ("web", "dinner was late")] {
        client.init(agent);
        client.append(agent, text);
        client.save(agent, "one");
    }
    wait_until_complete(&mut client);
    assert!(find(&mut client, None, "quick car").is_empty());
    let refused = client.call::<chorus_proto::methods::search::Search>(&SearchParams {
        mode: Some(SearchMode::Semantic),
        ..query("quick car")
    });
    let Err(chorus_proto::CallError::Rpc(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.kind(), ErrorKind::InvalidConfig);

    let model = choose_local(&mut client);
    assert_eq!((model.name.as_str(), model.source, model.dimensions), ("model", EmbeddingSource::Local, 32));
    wait_for_vectors(&mut client);
    let found = search(&mut client, &query("quick car"));
    assert_eq!((found.mode, found.warnings.len()), (Some(SearchMode::Hybrid), 0));
    assert!(found.hits[0].snippet.contains("automobile"), "{:?}", found.hits);
    assert!(find(&mut client, Some(SearchMode::Text), "quick car").is_empty());
    // In live conversations, too.
    client.init("ops");
    client.append("ops", "there was rain on the highway");
    wait_for_first(&mut client, "storm in the street", "rain");

    // It is there after a start, and nothing is made again. A copy that a crash cut off goes.
    drop((daemon, client));
    let cut_off = home.path.join("embeddings/models/.new-1");
    fs::create_dir(&cut_off).expect("a directory");
    fs::write(cut_off.join("model.onnx"), "the begin").expect("a file");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_for_vectors(&mut client);
    let found = search(&mut client, &query("quick car"));
    assert!(found.hits[0].snippet.contains("automobile"), "{found:?}");
    assert!(!vector_files(&home).is_empty());
    assert!(!cut_off.exists());

    assert_eq!(choose(&mut client, &ModelParams { remove: true, ..Default::default() }), None);
    assert!(find(&mut client, None, "quick car").is_empty());
    let dir = home.path.join("embeddings");
    wait_until("the vectors gone", DEADLINE, || {
        let left = fs::read_dir(dir.join("models")).expect("a directory").count();
        (vector_files(&home).is_empty() && left == 0).then_some(())
    });
}

#[test]
fn a_model_that_nobody_uses_is_unloaded() {
    let home = home();
    home.create();
    let clock = ManualClock::new(Timestamp::now());
    let daemon = InProcessDaemon::start(&home, &clock);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "my automobile is fast");
    choose_local(&mut client);
    wait_for_vectors(&mut client);
    let models = home.path.join("embeddings/models");
    let dir = fs::read_dir(models).expect("a directory").flatten().next().expect("a model").path();
    let (here, away) = (dir.join("model.onnx"), dir.join("away"));
    fs::rename(&here, &away).expect("it is moved");
    clock.advance(Duration::from_secs(9 * 60));
    wait_for_first(&mut client, "quick car", "automobile");

    // Unloaded, it is not found.
    let mut polls = 0;
    let warnings = wait_until("the model unloaded", DEADLINE, || {
        // Between the two the daemon has time to unload it, which a search puts off.
        polls += 1;
        if polls % 2 == 1 {
            clock.advance(Duration::from_secs(10 * 60));
            return None;
        }
        Some(search(&mut client, &query("quick car")).warnings).filter(|warnings| !warnings.is_empty())
    });
    assert!(format!("{warnings:?}").contains("model.onnx"), "{warnings:?}");
    fs::rename(&away, &here).expect("it is moved back");
    wait_for_first(&mut client, "quick car", "automobile");
}

#[test]
fn the_command_line_chooses_a_model_and_searches_with_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the automobile needs gasoline");
    client.append("api", "this model loads slowly");
    wait_until_complete(&mut client);
    let run = |args: &[&str]| chorus_tests::ctl::chorusctl(&home, args.iter().copied());
    let stdout = |args: &[&str]| run(args).expect_success();
    assert!(stdout(&["search", "model"]).starts_with("no model: "));
    // More words are a query.
    assert!(stdout(&["search", "model", "slowly"]).contains("this model loads slowly"));
    let dir = model_dir();
    let dir = dir.to_str().expect("UTF-8");
    assert!(stdout(&["search", "model", "--from", dir]).starts_with("model in the daemon, 32 dimensions: "));
    wait_for_vectors(&mut client);
    assert_eq!(stdout(&["search", "model"]), "model in the daemon, 32 dimensions: all messages are prepared\n");
    assert!(stdout(&["search", "car"]).contains("automobile"));
    assert!(stdout(&["search", "car", "--explain"]).contains("meaning "));
    let found = run(&["search", "car", "--mode", "text"]);
    assert!(found.stdout.is_empty() && found.stderr.contains("no matches"), "{found:?}");
    let refused = run(&["search", "model", "--from", "/nowhere"]);
    assert!(refused.stderr.contains("cannot use /nowhere") && refused.stderr.contains("model.onnx"), "{refused:?}");
    assert!(stdout(&["search", "model", "--remove"]).starts_with("no model: "));
    let refused = run(&["search", "car", "--mode", "semantic"]);
    assert!(refused.stderr.contains("chorusctl search model --from DIR"), "{refused:?}");
}

#[test]
fn what_is_purged_leaves_no_vector() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    let secret = "the doctor has the password of the database";
    client.append("api", secret);
    let session = client.save("api", "a secret");
    client.call::<Clear>(&ClearParams { agent: Some("api".into()), ..Default::default() }).expect("cleared");
    client.append("api", "the evening was fine");
    choose_local(&mut client);
    wait_for_vectors(&mut client);
    // As it is stored: a byte for each dimension.
    let vector = LocalModel::open(&model_dir()).expect("a model").embed(&[secret], TextUse::Passage).expect("a vector");
    let most = vector[0].iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let bytes: Vec<u8> = vector[0].iter().map(|value| ((value / most * 127.0).round() as i8).cast_unsigned()).collect();
    // Beside other texts, a model rounds a little differently.
    let is_near = |(a, b): (&u8, &u8)| a.cast_signed().abs_diff(b.cast_signed()) <= 2;
    let is_there = || vector_files(&home).windows(bytes.len()).any(|window| window.iter().zip(&bytes).all(is_near));
    assert!(is_there(), "nothing to lose");
    let params =
        PurgeParams { agent: Some("api".into()), session: session.header.session_id.clone(), ..Default::default() };
    client.call::<Purge>(&params).expect("purged");
    wait_until("the vector gone", DEADLINE, || (!is_there()).then_some(()));
    assert!(!find(&mut client, Some(SearchMode::Semantic), "night").is_empty());
}

#[test]
fn a_provider_makes_the_vectors_and_the_former_ones_are_used_until_they_are_complete() {
    let (home, server) = (home(), ModelServer::start());
    let prices = "[prices.\"local/small\"]\ninput = 10.0\noutput = 0.0\n";
    let daemon = Daemon::start_with(&home, &format!("{}\n{prices}", server.config_toml()));
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the automobile needs gasoline");
    let use_ = |name: &str| ModelParams { use_: Some(name.into()), ..Default::default() };
    let refused = client.call::<Model>(&use_("local/small"));
    let Err(chorus_proto::CallError::Rpc(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.kind(), ErrorKind::ModelUnavailable);
    choose_local(&mut client);
    wait_for_vectors(&mut client);

    let model = LocalModel::open(&model_dir()).expect("a model");
    let (open, gate) = std::sync::mpsc::sync_channel::<()>(1);
    let gate = std::sync::Mutex::new(gate);
    server.on_embedding(move |text| {
        // Only the message itself waits.
        if text.contains("gasoline") {
            let _ = gate.lock().map(|gate| gate.recv());
        }
        let mut vector = model.embed(&[text], TextUse::Passage).expect("a vector").remove(0);
        vector.extend([0.5; 32]);
        vector.iter().map(|value| value * 3.0).collect()
    });
    let chosen = choose(&mut client, &use_("local/small")).expect("a model");
    let expected = ("local/small", EmbeddingSource::Provider, 64, Some("model"));
    assert_eq!((chosen.name.as_str(), chosen.source, chosen.dimensions, chosen.replaces.as_deref()), expected);
    // By the vectors of before.
    assert!(find(&mut client, Some(SearchMode::Semantic), "car")[0].snippet.contains("automobile"));
    drop(open);
    let model = wait_for_vectors(&mut client);
    assert_eq!((model.name.as_str(), model.replaces), ("local/small", None));
    assert!(find(&mut client, Some(SearchMode::Semantic), "car")[0].snippet.contains("automobile"));
    // What it made is counted, for no agent: the probe, the message and the query at least, of 8 tokens each.
    let counted = client.call::<Show>(&UsageParams::default()).expect("usage").days;
    assert_eq!((counted.len(), &*counted[0].agent, &*counted[0].model), (1, "", "local/small"));
    let sums = counted[0].sums;
    assert!(sums.calls >= 3 && sums.input_tokens == 8 * sums.calls && sums.output_tokens == 0, "{sums:?}");
    let cost = sums.cost_usd.expect("a price");
    assert!((cost - sums.input_tokens as f64 * 10.0 / 1e6).abs() < 1e-9 && sums.estimated_calls == 0, "{sums:?}");
    let printed = chorus_tests::ctl::chorusctl(&home, ["usage"]).expect_success();
    assert!(printed.lines().nth(1).is_some_and(|row| row.contains(" (search) ")), "{printed}");
    // Words are found without it.
    server.end_embedding();
    let found = search(&mut client, &SearchParams { mode: Some(SearchMode::Hybrid), ..query("gasoline") });
    assert!(found.hits.len() == 1 && found.warnings[0].starts_with("only words were searched for"), "{found:?}");
}

#[test]
fn a_rebuilt_index_needs_no_new_vectors() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "my automobile is fast");
    let model = LocalModel::open(&model_dir()).expect("a model");
    let texts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let asked = texts.clone();
    server.on_embedding(move |text| {
        asked.lock().expect("the texts").push(text.to_owned());
        model.embed(&[text], TextUse::Passage).expect("a vector").remove(0)
    });
    choose(&mut client, &ModelParams { use_: Some("local/small".into()), ..Default::default() });
    wait_for_vectors(&mut client);
    drop((daemon, client));
    fs::remove_dir_all(home.path.join("index")).expect("removed");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("api", "dinner was late");
    wait_for_first(&mut client, "food", "dinner");
    assert!(find(&mut client, Some(SearchMode::Semantic), "quick car")[0].snippet.contains("automobile"));
    let texts = texts.lock().expect("the texts");
    assert_eq!(texts.iter().filter(|text| text.contains("automobile")).count(), 1, "{texts:?}");
}

#[test]
fn a_text_that_the_model_refuses_keeps_no_other_from_its_vector() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("api");
    for text in ["my automobile is fast", "a text that is refused", "dinner was late"] {
        client.append("api", text);
    }
    let model = LocalModel::open(&model_dir()).expect("a model");
    server.on_embedding(move |text| match text.contains("refused") {
        // A vector without numbers, which no client takes.
        true => Vec::new(),
        false => model.embed(&[text], TextUse::Passage).expect("a vector").remove(0),
    });
    choose(&mut client, &ModelParams { use_: Some("local/small".into()), ..Default::default() });
    assert_eq!(wait_for_vectors(&mut client).problem, None);
    wait_for_first(&mut client, "food", "dinner");
    assert_eq!(find(&mut client, Some(SearchMode::Text), "refused").len(), 1);
}

#[test]
fn a_choice_that_cannot_be_read_deletes_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "my automobile is fast");
    choose_local(&mut client);
    wait_for_vectors(&mut client);
    drop((daemon, client));
    let file = home.path.join("embeddings/model.json");
    let choice = fs::read(&file).expect("the choice");
    fs::write(&file, "{").expect("a file");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("api", "dinner was late");
    wait_until_complete(&mut client);
    // It is told wherever somebody looks.
    let run = |args: &[&str]| chorus_tests::ctl::chorusctl(&home, args.iter().copied());
    let told = "cannot read embeddings/model.json: EOF";
    let shown = run(&["search", "model"]);
    assert!(
        shown.stdout.starts_with(&format!("not working: {told}")) && shown.stdout.lines().count() == 1,
        "{shown:?}"
    );
    assert!(shown.stderr.starts_with("hint: choose the model again: `chorusctl search model --from DIR`"), "{shown:?}");
    let checked = run(&["doctor"]);
    assert!(checked.stdout.contains("search model") && checked.stdout.contains(told), "{checked:?}");
    let found = search(&mut client, &query("dinner"));
    assert!(found.hits.len() == 1 && found.warnings[0].contains(told), "{found:?}");
    assert!(search(&mut client, &SearchParams { mode: Some(SearchMode::Text), ..query("dinner") }).warnings.is_empty());
    drop((daemon, client));
    assert!(!vector_files(&home).is_empty());
    fs::write(&file, choice).expect("a file");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_for_vectors(&mut client);
    wait_for_first(&mut client, "quick car", "automobile");
}

#[test]
fn a_directory_without_a_model_is_refused_and_changes_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let empty = tempfile::tempdir().expect("a directory");
    let not_found = ErrorKind::NotFound;
    let empty = empty.path().to_string_lossy().into_owned();
    for (from, kind) in
        [(empty, not_found), ("/nowhere".into(), not_found), ("relative".into(), ErrorKind::InvalidParams)]
    {
        let refused = client.call::<Model>(&ModelParams { from: Some(from), ..Default::default() });
        let Err(chorus_proto::CallError::Rpc(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.kind(), kind);
    }
    let both = ModelParams { remove: true, use_: Some("x/y".into()), ..Default::default() };
    assert!(client.call::<Model>(&both).is_err());
    assert_eq!(choose(&mut client, &ModelParams::default()), None);
    // What is left of a model that was taken away.
    choose_local(&mut client);
    wait_for_vectors(&mut client);
    drop(daemon);
    fs::remove_dir_all(home.path.join("embeddings/models")).expect("removed");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "marmalade");
    wait_until("the problem", DEADLINE, || {
        choose(&mut client, &ModelParams::default()).and_then(|model| model.problem)
    });
    wait_until_complete(&mut client);
    let found = search(&mut client, &query("marmalade"));
    assert!(found.hits.len() == 1 && found.warnings.len() == 1, "{found:?}");
}
