//! Asks a provider for the vectors of texts: <https://platform.openai.com/docs/api-reference/embeddings>, which Ollama and others
//! have, too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{CallError, ErrorClass};
use super::model_client::Models;
use super::model_ref::ModelRef;
use super::providers;
use super::single_attempt::SingleAttempt;

/// Limit of the response in bytes: 256 texts of 4,096 dimensions with many digits.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<Embedding>,
    #[serde(default)]
    usage: Option<EmbeddingUsage>,
}

#[derive(Deserialize)]
struct EmbeddingUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    total_tokens: u64,
}

#[derive(Deserialize)]
struct Embedding {
    /// The place of its text in the request. Some servers leave it out and keep the order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The vectors of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// One for each text, all of one length.
    pub vectors: Vec<Vec<f32>>,
    /// Number of tokens of the texts, if the server reported it.
    pub tokens: Option<u64>,
}

impl Models {
    /// Returns a vector for each text, in one attempt of at most `limit`.
    ///
    /// # Errors
    /// The provider has no such endpoint, refused the request, did not answer in time or with something else.
    pub async fn embed(&self, target: &ModelRef, texts: &[&str], limit: Duration) -> Result<Embeddings, CallError> {
        let unknown = || {
            CallError::new(ErrorClass::NotFound, format!("unknown provider {:?}", target.provider))
                .hint("list models: chorusctl models")
        };
        let provider = self.provider(&target.provider).ok_or_else(unknown)?;
        let request = EmbeddingRequest { model: &target.model, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&request)
            .map_err(|error| CallError::new(ErrorClass::BadRequest, format!("cannot send the texts: {error}")))?;
        let no_endpoint = || {
            CallError::new(ErrorClass::NotFound, format!("{} has no embeddings", provider.name))
                .hint("name a model of a provider with the API of OpenAI, for example of Ollama")
        };
        let attempt = SingleAttempt {
            provider: &provider,
            model: &target.model,
            images: false,
            time: limit,
            response_bytes: MAX_RESPONSE_BYTES,
        };
        let protocol = providers::protocol(provider.kind);
        let body =
            self.ask_once(attempt, |to| protocol.build_embedding_request(to, body)?.ok_or_else(no_endpoint)).await?;
        parse(&body, texts.len()).map_err(|why| {
            CallError::new(ErrorClass::Malformed, format!("cannot read the embeddings of {}: {why}", provider.name))
        })
    }
}

/// Returns the vectors of a response in the order of the texts.
fn parse(body: &[u8], texts: usize) -> Result<Embeddings, String> {
    let response: EmbeddingResponse = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if response.data.len() != texts {
        return Err(format!("{} vectors for {texts} texts", response.data.len()));
    }
    let mut vectors = vec![Vec::new(); texts];
    for (place, Embedding { index, embedding }) in response.data.into_iter().enumerate() {
        let vector = vectors.get_mut(index.unwrap_or(place)).filter(|vector| vector.is_empty());
        *vector.ok_or("two vectors for a text")? = embedding;
    }
    match vectors.iter().any(|vector| vector.is_empty() || vector.len() != vectors[0].len()) {
        true => Err("vectors of different lengths".into()),
        false => {
            let tokens = response.usage.map(|usage| usage.prompt_tokens.max(usage.total_tokens));
            Ok(Embeddings { vectors, tokens: tokens.filter(|tokens| *tokens > 0) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_order_of_the_texts() {
        let body = br#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[3.0,4.0]},
            {"object":"embedding","index":0,"embedding":[1,2e-3]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        assert_eq!(parse(body, 2), Ok(Embeddings { vectors: vec![vec![1.0, 0.002], vec![3.0, 4.0]], tokens: Some(2) }));
        let body = br#"{"data":[{"embedding":[1]},{"embedding":[2]}],"usage":{"total_tokens":0}}"#;
        assert_eq!(parse(body, 2), Ok(Embeddings { vectors: vec![vec![1.0], vec![2.0]], tokens: None }));
        for (body, texts) in [
            (&br#"{"data":[{"embedding":[1]}]}"#[..], 2),
            (br#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#, 2),
            (br#"{"data":[{"index":7,"embedding":[1]}]}"#, 1),
            (br#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#, 2),
            (br#"{"data":[{"embedding":[]}]}"#, 1),
            (br#"{"data":[{"embedding":"AAAA"}]}"#, 1),
            (b"{}", 0),
        ] {
            assert!(parse(body, texts).is_err());
        }
    }
}
