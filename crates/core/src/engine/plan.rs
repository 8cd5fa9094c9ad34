//! Plans: what a revert or the restore of a tree does, computed before anything is done.
//!
//! A plan names for each memory what becomes of it and why. It is computed on a snapshot for a dry run,
//! and inside the write transaction when it is carried out, by the same code; its digest tells whether
//! both are the same plan. What each memory should become is decided in [`super::revert`] and
//! [`super::restoration`]; which of that is possible, and in what order, in [`schedule`].

mod schedule;

use std::fmt::Write as _;

use crate::backend::{Reader, Sequence, Span, Subject, Usage};
use crate::model::{
    Actor, Content, Digest, ExpectedDigest, ForgottenPolicy, Id as _, Memory, MemoryId, MemoryPath,
    Reason, SecretPolicy, Store, StoreId, Tombstones, VersionId, View,
};
use crate::settings::Limits;
use crate::{Error, ErrorKind};

use super::memories::existing_memory;
use super::restoration::Restoration;
use super::revert::ChangeSelection;
use super::transaction::{ScreenedText, Target, Transaction, require_open};
use super::{Engine, Precondition, existing_store};

/// What a plan is to achieve in one store.
#[derive(Clone, Debug)]
pub enum Goal {
    /// To take back some changes.
    Revert(ChangeSelection),
    /// To go back to the state at a moment.
    Restore(Restoration),
}

/// What would become of the memories of one store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The store.
    pub store: StoreId,
    /// One step per memory: first what changes, in the order in which it is carried out, then what is
    /// left.
    pub steps: Vec<Step>,
    /// How many memories were looked at and are already as they should be.
    pub unchanged_count: usize,
    /// The hash of all that would be done, and to which versions. Any change to a memory of the plan,
    /// or to a path that it needs, makes another digest; other changes in the store do not.
    pub digest: Digest,
}

impl Plan {
    /// Returns how many memories would change.
    pub fn changed_count(&self) -> usize {
        self.steps.iter().filter(|step| step.action != Action::Leave).count()
    }

    /// Returns how many memories are left as they are although they should change.
    pub fn left_count(&self) -> usize {
        self.steps.len() - self.changed_count()
    }
}

/// What becomes of one memory.
#[derive(Clone, Debug)]
pub struct Step {
    /// The memory.
    pub memory: MemoryId,
    /// What it is now, with its text; `None` if it is deleted.
    pub before: Option<Memory>,
    /// What is done.
    pub action: Action,
    /// Why, in words.
    pub why: String,
}

impl Step {
    /// Gives up the path that the memory should get. Its text goes back where it is now, if it has another
    /// one: whoever moves a memory, or takes its path, must not keep what was written into it.
    fn keep_path(&mut self, obstacle: &str) {
        match (&mut self.action, &self.before) {
            (Action::Change(then), Some(before)) if then.content.hash() != before.hash => {
                then.path.clone_from(&before.path);
                self.why = format!("its text goes back; its path stays, because {obstacle}");
            }
            (action, _) => {
                *action = Action::Leave;
                obstacle.clone_into(&mut self.why);
            }
        }
    }
}

/// What is done to a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is deleted.
    Delete,
    /// It gets another text, another path or both.
    Change(State),
    /// It comes back after a deletion, with its id.
    Create(State),
    /// Nothing, because nothing of what should be done can be done.
    Leave,
}

/// Where a memory is and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its path.
    pub path: MemoryPath,
    /// Its text.
    pub content: Content,
}

/// What the caller of [`Engine::carry_out`] has decided.
#[derive(Clone, Debug)]
pub struct Approval {
    /// The digest of the plan that was looked at; with any other plan nothing is done. `None` accepts any
    /// plan.
    pub expect: Option<ExpectedDigest>,
    /// The reason that every version of it records.
    pub reason: Reason,
}

