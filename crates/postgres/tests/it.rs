//! The tests of the PostgreSQL backend, in one binary. They run a cluster of their own.

#[path = "it/breaking.rs"]
mod breaking;
#[path = "it/cluster.rs"]
mod cluster;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/erasing.rs"]
mod erasing;
#[path = "it/failing.rs"]
mod failing;
#[path = "it/filling.rs"]
mod filling;
#[path = "it/model.rs"]
mod model;
#[path = "it/moving.rs"]
mod moving;
#[path = "it/pooling.rs"]
mod pooling;
#[path = "it/proxy.rs"]
mod proxy;
#[path = "it/refusing.rs"]
mod refusing;
#[path = "it/replicating.rs"]
mod replicating;
#[path = "it/securing.rs"]
mod securing;
#[path = "it/sharing.rs"]
mod sharing;
#[path = "it/support.rs"]
mod support;
#[path = "it/upgrading.rs"]
mod upgrading;
#[path = "it/waiting.rs"]
mod waiting;
