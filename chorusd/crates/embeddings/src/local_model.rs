//! A sentence transformer that runs in this process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rten::{Model, NodeId, RunOptions, ValueOrView};
use rten_tensor::{NdTensor, TensorView};
use serde::Deserialize;

use crate::TextUse;
use crate::error::EmbeddingError;
use crate::pooling::{Pooling, pool};
use crate::tokens::Tokens;

/// The files of a model. The first two must be there.
pub(crate) const MODEL_FILE: &str = "model.onnx";
pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";
/// How many tokens it takes.
pub(crate) const LENGTH_FILE: &str = "sentence_bert_config.json";
/// How the vectors of tokens become one.
pub(crate) const POOLING_FILE: &str = "1_Pooling/config.json";
/// The layers that make a vector, in their order.
pub(crate) const LAYERS_FILE: &str = "modules.json";
/// Words that go before a text, by its use.
pub(crate) const PROMPTS_FILE: &str = "config_sentence_transformers.json";

/// Tokens of a text that are looked at, unless the model says something else; and the most that are, whatever it says.
const DEFAULT_TOKENS: usize = 256;
const MAX_TOKENS: usize = 512;

/// The output of a model file that has all layers.
const WHOLE_OUTPUT: &str = "sentence_embedding";

/// The layers that are in the model file or done here.
const KNOWN_LAYERS: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// Texts that the model takes at once.
const BATCH: usize = 16;

/// Threads of the work in the background, at most.
const BACKGROUND_THREADS: usize = 2;

/// A sentence transformer, loaded.
pub struct LocalModel {
    model: Model,
    tokens: Tokens,
    pooling: Pooling,
    query_prompt: String,
    passage_prompt: String,
    output: NodeId,
    inputs: Vec<(NodeId, Input)>,
    dimensions: usize,
    /// For queries, which somebody waits for.
    foreground: OnceLock<Arc<rten::ThreadPool>>,
    /// For passages. Its threads get the priority of the thread that first asks for some.
    background: OnceLock<Arc<rten::ThreadPool>>,
}

/// The inputs that a model may want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ids,
    Mask,
    Types,
}

impl std::fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalModel").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Deserialize)]
struct LengthConfig {
    max_seq_length: Option<usize>,
}

/// Which ways of pooling are on, by their names.
type PoolingConfig = std::collections::HashMap<String, serde_json::Value>;

/// A layer, by the name of its class.
#[derive(Debug, Deserialize)]
struct Layer {
    #[serde(rename = "type")]
    class: String,
}

#[derive(Debug, Default, Deserialize)]
struct PromptsConfig {
    #[serde(default)]
    prompts: std::collections::HashMap<String, String>,
}

impl LocalModel {
    /// Loads the model in a directory, and tries it. Blocks.
    ///
    /// # Errors
    /// `Model` if a file is missing or cannot be used; `Output` if the model gives no vectors.
    pub fn open(dir: &Path) -> Result<Self, EmbeddingError> {
        let length: LengthConfig = read_config(dir, LENGTH_FILE)?;
        let max_tokens = length.max_seq_length.unwrap_or(DEFAULT_TOKENS).clamp(8, MAX_TOKENS);
        let tokenizer = std::fs::read(dir.join(TOKENIZER_FILE));
        let tokenizer = tokenizer.map_err(|error| EmbeddingError::model(TOKENIZER_FILE, error))?;
        let tokens = unless_it_panics(|| Tokens::new(&tokenizer, max_tokens))
            .unwrap_or_else(|| Err("it cannot be read".into()))
            .map_err(|why| EmbeddingError::model(TOKENIZER_FILE, why))?;
        let pooling = pooling_of(&read_config(dir, POOLING_FILE)?)?;
        let prompts: PromptsConfig = read_config(dir, PROMPTS_FILE)?;
        let prompt = |names: [&str; 3]| {
            let found = names.iter().find_map(|name| prompts.prompts.get(*name));
            found.cloned().unwrap_or_default()
        };
        let path = existing(dir, MODEL_FILE)?;
        let model = unless_it_panics(|| Model::load_file(&path))
            .ok_or_else(|| EmbeddingError::model(MODEL_FILE, "it cannot be read"))?
            .map_err(|error| EmbeddingError::model(MODEL_FILE, error))?;
        let inputs = inputs_of(&model)?;
        let output = output_of(&model)?;
        if model.find_node(WHOLE_OUTPUT) != Some(output) {
            refuse_other_layers(&read_config::<Vec<Layer>>(dir, LAYERS_FILE)?)?;
        }
        let mut local = Self {
            model,
            tokens,
            pooling,
            query_prompt: prompt(["query", "search_query", "s2p_query"]),
            passage_prompt: prompt(["passage", "document", "search_document"]),
            output,
            inputs,
            dimensions: 0,
            foreground: OnceLock::new(),
            background: OnceLock::new(),
        };
        let first = local.embed(&["a first sentence"], TextUse::Passage).map_err(cannot_run)?;
        local.dimensions = first.first().map_or(0, Vec::len);
        // A text that is too long must be cut off, not refused.
        local.embed(&["many words ".repeat(max_tokens).as_str(), "few"], TextUse::Passage)?;
        Ok(local)
    }

