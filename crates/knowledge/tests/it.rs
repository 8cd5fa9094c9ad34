//! Tests of the public interface, on the simplest backend.

#![expect(
    clippy::indexing_slicing,
    reason = "a test that is wrong about a place fails by panicking"
)]

#[path = "it/damage.rs"]
mod damage;
#[path = "it/erasing.rs"]
mod erasing;
#[path = "it/past.rs"]
mod past;
#[path = "it/random.rs"]
mod random;
#[path = "it/ranking.rs"]
mod ranking;
#[path = "it/suite.rs"]
mod suite;
