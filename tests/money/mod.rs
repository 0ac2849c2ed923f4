//! The cost of requests, and the reports about it, through the public API: each file is named after
//! a former billing error.

mod kinds;
mod names;
mod price_sync;
mod rates;
mod unpriced;
