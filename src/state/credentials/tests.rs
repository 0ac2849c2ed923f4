//! The choice among credentials, by given times, and what nodes exchange of them.

use super::*;
use crate::domain::credentials::Credentials;
use crate::domain::provider_credential::ProviderCredential;
use crate::domain::secret::Secret;
use crate::policy::failure::FailureKind;

const NOW: Timestamp = Timestamp(1_790_000_000_000);

/// With the keys `key`, `k1`, `k2`, …
fn provider(keys: i64) -> Provider {
    let mut provider = Provider::blank(Timestamp(0));
    provider.id = ProviderId(7);
    let entry = |n: i64| ProviderCredential {
        id: CredentialId(n),
        name: format!("k{n}"),
        ..ProviderCredential::of_key()
    };
    provider.credentials.push(ProviderCredential::of_key());
    provider.credentials.extend((1..keys).map(entry));
    set_keys(&mut provider, keys);
    provider
}

fn set_keys(provider: &mut Provider, keys: i64) {
    let other = |n| (CredentialId(n), Secret::new(format!("sk-{n}")));
    let (key, others) = (Secret::new("sk-0"), (1..keys).map(other).collect());
    provider.set_credentials(Credentials { key, others, ..Credentials::default() });
}

fn place(id: i64) -> CredentialPlace {
    (ProviderId(7), CredentialId(id))
}

fn ask(now: Timestamp) -> CredentialAsk<'static> {
    CredentialAsk { session: None, holder: None, tried: &[], now }
}

fn chosen(states: &CredentialStates, provider: &Provider, ask: &CredentialAsk<'_>) -> Option<i64> {
    states.choose(provider, ask).map(|one| one.credential_id().0)
}

fn window(used: u32, resets_ms: i64) -> Vec<QuotaWindow> {
    vec![QuotaWindow {
        name: "5h".into(),
        used,
        limit: None,
        remaining: None,
        resets_at: Some(NOW.plus_ms(resets_ms)),
        seen_at: NOW,
    }]
}

fn error() -> Arc<AttemptError> {
    let (kind, message) = (FailureKind::Status, "no".into());
    Arc::new(AttemptError { kind, status: Some(401), message, at: NOW })
}

#[test]
fn credentials_take_turns_and_their_texts_with_them() {
    let (states, provider) = (CredentialStates::default(), provider(3));
    let texts: Vec<String> = (0..6)
        .map(|_| states.choose(&provider, &ask(NOW)).unwrap().key.expose().to_owned())
        .collect();
    assert_eq!(texts, ["sk-0", "sk-1", "sk-2", "sk-0", "sk-1", "sk-2"]);
    let seen = states.seen(&provider.variants[1], NOW);
    assert_eq!((seen.figures.requests, seen.figures.last_used), (2, Some(NOW)));
}

#[test]
fn the_account_with_the_most_left_comes_first_and_one_over_the_guard_last() {
    let (states, mut provider) = (CredentialStates::default(), provider(3));
    for (id, used) in [(0, 700), (1, 990), (2, 300)] {
        states.windows_seen(place(id), window(used, 60_000), NOW);
    }
    let next = |provider: &Provider, now| chosen(&states, provider, &ask(now)).unwrap();
    assert_eq!([(); 3].map(|()| next(&provider, NOW)), [2, 2, 2]);
    states.windows_seen(place(2), window(720, 60_000), NOW);
    assert_eq!(
        [(); 4].map(|()| next(&provider, NOW)),
        [0, 2, 0, 2],
        "equal within a step: they take turns"
    );
    let session = SessionId("s".into());
    states.served(place(1), KeyId(1), &session);
    let of_session = CredentialAsk { session: Some((KeyId(1), &session)), ..ask(NOW) };
    assert_eq!(chosen(&states, &provider, &of_session), Some(1), "a session stays");
    provider.quota_guard = Some(95);
    set_keys(&mut provider, 3);
    assert_ne!(chosen(&states, &provider, &of_session), Some(1), "over the guard it does not");
    let held = CredentialAsk { holder: Some(CredentialId(1)), ..of_session };
    assert_eq!(chosen(&states, &provider, &held), Some(1), "the history is there");
    let tried = CredentialAsk { tried: &[place(1)], ..held };
    assert_eq!(chosen(&states, &provider, &tried), None, "no other account has it");
    let gone = CredentialAsk { holder: Some(CredentialId(9)), tried: &[], ..tried };
    assert!(chosen(&states, &provider, &gone).is_some(), "the account is not used any more");
    assert!(!states.is_nearly_used_up(&provider, NOW));
    for id in [0, 2] {
        states.windows_seen(place(id), window(960, 60_000), NOW);
    }
    assert!(states.is_nearly_used_up(&provider, NOW));
    assert!(chosen(&states, &provider, &ask(NOW)).is_some(), "the guard is soft");
    assert!(!states.is_nearly_used_up(&provider, NOW.plus_ms(60_000)), "reset");
}

