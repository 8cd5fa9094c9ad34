//! A small transformer of the BERT family, such as all-MiniLM-L6-v2: the forward pass, and nothing else.
//!
//! One text at a time, without padding. A batch would share the reading of the weights, but every row that
//! pads a short text costs as much as a real one.

use std::path::Path;

use fearless_simd::{Level, Simd, dispatch};
use serde::Deserialize;

use crate::EncodeError;
use crate::model::read_config;
use crate::panels::Panels;
use crate::safetensors::{Tensor, Weights};
use crate::tokenizer::Tokenizer;

/// A loaded model. The table of words stays in its file, because it is more than half of the weights and a
/// text needs a few rows of it.
#[derive(Debug)]
pub(crate) struct Bert {
    tokenizer: Tokenizer,
    weights: Weights,
    words: Tensor,
    /// What is added to the word at each place: the position, and the first of the token types.
    positions: Vec<f32>,
    normalization: Normalization,
    layers: Vec<Layer>,
    heads_count: usize,
    hidden: usize,
    tokens_max: usize,
    /// The tokens that stand before and after each text.
    begin: u32,
    end: u32,
    pooling: Pooling,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention: Linear,
    attention_normalization: Normalization,
    intermediate: Linear,
    output: Linear,
    output_normalization: Normalization,
}

/// Weights and a bias.
#[derive(Debug)]
struct Linear {
    weights: Panels,
    bias: Vec<f32>,
}

/// Layer normalization.
#[derive(Debug)]
struct Normalization {
    weights: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

/// How the vectors of the tokens become one.
#[derive(Clone, Copy, Debug)]
enum Pooling {
    Mean,
    /// The vector of the first token.
    First,
}

/// What `config.json` says of a model.
#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    layer_norm_eps: f32,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

/// What `sentence_bert_config.json` says of texts.
#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

/// What the configuration of the pooling says.
#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
}

const LAYERS_COUNT_MAX: usize = 48;
const HIDDEN_MAX: usize = 4096;

impl Bert {
    /// Loads the model in a directory.
    pub(crate) fn open(directory: &Path) -> Result<Self, EncodeError> {
        let config: Option<Config> = read_config(directory, "config.json")?;
        let config = config.ok_or_else(|| refused("`config.json` is missing"))?;
        config.check()?;
        let weights = Weights::open(&directory.join("model.safetensors"))?;
        let tokenizer = Tokenizer::open(&directory.join("tokenizer.json"))?;
        let special = |name| {
            let token = tokenizer.token(name);
            token.ok_or_else(|| refused(&format!("the tokenizer has no token `{name}`")))
        };
        let (begin, end) = (special("[CLS]")?, special("[SEP]")?);
        let load = Loading { weights: &weights, config: &config };
        let words = load.words(&tokenizer)?;
        let positions = load.positions()?;
        let normalization = load.normalization("embeddings.LayerNorm")?;
        let layers = (0..config.num_hidden_layers).map(|number| load.layer(number));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Self {
            words,
            positions,
            normalization,
            layers,
            heads_count: config.num_attention_heads,
            hidden: config.hidden_size,
            tokens_max: tokens_max(directory, &config)?,
            begin,
            end,
            pooling: pooling(directory)?,
            tokenizer,
            weights,
        })
    }

    /// Returns how many tokens of a text are read.
    pub(crate) fn tokens_max(&self) -> usize {
        // The tokens around it count too.
        self.tokens_max.saturating_sub(2)
    }

    /// Returns how many tokens a text has.
    pub(crate) fn tokens(&self, text: &str) -> usize {
        self.tokenizer.tokens(text, usize::MAX).len()
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.hidden
    }

    /// Fails if a number of the table of words is not finite. Of the other weights, one text tells.
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        self.weights.check_finite(&prefixed(&self.weights, WORDS), 2)
    }

    /// Returns the vector of a text, of any length.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<f32>, EncodeError> {
        let tokens = self.tokenizer.tokens(text, self.tokens_max());
        if tokens.is_empty() {
            return Ok(vec![0.0; self.hidden]);
        }
        let mut state = self.embedded(&tokens)?;
        for layer in &self.layers {
            state = layer.apply(&state, self.heads_count, self.hidden);
        }
        Ok(match self.pooling {
            Pooling::First => state.chunks_exact(self.hidden).next().unwrap_or_default().to_vec(),
            Pooling::Mean => {
                let mut sum = vec![0.0; self.hidden];
                state.chunks_exact(self.hidden).for_each(|row| add(&mut sum, row));
                sum
            }
        })
    }

    /// Returns a row for each token, before the first layer.
    fn embedded(&self, tokens: &[u32]) -> Result<Vec<f32>, EncodeError> {
        let tokens = [self.begin].into_iter().chain(tokens.iter().copied()).chain([self.end]);
        let mut rows = Vec::new();
        let mut row = vec![0.0; self.hidden];
        for (token, position) in tokens.zip(self.positions.chunks_exact(self.hidden)) {
            self.weights.read(&self.words, token as usize * self.hidden, &mut row)?;
            add(&mut row, position);
            rows.extend_from_slice(&row);
        }
        self.normalization.apply(&mut rows);
        Ok(rows)
    }
}

