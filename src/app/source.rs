//! Where the configuration came from.

/// The source of the configuration, for a reload.
pub struct Source {
    /// The YAML file; `None` = the environment and the defaults only.
    pub file: Option<std::path::PathBuf>,
}
