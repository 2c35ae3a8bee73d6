//! Asks a provider for the vectors of texts: <https://platform.openai.com/docs/api-reference/embeddings>, which Ollama and others
//! have, too.

use std::time::Duration;

use chorus_config::CallLimits;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::error::{CallError, ErrorClass};
use super::model_client::Models;
use super::model_ref::ModelRef;
use super::providers::{self, RequestTarget, refusal_error};
use super::transport::AttemptDeadline;

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
}

#[derive(Deserialize)]
struct Embedding {
    /// The place of its text in the request. Some servers leave it out and keep the order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Models {
    /// Returns a vector for each text, in one attempt of at most `limit`.
    ///
    /// # Errors
    /// The provider has no such endpoint, refused the request, did not answer in time or with something else.
    pub async fn embed(&self, target: &ModelRef, texts: &[&str], limit: Duration) -> Result<Vec<Vec<f32>>, CallError> {
        let unknown = || {
            CallError::new(ErrorClass::NotFound, format!("unknown provider {:?}", target.provider))
                .hint("list models: chorusctl models")
        };
        let provider = self.provider(&target.provider).ok_or_else(unknown)?;
        let (transport, key) = self.connect(&provider).await?;
        let to = RequestTarget { provider: &provider, key: key.as_ref(), model: &target.model, images: false };
        let request = EmbeddingRequest { model: &target.model, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&request)
            .map_err(|error| CallError::new(ErrorClass::BadRequest, format!("cannot send the texts: {error}")))?;
        let ask = providers::protocol(provider.kind).build_embedding_request(&to, body)?.ok_or_else(|| {
            CallError::new(ErrorClass::NotFound, format!("{} has no embeddings", provider.name))
                .hint("name a model of a provider with the API of OpenAI, for example of Ollama")
        })?;
        let limits = CallLimits { total: limit, first_byte: limit, ..provider.limits };
        let watch = AttemptDeadline::new(limits, Instant::now() + limit);
        let mut response = transport.send(ask, &watch).await?;
        if !(200..300).contains(&response.status) {
            let (status, headers) = (response.status, response.headers.clone());
            return Err(refusal_error(&to, status, &headers, &response.error_body(&watch).await));
        }
        let body = response.body(MAX_RESPONSE_BYTES, &watch).await?;
        parse(&body, texts.len()).map_err(|why| {
            CallError::new(ErrorClass::Malformed, format!("cannot read the embeddings of {}: {why}", provider.name))
        })
    }
}

/// Returns the vectors of a response in the order of the texts.
fn parse(body: &[u8], texts: usize) -> Result<Vec<Vec<f32>>, String> {
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
        false => Ok(vectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_order_of_the_texts() {
        let body = br#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[3.0,4.0]},
            {"object":"embedding","index":0,"embedding":[1,2e-3]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        assert_eq!(parse(body, 2), Ok(vec![vec![1.0, 0.002], vec![3.0, 4.0]]));
        assert_eq!(parse(br#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#, 2), Ok(vec![vec![1.0], vec![2.0]]));
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
