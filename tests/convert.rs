//! Conversion between the wire formats: golden cases for every pair, rules of each wire,
//! properties, the table of rules.

mod bills;
mod checks;
mod checks_stream;
mod golden;
mod pairs;
mod properties;
mod rules;
mod services;
