//! Parses the response of `GET /v1/models`.

use serde::Deserialize;

use super::super::super::model_catalog::ModelInfo;
use super::super::ModelPage;

#[derive(Deserialize)]
struct List {
    data: Vec<Model>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    last_id: Option<String>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    max_input_tokens: Option<u64>,
}

pub(super) fn parse_models(body: &[u8]) -> Result<ModelPage, String> {
    let list: List = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let models = list.data.into_iter().map(|model| ModelInfo {
        id: model.id,
        display_name: model.display_name,
        context_length: model.max_input_tokens.filter(|tokens| *tokens > 0),
        price: None,
        images: None,
    });
    // The id becomes part of a URL.
    let plain = |id: &String| id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    Ok(ModelPage { models: models.collect(), next: list.last_id.filter(|id| list.has_more && plain(id)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another() {
        let body = br#"{"data":[{"type":"model","id":"claude-a","display_name":"A","created_at":"2025-01-01T00:00:00Z",
            "max_input_tokens":200000}],"has_more":true,"first_id":"claude-a","last_id":"claude-a"}"#;
        let page = parse_models(body).unwrap();
        assert_eq!((page.next.as_deref(), page.models[0].context_length), (Some("claude-a"), Some(200_000)));
        assert_eq!(parse_models(br#"{"data":[]}"#), Ok(ModelPage::default()));
        assert!(parse_models(b"<html>").is_err());
    }
}
