//! Real models: their vectors are those of an independent computation. `./test vectors` installs the models
//! and runs this; `tests/vectors/reference.py` has computed the numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use quipu_vectors::{Encoder as _, LocalEncoder, Purpose};

/// Returns the directory of the models.
fn models() -> PathBuf {
    let models = std::env::var_os("QUIPU_TEST_MODELS");
    models.map(PathBuf::from).expect("`./test vectors` says where the models are")
}

#[test]
fn vectors_are_those_of_the_reference() {
    let texts: Vec<String> =
        serde_json::from_str(include_str!("../../../tests/vectors/texts.json")).unwrap();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let expected: BTreeMap<String, Vec<Vec<f64>>> =
        serde_json::from_str(include_str!("../../../tests/vectors/expected.json")).unwrap();
    assert_eq!(expected.len(), 2);
    for (name, rows) in expected {
        let encoder = LocalEncoder::open(&models().join(&name)).unwrap();
        let vectors = encoder.encode(Purpose::Memory, &texts).unwrap();
        assert_eq!(vectors.len(), rows.len());
        for ((vector, row), text) in vectors.iter().zip(rows).zip(&texts) {
            let angle = |place: usize| f64::from(u32::try_from(place).unwrap()).cos();
            let weighted =
                vector.iter().enumerate().map(|(i, number)| f64::from(*number) * angle(i));
            let (sum, first) = row.split_last().unwrap();
            let pairs = vector.iter().map(|number| f64::from(*number)).zip(first);
            for (number, expected) in pairs.chain([(weighted.sum(), sum)]) {
                assert!((number - expected).abs() < 2e-6, "{name}, {text}: {number} {expected}");
            }
        }
    }
}
