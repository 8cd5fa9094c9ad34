//! Everything that Quipu speaks over HTTP or stdio.
//!
//! [`tool`] is the memory tool; [`wire`] holds the JSON shapes, which nothing else in Quipu has.

pub mod http;
pub mod tool;
pub mod wire;
