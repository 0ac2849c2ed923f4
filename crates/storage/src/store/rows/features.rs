//! The two columns that say which features a record allows and denies.

use crate::domain::feature_policy::FeaturePolicy;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;

pub(super) fn read(fields: Fields<'_>) -> Result<FeaturePolicy, StoreError> {
    let (allowed, denied) = (fields.json("allowed_features")?, fields.json("denied_features")?);
    Ok(FeaturePolicy { allowed, denied })
}
