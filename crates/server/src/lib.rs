//! Everything that Quipu speaks over HTTP or stdio.
//!
//! [`wire`] holds the JSON shapes; nothing else in Quipu turns values into JSON.

pub mod wire;
