//! The wire formats: reading, writing and converting requests, replies, streams and errors. Pure.

pub mod sse;
