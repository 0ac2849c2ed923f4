//! Spend, sessions and requests per minute: what is counted against limits.