/// A plan that was carried out.
#[derive(Clone, Debug)]
pub struct CarriedOut {
    /// The plan.
    pub plan: Plan,
    /// The version of each step that changed something, in the same order. No other version of the data
    /// directory was made between the first and the last of them.
    pub versions: Vec<VersionId>,
}

impl CarriedOut {
    /// Returns when the first and the last version were made; `None` if there are none. Together with the
    /// author, this selects exactly these versions.
    pub fn span(&self) -> Option<Span> {
        let (first, last) = (self.versions.first()?, self.versions.last()?);
        Some(Span { first: first.created_at(), last: last.created_at() })
    }
}

/// What one memory should become.
pub(super) struct Desired {
    pub(super) memory: MemoryId,
    /// What it is now, without its text.
    pub(super) now: Option<Memory>,
    /// What it should be.
    pub(super) then: DesiredState,
    /// Why.
    pub(super) why: &'static str,
}

/// What a memory should be.
pub(super) enum DesiredState {
    /// What it is now.
    Same,
    /// Deleted.
    Absent,
    /// This.
    State(State),
    /// It cannot be told, for this reason.
    Unknown(String),
}

impl Engine {
    /// Returns what [`carry_out`](Self::carry_out) would do now.
    pub fn plan(&self, store: StoreId, goal: &Goal) -> Result<Plan, Error> {
        self.read(|reader| self.plan_on(reader, store, goal))
    }

    /// Does what [`plan`](Self::plan) says, in one transaction: one version per memory that changes. Fails
    /// without a change if the plan is not the expected one.
    pub fn carry_out(
        &self,
        actor: &Actor,
        store: StoreId,
        goal: &Goal,
        approval: &Approval,
    ) -> Result<CarriedOut, Error> {
        // Planning compares and screens texts, which takes a while. It is done before the transaction,
        // and again inside only if anything was written meanwhile: every write has a sequence.
        let planned = self.read(|reader| {
            let plan = self.plan_on(reader, store, goal)?;
            Ok((reader.newest_change()?.0, plan))
        })?;
        self.change(actor, (store, Subject::Store), |transaction| {
            let plan = self.current_plan(transaction, &planned, goal)?;
            require_expected(approval.expect.as_ref(), &plan)?;
            transaction.reason = Some(approval.reason.clone());
            let versions = transaction.apply(&plan)?;
            Ok(CarriedOut { plan, versions })
        })
    }

    fn current_plan(
        &self,
        transaction: &Transaction<'_, '_>,
        (planned_at, plan): &(Sequence, Plan),
        goal: &Goal,
    ) -> Result<Plan, Error> {
        let reader = transaction.reader();
        if reader.newest_change()?.0 == *planned_at {
            return Ok(plan.clone());
        }
        self.plan_on(reader, plan.store, goal)
    }

    fn plan_on(&self, reader: &dyn Reader, store: StoreId, goal: &Goal) -> Result<Plan, Error> {
        let store = existing_store(reader, store)?;
        require_open(&store)?;
        let now = self.clock.now().max(reader.newest_change()?.1);
        let desired_states = match goal {
            Goal::Revert(selection) => selection.desired_states(reader, &store, now)?,
            Goal::Restore(restoration) => restoration.desired_states(reader, &store, now)?,
        };
        let forgotten = match store.policy.forgotten {
            ForgottenPolicy::Refuse => Tombstones::new(&reader.tombstones(store.id)?),
            ForgottenPolicy::Warn => Tombstones::default(),
        };
        Planner { reader, store: &store, limits: &self.limits, forgotten }.plan(desired_states)
    }
}

fn require_expected(expected: Option<&ExpectedDigest>, plan: &Plan) -> Result<(), Error> {
    if expected.is_none_or(|expected| expected.accepts(plan.digest)) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::PreconditionFailed,
        format!("the plan has changed since it was made: its digest is now `{}`", plan.digest),
    )
    .with_hint("nothing was changed; make the plan again, look at it, and expect its new digest"))
}

