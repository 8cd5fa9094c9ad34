//! Reads weights from a file in the safetensors format.
//!
//! The format is a length, a JSON header that names each tensor with its type, shape and place, and then the
//! numbers. Tensors are read where they are, so a table of words costs no memory: each text needs only a
//! few of its rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::EncodeError;

/// An open file of weights, whose header has been checked against the file's size.
#[derive(Debug)]
pub(crate) struct Weights {
    file: File,
    tensors: BTreeMap<String, Tensor>,
}

/// Reads a header: the tensors of a file of this size, whose numbers begin at an offset.
pub(crate) fn tensors(
    header: &[u8],
    data_offset: u64,
    size_bytes: u64,
) -> Result<BTreeMap<String, Tensor>, EncodeError> {
    let header: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|error| broken(&error))?;
    let mut tensors = BTreeMap::new();
    for (name, value) in header {
        if name == "__metadata__" {
            continue;
        }
        let entry = Entry::deserialize(value).map_err(|error| broken(&error))?;
        let tensor = entry.tensor(data_offset, size_bytes);
        let tensor = tensor.map_err(|why| broken(&format!("tensor `{name}` {why}")))?;
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// Where a tensor lies in its file.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    number: Number,
    /// Where its numbers begin in the file.
    offset: u64,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    F64,
    F32,
    F16,
    Bf16,
    I8,
    I32,
    I64,
    /// A type that nothing here computes with. A file may contain such tensors as long as nobody reads them.
    Other,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

const HEADER_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The length of the header, at the beginning of the file.
const LENGTH_SIZE_BYTES: u64 = 8;

impl Weights {
    /// Opens a file and checks its header: every tensor lies within the file and has the size that its
    /// shape says. A file that was cut off fails here.
    pub(crate) fn open(path: &Path) -> Result<Self, EncodeError> {
        let file = File::open(path).map_err(|error| broken(&error))?;
        let size_bytes = file.metadata().map_err(|error| broken(&error))?.len();
        let mut length = [0; 8];
        read_at(&file, &mut length, 0).map_err(|error| broken(&error))?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_SIZE_BYTES_MAX {
            return Err(broken(&"its header is too large"));
        }
        let data_offset = LENGTH_SIZE_BYTES + length;
        if data_offset > size_bytes {
            return Err(broken(&"it ends within its header"));
        }
        let mut header = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        read_at(&file, &mut header, LENGTH_SIZE_BYTES).map_err(|error| broken(&error))?;
        Ok(Self { file, tensors: tensors(&header, data_offset, size_bytes)? })
    }

    /// Returns whether the file has a tensor with this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the tensor with this name and number of dimensions.
    pub(crate) fn tensor(&self, name: &str, rank: usize) -> Result<&Tensor, EncodeError> {
        let tensor = self
            .tensors
            .get(name)
            .ok_or_else(|| EncodeError::new(format!("the weights have no tensor `{name}`")))?;
        if tensor.number == Number::Other {
            return Err(EncodeError::new(format!(
                "the tensor `{name}` has an unsupported number type"
            )));
        }
        if tensor.shape.len() != rank || tensor.shape.contains(&0) {
            let message = format!("the tensor `{name}` has the wrong shape {:?}", tensor.shape);
            return Err(EncodeError::new(message));
        }
        Ok(tensor)
    }

    /// Returns the numbers of the tensor with this name, which must have this shape.
    pub(crate) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncodeError> {
        let tensor = self.tensor(name, shape.len())?;
        if tensor.shape != shape {
            return Err(EncodeError::new(format!(
                "the tensor `{name}` has the shape {:?} instead of {shape:?}",
                tensor.shape
            )));
        }
        let mut numbers = vec![0.0; tensor.count()];
        self.read(tensor, 0, &mut numbers)?;
        Ok(numbers)
    }

    /// Reads numbers of a tensor, beginning with the one at `position`.
    pub(crate) fn read(
        &self,
        tensor: &Tensor,
        position: usize,
        numbers: &mut [f32],
    ) -> Result<(), EncodeError> {
        let width = tensor.number.width();
        if position.saturating_add(numbers.len()) > tensor.count() {
            return Err(EncodeError::new("a token lies outside of the weights".to_owned()));
        }
        let mut bytes = vec![0; numbers.len() * width];
        let offset = tensor.offset + (position * width) as u64;
        read_at(&self.file, &mut bytes, offset).map_err(|error| broken(&error))?;
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(width)) {
            *number = tensor.number.decode(bytes);
        }
        Ok(())
    }

    /// Fails if one of the tensor's numbers is infinite or not a number.
    pub(crate) fn check_finite(&self, name: &str, rank: usize) -> Result<(), EncodeError> {
        let tensor = self.tensor(name, rank)?;
        let mut numbers = vec![0.0; 64 * 1024];
        let mut position = 0;
        while position < tensor.count() {
            let count = numbers.len().min(tensor.count() - position);
            numbers.truncate(count);
            self.read(tensor, position, &mut numbers)?;
            if !numbers.iter().all(|number| number.is_finite()) {
                return Err(broken(&format!("tensor `{name}` contains NaN or infinity")));
            }
            position += count;
        }
        Ok(())
    }
}

