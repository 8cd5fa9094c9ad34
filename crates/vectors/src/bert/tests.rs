use std::collections::HashMap;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::fixture::{self, HEADS_COUNT, HIDDEN, LAYERS_COUNT};

type Rows = Vec<Vec<f64>>;

/// The forward pass by its definition, with 64 bits and loops.
struct Naive(HashMap<String, (Vec<usize>, Vec<f64>)>);

impl Naive {
    fn row(&self, name: &str, number: usize) -> Vec<f64> {
        let (shape, numbers) = &self.0[name];
        let length = *shape.last().unwrap();
        numbers[number * length..(number + 1) * length].to_vec()
    }

    fn linear(&self, name: &str, rows: &Rows) -> Rows {
        let outputs = self.0[&format!("{name}.bias")].1.len();
        let bias = self.row(&format!("{name}.bias"), 0);
        let output = |row: &Vec<f64>, number: usize| {
            let weights = self.row(&format!("{name}.weight"), number);
            row.iter().zip(weights).map(|(a, b)| a * b).sum::<f64>() + bias[number]
        };
        rows.iter().map(|row| (0..outputs).map(|number| output(row, number)).collect()).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "eight dimensions")]
    fn normalized(&self, name: &str, rows: &Rows) -> Rows {
        let weights = self.row(&format!("{name}.weight"), 0);
        let bias = self.row(&format!("{name}.bias"), 0);
        let normalize = |row: &Vec<f64>| {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
            let scale = (variance + 1e-12).sqrt();
            (0..row.len()).map(|i| (row[i] - mean) / scale * weights[i] + bias[i]).collect()
        };
        rows.iter().map(normalize).collect()
    }

    fn attention(&self, layer: usize, rows: &Rows) -> Rows {
        let part = |part: &str| self.linear(&format!("encoder.layer.{layer}.{part}"), rows);
        let query = part("attention.self.query");
        let key = part("attention.self.key");
        let value = part("attention.self.value");
        let size = HIDDEN / HEADS_COUNT;
        let mut context = vec![vec![0.0; HIDDEN]; rows.len()];
        for place in 0..rows.len() {
            for dimension in 0..HIDDEN {
                let head = dimension / size * size..(dimension / size + 1) * size;
                let score = |other: usize| {
                    let dot: f64 = head.clone().map(|i| query[place][i] * key[other][i]).sum();
                    (dot / f64::from(u32::try_from(size).unwrap()).sqrt()).exp()
                };
                let sum: f64 = (0..rows.len()).map(score).sum();
                context[place][dimension] =
                    (0..rows.len()).map(|other| score(other) / sum * value[other][dimension]).sum();
            }
        }
        context
    }

    fn encode(&self, tokens: &[usize]) -> Vec<f64> {
        let embedded = |(place, token): (usize, &usize)| {
            let word = self.row("embeddings.word_embeddings.weight", *token);
            let position = self.row("embeddings.position_embeddings.weight", place);
            let kind = self.row("embeddings.token_type_embeddings.weight", 0);
            (0..HIDDEN).map(|i| word[i] + position[i] + kind[i]).collect()
        };
        let rows = tokens.iter().enumerate().map(embedded).collect();
        let mut rows = self.normalized("embeddings.LayerNorm", &rows);
        for layer in 0..LAYERS_COUNT {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            let context = self.attention(layer, &rows);
            let attended = sum(&self.linear(&name("attention.output.dense"), &context), &rows);
            let attended = self.normalized(&name("attention.output.LayerNorm"), &attended);
            let mut inner = self.linear(&name("intermediate.dense"), &attended);
            for number in inner.iter_mut().flatten() {
                *number *= 0.5 * (1.0 + slow_erf(*number / 2_f64.sqrt()));
            }
            let output = sum(&self.linear(&name("output.dense"), &inner), &attended);
            rows = self.normalized(&name("output.LayerNorm"), &output);
        }
        (0..HIDDEN).map(|i| rows.iter().map(|row| row[i]).sum()).collect()
    }
}

