//! Directories and files that only the caller may change.
