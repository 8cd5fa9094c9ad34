//! What carrying out a plan would do.

use quipu_core::Error;

use super::apply::{Applied, Hands, Stop};
use super::plan::{Plan, Step, Task};
use super::report::{DeedKind, Side};

impl Hands<'_> {
    /// Returns what a plan would do.
    pub(super) fn foresee(&self, plan: &Plan) -> Result<Applied, Error> {
        let mut applied = Applied::default();
        for step in &plan.steps {
            match self.foreseen(step) {
                Ok(deeds) => applied.note(step, deeds),
                Err(stop) => applied.note_stop(step, stop)?,
            }
        }
        Ok(applied)
    }

    fn foreseen(&self, step: &Step) -> Result<Vec<DeedKind>, Stop> {
        let came = if step.agreed.is_some() { DeedKind::Revived } else { DeedKind::Created };
        Ok(match &step.task {
            Task::DeleteMemory(_) => vec![DeedKind::Deleted(Side::Store)],
            Task::DeleteFile(_) => vec![DeedKind::Deleted(Side::Folder)],
            Task::CreateMemory(_) => vec![came(Side::Store)],
            Task::CreateFile(_) => vec![came(Side::Folder)],
            Task::Join(join) => {
                let mut deeds: Vec<_> = self.decided(join)?.1.into_iter().collect();
                if join.path != join.memory.path {
                    let from = join.memory.path.clone();
                    deeds.push(DeedKind::Moved { side: Side::Store, from });
                }
                if join.moves_file() {
                    let from = join.place.path.clone();
                    deeds.push(DeedKind::Moved { side: Side::Folder, from });
                }
                deeds
            }
        })
    }
}
