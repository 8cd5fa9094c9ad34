//! Previews of a plan, for dry runs.

use quipu_core::Error;

use super::apply::{Applied, Applier};
use super::failure::StepError;
use super::plan::{Plan, Step, Task};
use super::report::{ActionKind, Side};

impl Applier<'_> {
    /// Returns the outcome of a plan without carrying it out.
    pub(super) fn preview(&self, plan: &Plan) -> Result<Applied, Error> {
        let mut applied = Applied::default();
        for step in &plan.steps {
            match self.preview_step(step) {
                Ok(actions) => applied.note(step, actions),
                Err(error) => applied.note_error(step, error)?,
            }
        }
        Ok(applied)
    }

    fn preview_step(&self, step: &Step) -> Result<Vec<ActionKind>, StepError> {
        let came = if step.synced.is_some() { ActionKind::Revived } else { ActionKind::Created };
        Ok(match &step.task {
            Task::DeleteMemory(_) => vec![ActionKind::Deleted(Side::Store)],
            Task::DeleteFile(_) => vec![ActionKind::Deleted(Side::Folder)],
            Task::CreateMemory(_) => vec![came(Side::Store)],
            Task::CreateFile(_) => vec![came(Side::Folder)],
            Task::Join(join) => {
                let mut actions: Vec<_> = self.decided(join)?.1.into_iter().collect();
                if join.path != join.memory.path {
                    let from = join.memory.path.clone();
                    actions.push(ActionKind::Moved { side: Side::Store, from });
                }
                if join.moves_file() {
                    let from = join.place.path.clone();
                    actions.push(ActionKind::Moved { side: Side::Folder, from });
                }
                actions
            }
        })
    }
}
