//! Multiplies matrices, with the vector instructions of the host's processor.
//!
//! A question is a dozen rows against weights of many megabytes, so the time goes into streaming the weights.
//! General matrix libraries repack both factors in each call; `matrixmultiply` takes three times as long for
//! twenty rows. Here the weights are packed once, when they are loaded, and read once per call.

use fearless_simd::{Level, Simd, dispatch, f32x16, prelude::*};

/// How many outputs are computed side by side.
const WIDTH: usize = 16;
/// How many rows share one pass over a panel. Six sums of 16 numbers fill the registers of AVX2 and NEON;
/// with more, sums would move to memory and back.
const ROWS: usize = 6;

/// The right-hand factor of a product, packed: panels of sixteen outputs, each with its weights for the first
/// input, then for the second.
#[derive(Debug)]
pub(crate) struct Panels {
    inputs: usize,
    outputs: usize,
    weights: Vec<[f32; WIDTH]>,
}

impl Panels {
    /// Packs a matrix whose rows, of length `inputs`, each make one output.
    pub(crate) fn from_rows<'r>(rows: impl Iterator<Item = &'r [f32]>, inputs: usize) -> Self {
        let rows: Vec<_> = rows.collect();
        Self { inputs, outputs: rows.len(), weights: interleaved(&rows, inputs) }
    }

    /// Packs a matrix whose rows each hold the weights of one input, for `outputs` outputs.
    pub(crate) fn from_columns<'r>(
        rows: impl Iterator<Item = &'r [f32]> + Clone,
        outputs: usize,
    ) -> Self {
        let inputs = rows.clone().count();
        let mut weights = vec![[0.0; WIDTH]; outputs.div_ceil(WIDTH) * inputs];
        for (input, row) in rows.enumerate() {
            let slots = weights.iter_mut().skip(input).step_by(inputs);
            for (slot, part) in slots.zip(row.chunks(WIDTH)) {
                slot.iter_mut().zip(part).for_each(|(slot, weight)| *slot = *weight);
            }
        }
        Self { inputs, outputs, weights }
    }

    /// Returns the product of rows with this matrix.
    pub(crate) fn multiply<'r>(&self, rows: impl Iterator<Item = &'r [f32]>) -> Vec<f32> {
        let rows: Vec<_> = rows.collect();
        let packed = interleaved(&rows, self.inputs);
        let mut product = vec![0.0; rows.len() * self.outputs];
        let level = Level::new();
        dispatch!(level, simd => self.fill(simd, &packed, &mut product));
        product
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled for the instructions of its caller")]
    fn fill<S: Simd>(&self, simd: S, packed: &[[f32; ROWS]], product: &mut [f32]) {
        // Panels outside, rows inside: the weights, which do not fit into a cache, are read once.
        for (panel, first) in self.weights.chunks_exact(self.inputs).zip((0..).step_by(WIDTH)) {
            let blocks = packed.chunks_exact(self.inputs);
            for (block, rows) in blocks.zip(product.chunks_mut(ROWS * self.outputs)) {
                let sums = sums(simd, panel, block);
                for (row, sums) in rows.chunks_exact_mut(self.outputs).zip(&sums) {
                    let slots = row.iter_mut().skip(first);
                    slots.zip(sums).for_each(|(slot, sum)| *slot = *sum);
                }
            }
        }
    }
}

/// Returns rows of length `length` in groups of `N`: the first numbers of a group, then its second ones. The last
/// group is filled with zeros.
fn interleaved<const N: usize>(rows: &[&[f32]], length: usize) -> Vec<[f32; N]> {
    let mut groups = vec![[0.0; N]; rows.len().div_ceil(N) * length];
    for (group, rows) in groups.chunks_exact_mut(length).zip(rows.chunks(N)) {
        for (place, row) in rows.iter().enumerate() {
            let slots = group.iter_mut().filter_map(|slots| slots.get_mut(place));
            slots.zip(*row).for_each(|(slot, number)| *slot = *number);
        }
    }
    groups
}

/// Returns the outputs of one panel for one block of rows.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled for the instructions of its caller")]
fn sums<S: Simd>(simd: S, panel: &[[f32; WIDTH]], block: &[[f32; ROWS]]) -> [[f32; WIDTH]; ROWS] {
    let mut sums = [f32x16::splat(simd, 0.0); ROWS];
    for (weights, values) in panel.iter().zip(block) {
        let weights = f32x16::from_slice(simd, weights);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = weights.mul_add(f32x16::splat(simd, *value), *sum);
        }
    }
    sums.map(|sum| {
        let mut numbers = [0.0; WIDTH];
        sum.store_slice(&mut numbers);
        numbers
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product by definition.
    fn naive(rows: &[f32], inputs: usize, weights: &[f32]) -> Vec<f32> {
        let outputs = |row: &[f32]| -> Vec<f32> {
            let dot = |weights: &[f32]| row.iter().zip(weights).map(|(a, b)| a * b).sum();
            weights.chunks_exact(inputs).map(dot).collect()
        };
        rows.chunks_exact(inputs).flat_map(outputs).collect()
    }

    fn numbers(count: usize) -> Vec<f32> {
        // Small integers, so that every order of the additions has the same sum.
        (0_u8..=250).cycle().step_by(7).take(count).map(|byte| f32::from(byte % 9) - 4.0).collect()
    }

    #[test]
    fn products_are_exact_for_sizes_that_fill_no_panel_and_no_block() {
        for (count, inputs, outputs) in
            [(1, 1, 1), (5, 8, 3), (6, 16, 16), (7, 3, 17), (13, 40, 50)]
        {
            let (rows, weights) = (numbers(count * inputs), numbers(outputs * inputs));
            let expected = naive(&rows, inputs, &weights);
            let panels = Panels::from_rows(weights.chunks_exact(inputs), inputs);
            assert_eq!(panels.multiply(rows.chunks_exact(inputs)), expected);

            let mut columns = vec![0.0; weights.len()];
            for (output, row) in weights.chunks_exact(inputs).enumerate() {
                for (input, weight) in row.iter().enumerate() {
                    columns[input * outputs + output] = *weight;
                }
            }
            let panels = Panels::from_columns(columns.chunks_exact(outputs), outputs);
            assert_eq!(panels.multiply(rows.chunks_exact(inputs)), expected);
        }
    }
}
