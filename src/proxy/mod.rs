//! The data plane: one request's way from the client's bytes to its ledger record.
