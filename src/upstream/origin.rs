//! Whether two addresses have one receiver.

use super::endpoint::Endpoint;

/// Scheme, host and port are the same. An invalid address equals only itself.
pub fn same_origin(stored: &str, wanted: &str) -> bool {
    if stored == wanted {
        return true;
    }
    match (Endpoint::parse(stored), Endpoint::parse(wanted)) {
        (Ok(a), Ok(b)) => {
            a.tls == b.tls && a.port == b.port && a.host.eq_ignore_ascii_case(&b.host)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let stored = "https://api.example/v1";
        let same = [
            "https://api.example",
            "https://API.example:443/other/v2",
            "https://api.example/v1/messages",
        ];
        for url in same {
            assert!(same_origin(stored, url), "{url}");
        }
        let others = [
            "http://api.example/v1",
            "https://api.example:8443/v1",
            "https://api.example.evil.test/v1",
            "https://api.example@evil.test/v1",
            "https://evil.test/api.example",
            "https://api.example./v1",
            "https://evil.test?https://api.example/v1",
            "https://evil.test#@api.example",
            "https://api.example\\.evil.test",
            "//api.example",
            "",
        ];
        for url in others {
            assert!(!same_origin(stored, url), "{url}");
        }
    }
}
