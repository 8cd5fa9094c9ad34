//! `quipu mount` where the kernel has no FUSE.

use crate::args::{MountArguments, UnmountArguments};
use crate::context::Context;
use crate::failure::Failure;

pub(super) fn run(_: &Context, _: &MountArguments) -> Result<(), Failure> {
    Err(unavailable())
}

pub(super) fn unmount(_: &Context, _: &UnmountArguments) -> Result<(), Failure> {
    Err(unavailable())
}

fn unavailable() -> Failure {
    Failure::other("stores can be mounted on Linux only")
        .with_hint("`quipu sync` keeps a plain directory and a store equal")
}
