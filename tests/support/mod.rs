//! What several rooms' tests share.

pub mod gateway;
pub mod postgres;
pub mod redis;
pub mod upstream;
