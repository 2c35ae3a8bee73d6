//! How much the models of a local server take, which each server tells in its own way.

use std::fs;
use std::sync::Arc;

use chorus_clock::Clock;
use chorus_config as config;
use chorus_llm::retry::RetryPolicy;
use chorus_llm::{LocalServer, ModelInfo, Models};
use chorus_tests::model_server::ModelServer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server of this machine that lists these models.
fn listing(models: &[Value]) -> ModelServer {
    let server = ModelServer::start();
    server.set_openai_models(200, &json!({"object": "list", "data": models}));
    server
}

/// The tokens that each model takes, as discovery finds out; the server is found there, or is configured.
fn found(server: &ModelServer, configured: bool) -> Vec<(String, Option<u64>)> {
    discovered(server, configured).into_iter().map(|model| (model.id, model.context_length)).collect()
}

/// Whether each model looks at images.
fn images(server: &ModelServer) -> Vec<(String, Option<bool>)> {
    discovered(server, true).into_iter().map(|model| (model.id, model.images)).collect()
}

fn discovered(server: &ModelServer, configured: bool) -> Vec<ModelInfo> {
    let folder: TempDir = tempfile::tempdir().expect("a home");
    let file = folder.path().join("config.toml");
    let base_url = format!("{}/v1", server.url());
    let text = if configured {
        format!("[providers.mine]\nkind = \"openai\"\nbase_url = \"{base_url}\"\n")
    } else {
        "[discovery]\nlocal = true\n".to_owned()
    };
    fs::write(&file, text).expect("config.toml");
    let config = config::load(&file, |_| None).expect("a configuration");
    let places = if configured { Vec::new() } else { vec![LocalServer { name: "here".into(), base_url }] };
    let models = Models::new(&config, folder.path(), Clock::system(), super::redactor()).for_tests(
        places,
        RetryPolicy::default(),
        Arc::new(|| 0.0),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let found = runtime.block_on(models.discover());
    let [provider] = &found.providers[..] else { panic!("{found:?}") };
    provider.models.clone()
}

fn due(models: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
    models.iter().map(|(id, length)| ((*id).to_owned(), *length)).collect()
}

fn bare(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 1, "owned_by": "library"})
}

#[test]
fn ollama_is_asked_about_each_model() {
    let server = listing(&[bare("llama3.2:3b"), bare("loaded:latest"), bare("given:1b"), bare("silent:1b")]);
    server.set_path_response(
        "/api/ps",
        &json!({"models": [{"name": "loaded:latest", "model": "loaded:latest", "size": 1, "digest": "a", "details":
            {"family": "qwen2"}, "expires_at": "2026-11-02T08:15:34Z", "size_vram": 0, "context_length": 4096}]}),
    );
    let show = |parameters: &str, arch: &str, length: u64| {
        json!({"license": "…", "modelfile": "FROM x", "parameters": parameters, "template": "{{ .Prompt }}",
            "details": {"family": arch}, "capabilities": ["completion", "tools"], "model_info":
            {"general.architecture": arch, format!("{arch}.context_length"): length, format!("{arch}.block_count"): 28}})
    };
    server.set_path_response("/api/show llama3.2:3b", &show("stop \"<|eot_id|>\"", "llama", 131_072));
    server.set_path_response("/api/show loaded:latest", &show("", "qwen2", 32_768));
    server.set_path_response(
        "/api/show given:1b",
        &show("num_ctx                        16384\nstop \"x\"", "gemma3", 32_768),
    );
    let lengths = [
        ("given:1b", Some(16_384)),
        ("llama3.2:3b", Some(131_072)),
        ("loaded:latest", Some(4096)),
        ("silent:1b", None),
    ];
    for configured in [false, true] {
        assert_eq!(found(&server, configured), due(&lengths));
    }
    let looks: Vec<_> = images(&server).into_iter().map(|(_, looks)| looks).collect();
    assert_eq!(looks, [Some(false), Some(false), None, None], "of one that is loaded nothing more is asked");
}

#[test]
fn a_server_that_is_spoken_to_in_messages_is_asked_too() {
    let server = ModelServer::start();
    server.set_anthropic_models(200, &json!({"data": [{"type": "model", "id": "qwen3:8b"}], "has_more": false}));
    server.set_path_response("/api/ps", &json!({"models": [{"model": "qwen3:8b", "context_length": 4096}]}));
    let folder: TempDir = tempfile::tempdir().expect("a home");
    let file = folder.path().join("config.toml");
    let text = format!("[providers.mine]\nkind = \"anthropic\"\nbase_url = \"{}\"\n", server.url());
    fs::write(&file, text).expect("config.toml");
    let config = config::load(&file, |_| None).expect("a configuration");
    let models = Models::new(&config, folder.path(), Clock::system(), super::redactor());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let found = runtime.block_on(models.discover());
    let listed = found.providers[0].models.iter().map(|model| (&*model.id, model.context_length)).collect::<Vec<_>>();
    assert_eq!(listed, [("qwen3:8b", Some(4096))]);
}

#[test]
fn llama_cpp_serves_what_it_was_started_with() {
    let listed = json!({"id": "m.gguf", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32_768}});
    let server = listing(&[listed]);
    assert_eq!(
        found(&server, false),
        due(&[("m.gguf", Some(32_768))]),
        "what it was trained for, where nothing else is told"
    );
    server.set_path_response(
        "/props",
        &json!({"default_generation_settings": {"id": 0, "n_ctx": 8192, "speculative": false, "params": {}}, "total_slots": 4,
            "model_path": "m.gguf", "chat_template": "…", "modalities": {"vision": false, "audio": false}, "build_info": "b1-x"}),
    );
    assert_eq!(images(&server), [("m.gguf".to_owned(), Some(false))]);
    for configured in [false, true] {
        assert_eq!(found(&server, configured), due(&[("m.gguf", Some(8192))]));
    }
}

#[test]
fn lm_studio_tells_what_is_loaded() {
    let server = listing(&[bare("loaded"), bare("other"), bare("unknown")]);
    server.set_path_response(
        "/api/v0/models",
        &json!({"object": "list", "data": [
            {"id": "loaded", "object": "model", "type": "llm", "publisher": "p", "arch": "qwen3", "compatibility_type": "gguf",
             "quantization": "Q4_K_M", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8192},
            {"id": "other", "object": "model", "type": "vlm", "state": "not-loaded", "max_context_length": 32_768},
            {"id": "elsewhere", "object": "model", "type": "llm", "max_context_length": 1}]}),
    );
    assert_eq!(found(&server, false), due(&[("loaded", Some(8192)), ("other", Some(32_768)), ("unknown", None)]));
    let looks: Vec<_> = images(&server).into_iter().map(|(_, looks)| looks).collect();
    assert_eq!(looks, [Some(false), Some(true), None]);
}

#[test]
fn a_server_that_answers_nonsense_is_a_server_all_the_same() {
    let server = listing(&[bare("m")]);
    for path in ["/api/v0/models", "/props", "/api/ps"] {
        server.set_path_response(path, &json!("hello"));
    }
    assert_eq!(found(&server, false), due(&[("m", None)]));
    server.set_path_response("/api/ps", &json!({"models": []}));
    server.set_path_response("/api/show m", &json!({"model_info": {"x.context_length": "many"}, "parameters": null}));
    assert_eq!(found(&server, false), due(&[("m", None)]));
}
