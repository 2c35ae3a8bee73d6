//! A model gives the vectors that its arithmetic says, and files that are none are refused.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_embeddings::{EmbeddingError, LocalModel, TextUse, VectorStore, install};
use serde::Deserialize;
use tempfile::TempDir;

/// A text, and its vector as `model/make.py` computes it.
#[derive(Deserialize)]
struct Expected {
    text: String,
    vector: Vec<f32>,
}

fn model_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_are_those_of_another_implementation() {
    let model = LocalModel::open(&model_dir()).expect("a model");
    assert_eq!(model.dimensions(), 32);
    let expected = fs::read(model_dir().join("expected.json")).expect("a file");
    let expected: Vec<Expected> = serde_json::from_slice(&expected).expect("JSON");
    let texts: Vec<&str> = expected.iter().map(|one| one.text.as_str()).collect();
    // All at once, so that short ones are padded; and each alone.
    let together = model.embed(&texts, TextUse::Passage).expect("vectors");
    for (one, vector) in expected.iter().zip(&together) {
        let alone = model.embed(&[&one.text], TextUse::Query).expect("a vector").remove(0);
        for vector in [vector, &alone] {
            let most = vector.iter().zip(&one.vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(most < 1e-5, "{:?} differs by {most}", one.text);
        }
    }
}

#[test]
fn no_text_is_too_long_or_too_odd() {
    let model = LocalModel::open(&model_dir()).expect("a model");
    let texts =
        ["x".repeat(1 << 20), "\0\u{feff}\u{202e}".into(), "🦀".repeat(5000), " ".repeat(100_000), "é".repeat(9999)];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for vector in model.embed(&texts, TextUse::Passage).expect("vectors") {
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-4);
    }
    assert!(model.embed(&[], TextUse::Passage).expect("none").is_empty());
}

#[test]
fn a_model_is_copied_once_and_what_is_none_leaves_nothing() {
    let home = TempDir::new().expect("a directory");
    let models = home.path().join("models");
    let installed = install(&model_dir(), &models).expect("a model");
    let again = install(&model_dir(), &models).expect("the same");
    assert_eq!((&installed.id, &installed.dir), (&again.id, &again.dir));
    assert_eq!(LocalModel::open(&installed.dir).expect("a model").dimensions(), 32);
    let names = || fs::read_dir(&models).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    assert_eq!(names().count(), 1);

    let broken = home.path().join("broken");
    fs::create_dir(&broken).expect("a directory");
    let why = |file: &str| match install(&broken, &models) {
        Err(EmbeddingError::Model { file: named, why }) if named == file => why,
        other => panic!("{other:?}"),
    };
    why("model.onnx");
    fs::write(broken.join("model.safetensors"), "").expect("a file");
    assert!(why("model.safetensors").contains("ONNX"));
    for bytes in [&b"not a model"[..], b"", &fs::read(model_dir().join("model.onnx")).expect("a file")[..5000]] {
        fs::write(broken.join("model.onnx"), bytes).expect("a file");
        fs::copy(model_dir().join("tokenizer.json"), broken.join("tokenizer.json")).expect("a file");
        why("model.onnx");
    }
    fs::copy(model_dir().join("model.onnx"), broken.join("model.onnx")).expect("a file");
    fs::write(broken.join("tokenizer.json"), "{").expect("a file");
    why("tokenizer.json");
    fs::copy(model_dir().join("tokenizer.json"), broken.join("tokenizer.json")).expect("a file");
    fs::write(broken.join("sentence_bert_config.json"), "[").expect("a file");
    why("sentence_bert_config.json");
    fs::remove_file(broken.join("sentence_bert_config.json")).expect("it is removed");
    fs::copy(model_dir().join("tokenizer.json"), broken.join("tokenizer.json")).expect("a file");
    // A layer that the model file does not have.
    let layers = fs::read_to_string(model_dir().join("modules.json")).expect("a file");
    let dense = layers.replace("models.Normalize", "models.Dense");
    assert_ne!(layers, dense);
    fs::write(broken.join("modules.json"), dense).expect("a file");
    assert!(why("modules.json").contains("Dense"));
    fs::write(broken.join("modules.json"), "{}").expect("a file");
    why("modules.json");
    assert_eq!(names().count(), 1, "nothing of it is left");
}

