//! Helpers that several modules' tests share.

pub mod clock;
pub mod drip;
pub mod gateway;
pub mod link;
pub mod node;
pub mod ports;
pub mod postgres;
pub mod redis;
pub mod redis_failover;
pub mod spent;
pub mod unread;
pub mod upstream;
pub mod wait;