struct Planner<'a> {
    reader: &'a dyn Reader,
    store: &'a Store,
    limits: &'a Limits,
    /// What the store does not take back.
    forgotten: Tombstones,
}

impl Planner<'_> {
    fn plan(&self, desired_states: Vec<Desired>) -> Result<Plan, Error> {
        let looked_at_count = desired_states.len();
        let mut steps = Vec::new();
        for desired in desired_states {
            steps.extend(self.step(desired)?);
        }
        let unchanged_count = looked_at_count - steps.len();
        let mut steps = schedule::ordered(self.reader, self.store.id, steps)?;
        self.leave_without_room(&mut steps)?;
        let digest = digest(self.store.id, &steps);
        Ok(Plan { store: self.store.id, steps, unchanged_count, digest })
    }

    /// Returns the step that fulfills a desired, or `None` if it is fulfilled already. Whether the path is
    /// free is decided later.
    fn step(&self, desired: Desired) -> Result<Option<Step>, Error> {
        let Desired { memory, now, then, why } = desired;
        if matches!((&now, &then), (_, DesiredState::Same) | (None, DesiredState::Absent)) {
            return Ok(None);
        }
        let before = match now {
            Some(_) => Some(existing_memory(self.reader, self.store.id, memory, View::Full)?),
            None => None,
        };
        let (action, why) = match self.action(before.as_ref(), then) {
            Ok(None) => return Ok(None),
            Ok(Some(action)) => (action, why.to_owned()),
            Err(why) => (Action::Leave, why),
        };
        let mut step = Step { memory, before, action, why };
        if schedule::arrival(&step).is_some_and(|path| self.is_forgotten(path)) {
            step.keep_path(
                "its earlier path holds what was redacted from the store, which the store refuses",
            );
        }
        Ok(Some(step))
    }

    /// Returns what makes a memory `then`, if anything has to be done, or why that is not possible.
    fn action(
        &self,
        before: Option<&Memory>,
        then: DesiredState,
    ) -> Result<Option<Action>, String> {
        let mut then = match then {
            DesiredState::Same => return Ok(None),
            DesiredState::Absent => return Ok(Some(Action::Delete)),
            DesiredState::Unknown(why) => return Err(why),
            DesiredState::State(then) => then,
        };
        // A text that stays is not screened, as in a rename.
        if before.is_none_or(|before| before.hash != then.content.hash()) {
            then.content = self.storable(then.content)?;
        }
        Ok(match before {
            // The store's policy may have taken out what was different.
            Some(before) if before.path == then.path && before.hash == then.content.hash() => None,
            Some(_) => Some(Action::Change(then)),
            None => Some(Action::Create(then)),
        })
    }

    /// Returns a text as the store keeps it, or why it does not keep it.
    ///
    /// How full the store is depends on the other steps, and does not matter here.
    fn storable(&self, content: Content) -> Result<Content, String> {
        let limit_bytes = self.limits.content_size_bytes_max;
        if content.size_bytes() > limit_bytes {
            return Err(format!(
                "its text would have {} bytes, but a memory has at most {limit_bytes}",
                content.size_bytes()
            ));
        }
        let text = ScreenedText::new(content);
        let content = match (self.store.policy.secrets, text.first_finding()) {
            (SecretPolicy::Reject, Some(finding)) => {
                return Err(format!(
                    "its text would hold a credential ({} in line {}), which the store refuses",
                    finding.kind, finding.line
                ));
            }
            (SecretPolicy::Redact, Some(_)) => {
                text.redacted().map_err(|error| error.to_string())?
            }
            (_, _) => text.into_content(),
        };
        let Some(found) = self.forgotten.find(content.as_str()).into_iter().next() else {
            return Ok(content);
        };
        let above = content.as_str().get(..found.start).unwrap_or_default();
        let line = above.matches('\n').count() + 1;
        Err(format!(
            "line {line} of its text would bring back what was redacted from the store, which the \
             store refuses"
        ))
    }

    /// Leaves deleted those memories that the store has no room for after all that comes before them.
    ///
    /// Nothing depends on them, since they come last. A longer text that does not fit fails with the whole
    /// plan: if its memory moves too, others wait for its path.
    fn leave_without_room(&self, steps: &mut [Step]) -> Result<(), Error> {
        let Usage { mut memories_count, mut size_bytes } = self.reader.usage(self.store.id)?;
        for step in &mut *steps {
            let freed_bytes = step.before.as_ref().map_or(0, |before| before.size_bytes);
            match &step.action {
                Action::Leave => {}
                Action::Delete => {
                    memories_count = memories_count.saturating_sub(1);
                    size_bytes = size_bytes.saturating_sub(freed_bytes);
                }
                Action::Change(then) => {
                    size_bytes = size_bytes.saturating_sub(freed_bytes) + then.content.size_bytes();
                }
                Action::Create(then) => {
                    let usage = Usage {
                        memories_count: memories_count + 1,
                        size_bytes: size_bytes + then.content.size_bytes(),
                    };
                    if let Some(why) = self.overflow(&usage) {
                        step.why = format!("it would come back at `{}`, but {why}", then.path);
                        step.action = Action::Leave;
                    } else {
                        Usage { memories_count, size_bytes } = usage;
                    }
                }
            }
        }
        steps.sort_by_key(schedule::rank);
        Ok(())
    }

    /// Returns why a store cannot hold so much.
    fn overflow(&self, usage: &Usage) -> Option<String> {
        let Limits { memories_per_store_max, store_size_bytes_max, .. } = *self.limits;
        if usage.memories_count > memories_per_store_max {
            return Some(format!(
                "the store would hold {} memories, and its limit is {memories_per_store_max}",
                usage.memories_count
            ));
        }
        (usage.size_bytes > store_size_bytes_max).then(|| {
            format!(
                "the store would hold {} bytes, and its limit is {store_size_bytes_max}",
                usage.size_bytes
            )
        })
    }

    fn is_forgotten(&self, path: &MemoryPath) -> bool {
        !self.forgotten.find(path.as_str()).is_empty()
    }
}

