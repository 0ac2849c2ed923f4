//! The administration API, through real sockets on a real database.

mod bounds;
mod document;
mod edits;
mod error_rules;
mod events;
mod gate;
mod http;
mod login;
mod logs;
mod my_usage;
mod overview;
mod prices;
mod providers;
mod routes;
mod rules;
mod schema;
mod sensitive_words;
mod series;
mod sessions;
mod statistics;
mod tls;
mod ui;
mod usage;
mod users;
