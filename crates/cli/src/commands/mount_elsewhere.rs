//! `quipu mount` on systems other than Linux.

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
        .with_hint("`quipu sync` syncs a plain directory and a store instead")
}
