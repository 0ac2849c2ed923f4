//! Where the configuration came from.

use std::path::PathBuf;

/// The source of the configuration, for a reload.
pub struct ConfigSource {
    /// The YAML file; `None` = the environment and the defaults only.
    pub file: Option<PathBuf>,
}

impl ConfigSource {
    /// Whether there is a file without a byte: one that is being written, or emptied by mistake.
    pub(super) fn is_emptied(&self) -> bool {
        let about = self.file.as_ref().and_then(|file| file.metadata().ok());
        about.is_some_and(|about| about.is_file() && about.len() == 0)
    }
}
