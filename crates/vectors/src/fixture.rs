//! Tiny models for tests.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A tensor of a test: its name, its shape and its numbers.
pub(crate) type Tensor = (String, Vec<usize>, Vec<f32>);

pub(crate) const VOCABULARY: [&str; 10] =
    ["[UNK]", "[CLS]", "[SEP]", "green", "tea", "cup", "##s", "car", "wheel", "is"];
pub(crate) const HIDDEN: usize = 8;
pub(crate) const INNER: usize = 12;
pub(crate) const LAYERS_COUNT: usize = 2;
pub(crate) const HEADS_COUNT: usize = 2;
pub(crate) const POSITIONS_COUNT: usize = 6;

/// Writes a static table of the model2vec kind. Words about tea point one way, words about cars another.
pub(crate) fn write_table(directory: &Path) {
    let row = |word: &str| match word {
        "green" => [0.5, 1.0, 0.0, 0.0],
        "tea" | "cup" => [1.0, 0.5, 0.0, 0.1],
        "car" | "wheel" => [0.0, 0.0, 1.0, 0.5],
        _ => [0.1, 0.1, 0.1, 0.1],
    };
    let rows = VOCABULARY.iter().flat_map(|word| row(word)).collect();
    write_weights(directory, &[("embeddings".to_owned(), vec![VOCABULARY.len(), 4], rows)]);
    write_tokenizer(directory);
}

/// Writes a transformer with two layers of eight dimensions, and returns its weights.
pub(crate) fn write_bert(directory: &Path) -> Vec<Tensor> {
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![VOCABULARY.len(), HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS_COUNT, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![HIDDEN]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![HIDDEN]),
    ];
    for layer in 0..LAYERS_COUNT {
        let parts = [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ];
        for (part, outputs, inputs) in parts {
            let name = format!("encoder.layer.{layer}.{part}");
            shapes.push((format!("{name}.weight"), vec![outputs, inputs]));
            shapes.push((format!("{name}.bias"), vec![outputs]));
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            let name = format!("encoder.layer.{layer}.{part}");
            shapes.push((format!("{name}.weight"), vec![HIDDEN]));
            shapes.push((format!("{name}.bias"), vec![HIDDEN]));
        }
    }
    let mut state = 1_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).expect("16 bits are left")) / 32_768.0 - 1.0
    };
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let numbers = (0..shape.iter().product()).map(|_| number()).collect();
        (name, shape, numbers)
    };
    let tensors: Vec<Tensor> = shapes.into_iter().map(tensor).collect();
    write_weights(directory, &tensors);
    write_tokenizer(directory);
    write_json(directory, "config.json", &config());
    tensors
}

pub(crate) fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_attention_heads": HEADS_COUNT,
        "num_hidden_layers": LAYERS_COUNT, "max_position_embeddings": POSITIONS_COUNT,
        "layer_norm_eps": 1e-12
    })
}

pub(crate) fn write_weights(directory: &Path, tensors: &[Tensor]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, numbers) in tensors {
        let begin = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name.clone(), entry);
    }
    let header = Value::from(header).to_string();
    let mut file = u64::try_from(header.len()).expect("a length fits").to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    fs::write(directory.join("model.safetensors"), file).expect("the weights are written");
}

fn write_tokenizer(directory: &Path) {
    let vocabulary: HashMap<_, _> = VOCABULARY.iter().zip(0..).collect();
    let description = json!({
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary}
    });
    write_json(directory, "tokenizer.json", &description);
}

pub(crate) fn write_json(directory: &Path, name: &str, value: &Value) {
    fs::write(directory.join(name), value.to_string()).expect("the file is written");
}
