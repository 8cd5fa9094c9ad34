//! A naive reference of the engine's rules, and random operations on both.
//!
//! [`Reference`] is one store as two lists and does everything in the most obvious way.
//! [`run`] applies operations to it and to a real engine, and after each step compares the answer,
//! the new versions and the whole store. Names, texts and limits are tiny, so that collisions
//! happen often.

mod operation;
mod reference;
mod runner;

pub use operation::{Operation, operations};
pub use reference::Reference;
pub use runner::run;
