//! Limits that a clever client, a slow one or a wrong clock cannot dodge.

#![expect(clippy::disallowed_methods, reason = "the tests' own tasks live on the test's own runtime")]

mod last_dollar;