fn sum(rows: &Rows, others: &Rows) -> Rows {
    let add = |(row, other): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> {
        row.iter().zip(other).map(|(a, b)| a + b).collect()
    };
    rows.iter().zip(others).map(add).collect()
}

/// The error function as its power series, which converges slowly and everywhere.
fn slow_erf(number: f64) -> f64 {
    let (mut term, mut sum) = (number, number);
    for n in 1..200 {
        term *= -number * number / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn naive(tensors: Vec<fixture::Tensor>) -> Naive {
    let wide = |(name, shape, numbers): fixture::Tensor| {
        (name, (shape, numbers.into_iter().map(f64::from).collect()))
    };
    Naive(tensors.into_iter().map(wide).collect())
}

#[test]
fn vectors_are_those_of_the_definition() {
    let directory = TempDir::new().unwrap();
    let naive = naive(fixture::write_bert(directory.path()));
    let bert = Bert::open(directory.path()).unwrap();
    // Six positions are all that the model has, so the last text is cut off.
    let cases: [(&str, &[usize]); 4] = [
        ("tea", &[1, 4, 2]),
        ("Green teas", &[1, 3, 4, 6, 2]),
        ("green unknown", &[1, 3, 0, 2]),
        ("the car is green tea", &[1, 0, 7, 9, 3, 2]),
    ];
    for (text, tokens) in cases {
        let vector = bert.encode(text).unwrap();
        for (number, expected) in vector.iter().zip(naive.encode(tokens)) {
            assert!((f64::from(*number) - expected).abs() < 1e-4, "{text}: {number} {expected}");
        }
    }
}

#[test]
fn a_text_without_words_has_the_zero_vector() {
    let directory = TempDir::new().unwrap();
    fixture::write_bert(directory.path());
    let bert = Bert::open(directory.path()).unwrap();
    for text in ["", " \n", "\u{200b}"] {
        assert_eq!(bert.encode(text).unwrap(), [0.0; HIDDEN], "{text:?}");
    }
}

#[test]
fn the_first_token_can_stand_for_the_text() {
    let directory = TempDir::new().unwrap();
    fixture::write_bert(directory.path());
    let mean = Bert::open(directory.path()).unwrap().encode("green tea").unwrap();
    let first = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false});
    fixture::write_json(directory.path(), "pooling.json", &first);
    assert_ne!(Bert::open(directory.path()).unwrap().encode("green tea").unwrap(), mean);
    fixture::write_json(directory.path(), "pooling.json", &json!({}));
    let error = Bert::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("pooling"), "{error}");
}

#[test]
fn the_error_function_is_right_to_six_digits() {
    for step in -400_i16..=400 {
        let number = f32::from(step) / 100.0;
        let difference = f64::from(erf(number)) - slow_erf(f64::from(number));
        assert!(difference.abs() < 5e-7, "{number}: {difference}");
    }
    assert!((erf(1e30) - 1.0).abs() < 1e-6);
}

#[test]
fn configurations_that_would_compute_something_else_are_refused() {
    let directory = TempDir::new().unwrap();
    fixture::write_bert(directory.path());
    let cases = [
        ("model_type", json!("roberta"), "`roberta`"),
        ("hidden_act", json!("relu"), "`relu`"),
        ("position_embedding_type", json!("relative_key"), "positions"),
        ("num_attention_heads", json!(3), "sizes"),
        ("num_attention_heads", json!(0), "sizes"),
        ("hidden_size", json!(1_000_000), "sizes"),
        ("intermediate_size", json!(13), "intermediate.dense"),
        ("num_hidden_layers", json!(3), "encoder.layer.2"),
        ("max_position_embeddings", json!(7), "position_embeddings"),
        ("hidden_size", json!("eight"), "config.json"),
    ];
    for (key, value, expected) in cases {
        let mut config = fixture::config();
        config[key] = value;
        fixture::write_json(directory.path(), "config.json", &config);
        let error = Bert::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{key}: {error}");
    }
}
