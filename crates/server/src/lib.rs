//! Everything that Quipu speaks over HTTP or stdio.
//!
//! [`tool`] is the memory tool; [`wire`] holds the JSON shapes, which nothing else in Quipu has.

mod follower;
pub mod http;
pub mod tool;
pub mod wire;

pub use follower::follow_index;
