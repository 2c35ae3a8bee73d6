//! Context lengths of models on local servers. The chat completions API does not have them; Ollama, llama.cpp and LM
//! Studio each have their own endpoint for it.

use chorus_config::{CallLimits, Provider, ProviderKind, is_loopback_url};
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::model_catalog::ModelInfo;
use super::model_client::Models;
use super::providers::{self, RequestTarget};
use super::transport::{AttemptDeadline, HttpRequest, Transport};

/// Limit of a response in bytes; that of Ollama includes a licence and a template.
const MAX_RESPONSE_BYTES: usize = 4 << 20;
/// Limits of models that Ollama is asked about, in all and concurrently.
const MAX_OLLAMA_MODELS: usize = 100;
const MAX_CONCURRENT_REQUESTS: usize = 4;

/// Sets the context lengths of `found` if `provider` is a local server that reports them. Models that it does not
/// report keep their listed values.
pub(crate) async fn fill_context_lengths(
    models: &Models,
    provider: &Provider,
    found: &mut [ModelInfo],
    limits: CallLimits,
) {
    let Some(server) = LocalServerClient::connect(models, provider, limits).await else { return };
    // A single model may be llama.cpp's, which lists the length that the model was trained for but serves the one that
    // it was started with.
    if found.len() != 1 && found.iter().all(|model| model.context_length.is_some()) {
        return;
    }
    if let Some(list) = server.get::<LmStudioModels>("/api/v0/models").await {
        list.apply_to(found);
    } else if let Some(props) = server.get::<LlamaCppProps>("/props").await {
        props.apply_to(found);
    } else if let Some(loaded) = server.get::<OllamaLoadedModels>("/api/ps").await {
        server.query_ollama(&loaded, found).await;
    }
}

/// A client of a local server, with the base URL without `/v1`.
struct LocalServerClient {
    transport: Transport,
    ask: HttpRequest,
    limits: CallLimits,
}

impl LocalServerClient {
    async fn connect(models: &Models, provider: &Provider, limits: CallLimits) -> Option<Self> {
        let root = match provider.kind {
            ProviderKind::Openai => provider.base_url.strip_suffix("/v1")?,
            // The same servers also offer the Messages API, beside these endpoints.
            ProviderKind::Anthropic => provider.base_url.strip_suffix("/v1").unwrap_or(&provider.base_url),
        };
        if !is_loopback_url(root) {
            return None;
        }
        let at = Provider { base_url: root.to_owned(), ..provider.clone() };
        let (transport, key) = models.connect(&at).await.ok()?;
        let to = RequestTarget { provider: &at, key: key.as_ref(), model: "", images: false };
        let ask = providers::protocol(at.kind).build_list_request(&to, None).ok()?;
        Some(Self { transport, ask, limits })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.send(path, None).await
    }