impl Layer {
    fn apply(&self, state: &[f32], heads_count: usize, hidden: usize) -> Vec<f32> {
        let mut attended = self.attention.apply(&self.context(state, heads_count, hidden), hidden);
        add(&mut attended, state);
        self.attention_normalization.apply(&mut attended);
        let mut inner = self.intermediate.apply(&attended, hidden);
        let level = Level::new();
        dispatch!(level, simd => gelu(simd, &mut inner));
        let mut output = self.output.apply(&inner, self.intermediate.bias.len());
        add(&mut output, &attended);
        self.output_normalization.apply(&mut output);
        output
    }

    /// Returns, for each token, what it takes from all tokens.
    fn context(&self, state: &[f32], heads_count: usize, hidden: usize) -> Vec<f32> {
        let query = self.query.apply(state, hidden);
        let key = self.key.apply(state, hidden);
        let value = self.value.apply(state, hidden);
        let (size, count) = (hidden / heads_count, state.len() / hidden);
        #[expect(clippy::cast_precision_loss, reason = "a head has less than 4096 dimensions")]
        let scale = 1.0 / (size as f32).sqrt();
        let mut context = vec![0.0; state.len()];
        for head in 0..heads_count {
            let keys = Panels::from_rows(part(&key, hidden, head, size), size);
            let values = Panels::from_columns(part(&value, hidden, head, size), size);
            let mut shares = keys.multiply(part(&query, hidden, head, size));
            shares.chunks_exact_mut(count).for_each(|row| softmax(row, scale));
            let taken = values.multiply(shares.chunks_exact(count));
            for (row, taken) in context.chunks_exact_mut(hidden).zip(taken.chunks_exact(size)) {
                add(row.get_mut(head * size..).unwrap_or_default(), taken);
            }
        }
        context
    }
}

impl Linear {
    fn apply(&self, rows: &[f32], inputs: usize) -> Vec<f32> {
        let mut outputs = self.weights.multiply(rows.chunks_exact(inputs));
        outputs.chunks_exact_mut(self.bias.len()).for_each(|row| add(row, &self.bias));
        outputs
    }
}

impl Normalization {
    #[expect(clippy::cast_precision_loss, reason = "a row has at most 4096 numbers")]
    fn apply(&self, rows: &mut [f32]) {
        let count = self.weights.len() as f32;
        for row in rows.chunks_exact_mut(self.weights.len()) {
            let mean = row.iter().sum::<f32>() / count;
            for number in row.iter_mut() {
                *number -= mean;
            }
            let variance = row.iter().map(|number| number * number).sum::<f32>() / count;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            for ((number, weight), bias) in row.iter_mut().zip(&self.weights).zip(&self.bias) {
                *number = *number * scale * weight + bias;
            }
        }
    }
}

/// Returns the part of each row that belongs to a head.
fn part(
    rows: &[f32],
    hidden: usize,
    head: usize,
    size: usize,
) -> impl Iterator<Item = &[f32]> + Clone {
    let range = head * size..(head + 1) * size;
    rows.chunks_exact(hidden).map(move |row| row.get(range.clone()).unwrap_or_default())
}

fn add(numbers: &mut [f32], others: &[f32]) {
    numbers.iter_mut().zip(others).for_each(|(number, other)| *number += other);
}

/// Turns scores into shares that add up to one.
fn softmax(row: &mut [f32], scale: f32) {
    // The largest score is subtracted, so that no exponential overflows.
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for number in row.iter_mut() {
        *number = ((*number - most) * scale).exp();
    }
    let sum: f32 = row.iter().sum();
    for number in row.iter_mut() {
        *number /= sum;
    }
}

