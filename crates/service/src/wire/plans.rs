//! The shapes of plans, of what was carried out, and of what somebody changed.

use std::collections::HashMap;

use quipu_core::backend::Span;
use quipu_core::diff::Diff;
use quipu_core::engine::{Action, CarriedOut, Changed, Known, Plan, State, Step};
use quipu_core::model;
use serde::{Deserialize, Serialize};

use super::own::DiffBody;

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

/// The maximum size of all differences in an answer, so that one request cannot fill the memory with the
/// texts of a whole store. Those beyond it are left out.
const DIFFS_SIZE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The differences of one answer.
#[derive(Debug, Default)]
pub struct Diffs {
    size_bytes: usize,
}

impl Diffs {
    /// Returns the shape of a difference, unless there were too many before it.
    fn body(&mut self, diff: &Diff) -> Option<DiffBody> {
        if self.size_bytes > DIFFS_SIZE_BYTES_MAX {
            return None;
        }
        let body = DiffBody::new(diff, CONTEXT_LINES);
        let lines = body.hunks.iter().flat_map(|hunk| &hunk.lines);
        self.size_bytes += lines.map(String::len).sum::<usize>();
        Some(body)
    }
}

/// What a revert or a restore does in one store, or would do.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "plan")]
pub struct PlanBody {
    /// The store.
    pub memory_store_id: String,
    /// What to expect when it is carried out.
    pub digest: String,
    /// Whether it was carried out.
    pub is_carried_out: bool,
    /// How many memories change.
    pub changed_count: usize,
    /// How many memories are left as they are although they should change.
    pub left_count: usize,
    /// How many memories are already as they should be.
    pub unchanged_count: usize,
    /// What becomes of each memory.
    pub steps: Vec<StepBody>,
    /// When the versions were made that it consists of; null if there are none. With their author, this
    /// selects exactly these versions.
    pub created: Option<SpanBody>,
}

/// A span of time; both ends belong to it.
#[derive(Clone, Debug, Serialize)]
pub struct SpanBody {
    /// The first moment.
    pub since: String,
    /// The last moment.
    pub until: String,
}

impl From<Span> for SpanBody {
    fn from(span: Span) -> Self {
        Self { since: span.first.to_string(), until: span.last.to_string() }
    }
}

/// What becomes of one memory.
#[derive(Clone, Debug, Serialize)]
pub struct StepBody {
    /// The memory.
    pub memory_id: String,
    /// `delete`, `change`, `create` or `leave`.
    pub action: &'static str,
    /// Why.
    pub why: String,
    /// Where the memory is before; null if it is deleted.
    pub path: Option<String>,
    /// Where it is after; null if it is deleted.
    pub new_path: Option<String>,
    /// The version that was made, if any.
    pub memory_version_id: Option<String>,
    /// What changes in its text; null if the answer would become too long.
    pub diff: Option<DiffBody>,
}

impl PlanBody {
    fn new(plan: &Plan, versions: &HashMap<model::MemoryId, model::VersionId>) -> Self {
        let mut diffs = Diffs::default();
        let steps = plan.steps.iter().map(|step| {
            let version = versions.get(&step.memory).map(ToString::to_string);
            StepBody::new(step, version, &mut diffs)
        });
        Self {
            memory_store_id: plan.store.to_string(),
            digest: plan.digest.to_string(),
            is_carried_out: false,
            changed_count: plan.changed_count(),
            left_count: plan.left_count(),
            unchanged_count: plan.unchanged_count,
            steps: steps.collect(),
            created: None,
        }
    }
}

impl From<&Plan> for PlanBody {
    fn from(plan: &Plan) -> Self {
        Self::new(plan, &HashMap::new())
    }
}

impl From<&CarriedOut> for PlanBody {
    fn from(done: &CarriedOut) -> Self {
        let changing = done.plan.steps.iter().filter(|step| step.action != Action::Leave);
        let versions = changing.map(|step| step.memory).zip(done.versions.iter().copied());
        let plan = Self::new(&done.plan, &versions.collect());
        Self { is_carried_out: true, created: done.span().map(SpanBody::from), ..plan }
    }
}