    /// Returns a response of the expected form; anything else means another kind of server.
    async fn send<T: DeserializeOwned>(&self, path: &str, body: Option<Vec<u8>>) -> Option<T> {
        let watch = AttemptDeadline::new(self.limits, Instant::now() + self.limits.total);
        let ask = HttpRequest { path: path.to_owned(), headers: self.ask.headers.clone(), body };
        let mut answer = self.transport.send(ask, &watch).await.ok().filter(|answer| answer.status == 200)?;
        let body = answer.body(MAX_RESPONSE_BYTES, &watch).await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Queries Ollama about each model, since it reports one at a time.
    async fn query_ollama(&self, loaded: &OllamaLoadedModels, found: &mut [ModelInfo]) {
        let unknown = found.iter_mut().filter(|model| model.context_length.is_none()).take(MAX_OLLAMA_MODELS);
        stream::iter(unknown)
            .for_each_concurrent(MAX_CONCURRENT_REQUESTS, |model| async move {
                let body = json!({"model": model.id}).to_string().into_bytes();
                model.context_length = loaded.context_length_of(&model.id);
                if model.context_length.is_some() {
                    return;
                }
                if let Some(show) = self.send::<OllamaModel>("/api/show", Some(body)).await {
                    (model.context_length, model.images) = (show.context_length(), show.accepts_images());
                }
            })
            .await;
    }
}

/// LM Studio: <https://lmstudio.ai/docs/developer/rest/endpoints>.
#[derive(Deserialize)]
struct LmStudioModels {
    data: Vec<LmModel>,
}

#[derive(Deserialize)]
struct LmModel {
    id: String,
    #[serde(default)]
    max_context_length: Option<u64>,
    /// For a loaded model: the length that it was loaded with, which limits it.
    #[serde(default)]
    loaded_context_length: Option<u64>,
    /// `llm`, `vlm` (a model that accepts images) or `embeddings`.
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

impl LmStudioModels {
    fn apply_to(self, found: &mut [ModelInfo]) {
        for told in self.data {
            let length = told.loaded_context_length.or(told.max_context_length).filter(|tokens| *tokens > 0);
            let Some(model) = found.iter_mut().find(|model| model.id == told.id) else { continue };
            model.context_length = length.or(model.context_length);
            model.images = told.kind.map(|kind| kind == "vlm").or(model.images);
        }
    }
}

/// llama.cpp, which has one model: <https://github.com/ggml-org/llama.cpp/tree/master/tools/server>.
#[derive(Deserialize)]
struct LlamaCppProps {
    default_generation_settings: GenerationSettings,
    #[serde(default)]
    modalities: Option<Modalities>,
}

/// The kinds of input that it accepts besides text.
#[derive(Deserialize)]
struct Modalities {
    #[serde(default)]
    vision: Option<bool>,
}

#[derive(Deserialize)]
struct GenerationSettings {
    /// Of one slot, which is what a single conversation gets.
    n_ctx: u64,
}

impl LlamaCppProps {
    fn apply_to(self, found: &mut [ModelInfo]) {
        if let [model] = found {
            let length = Some(self.default_generation_settings.n_ctx).filter(|tokens| *tokens > 0);
            model.context_length = length.or(model.context_length);
            model.images = self.modalities.and_then(|takes| takes.vision).or(model.images);
        }
    }
}

/// Ollama: <https://github.com/ollama/ollama/blob/main/docs/api.md>. The loaded models.
#[derive(Deserialize)]
struct OllamaLoadedModels {
    models: Vec<OllamaLoadedModel>,
}

#[derive(Deserialize)]
struct OllamaLoadedModel {
    model: String,
    #[serde(default)]
    context_length: Option<u64>,
}

impl OllamaLoadedModels {
    fn context_length_of(&self, id: &str) -> Option<u64> {
        let model = self.models.iter().find(|model| model.model == id)?;
        model.context_length.filter(|tokens| *tokens > 0)
    }
}

/// A model of Ollama.
#[derive(Deserialize)]
struct OllamaModel {
    /// Lines with a name and a value.
    #[serde(default)]
    parameters: Option<String>,
    #[serde(default)]
    model_info: Map<String, Value>,
    /// `completion`, `tools`, `vision` and others.
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

impl OllamaModel {
    fn accepts_images(&self) -> Option<bool> {
        self.capabilities.as_ref().map(|can| can.iter().any(|one| one == "vision"))
    }

    /// The length in the model's file, else the one that it was trained for.
    fn context_length(&self) -> Option<u64> {
        let given = self.parameters.iter().flat_map(|text| text.lines()).find_map(|line| {
            let (name, value) = line.trim().split_once(char::is_whitespace)?;
            (name == "num_ctx").then(|| value.trim().parse().ok())?
        });
        let trained = self
            .model_info
            .iter()
            .find_map(|(name, value)| name.ends_with(".context_length").then(|| value.as_u64())?);
        given.or(trained).filter(|tokens| *tokens > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_tells_what_a_model_is_given_before_what_it_could_take() {
        let length = |show: Value| serde_json::from_value::<OllamaModel>(show).unwrap().context_length();
        let info = json!({"general.architecture": "qwen2", "qwen2.block_count": 28, "qwen2.context_length": 32768});
        let given = "stop                           \"<|im_end|>\"\nnum_ctx                        8192";
        assert_eq!(length(json!({"license": "…", "parameters": given, "model_info": info})), Some(8192));
        assert_eq!(length(json!({"parameters": "temperature 1", "model_info": info})), Some(32768));
        assert_eq!(length(json!({"parameters": "num_ctx many", "model_info": info})), Some(32768));
        assert_eq!(length(json!({"model_info": {"general.architecture": "x"}})), None);
        assert_eq!(length(json!({})), None);
    }
}
