//! Tests of what doors use, over the simplest backend.

#[path = "it/damage.rs"]
mod damage;
#[path = "it/random.rs"]
mod random;
#[path = "it/ranking.rs"]
mod ranking;
#[path = "it/suite.rs"]
mod suite;
