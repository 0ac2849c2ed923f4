//! Splits a charge for the tokens of a whole organization among the keys that used them: at the
//! vendor's own rate, so in proportion to the tokens of its kind.

use std::collections::HashMap;

use super::UsedBy;
use crate::domain::clock::Timestamp;
use crate::domain::invoice::{CostLine, TokenKind, UsageLine};
use crate::domain::money::NanoUsd;

/// Day, model, variant, kind. An empty variant stands for all.
type Group = (Timestamp, String, String, TokenKind);

/// Tokens of the provider's keys, of no key, and of other keys.
#[derive(Default)]
pub(super) struct Shares(HashMap<Group, [i64; 3]>);

const KINDS: [TokenKind; 5] = [
    TokenKind::Input,
    TokenKind::CacheRead,
    TokenKind::CacheWrite5m,
    TokenKind::CacheWrite1h,
    TokenKind::Output,
];

impl Shares {
    pub(super) fn note(&mut self, name: &str, part: Option<UsedBy>, line: &UsageLine) {
        let at = match part {
            Some(UsedBy::Provider | UsedBy::Fee) => 0,
            Some(UsedBy::NoKey) => 1,
            None => 2,
        };
        for kind in KINDS {
            for variant in [line.variant.clone(), String::new()] {
                let group = (line.day, name.to_owned(), variant, kind);
                if let Some(share) = self.0.entry(group).or_default().get_mut(at) {
                    *share = share.saturating_add(line.tokens.get(kind).max(0));
                }
            }
        }
    }

    /// The parts of a charge that are the provider's, and those of no key. A charge for tokens that
    /// the report does not count is the provider's: it must be seen.
    pub(super) fn split(
        &self,
        name: &str,
        kind: TokenKind,
        line: &CostLine,
    ) -> Vec<(UsedBy, NanoUsd)> {
        let found = [line.variant.clone(), String::new()].into_iter().find_map(|variant| {
            let shares = self.0.get(&(line.day, name.to_owned(), variant, kind))?;
            shares.iter().any(|share| *share > 0).then_some(*shares)
        });
        let Some([own, no_key, other]) = found else {
            return vec![(UsedBy::Provider, line.amount)];
        };
        let all = i128::from(own) + i128::from(no_key) + i128::from(other);
        let part = |share: i64| {
            let amount = i128::from(line.amount.0) * i128::from(share) / all;
            NanoUsd(i64::try_from(amount).unwrap_or(i64::MAX))
        };
        let parts = [(UsedBy::Provider, own), (UsedBy::NoKey, no_key)];
        let used = parts.into_iter().filter(|(_, share)| *share > 0);
        used.map(|(kind, share)| (kind, part(share))).collect()
    }
}
