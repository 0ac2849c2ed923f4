//! The one integration binary.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod config;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod ledger;
