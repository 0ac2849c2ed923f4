//! The one integration binary.

/// Counts the bytes in use, for `shapes::memory`.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

#[cfg(test)]
mod admin;
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod billing;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod config;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod declarative;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod import;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod money;
#[cfg(test)]
mod moving;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod otlp;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod resilience;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod texts;
#[cfg(test)]
mod vault;
