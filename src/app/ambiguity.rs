//! Two live modules must not describe one task, and none may describe a built-in's.

use crate::model::{Facts, ModuleName, facts::TaskSpec};

/// Says which other live module, or that a built-in, describes one of the tasks.
pub(super) fn clash(facts: &Facts, name: &ModuleName, tasks: &[TaskSpec]) -> Option<String> {
    for task in tasks {
        if !facts.shadow_builtins
            && facts.builtin.as_ref().is_some_and(|builtin| builtin.tasks.iter().any(|spec| spec.name == task.name))
        {
            return Some(format!("the task `{}` is built in", task.name));
        }
        if let Some(other) = facts.live.get(&task.name).filter(|other| *other != name) {
            return Some(format!("the live module `{other}` describes the task `{}`, too", task.name));
        }
    }
    None
}
