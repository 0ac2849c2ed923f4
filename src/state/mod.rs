//! What the data plane reads: the snapshot of keys, users, providers and prices, and how a change is put in force.