/// Returns the digest of all that the steps do, and to which versions.
fn digest(store: StoreId, steps: &[Step]) -> Digest {
    let mut text = format!("quipu plan 1\n{store}\n");
    for step in steps {
        let Step { memory, before, action, why } = step;
        let head = before.as_ref().map_or_else(|| "-".to_owned(), |it| it.version.to_string());
        let action = match action {
            Action::Delete => "delete".to_owned(),
            Action::Change(State { path, content }) => format!("change {} {path}", content.hash()),
            Action::Create(State { path, content }) => format!("create {} {path}", content.hash()),
            Action::Leave => format!("leave {why}"),
        };
        // A path has no line break, so a step is one line.
        writeln!(text, "{memory} {head} {action}").expect("a string can be written");
    }
    Digest::of(text).expect("neither ids nor paths hold a NUL")
}

impl Transaction<'_, '_> {
    /// Carries out the steps of a plan for this store, and returns the version of each.
    fn apply(&mut self, plan: &Plan) -> Result<Vec<VersionId>, Error> {
        let mut versions = Vec::new();
        for Step { memory, before, action, .. } in &plan.steps {
            // The plan has applied the store's policy to the text.
            let target = |State { path, content }: &State| Target {
                path: path.clone(),
                text: ScreenedText::unscreened(content.clone()),
            };
            versions.push(match (action, before.clone()) {
                (Action::Leave, _) | (Action::Delete | Action::Change(_), None) => continue,
                (Action::Delete, Some(before)) => self.delete(before)?.id,
                (Action::Change(then), Some(before)) => {
                    self.modify(before, target(then), Precondition::None)?.memory.version
                }
                (Action::Create(then), _) => {
                    self.create(target(then), Some(*memory))?.memory.version
                }
            });
        }
        Ok(versions)
    }
}
