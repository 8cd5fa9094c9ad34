//! The engine's tests over the in-memory backend, in one binary.

#![expect(clippy::string_slice, clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "it/blame.rs"]
mod blame;
#[path = "it/check.rs"]
mod check;
#[path = "it/clock.rs"]
mod clock;
#[path = "it/comparing.rs"]
mod comparing;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/contents.rs"]
mod contents;
#[path = "it/copying.rs"]
mod copying;
#[path = "it/derived_keys.rs"]
mod derived_keys;
#[path = "it/derived_keys_random.rs"]
mod derived_keys_random;
#[path = "it/erasing.rs"]
mod erasing;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/feed.rs"]
mod feed;
#[path = "it/forgetting.rs"]
mod forgetting;
#[path = "it/interleaving.rs"]
mod interleaving;
#[path = "it/keys.rs"]
mod keys;
#[path = "it/listing.rs"]
mod listing;
#[path = "it/memories.rs"]
mod memories;
#[path = "it/merging.rs"]
mod merging;
#[path = "it/model.rs"]
mod model;
#[path = "it/past.rs"]
mod past;
#[path = "it/places.rs"]
mod places;
#[path = "it/properties.rs"]
mod properties;
#[path = "it/quirks.rs"]
mod quirks;
#[path = "it/recording.rs"]
mod recording;
#[path = "it/reserved.rs"]
mod reserved;
#[path = "it/retention.rs"]
mod retention;
#[path = "it/reverting.rs"]
mod reverting;
#[path = "it/reverting_random.rs"]
mod reverting_random;
#[path = "it/screening.rs"]
mod screening;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/stores.rs"]
mod stores;
#[path = "it/support.rs"]
mod support;
#[path = "it/traces.rs"]
mod traces;
#[path = "it/versions.rs"]
mod versions;
#[path = "it/waiting.rs"]
mod waiting;
