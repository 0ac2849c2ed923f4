//! The cost of requests, and the reports about it, through the public API: each file is named after
//! a former billing error.

mod kinds;
mod names;
mod oracle;
mod parts;
mod price_sync;
mod rates;
mod reserved;
mod tools;
mod unpriced;
mod unpriced_tools;
