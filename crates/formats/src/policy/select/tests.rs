//! Selection, rule by rule.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Availability, NoProvider, OwnCredential, ProviderView, SelectInput, Selection, plan};
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{Provider, ProviderType, SwitchedOff};
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::record::DecisionStep;
use crate::domain::strategy::Strategy;

const NOW: Timestamp = Timestamp(1_000_000);

pub(in crate::policy) fn provider(id: i64, change: impl FnOnce(&mut Provider)) -> Arc<Provider> {
    let (name, url) = (format!("p{id}"), "http://127.0.0.1:1".to_owned());
    let mut provider = Provider { id: ProviderId(id), name, url, ..Provider::blank(NOW) };
    change(&mut provider);
    Arc::new(provider)
}

fn unpriced(id: i64) -> Arc<Provider> {
    provider(id, |p| p.note = "no price".to_owned())
}

#[derive(Default)]
struct View(HashMap<i64, Availability>);

impl ProviderView for View {
    fn availability(&self, provider: &Provider) -> Availability {
        self.0.get(&provider.id.0).copied().unwrap_or(Availability::Ready)
    }

    /// In these tests a note marks a provider without a price.
    fn is_priced(&self, provider: &Provider) -> bool {
        provider.note != "no price"
    }

    /// In these tests the note may be the place by the strategy.
    fn rank(&self, provider: &Provider) -> u64 {
        provider.note.parse().unwrap_or(0)
    }
}

fn ask(groups: &Groups) -> SelectInput<'_> {
    SelectInput {
        groups,
        all_groups: false,
        model: "large",
        named: &[],
        features: &[],
        format: WireFormat::Native,
        convertible: |_, to| to != WireFormat::AltCli,
        strategy: Strategy::Weighted,
        preferred: None,
        avoided: None,
        own_credential: OwnCredential::Missing,
        left_out: &[],
        now: NOW,
        at_ms: 1,
    }
}

fn choose(
    ask: &SelectInput<'_>,
    providers: &[Arc<Provider>],
    view: &View,
) -> Result<Selection, NoProvider> {
    plan(ask, providers, view, &mut fastrand::Rng::with_seed(7))
}

fn limit(ms: Option<i64>) -> Availability {
    Availability::LimitReached { until: ms.map(|ms| NOW.plus_ms(ms)) }
}

fn session_cap(ms: i64) -> Availability {
    Availability::SessionCap { until: NOW.plus_ms(ms) }
}

