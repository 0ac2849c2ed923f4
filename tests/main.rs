//! The one integration binary.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod config;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod telemetry;