#[test]
fn what_means_the_same_is_close() {
    let home = TempDir::new().expect("a directory");
    let model = LocalModel::open(&model_dir()).expect("a model");
    let path = home.path().join("vectors.db");
    let store = VectorStore::open(&path, model.dimensions()).expect("a store");
    assert!(store.is_empty());
    let texts = ["the automobile is huge", "my dinner was small", "the physician is ill", "a voyage on the vessel"];
    let vectors = model.embed(&texts, TextUse::Passage).expect("vectors");
    let all: Vec<_> = (0..).zip(vectors).map(|(key, vector)| (key, vec![vector])).collect();
    store.insert(&all).expect("it is written");
    let query = |text: &str| model.embed(&[text], TextUse::Query).expect("a vector").remove(0);
    let closest = |store: &VectorStore, text: &str| store.nearest(&query(text), 1).expect("matches")[0].key;
    assert_eq!(closest(&store, "a big car"), 0);
    assert_eq!(closest(&store, "food"), 1);
    assert_eq!(closest(&store, "the sick doctor"), 2);
    assert_eq!(closest(&store, "a ship journey"), 3);
    drop(store);

    let store = VectorStore::open(&path, 32).expect("the same");
    assert_eq!((store.len(), closest(&store, "food")), (4, 1));
    // In place of the former, in two parts.
    let parts = model.embed(&["the evening", "an error"], TextUse::Passage).expect("vectors");
    store.insert(&[(1, parts)]).expect("it is written");
    assert_eq!((store.len(), closest(&store, "a failure"), closest(&store, "the night")), (5, 1, 1));
    let similarity = |key| store.similarities(&query("a failure"), &[key]).expect("it is read")[0];
    assert!(similarity(1) > similarity(0) && similarity(9).is_none());
    assert!(store.insert(&[(7, vec![vec![1.0; 31]])]).is_err());

    assert_eq!(store.retain(|key| key != 1).expect("it is written"), 1);
    assert!(!store.keys().contains(&1) && similarity(1).is_none());
    drop(store);
    // Of another model.
    assert!(VectorStore::open(&path, 16).expect("a new one").is_empty());
    fs::write(&path, "no database, but long enough to look like one".repeat(100)).expect("a file");
    assert!(VectorStore::open(&path, 32).expect("a new one").is_empty());
}

#[test]
fn removed_vectors_are_overwritten() {
    let home = TempDir::new().expect("a directory");
    let store = VectorStore::open(&home.path().join("vectors.db"), 64).expect("a store");
    let vector = |key: u64| -> Vec<f32> { (0..64).map(|n| ((key * 64 + n) as f32 * 1.3).sin()).collect() };
    let all: Vec<_> = (0..200).map(|key| (key, vec![vector(key)])).collect();
    store.insert(&all).expect("it is written");
    let code = |value: f32, most: f32| ((value / most * 127.0).round() as i8).cast_unsigned();
    let bytes = |key: u64| -> Vec<u8> {
        let most = vector(key).iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        vector(key).into_iter().map(|value| code(value, most)).collect()
    };
    let is_there = |key: u64| {
        let files = fs::read_dir(home.path()).expect("a directory");
        let texts = files.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file"));
        let wanted = bytes(key);
        texts.into_iter().any(|text| text.windows(64).any(|window| window == wanted))
    };
    assert!(is_there(7) && is_there(8));
    store.retain(|key| key != 7).expect("it is written");
    assert!(!is_there(7) && is_there(8));
}