#[test]
fn what_stands_in_the_way_decides_the_status() {
    let until = |ms| NOW.plus_ms(ms);
    type Case = (&'static str, Vec<Arc<Provider>>, Vec<(i64, Availability)>, u16, Option<u64>);
    let cases: Vec<Case> = vec![
        ("no provider at all", vec![], vec![], 403, None),
        (
            "another group",
            vec![provider(1, |p| p.group_tag = Groups::parse("gold"))],
            vec![],
            403,
            None,
        ),
        ("deleted", vec![provider(1, |p| p.deleted_at = Some(NOW))], vec![], 403, None),
        ("disabled", vec![provider(1, |p| p.is_enabled = false)], vec![], 404, None),
        (
            "another model",
            vec![provider(1, |p| p.allowed_models = vec!["small".to_owned()])],
            vec![],
            404,
            None,
        ),
        ("no price", vec![unpriced(1)], vec![], 403, None),
        (
            "one without a price, one of another format",
            vec![unpriced(1), provider(2, |p| p.kind = ProviderType::AltCli)],
            vec![],
            403,
            None,
        ),
        (
            "one without a price, one away",
            vec![unpriced(1), provider(2, |_| ())],
            vec![(2, limit(None))],
            503,
            None,
        ),
        ("another format", vec![provider(1, |p| p.kind = ProviderType::AltCli)], vec![], 503, None),
        ("limits", vec![provider(1, |_| ())], vec![(1, limit(None))], 503, None),
        ("a window", vec![provider(1, |_| ())], vec![(1, limit(Some(700)))], 503, Some(700)),
        ("sessions", vec![provider(1, |_| ())], vec![(1, session_cap(600))], 503, Some(600)),
        (
            "the soonest is reported",
            vec![provider(1, |_| ()), provider(2, |_| ()), provider(3, |_| ())],
            vec![
                (1, Availability::CircuitOpen { until: until(9_000) }),
                (2, Availability::Cooldown { until: until(2_500) }),
                (3, limit(None)),
            ],
            503,
            Some(2_500),
        ),
    ];
    let groups = Groups::default();
    for (name, providers, states, status, retry) in cases {
        let refused =
            choose(&ask(&groups), &providers, &View(states.into_iter().collect())).unwrap_err();
        assert_eq!(refused.status(), status, "{name}");
        if let NoProvider::Unavailable { retry_after_ms, .. } = &refused {
            assert_eq!(*retry_after_ms, retry, "{name}");
        }
    }
}

#[test]
fn a_provider_without_a_price_for_the_model_does_not_stand_in() {
    let providers = [unpriced(1), provider(2, |_| ()), unpriced(3)];
    let groups = Groups::default();
    let chosen = choose(&ask(&groups), &providers, &View::default()).unwrap();
    assert_eq!(chosen.ordered, [1]);
    assert!(
        chosen
            .decisions
            .iter()
            .any(|d| d.detail.as_deref().is_some_and(|why| why.contains("no price")))
    );
    let refused = choose(&ask(&groups), &providers[..1], &View::default()).unwrap_err();
    assert!(matches!(refused, NoProvider::Unpriced { .. }), "{refused:?}");
}

#[test]
fn the_admin_token_and_the_star_reach_every_group() {
    let providers = [provider(1, |p| p.group_tag = Groups::parse("gold"))];
    let (none, star) = (Groups::default(), Groups::parse("*"));
    assert!(
        choose(&SelectInput { all_groups: true, ..ask(&none) }, &providers, &View::default())
            .is_ok()
    );
    assert!(choose(&ask(&star), &providers, &View::default()).is_ok());
}

#[test]
fn the_order_is_session_priority_format_draw() {
    let providers = [
        provider(1, |p| p.priority = 5),
        provider(2, |p| p.kind = ProviderType::Chat),
        provider(3, |_| ()),
        provider(4, |p| p.priority = 9),
    ];
    let groups = Groups::default();
    let plain = choose(&ask(&groups), &providers, &View::default()).unwrap();
    assert_eq!(plain.ordered, [2, 1, 0, 3]);
    let steps: Vec<_> =
        plain.decisions.iter().map(|d| (d.step, d.detail.as_deref().unwrap_or_default())).collect();
    assert_eq!(
        steps,
        [
            (DecisionStep::Chosen, "lowest priority number"),
            (DecisionStep::Candidate, "needs conversion, others of its priority do not"),
            (DecisionStep::Candidate, "its priority number is higher"),
            (DecisionStep::Candidate, "its priority number is higher"),
        ]
    );
    let kept = choose(
        &SelectInput { preferred: Some(ProviderId(4)), ..ask(&groups) },
        &providers,
        &View::default(),
    );
    let kept = kept.unwrap();
    assert_eq!(kept.ordered, [3, 2, 1, 0]);
    assert_eq!(kept.decisions[0].step, DecisionStep::ChosenForSession);
    let away = View(HashMap::from([(4, limit(None))]));
    let moved =
        choose(&SelectInput { preferred: Some(ProviderId(4)), ..ask(&groups) }, &providers, &away)
            .unwrap();
    assert_eq!(moved.ordered, [2, 1, 0]);
}

#[test]
fn a_provider_that_failed_the_session_comes_after_the_others_of_its_rank() {
    let providers = [
        provider(1, |p| p.weight = 100),
        provider(2, |_| ()),
        provider(3, |p| p.priority = 5),
        provider(4, |p| p.priority = 5),
    ];
    let groups = Groups::default();
    for (avoided, place) in [(1, 1), (3, 3)] {
        let ask = SelectInput { avoided: Some(ProviderId(avoided)), ..ask(&groups) };
        let plan = choose(&ask, &providers, &View::default()).unwrap();
        let at = plan.ordered.iter().position(|index| providers[*index].id.0 == avoided);
        assert_eq!(at, Some(place), "{:?}", plan.ordered);
        let why = plan.decisions[place].detail.as_deref().unwrap();
        let expected = if avoided == 1 {
            "it failed the last request of this session"
        } else {
            "its priority number is higher"
        };
        assert_eq!(why, expected);
    }
    let ask = SelectInput { avoided: Some(ProviderId(1)), ..ask(&groups) };
    let only = choose(&ask, &providers[..1], &View::default()).unwrap();
    assert_eq!(only.ordered, [0]);
}

#[test]
fn a_provider_without_a_credential_counts_only_if_it_could_serve_the_request() {
    let gold = |p: &mut Provider| p.group_tag = Groups::parse("gold");
    let (none, here, there) = (vec![], vec![provider(1, |_| ())], vec![provider(1, gold)]);
    let narrow = vec![provider(2, |p| p.allowed_models = vec!["small".to_owned()])];
    let off = vec![provider(1, |p| p.is_enabled = false)];
    let foreign = vec![provider(2, |p| p.kind = ProviderType::AltCli)];
    let busy = View(HashMap::from([(2, limit(None))]));
    let groups = Groups::default();
    let mut reasons = Vec::new();
    for (left_out, others) in [
        (&here, &none),
        (&here, &narrow),
        (&here, &foreign),
        (&here, &vec![provider(2, |_| ())]),
        (&there, &none),
        (&off, &none),
        (&vec![unpriced(1)], &none),
    ] {
        let ask = SelectInput { left_out, ..ask(&groups) };
        reasons.push(match choose(&ask, others, &busy).unwrap_err() {
            NoProvider::WithoutCredential { .. } => "credential",
            NoProvider::Unavailable { .. } => "busy",
            NoProvider::NotInReach { .. } => "group",
            NoProvider::ModelUnknown { .. } => "model",
            NoProvider::Unpriced { .. } => "price",
            NoProvider::NamedModel { .. }
            | NoProvider::Feature { .. }
            | NoProvider::WithoutOwnCredential { .. } => "policy",
        });
    }
    assert_eq!(
        reasons,
        ["credential", "credential", "credential", "busy", "group", "model", "price"]
    );
    let ask = SelectInput { left_out: &here, ..ask(&groups) };
    let plan = choose(&ask, &[provider(2, |_| ())], &View::default()).unwrap();
    let steps: Vec<_> = plan.decisions.iter().map(|d| (&*d.provider_name, d.step)).collect();
    assert_eq!(steps, [("p1", DecisionStep::Disabled), ("p2", DecisionStep::Chosen)]);
    assert!(plan.lacks_credential);
    // One of another format could express the request no better.
    let chat = vec![provider(1, |p| p.kind = ProviderType::Chat)];
    for left_out in [&none, &off, &there, &chat] {
        let plan =
            choose(&SelectInput { left_out, ..ask }, &[provider(2, |_| ())], &View::default());
        assert!(!plan.unwrap().lacks_credential, "{left_out:?}");
    }
}

#[test]
fn a_disabled_provider_says_who_disabled_it() {
    let off = SwitchedOff { at: NOW, failed_probes: 3, error: None };
    let providers = [
        provider(1, |p| p.is_enabled = false),
        provider(2, move |p| (p.is_enabled, p.switched_off) = (false, Some(off))),
        provider(3, |_| ()),
    ];
    let groups = Groups::default();
    let plan = choose(&ask(&groups), &providers, &View(HashMap::new())).unwrap();
    let details: Vec<_> =
        plan.decisions.iter().take(2).map(|d| d.detail.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        details,
        ["disabled by an administrator", "disabled by the gateway: its probes failed"]
    );
}

#[test]
fn every_provider_has_its_reason_and_long_lists_are_cut() {
    let mut providers = vec![
        provider(1, |p| p.group_tag = Groups::parse("gold")),
        provider(2, |p| p.is_enabled = false),
        provider(3, |p| p.allowed_models = vec!["small*".to_owned()]),
        provider(4, |p| p.kind = ProviderType::AltCli),
        provider(5, |_| ()),
        provider(6, |_| ()),
        provider(7, |p| p.model_redirects = vec![("large".to_owned(), "huge".to_owned())]),
    ];
    let view = View(HashMap::from([
        (5, Availability::CircuitOpen { until: NOW.plus_ms(1_500) }),
        (6, Availability::Cooldown { until: NOW.plus_ms(60_000) }),
    ]));
    let groups = Groups::default();
    let plan = choose(&ask(&groups), &providers, &view).unwrap();
    let steps: Vec<_> = plan.decisions.iter().map(|d| d.step).collect();
    use DecisionStep::{
        Chosen, CircuitOpen, Cooldown, Disabled, FormatNotConvertible, ModelNotSupported,
        OtherGroup,
    };
    assert_eq!(
        steps,
        [
            OtherGroup,
            Disabled,
            ModelNotSupported,
            FormatNotConvertible,
            CircuitOpen,
            Cooldown,
            Chosen
        ]
    );
    assert_eq!(plan.decisions[4].detail.as_deref(), Some("circuit open, tried again in 2 s"));
    providers.extend((10..210).map(|id| provider(id, |p| p.is_enabled = false)));
    let plan = choose(&ask(&groups), &providers, &view).unwrap();
    assert_eq!(plan.decisions.len(), super::chain::MAX_PASSED_OVER + 2);
    assert_eq!(plan.decisions.last().unwrap().detail.as_deref(), Some("142 more were passed over"));
}

#[test]
fn weights_decide_the_share_of_each_place() {
    let providers = [
        provider(1, |p| p.weight = 1),
        provider(2, |p| p.weight = 3),
        provider(3, |p| p.weight = 6),
    ];
    let groups = Groups::default();
    let mut rng = fastrand::Rng::with_seed(42);
    let (mut first, mut second_after_third) = ([0u32; 3], [0u32; 3]);
    for _ in 0..40_000 {
        let ordered = plan(&ask(&groups), &providers, &View::default(), &mut rng).unwrap().ordered;
        let mut seen = ordered.clone();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2], "without replacement");
        first[ordered[0]] += 1;
        if ordered[0] == 2 {
            second_after_third[ordered[1]] += 1;
        }
    }
    let near = |count: u32, expected: u32| count.abs_diff(expected) < 700;
    assert!(near(first[0], 4_000) && near(first[1], 12_000) && near(first[2], 24_000), "{first:?}");
    assert!(
        near(second_after_third[0], 6_000) && near(second_after_third[1], 18_000),
        "{second_after_third:?}"
    );
}

