//! Names of a group that stand for models: an alias has the models in the order in which they are
//! tried, and perhaps cheaper ones for when money runs out.

use serde::{Deserialize, Serialize};

use super::provider::model_matches;

/// What one name stands for, for the keys of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAlias {
    /// The name that clients ask for. It may be the name of a model, such as the first of `models`.
    pub name: String,
    /// The models, the first choice first; never empty.
    pub models: Vec<String>,
    /// Cheaper ones, the first choice first, that take the place of the others when money runs out;
    /// may be empty.
    #[serde(default)]
    pub degrade_models: Vec<String>,
    /// Percent of one of the caller's spending limits, 1–100: from there on the cheaper ones are
    /// used. They are also used where the others cost more than a limit leaves.
    pub degrade_at: u32,
}

impl ModelAlias {
    /// Those of its models that lists of allowed models leave: all if a list has the alias itself.
    /// An empty list allows all.
    pub fn allowed<'a>(
        &'a self,
        models: &'a [String],
        lists: [&'a [String]; 2],
    ) -> impl Iterator<Item = &'a String> {
        let allows = |list: &[String], model: &String| {
            list.is_empty() || model_matches(list, &self.name) || model_matches(list, model)
        };
        models.iter().filter(move |model| lists.iter().all(|list| allows(list, model)))
    }
}
