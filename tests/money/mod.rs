//! The cost of requests, and the reports about it, through the public API: each file is named after
//! a former billing error.

mod kinds;
mod names;
mod parts;
mod rates;
mod unpriced;