#[test]
fn a_strategy_orders_the_providers_of_a_priority_before_their_format_and_weight() {
    let ranked = |rank: &'static str| move |p: &mut Provider| p.note = rank.to_owned();
    let providers = [
        provider(1, |p| (p.weight, p.note) = (100, "30".to_owned())),
        provider(2, ranked("20")),
        provider(3, |p| (p.kind, p.note) = (ProviderType::Chat, "10".to_owned())),
        provider(4, |p| (p.priority, p.note) = (5, "1".to_owned())),
    ];
    let groups = Groups::default();
    let whys = |plan: &Selection| -> Vec<String> {
        plan.decisions.iter().map(|one| one.detail.as_deref().unwrap().to_owned()).collect()
    };
    let cheapest = SelectInput { strategy: Strategy::Cheapest, ..ask(&groups) };
    let plan = choose(&cheapest, &providers, &View::default()).unwrap();
    assert_eq!(plan.ordered, [2, 1, 0, 3]);
    assert_eq!(
        whys(&plan),
        [
            "this request costs least at it, of those of its priority",
            "this request costs more at it",
            "this request costs more at it",
            "its priority number is higher",
        ]
    );
    // The session's provider keeps it, with its prompt cache; after a failure the others come first.
    let bound = SelectInput { preferred: Some(ProviderId(1)), ..cheapest };
    assert_eq!(choose(&bound, &providers, &View::default()).unwrap().ordered[0], 0);
    let failed = SelectInput { avoided: Some(ProviderId(3)), ..cheapest };
    let plan = choose(&failed, &providers, &View::default()).unwrap();
    assert_eq!(plan.ordered, [1, 0, 2, 3]);
    assert_eq!(whys(&plan)[0], "stands in for the session's provider");
    assert_eq!(whys(&plan)[2], "it failed the last request of this session");
}

