//! Connections to providers: addresses, peers, endpoints, headers.
