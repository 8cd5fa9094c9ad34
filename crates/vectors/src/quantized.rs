//! Vectors with 8 bits per dimension, and their comparison.
//!
//! A stored vector is a scale and one `i8` per dimension, a quarter of its size as `f32`. That costs
//! less than a thousandth of a cosine, which is far below the differences that a ranking depends on.
//! The vector of a question is compared with many, so it has 12 bits, at no extra cost: the product
//! is computed in wider numbers anyway.

/// The greatest length of a vector. Sums of products of this many dimensions fit into an `i32`.
pub const DIMENSIONS_MAX: usize = 8192;

const MEMORY_MAX: f32 = 127.0;
const QUESTION_MAX: f32 = 2047.0;

/// How many products are summed side by side. With fewer, the compiler uses half of each register;
/// with a plain sum, half of the instructions are spent on adding within registers.
const LANES: usize = 16;

/// A stored vector of length one.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// What each value is multiplied with; zero for the zero vector.
    pub scale: f32,
    /// One value for each dimension, from -127 to 127.
    pub values: Vec<i8>,
}

impl Quantized {
    /// Returns the stored form of a vector, scaled to length one; `None` if it has a value that is not
    /// a finite number.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let (scale, values) = quantized(vector, MEMORY_MAX)?;
        #[expect(clippy::cast_possible_truncation, reason = "the values are within ±127")]
        let values = values.map(|value| value as i8).collect();
        Some(Self { scale, values })
    }

    /// Returns the mean of some vectors of the same length, scaled to length one.
    pub fn mean<'v>(vectors: impl IntoIterator<Item = &'v Self>) -> Option<Self> {
        let mut sum: Vec<f32> = Vec::new();
        for Self { scale, values } in vectors {
            sum.resize(sum.len().max(values.len()), 0.0);
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += f32::from(*value) * scale;
            }
        }
        Self::new(&sum)
    }
}

/// The vector of a question, to be compared with stored ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    scale: f32,
    values: Vec<i16>,
}

impl Question {
    /// Returns the form of a vector that can be compared; `None` if it has a value that is not a finite
    /// number.
    pub fn new(vector: &[f32]) -> Option<Self> {
        let (scale, values) = quantized(vector, QUESTION_MAX)?;
        #[expect(clippy::cast_possible_truncation, reason = "the values are within ±2047")]
        let values = values.map(|value| value as i16).collect();
        Some(Self { scale, values })
    }

    /// Returns the length of the vector.
    pub fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// Returns the cosine of the angle between the question and a stored vector, from -1 to 1; 0 if one
    /// of them is the zero vector. Vectors of different lengths are compared in their common dimensions.
    pub fn cosine(&self, scale: f32, values: &[i8]) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits are more than the vectors have")]
        let product = dot(&self.values, values) as f32;
        product * self.scale * scale
    }
}

/// Returns the factor and the rounded values of a vector of length one.
fn quantized(vector: &[f32], max: f32) -> Option<(f32, impl Iterator<Item = f32>)> {
    let square = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    let largest = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    if !square.is_finite() {
        return None;
    }
    let factor = if largest > 0.0 { max / largest } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "a length close to that of the values")]
    let length = square.sqrt() as f32;
    // The smallest numbers have no reciprocal; a vector of them points nowhere.
    let factor = if factor.is_finite() { factor } else { 0.0 };
    let scale = if factor > 0.0 { 1.0 / (factor * length) } else { 0.0 };
    Some((scale, vector.iter().map(move |value| (value * factor).round())))
}

fn dot(question: &[i16], values: &[i8]) -> i32 {
    let (question, question_rest) = question.as_chunks::<LANES>();
    let (values, values_rest) = values.as_chunks::<LANES>();
    let mut sums = [0_i32; LANES];
    for (left, right) in question.iter().zip(values) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += i32::from(*left) * i32::from(*right);
        }
    }
    let rest = question_rest.iter().zip(values_rest);
    sums.iter().sum::<i32>()
        + rest.map(|(left, right)| i32::from(*left) * i32::from(*right)).sum::<i32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a vector of pseudorandom values.
    fn vector(dimensions: usize, mut seed: u32) -> Vec<f32> {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(seed >> 16).unwrap()) / 32_768.0 - 1.0
        };
        (0..dimensions).map(|_| next()).collect()
    }

    fn exact(left: &[f32], right: &[f32]) -> f32 {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        product(left, right) / (product(left, left) * product(right, right)).sqrt()
    }

    fn cosine(question: &[f32], memory: &[f32]) -> f32 {
        let memory = Quantized::new(memory).unwrap();
        Question::new(question).unwrap().cosine(memory.scale, &memory.values)
    }

    #[test]
    fn cosines_are_those_of_the_vectors() {
        for dimensions in [1, 2, 15, 16, 17, 100, 384, 1024, DIMENSIONS_MAX] {
            for seed in 0..20 {
                let (left, right) = (vector(dimensions, seed), vector(dimensions, seed + 100));
                let difference = (cosine(&left, &right) - exact(&left, &right)).abs();
                assert!(difference < 0.01, "{dimensions} {seed}: {difference}");
            }
        }
        let same = vector(384, 7);
        assert!((cosine(&same, &same) - 1.0).abs() < 0.001);
        let opposite: Vec<_> = same.iter().map(|value| -value).collect();
        assert!((cosine(&same, &opposite) + 1.0).abs() < 0.001);
    }

    #[test]
    fn the_length_of_a_vector_does_not_count() {
        let (left, right) = (vector(384, 1), vector(384, 2));
        for factor in [1e-30, 0.001, 1000.0, 1e30] {
            let scaled: Vec<_> = right.iter().map(|value| value * factor).collect();
            assert!((cosine(&left, &scaled) - cosine(&left, &right)).abs() < 0.001, "{factor}");
        }
    }

    #[test]
    fn the_mean_is_as_near_to_each_of_its_vectors() {
        let (left, right) = (vector(384, 1), vector(384, 2));
        let mean = Quantized::mean(&[&left, &right].map(|it| Quantized::new(it).unwrap())).unwrap();
        let to = |it: &[f32]| Question::new(it).unwrap().cosine(mean.scale, &mean.values);
        assert!((to(&left) - to(&right)).abs() < 0.01, "{} {}", to(&left), to(&right));
        assert!(to(&left) > cosine(&left, &right));
        assert!(Quantized::mean(&[]).unwrap().values.is_empty());
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let ones = vec![1.0; DIMENSIONS_MAX];
        assert!((cosine(&ones, &ones) - 1.0).abs() < 0.001);
        let largest = vec![f32::MAX; 4];
        assert!(cosine(&largest, &ones).is_finite());
        assert!(cosine(&[f32::MIN_POSITIVE / 4.0; 4], &ones).is_finite());
    }

    #[test]
    fn the_zero_vector_is_similar_to_nothing() {
        let some = vector(16, 1);
        for (left, right) in [(&[0.0; 16][..], &some[..]), (&some, &[0.0; 16]), (&[], &[])] {
            assert!(cosine(left, right).abs() < f32::EPSILON);
        }
    }

    #[test]
    fn values_that_are_not_finite_are_refused() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Quantized::new(&[0.5, value]), None);
            assert_eq!(Question::new(&[0.5, value]), None);
        }
    }
}