#[test]
fn the_fastest_is_asked_but_for_some_requests_that_measure_the_others() {
    let providers = [provider(1, |p| p.note = "200".to_owned()), provider(2, |_| ())];
    let groups = Groups::default();
    let ask = SelectInput { strategy: Strategy::Fastest, ..ask(&groups) };
    let (mut fast, mut explored) = (0, 0);
    for seed in 0..1_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let plan = plan(&ask, &providers, &View::default(), &mut rng).unwrap();
        fast += usize::from(plan.ordered[0] == 1);
        let why = plan.decisions[0].detail.as_deref().unwrap();
        explored += usize::from(why == "drawn by weight, to measure how fast it is");
    }
    assert!((25..=80).contains(&explored), "about one of twenty: {explored}");
    assert!((950..1_000).contains(&fast), "{fast}");
}

#[test]
fn a_provider_with_the_clients_credential_is_asked_only_if_the_request_has_one() {
    let groups = Groups::default();
    let own = |own_credential| SelectInput { own_credential, ..ask(&groups) };
    let clients = || provider(1, |p| p.auth = ProviderAuth::Client);
    let chosen = choose(&own(OwnCredential::Carried), &[clients()], &View::default());
    assert_eq!(chosen.unwrap().ordered, [0]);
    for (state, word) in [(OwnCredential::Missing, "beside"), (OwnCredential::NeededLater, "later")]
    {
        let both = [clients(), provider(2, |_| ())];
        let chosen = choose(&own(state), &both, &View::default()).unwrap();
        assert_eq!(chosen.ordered, [1]);
        let why = chosen.decisions[0].detail.clone().unwrap();
        assert!(why.contains(word), "{why}");
        let none = choose(&own(state), &both[..1], &View::default()).unwrap_err();
        assert_eq!(none.status(), 401, "{none:?}");
    }
    // It is never converted for.
    let chat = SelectInput { format: WireFormat::Chat, ..own(OwnCredential::Carried) };
    assert_eq!(choose(&chat, &[clients()], &View::default()).unwrap_err().status(), 503);
}