#[test]
fn a_cooldown_ends_and_all_of_them_make_the_provider_wait_for_the_first() {
    let (states, provider) = (CredentialStates::default(), provider(2));
    states.set_cooldown(place(0), NOW.plus_ms(9_000), NOW);
    assert_eq!([(); 2].map(|()| chosen(&states, &provider, &ask(NOW))), [Some(1); 2]);
    states.set_cooldown(place(1), NOW.plus_ms(5_000), NOW);
    assert_eq!(chosen(&states, &provider, &ask(NOW)), None);
    let until = Some(NOW.plus_ms(5_000));
    assert_eq!(states.availability(&provider, NOW), Availability::NoCredential { until });
    let later = NOW.plus_ms(5_000);
    assert_eq!(states.availability(&provider, later), Availability::Ready);
    assert_eq!(chosen(&states, &provider, &ask(later)), Some(1));
    assert_eq!(
        chosen(&states, &provider, &CredentialAsk { tried: &[place(1)], ..ask(later) }),
        None,
        "not again within one request"
    );
    states.reset(&provider, NOW);
    assert_eq!(states.seen(&provider.variants[0], NOW).cooldown_until, None);
}

#[test]
fn a_refused_credential_is_not_used_but_the_last_one_stays() {
    let (states, provider) = (CredentialStates::default(), provider(2));
    assert!(states.refuse(&provider, CredentialId(0), error()));
    assert_eq!([(); 2].map(|()| chosen(&states, &provider, &ask(NOW))), [Some(1); 2]);
    assert!(!states.refuse(&provider, CredentialId(1), error()));
    assert_eq!(chosen(&states, &provider, &ask(NOW)), Some(1));
    // An administrator enabled it since.
    let mut provider = provider;
    provider.credentials[0].since = NOW.plus_ms(1);
    set_keys(&mut provider, 2);
    assert_eq!(chosen(&states, &provider, &ask(NOW)), Some(0));
}

#[test]
fn nodes_exchange_cooldowns_and_windows() {
    let (here, there) = <(CredentialStates, CredentialStates)>::default();
    let provider = provider(2);
    here.set_cooldown(place(0), NOW.plus_ms(9_000), NOW);
    here.windows_seen(place(1), window(500, 60_000), NOW);
    let mut texts: Vec<String> =
        here.take_updates().iter().map(update::CredentialUpdate::to_text).collect();
    texts.sort();
    assert_eq!(
        texts,
        [
            format!("credential 7 0 {} {}", NOW.0, NOW.0 + 9_000),
            format!("credential 7 1 0 - 5h:500:-:-:{}:{}", NOW.0 + 60_000, NOW.0),
        ]
    );
    assert!(here.take_updates().is_empty());
    for text in &texts {
        there.apply_update(update::CredentialUpdate::read(text).unwrap(), NOW);
    }
    assert_eq!(there.seen(&provider.variants[0], NOW).cooldown_until, Some(NOW.plus_ms(9_000)));
    assert_eq!(there.seen(&provider.variants[1], NOW).windows, window(500, 60_000));
    for wrong in ["7 100 - 0 closed", "credential 7", "credential 7 1 0 - 5h:1", "credential x"] {
        assert_eq!(update::CredentialUpdate::read(wrong), None, "{wrong}");
    }
}