/// The activation: `x` times the share of a normal distribution below it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the instructions of its caller")]
fn gelu<S: Simd>(_: S, numbers: &mut [f32]) {
    for number in numbers {
        *number *= 0.5 * (1.0 + erf(*number * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// The error function as a quotient of polynomials, right to six digits. Without branches and calls, so
/// that it is computed for many numbers at once; beyond four it is one in 32 bits.
#[inline]
fn erf(number: f32) -> f32 {
    const ABOVE: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024_1e-6,
        -5.692_506_5e-5,
        -7.349_906_5e-4,
        -2.954_6e-3,
        -1.609_603_4e-2,
    ];
    const BELOW: [f32; 5] =
        [-1.456_607_2e-5, -2.133_740_5e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2];
    let number = number.clamp(-4.0, 4.0);
    let square = number * number;
    let polynomial =
        |factors: &[f32]| factors.iter().fold(0.0, |sum, factor| sum * square + factor);
    number * polynomial(&ABOVE) / polynomial(&BELOW)
}

/// Reads the parts of a model from its weights.
struct Loading<'l> {
    weights: &'l Weights,
    config: &'l Config,
}

const WORDS: &str = "embeddings.word_embeddings.weight";

impl Loading<'_> {
    fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncodeError> {
        self.weights.numbers(&prefixed(self.weights, name), shape)
    }

    fn words(&self, tokenizer: &Tokenizer) -> Result<Tensor, EncodeError> {
        let words = self.weights.tensor(&prefixed(self.weights, WORDS), 2)?;
        match *words.shape.as_slice() {
            [count, hidden]
                if hidden == self.config.hidden_size && count > tokenizer.last_token() as usize =>
            {
                Ok(words.clone())
            }
            _ => Err(refused(&format!("the table of words has the shape {:?}", words.shape))),
        }
    }

    fn positions(&self) -> Result<Vec<f32>, EncodeError> {
        let hidden = self.config.hidden_size;
        let shape = [self.config.max_position_embeddings, hidden];
        let mut positions = self.numbers("embeddings.position_embeddings.weight", &shape)?;
        let types = prefixed(self.weights, "embeddings.token_type_embeddings.weight");
        let mut first = vec![0.0; hidden];
        self.weights.read(self.weights.tensor(&types, 2)?, 0, &mut first)?;
        positions.chunks_exact_mut(hidden).for_each(|row| add(row, &first));
        Ok(positions)
    }

    fn layer(&self, number: usize) -> Result<Layer, EncodeError> {
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"), hidden, hidden)?,
            key: self.linear(&name("attention.self.key"), hidden, hidden)?,
            value: self.linear(&name("attention.self.value"), hidden, hidden)?,
            attention: self.linear(&name("attention.output.dense"), hidden, hidden)?,
            attention_normalization: self.normalization(&name("attention.output.LayerNorm"))?,
            intermediate: self.linear(&name("intermediate.dense"), inner, hidden)?,
            output: self.linear(&name("output.dense"), hidden, inner)?,
            output_normalization: self.normalization(&name("output.LayerNorm"))?,
        })
    }

    fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, EncodeError> {
        let weights = self.numbers(&format!("{name}.weight"), &[outputs, inputs])?;
        let weights = Panels::from_rows(weights.chunks_exact(inputs), inputs);
        Ok(Linear { weights, bias: self.numbers(&format!("{name}.bias"), &[outputs])? })
    }

    fn normalization(&self, name: &str) -> Result<Normalization, EncodeError> {
        let shape = [self.config.hidden_size];
        Ok(Normalization {
            weights: self.numbers(&format!("{name}.weight"), &shape)?,
            bias: self.numbers(&format!("{name}.bias"), &shape)?,
            epsilon: self.config.layer_norm_eps,
        })
    }
}

/// Returns the name of a tensor as the file writes it: some put the family's name in front.
pub(crate) fn prefixed(weights: &Weights, name: &str) -> String {
    let long = format!("bert.{name}");
    if weights.contains(&long) { long } else { name.to_owned() }
}

impl Config {
    fn check(&self) -> Result<(), EncodeError> {
        if self.model_type != "bert" {
            return Err(refused(&format!("its type is `{}`, not `bert`", self.model_type)));
        }
        if self.hidden_act != "gelu" {
            return Err(refused(&format!("its activation is `{}`, not `gelu`", self.hidden_act)));
        }
        if self.position_embedding_type.as_deref().is_some_and(|kind| kind != "absolute") {
            return Err(refused("its positions are not absolute"));
        }
        let is_sound = (1..=HIDDEN_MAX).contains(&self.hidden_size)
            && (1..=self.hidden_size).contains(&self.num_attention_heads)
            && self.hidden_size.is_multiple_of(self.num_attention_heads)
            && (1..=8 * HIDDEN_MAX).contains(&self.intermediate_size)
            && (1..=LAYERS_COUNT_MAX).contains(&self.num_hidden_layers)
            && self.max_position_embeddings > 2
            && self.layer_norm_eps.is_finite();
        if is_sound { Ok(()) } else { Err(refused("its sizes are out of range")) }
    }
}

/// Returns how many tokens a text may have, including the ones around it.
fn tokens_max(directory: &Path, config: &Config) -> Result<usize, EncodeError> {
    let sentence: Option<SentenceConfig> = read_config(directory, "sentence_bert_config.json")?;
    let said = sentence.and_then(|sentence| sentence.max_seq_length);
    Ok(said.unwrap_or(usize::MAX).min(config.max_position_embeddings))
}

fn pooling(directory: &Path) -> Result<Pooling, EncodeError> {
    let config: Option<PoolingConfig> = read_config(directory, "pooling.json")?;
    match config.map(|config| (config.pooling_mode_mean_tokens, config.pooling_mode_cls_token)) {
        None | Some((true, false)) => Ok(Pooling::Mean),
        Some((false, true)) => Ok(Pooling::First),
        Some(_) => Err(refused("its pooling is neither the mean nor the first token")),
    }
}

fn refused(why: &str) -> EncodeError {
    EncodeError::new(format!("this model cannot be used: {why}"))
}

#[cfg(test)]
mod tests;
