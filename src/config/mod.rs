//! Settings: file, environment and defaults, validated all at once.
