//! The certificates of the configuration: readable, with their private keys, and how long they are
//! valid.

use anyhow::Context as _;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::finding::{Finding, Level, time};
use crate::config::{Config, Redis};
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};
use crate::setup::certificates::{self, chain, pair};

const PART: &str = "certificates";
/// Days of validity below which a certificate should have been renewed.
const SOON_DAYS: i64 = 21;
const DAY_MS: i64 = 86_400_000;

/// Looks at the certificates of the listeners, and at those for Redis.
pub(crate) fn look(config: &Config) -> Vec<Finding> {
    let redis = config.redis.as_ref();
    let of_client = ("redis.tls", redis.and_then(Redis::tls));
    let pairs = certificates::of_listeners(config).into_iter().chain([of_client]);
    let mut findings: Vec<Finding> =
        pairs.filter_map(|(name, files)| Some(of(name, pair(&files?)))).collect();
    if let Some(file) = redis.and_then(|redis| redis.ca.as_ref()) {
        findings.push(of("redis.tls.ca", chain(file)));
    }
    findings
}

/// What `tollgate check` and a start warn of: certificates that have ended, or end soon.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let bad = look(config).into_iter().filter(|finding| finding.level > Level::Ok);
    bad.map(|Finding { text, advice, .. }| format!("{text}. {advice}")).collect()
}

fn of(name: &str, chain: anyhow::Result<Vec<CertificateDer<'static>>>) -> Finding {
    match chain.and_then(|chain| first_end(&chain)) {
        Ok(end) => valid(name, end, SystemClock.now()),
        Err(error) => Finding::fault(
            PART,
            format!("{name}: {error:#}"),
            "Put a certificate chain and its key there, both PEM.",
        ),
    }
}

fn valid(name: &str, end: Timestamp, now: Timestamp) -> Finding {
    let renew = "Renew it, put the new files in the same place, and restart or send SIGUSR2 \
                 (docs/operating.md).";
    let left = end.since(now);
    if left <= 0 {
        return Finding::fault(PART, format!("{name}: expired {} ago", time(left)), renew);
    }
    let text = format!("{name}: valid for {} more", time(left));
    if left < SOON_DAYS * DAY_MS {
        Finding::warning(PART, text, renew)
    } else {
        Finding::ok(PART, text)
    }
}

/// When the first certificate of a chain ends.
fn first_end(chain: &[CertificateDer<'_>]) -> anyhow::Result<Timestamp> {
    let mut first = None;
    for certificate in chain {
        let (_, parsed) =
            X509Certificate::from_der(certificate).context("a certificate that cannot be read")?;
        let end = Timestamp(parsed.validity().not_after.timestamp().saturating_mul(1_000));
        first = Some(first.map_or(end, |first: Timestamp| first.min(end)));
    }
    first.context("no certificate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_worth_a_warning_three_weeks_before_its_end() {
        let end = Timestamp(100 * DAY_MS);
        for (now, level, text) in [
            (0, Level::Ok, "n: valid for 100 days more"),
            (79 * DAY_MS, Level::Ok, "n: valid for 21 days more"),
            (79 * DAY_MS + 1, Level::Warning, "n: valid for 20 days more"),
            (100 * DAY_MS - 1, Level::Warning, "n: valid for 1 ms more"),
            (100 * DAY_MS, Level::Fault, "n: expired 0 ms ago"),
            (103 * DAY_MS, Level::Fault, "n: expired 3 days ago"),
        ] {
            let finding = valid("n", end, Timestamp(now));
            assert_eq!((finding.level, finding.text.as_str()), (level, text));
            assert_eq!(finding.advice.is_empty(), level == Level::Ok);
        }
    }
}
