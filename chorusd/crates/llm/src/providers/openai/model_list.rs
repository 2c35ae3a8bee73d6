//! Parses the response of `GET /models`. OpenAI's API has no context length and no price; many compatible servers add
//! them, each in its own way.

use chorus_config::Price;
use serde::Deserialize;
use serde_json::Value;

use super::super::super::model_catalog::ModelInfo;
use super::super::ModelPage;

#[derive(Deserialize)]
struct List {
    /// Ollama sends null if it has no models.
    data: Option<Vec<Model>>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    #[serde(default)]
    name: Option<String>,
    /// OpenRouter.
    #[serde(default)]
    context_length: Option<u64>,
    /// vLLM.
    #[serde(default)]
    max_model_len: Option<u64>,
    /// LM Studio.
    #[serde(default)]
    max_context_length: Option<u64>,
    /// Groq.
    #[serde(default)]
    context_window: Option<u64>,
    /// litellm: <https://github.com/BerriAI/litellm/pull/30272>.
    #[serde(default)]
    max_input_tokens: Option<u64>,
    /// llama.cpp.
    #[serde(default)]
    meta: Option<Meta>,
    /// OpenRouter: US dollars per token, as strings.
    #[serde(default)]
    pricing: Option<Value>,
    /// OpenRouter: `input_modalities`, a list of accepted inputs.
    #[serde(default)]
    architecture: Option<Value>,
    /// Mistral: `vision`, true or false.
    #[serde(default)]
    capabilities: Option<Value>,
}

#[derive(Deserialize)]
struct Meta {
    /// The length that the server was started with.
    #[serde(default)]
    n_ctx: Option<u64>,
    /// The length that the model was trained for; no known server accepts more.
    #[serde(default)]
    n_ctx_train: Option<u64>,
}

pub(super) fn parse_models(body: &[u8]) -> Result<ModelPage, String> {
    let list: List = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let models = list.data.unwrap_or_default().into_iter().map(|model| {
        let of_meta = model.meta.as_ref().and_then(|meta| meta.n_ctx.or(meta.n_ctx_train));
        let context_length = [
            model.context_length,
            model.max_model_len,
            model.max_context_length,
            model.context_window,
            model.max_input_tokens,
        ]
        .into_iter()
        .flatten()
        .next()
        .or(of_meta);
        ModelInfo {
            display_name: model.name.filter(|name| *name != model.id),
            context_length: context_length.filter(|tokens| *tokens > 0),
            price: model.pricing.as_ref().and_then(parse_price),
            images: accepts_images(model.architecture.as_ref(), model.capabilities.as_ref()),
            id: model.id,
        }
    });
    Ok(ModelPage { models: models.collect(), next: None })
}

fn accepts_images(architecture: Option<&Value>, capabilities: Option<&Value>) -> Option<bool> {
    let listed = architecture.and_then(|about| about.get("input_modalities")?.as_array());
    let listed = listed.map(|takes| takes.iter().any(|one| one == "image"));
    listed.or_else(|| capabilities?.get("vision")?.as_bool())
}

fn parse_price(pricing: &Value) -> Option<Price> {
    let million = |key: &str| {
        let given = pricing.get(key)?;
        let a_token = given.as_f64().or_else(|| given.as_str()?.parse().ok())?;
        // Rounded, because values such as 0.000003 are not exact as floats. A negative price means that it varies.
        (a_token.is_finite() && a_token >= 0.0).then(|| (a_token * 1e12).round() / 1e6)
    };
    Some(Price {
        input: million("prompt")?,
        output: million("completion")?,
        cache_read: million("input_cache_read"),
        cache_write: million("input_cache_write"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_tells_it_in_its_own_way() {
        let body = br#"{"object":"list","data":[
            {"id":"meta/llama","name":"Llama","context_length":131072,"architecture":{"input_modalities":["text","image"]},
             "pricing":{"prompt":"0.000003","completion":"0.000015","request":"0","input_cache_read":"0.0000003"}},
            {"id":"v","object":"model","max_model_len":4096,"capabilities":{"vision":false}},
            {"id":"g","capabilities":["completion"],"meta":{"n_ctx_train":32768,"vocab_type":1}},
            {"id":"auto","pricing":{"prompt":"-1","completion":"-1"}},
            {"id":"gpt","object":"model","created":1,"owned_by":"x"},
            {"id":"proxied","object":"model","created":1,"owned_by":"openai","max_input_tokens":128000,
             "max_output_tokens":16384}]}"#;
        let models = parse_models(body).unwrap().models;
        let price = models[0].price.unwrap();
        assert_eq!((price.input, price.output, price.cache_read, price.cache_write), (3.0, 15.0, Some(0.3), None));
        let windows: Vec<_> = models.iter().map(|model| model.context_length).collect();
        assert_eq!(windows, [Some(131_072), Some(4096), Some(32_768), None, None, Some(128_000)]);
        let images: Vec<_> = models.iter().map(|model| model.images).collect();
        assert_eq!(images, [Some(true), Some(false), None, None, None, None]);
        assert_eq!((models[3].price, models[0].display_name.as_deref()), (None, Some("Llama")));
        assert_eq!(parse_models(br#"{"object":"list","data":null}"#), Ok(ModelPage::default()));
        assert!(parse_models(b"{}").is_ok() && parse_models(b"[]").is_err() && parse_models(b"<html>").is_err());
    }
}
