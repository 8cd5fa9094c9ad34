//! Quipu's model, rules and engine.
//!
//! This crate knows what a store, a memory and a version are and which changes are allowed. It
//! does no I/O of its own: a [`Backend`] stores the data, a [`Clock`] provides time and randomness,
//! and the doors (REST, MCP, mount, CLI) live in other crates and call [`Engine`]'s methods.
//!
//! Reading order: [`model`], [`backend`], [`engine`].

pub mod backend;
pub mod clock;
pub mod derived;
pub mod diff;
pub mod engine;
pub mod error;
pub mod merge;
pub mod model;
pub mod moment;
pub mod settings;
pub mod timeframe;
pub mod transfer;

pub use backend::Backend;
pub use clock::Clock;
pub use derived::Derived;
pub use engine::Engine;
pub use error::{Error, ErrorKind};
pub use moment::Moment;