    /// The number of dimensions of its vectors.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns a vector of length 1 for each text. What is beyond the tokens that the model takes is not looked at. Blocks.
    ///
    /// # Errors
    /// `Output` if the model fails.
    pub fn embed(&self, texts: &[&str], text_use: TextUse) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let prompt = match text_use {
            TextUse::Query => &self.query_prompt,
            TextUse::Passage => &self.passage_prompt,
        };
        let ids = || texts.iter().map(|text| self.tokens.of(prompt, text)).collect::<Result<Vec<_>, _>>();
        let ids = unless_it_panics(ids).ok_or_else(|| EmbeddingError::Output("its tokenizer fails".into()))??;
        // Texts of about the same length together: a batch is as long as its longest.
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|index| ids[*index].len());
        let mut vectors = vec![Vec::new(); ids.len()];
        for batch in order.chunks(BATCH) {
            let rows: Vec<&[i32]> = batch.iter().map(|index| &ids[*index][..]).collect();
            for (index, vector) in batch.iter().zip(self.run(&rows, text_use)?) {
                vectors[*index] = vector;
            }
        }
        Ok(vectors)
    }

    fn run(&self, rows: &[&[i32]], text_use: TextUse) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0).max(1);
        let tensor = |value: fn(Option<&i32>) -> i32| -> ValueOrView<'static> {
            let all: Vec<i32> =
                rows.iter().flat_map(|row| (0..longest).map(move |place| value(row.get(place)))).collect();
            NdTensor::from_data([rows.len(), longest], all).into()
        };
        let input = |input: &Input| match input {
            Input::Ids => tensor(|id| id.copied().unwrap_or(0)),
            Input::Mask => tensor(|id| i32::from(id.is_some())),
            Input::Types => tensor(|_| 0),
        };
        let inputs = self.inputs.iter().map(|(node, kind)| (*node, input(kind))).collect();
        let mut options = RunOptions::default();
        options.thread_pool = Some(self.threads(text_use));
        let failed = |error: &dyn std::fmt::Display| EmbeddingError::Output(error.to_string());
        let run = || self.model.run(inputs, &[self.output], Some(options));
        let output = unless_it_panics(run).ok_or_else(|| failed(&"the model does not fit together"))?;
        let mut output = output.map_err(|error| failed(&error))?;
        let output = output.pop().ok_or_else(|| failed(&"no output"))?;
        let output: TensorView<'_, f32> =
            (&output).try_into().map_err(|_| failed(&"its numbers are not floating-point"))?;
        let lengths: Vec<usize> = rows.iter().map(|row| row.len()).collect();
        pool(output, &lengths, self.pooling)
    }

    fn threads(&self, text_use: TextUse) -> Arc<rten::ThreadPool> {
        let (threads, most) = match text_use {
            TextUse::Query => (&self.foreground, usize::MAX),
            TextUse::Passage => (&self.background, BACKGROUND_THREADS),
        };
        let make = || {
            let all = std::thread::available_parallelism().map_or(1, usize::from);
            Arc::new(rten::ThreadPool::with_num_threads(all.div_ceil(2).min(most)))
        };
        threads.get_or_init(make).clone()
    }
}

