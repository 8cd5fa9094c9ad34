//! Tests of the public interface, on the simplest backend.

#![expect(
    clippy::indexing_slicing,
    reason = "a test that is wrong about a place fails by panicking"
)]

#[path = "it/contexts.rs"]
mod contexts;
#[path = "it/damage.rs"]
mod damage;
#[path = "it/dates.rs"]
mod dates;
#[path = "it/erasing.rs"]
mod erasing;
#[path = "it/explaining.rs"]
mod explaining;
#[path = "it/freshness.rs"]
mod freshness;
#[path = "it/hits.rs"]
mod hits;
#[path = "it/languages.rs"]
mod languages;
#[path = "it/linking.rs"]
mod linking;
#[path = "it/naming.rs"]
mod naming;
#[path = "it/neighbors.rs"]
mod neighbors;
#[path = "it/on_demand.rs"]
mod on_demand;
#[path = "it/past.rs"]
mod past;
#[path = "it/querying.rs"]
mod querying;
#[path = "it/random.rs"]
mod random;
#[path = "it/ranking.rs"]
mod ranking;
#[path = "it/recents.rs"]
mod recents;
#[path = "it/shelf.rs"]
mod shelf;
#[path = "it/stores.rs"]
mod stores;
#[path = "it/suggesting.rs"]
mod suggesting;
#[path = "it/suggesting_semantic.rs"]
mod suggesting_semantic;
#[path = "it/suite.rs"]
mod suite;
#[path = "it/vectors.rs"]
mod vectors;
#[path = "it/vectors_erasing.rs"]
mod vectors_erasing;
#[path = "it/vectors_failing.rs"]
mod vectors_failing;