impl StepBody {
    fn new(step: &Step, memory_version_id: Option<String>, diffs: &mut Diffs) -> Self {
        let path = step.before.as_ref().map(|before| before.path.to_string());
        let (action, new_path) = match &step.action {
            Action::Delete => ("delete", None),
            Action::Change(State { path, .. }) => ("change", Some(path.to_string())),
            Action::Create(State { path, .. }) => ("create", Some(path.to_string())),
            Action::Leave => ("leave", path.clone()),
        };
        Self {
            memory_id: step.memory.to_string(),
            action,
            why: step.why.clone(),
            path,
            new_path,
            memory_version_id,
            diff: diffs.body(&step_diff(step)),
        }
    }
}

/// Returns what a step changes in the text of its memory.
pub fn step_diff(step: &Step) -> Diff {
    let content = step.before.as_ref().and_then(|before| before.content.as_ref());
    let old = content.map_or("", model::Content::as_str);
    match &step.action {
        Action::Delete => Diff::new(old, ""),
        Action::Change(then) | Action::Create(then) => Diff::new(old, then.content.as_str()),
        Action::Leave => Diff::new(old, old),
    }
}

/// What the changes of a session to one memory come to.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "changed_memory")]
pub struct ChangedBody {
    /// The store.
    pub memory_store_id: String,
    /// The memory.
    pub memory_id: String,
    /// Where it was before the first change; null if it did not exist or is not known.
    pub old_path: Option<String>,
    /// Where it was after the last change, or before it if that deleted the memory; null if it is not known.
    pub path: Option<String>,
    /// Whether the last change deleted it.
    pub is_deleted: bool,
    /// How many changes there were.
    pub versions_count: usize,
    /// What changed in the text; null if one of the texts is gone, or if the answer would become too long.
    pub diff: Option<DiffBody>,
    /// Why one of the texts is gone.
    pub lost: Option<String>,
}

impl ChangedBody {
    /// Returns the shape of what was changed in a store.
    pub fn new(store: model::StoreId, changed: &Changed, diffs: &mut Diffs) -> Self {
        let path = |known: &Known| known.state().map(|state| state.path.to_string());
        let diff = changed_diff(changed);
        Self {
            memory_store_id: store.to_string(),
            memory_id: changed.memory.to_string(),
            old_path: path(&changed.before),
            path: path(&changed.after).or_else(|| path(&changed.before)),
            is_deleted: changed.after == Known::Absent,
            versions_count: changed.versions_count,
            lost: diff.as_ref().err().cloned(),
            diff: diff.ok().and_then(|diff| diffs.body(&diff)),
        }
    }
}

/// Returns what changed in the text of a memory, or why that is not known.
pub fn changed_diff(changed: &Changed) -> Result<Diff, String> {
    let text = |known: &Known| match known {
        Known::Absent => Ok(String::new()),
        Known::State(state) => Ok(state.content.as_str().to_owned()),
        Known::Lost(why) => Err(why.clone()),
    };
    Ok(Diff::new(&text(&changed.before)?, &text(&changed.after)?))
}

/// The body of a request to revert changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevertChanges {
    /// The authors: ids of sessions, keys, users or services.
    pub actors: Vec<String>,
    /// Only changes since then.
    pub since: Option<String>,
    /// Only changes until then.
    pub until: Option<String>,
    /// Only changes at this path or below it.
    pub path: Option<String>,
    /// Whether the plan is only shown.
    #[serde(default)]
    pub dry_run: bool,
    /// The digest of the plan, or its beginning.
    pub expect: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// The body of a request to restore a version, or a tree as it was at a moment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The version, to restore one.
    pub memory_version_id: Option<String>,
    /// The moment, to restore a tree.
    pub at: Option<String>,
    /// Another path to restore the version to, or the path of the tree.
    pub path: Option<String>,
    /// Whether what is no longer known of the tree may stay as it is.
    #[serde(default)]
    pub incomplete: bool,
    /// Whether the plan is only shown.
    #[serde(default)]
    pub dry_run: bool,
    /// The digest of the plan, or its beginning.
    pub expect: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_beyond_the_limit_are_left_out() {
        let long = Diff::new("", &"x".repeat(DIFFS_SIZE_BYTES_MAX + 1));
        let short = Diff::new("", "x");
        let mut diffs = Diffs::default();
        let is_shown = [&short, &long, &short].map(|diff| diffs.body(diff).is_some());
        assert_eq!(is_shown, [true, true, false]);
    }
}