/// The error for a model that is read but does not run, as one of which the weights are numbers of a form that is not supported.
fn cannot_run(error: EmbeddingError) -> EmbeddingError {
    match error {
        EmbeddingError::Output(why) => EmbeddingError::model(
            MODEL_FILE,
            format!("it cannot be run; if it is quantized, take the one that is not: {why}"),
        ),
        error => error,
    }
}

/// Runs code that reads a file from outside. `None` if it panics: then the file is wrong in a way that its author did not think of.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

fn pooling_of(config: &PoolingConfig) -> Result<Pooling, EmbeddingError> {
    let modes = config.iter().filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true);
    let modes: Vec<&str> = modes.map(|(name, _)| name.as_str()).collect();
    match modes[..] {
        [] | ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        _ => Err(EmbeddingError::model(POOLING_FILE, format!("{} is not supported", modes.join(" with ")))),
    }
}

/// Refuses a model with layers that the model file does not have, such as a dense one behind the pooling: without them its vectors are wrong.
fn refuse_other_layers(layers: &[Layer]) -> Result<(), EmbeddingError> {
    let names = layers.iter().map(|layer| layer.class.rsplit('.').next().unwrap_or_default());
    match names.into_iter().find(|name| !KNOWN_LAYERS.contains(name)) {
        None => Ok(()),
        Some(name) => Err(EmbeddingError::model(
            LAYERS_FILE,
            format!(
                "the layer {name} is not supported; export the model with all layers, so that it has the output {WHOLE_OUTPUT}"
            ),
        )),
    }
}

fn inputs_of(model: &Model) -> Result<Vec<(NodeId, Input)>, EmbeddingError> {
    let name = |node: NodeId| model.node_info(node).and_then(|node| node.name().map(str::to_owned)).unwrap_or_default();
    let kind = |node: &NodeId| match name(*node).as_str() {
        "input_ids" => Ok((*node, Input::Ids)),
        "attention_mask" => Ok((*node, Input::Mask)),
        "token_type_ids" => Ok((*node, Input::Types)),
        other => Err(EmbeddingError::model(MODEL_FILE, format!("it wants the unknown input {other:?}"))),
    };
    let inputs: Vec<_> = model.input_ids().iter().map(kind).collect::<Result<_, _>>()?;
    if !inputs.iter().any(|(_, kind)| *kind == Input::Ids) {
        return Err(EmbeddingError::model(MODEL_FILE, "it has no input `input_ids`, so it is not a model of texts"));
    }
    Ok(inputs)
}

/// Returns the output with the vectors of sentences, else the first one.
fn output_of(model: &Model) -> Result<NodeId, EmbeddingError> {
    let named = [WHOLE_OUTPUT, "last_hidden_state", "token_embeddings"];
    let named = named.iter().find_map(|name| model.find_node(name).filter(|id| model.output_ids().contains(id)));
    let output = named.or_else(|| model.output_ids().first().copied());
    output.ok_or_else(|| EmbeddingError::model(MODEL_FILE, "it has no output"))
}

pub(crate) fn existing(dir: &Path, name: &str) -> Result<PathBuf, EmbeddingError> {
    let path = dir.join(name);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(path),
        Ok(_) => Err(EmbeddingError::model(name, "it is not a file")),
        Err(error) => Err(EmbeddingError::model(name, error)),
    }
}

/// Reads a file that need not be there.
fn read_config<T: Default + serde::de::DeserializeOwned>(dir: &Path, name: &str) -> Result<T, EmbeddingError> {
    match std::fs::read(dir.join(name)) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| EmbeddingError::model(name, error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(EmbeddingError::model(name, error)),
    }
}