impl Tensor {
    fn count(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Entry {
    fn tensor(self, data_offset: u64, size_bytes: u64) -> Result<Tensor, &'static str> {
        let number = Number::named(&self.dtype);
        let (begin, end) = self.data_offsets;
        let length = end.checked_sub(begin).ok_or("ends before it begins")?;
        if end.checked_add(data_offset).is_none_or(|end| end > size_bytes) {
            return Err("lies beyond the end of the file, which is incomplete");
        }
        let count = self.shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
        let expected = count.and_then(|count| count.checked_mul(number.width()));
        let is_right = expected.is_some_and(|expected| expected as u64 == length);
        if number != Number::Other && !is_right {
            return Err("has another size than its shape says");
        }
        Ok(Tensor { shape: self.shape, number, offset: data_offset + begin })
    }
}

impl Number {
    fn named(name: &str) -> Self {
        match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "I8" => Self::I8,
            "I32" => Self::I32,
            "I64" => Self::I64,
            _ => Self::Other,
        }
    }

    fn width(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 | Self::Other => 1,
        }
    }

    /// Returns the number in exactly as many bytes as it is wide.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "vectors have 32 bits"
    )]
    fn decode(self, bytes: &[u8]) -> f32 {
        let decoded = match self {
            Self::F64 => bytes.first_chunk().map(|bytes| f64::from_le_bytes(*bytes) as f32),
            Self::F32 => bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes)),
            Self::F16 => bytes.first_chunk().map(|bytes| half(u16::from_le_bytes(*bytes))),
            Self::Bf16 => {
                bytes.first_chunk().map(|[low, high]| f32::from_le_bytes([0, 0, *low, *high]))
            }
            Self::I8 => bytes.first_chunk().map(|bytes| f32::from(i8::from_le_bytes(*bytes))),
            Self::I32 => bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes) as f32),
            Self::I64 => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes) as f32),
            // Refused before anything is read.
            Self::Other => None,
        };
        decoded.unwrap_or(f32::NAN)
    }
}

/// Returns the number that 16 bits of IEEE 754 say.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    sign * match exponent {
        0 => fraction * 2_f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1.0 + fraction) * 2_f32.powi(exponent - 15),
    }
}

fn broken(why: &dyn std::fmt::Display) -> EncodeError {
    EncodeError::new(format!("the file of weights is broken: {why}"))
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt as _;
    while !bytes.is_empty() {
        let count = file.seek_read(bytes, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = bytes.get_mut(count..).unwrap_or_default();
        offset += count as u64;
    }
    Ok(())
}
