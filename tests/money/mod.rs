//! What requests cost, and what is said of it, through the front door: each file is named for a way
//! in which a bill was wrong.

mod kinds;
mod names;
mod rates;
mod unpriced;
