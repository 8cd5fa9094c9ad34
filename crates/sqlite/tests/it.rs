//! The embedded backend's tests, in one binary.

#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/erasing.rs"]
mod erasing;
#[path = "it/forgetting.rs"]
mod forgetting;
#[path = "it/grouping.rs"]
mod grouping;
#[path = "it/migrating.rs"]
mod migrating;
#[path = "it/model.rs"]
mod model;
#[path = "it/moving.rs"]
mod moving;
#[path = "it/opening.rs"]
mod opening;
#[path = "it/recalling.rs"]
mod recalling;
#[path = "it/replacing.rs"]
mod replacing;
#[path = "it/searching.rs"]
mod searching;
#[path = "it/support.rs"]
mod support;
#[path = "it/waiting.rs"]
mod waiting;
