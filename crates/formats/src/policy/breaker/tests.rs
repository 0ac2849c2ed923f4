//! The circuit, transition by transition, and its exchange between nodes.

use super::*;

const SETTINGS: BreakerSettings = BreakerSettings {
    failure_threshold: 3,
    open_duration_ms: 1_000,
    half_open_success_threshold: 2,
};

fn at(ms: i64) -> Timestamp {
    Timestamp(ms)
}

fn opened() -> Breaker {
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        let ticket = breaker.admit(at(0)).unwrap();
        breaker.failed(ticket, at(0), &SETTINGS);
    }
    breaker
}

#[test]
fn failures_in_a_row_open_and_a_success_restarts_the_count() {
    let mut breaker = Breaker::default();
    let mut end = |ok: bool, now| {
        let ticket = breaker.admit(at(now)).unwrap();
        if ok {
            breaker.succeeded(ticket, at(now), &SETTINGS)
        } else {
            breaker.failed(ticket, at(now), &SETTINGS)
        }
    };
    let changes: Vec<_> = [false, false, true, false, false].map(|ok| end(ok, 5)).to_vec();
    assert_eq!(changes, [Change::None; 5]);
    assert_eq!(end(false, 6), Change::Opened { until: at(1_006) });
    assert_eq!(breaker.admit(at(1_005)), Err(at(1_006)));
}

#[test]
fn one_probe_at_a_time_until_the_threshold_closes() {
    let mut breaker = opened();
    assert_eq!(breaker.look(at(999)), Outlook::Refuse { until: at(1_000) });
    let probe = breaker.admit(at(1_000)).unwrap();
    assert!(probe.is_probe());
    assert!(breaker.admit(at(1_001)).is_err(), "the first probe still runs");
    assert_eq!(breaker.succeeded(probe, at(1_500), &SETTINGS), Change::None);
    let probe = breaker.admit(at(1_501)).unwrap();
    assert_eq!(breaker.succeeded(probe, at(1_600), &SETTINGS), Change::Closed);
    assert!(!breaker.admit(at(1_601)).unwrap().is_probe());
    assert_eq!(breaker.standing().failures, 0);
}

#[test]
fn a_failed_probe_opens_again_for_the_whole_duration() {
    let mut breaker = opened();
    let probe = breaker.admit(at(2_000)).unwrap();
    assert_eq!(breaker.failed(probe, at(2_100), &SETTINGS), Change::Opened { until: at(3_100) });
    let probe = breaker.admit(at(3_100)).unwrap();
    let _ = breaker.succeeded(probe, at(3_200), &SETTINGS);
    let probe = breaker.admit(at(3_201)).unwrap();
    assert_eq!(
        breaker.failed(probe, at(3_300), &SETTINGS),
        Change::Opened { until: at(4_300) },
        "successes in a row"
    );
}

#[test]
fn ends_of_requests_from_an_earlier_state_change_nothing() {
    let mut breaker = Breaker::default();
    let (early, late) = (breaker.admit(at(0)).unwrap(), breaker.admit(at(0)).unwrap());
    for _ in 0..3 {
        let ticket = breaker.admit(at(0)).unwrap();
        breaker.failed(ticket, at(0), &SETTINGS);
    }
    let before = breaker.look(at(500));
    assert_eq!(breaker.succeeded(early, at(500), &SETTINGS), Change::None);
    assert_eq!(breaker.look(at(500)), before);
    let probe = breaker.admit(at(1_000)).unwrap();
    assert_eq!(breaker.failed(late, at(1_100), &SETTINGS), Change::None, "does not fail the probe");
    assert_eq!(breaker.succeeded(probe, at(1_200), &SETTINGS), Change::None);
    assert!(breaker.figures(at(1_200)).half_open);
}

#[test]
fn a_probe_whose_client_left_or_that_was_lost_frees_its_place() {
    let mut breaker = opened();
    let probe = breaker.admit(at(1_000)).unwrap();
    breaker.gave_up(probe);
    let _lost = breaker.admit(at(1_001)).unwrap();
    assert!(breaker.admit(at(1_001 + PROBE_LEASE_MS - 1)).is_err());
    assert!(breaker.admit(at(1_001 + PROBE_LEASE_MS)).unwrap().is_probe());
}

#[test]
fn a_threshold_of_zero_never_opens() {
    let never = BreakerSettings { failure_threshold: 0, ..SETTINGS };
    let mut breaker = Breaker::default();
    for _ in 0..1_000 {
        let ticket = breaker.admit(at(0)).unwrap();
        assert_eq!(breaker.failed(ticket, at(0), &never), Change::None);
    }
    assert_eq!(breaker.figures(at(0)).failure_count, 1_000);
}

#[test]
fn the_snapshot_tells_the_state_and_a_reset_clears_it() {
    let mut breaker = opened();
    let shown = breaker.figures(at(400));
    assert_eq!((shown.open, shown.half_open, shown.failure_count), (true, false, 3));
    assert_eq!((shown.open_until, shown.recovers_in_ms), (Some(at(1_000)), Some(600)));
    assert!(breaker.figures(at(1_000)).half_open, "its time has come, even before a request asks");
    assert_eq!(breaker.reset(), Change::Closed);
    let shown = breaker.figures(at(500));
    assert_eq!((shown.open, shown.failure_count, shown.open_until), (false, 0, None));
    assert_eq!(shown.last_failure, Some(at(0)));
}

#[test]
fn what_one_node_tells_another_takes_over() {
    let (mut here, mut there) = (opened(), Breaker::default());
    let tell = |from: &Breaker| {
        let reported = Standing::read(&from.standing().to_text());
        assert_eq!(reported, Some(from.standing()));
        reported.unwrap()
    };
    assert_eq!(there.adopt(tell(&here)), Change::Opened { until: at(1_000) });
    assert_eq!(there.admit(at(999)), Err(at(1_000)));
    assert_eq!(there.adopt(tell(&here)), Change::None, "known already");
    let probe = here.admit(at(1_000)).unwrap();
    there.adopt(tell(&here));
    assert!(there.admit(at(1_001)).is_err(), "one probe at a time");
    here.succeeded(probe, at(1_002), &SETTINGS);
    there.adopt(tell(&here));
    let probe = there.admit(at(1_003)).unwrap();
    assert_eq!(
        there.succeeded(probe, at(1_004), &SETTINGS),
        Change::Closed,
        "the second success, of both together"
    );
    assert_eq!(here.adopt(tell(&there)), Change::Closed);
    assert_eq!(Standing::read("3 ajar"), None);
}

#[test]
fn failed_probes_count_over_nodes_until_one_succeeds() {
    let (mut here, mut there) = (opened(), Breaker::default());
    let tell = |from: &Breaker| Standing::read(&from.standing().to_text()).unwrap();
    let fail = |breaker: &mut Breaker, now| {
        let probe = breaker.admit(at(now)).unwrap();
        breaker.failed(probe, at(now), &SETTINGS);
    };
    assert_eq!(here.figures(at(0)).failed_probes, 0, "what opened it was not a probe");
    fail(&mut here, 1_000);
    there.adopt(tell(&here));
    fail(&mut there, 2_000);
    here.adopt(tell(&there));
    fail(&mut here, 3_000);
    assert_eq!(here.figures(at(3_000)).failed_probes, 3);
    let probe = here.admit(at(4_000)).unwrap();
    here.succeeded(probe, at(4_000), &SETTINGS);
    fail(&mut here, 4_001);
    assert_eq!(here.figures(at(4_001)).failed_probes, 1);
    here.reset();
    assert_eq!(here.standing().to_text(), "0 closed 0 4000 -", "no failures, no failed probes");
}

#[test]
fn a_renewed_circuit_knows_nothing_and_ends_of_earlier_requests_change_nothing() {
    let mut breaker = opened();
    let probe = breaker.admit(at(1_000)).unwrap();
    assert_eq!(breaker.renew(), Change::Closed);
    assert_eq!(breaker.failed(probe, at(1_001), &SETTINGS), Change::None);
    let shown = breaker.figures(at(1_001));
    assert_eq!((shown.open, shown.failure_count, shown.failed_probes), (false, 0, 0));
    assert_eq!(Breaker::default().renew(), Change::None);
}

#[test]
fn what_one_client_can_cause_counts_once_enough_users_had_it() {
    let mut breaker = Breaker::default();
    let fail = |breaker: &mut Breaker, user, now| {
        let ticket = breaker.admit(at(now)).unwrap();
        breaker.suspected(ticket, at(now), &SETTINGS, Suspect { user, needed: 3 })
    };
    for now in 1..50 {
        assert_eq!(fail(&mut breaker, now % 2, now), Change::None);
    }
    assert_eq!(breaker.figures(at(50)).failure_count, 0);
    let ticket = breaker.admit(at(50)).unwrap();
    breaker.succeeded(ticket, at(50), &SETTINGS);
    for user in [7, 8, 7] {
        assert_eq!(fail(&mut breaker, user, 51), Change::None, "a success clears the users");
    }
    // With those before it.
    assert_eq!(fail(&mut breaker, 9, 52), Change::Opened { until: at(1_052) });
    assert_eq!(breaker.figures(at(52)).failure_count, 4);
}

#[test]
fn a_probe_that_one_client_can_fail_decides_nothing() {
    let mut breaker = opened();
    for user in [1, 2, 1] {
        let probe = breaker.admit(at(1_000)).unwrap();
        let by = Suspect { user, needed: 3 };
        assert_eq!(breaker.suspected(probe, at(1_000), &SETTINGS, by), Change::None);
        assert_eq!(breaker.look(at(1_000)), Outlook::Probe);
    }
    let probe = breaker.admit(at(1_001)).unwrap();
    let change = breaker.suspected(probe, at(1_001), &SETTINGS, Suspect { user: 3, needed: 3 });
    assert_eq!(change, Change::Opened { until: at(2_001) });
}

#[test]
fn nodes_know_each_others_suspects_until_a_success() {
    let (mut here, mut there) = (Breaker::default(), Breaker::default());
    let tell = |from: &Breaker| {
        let told = Standing::read(&from.standing().to_text());
        assert_eq!(told, Some(from.standing()));
        told.unwrap()
    };
    let fail = |breaker: &mut Breaker, user, now| {
        let ticket = breaker.admit(at(now)).unwrap();
        breaker.suspected(ticket, at(now), &SETTINGS, Suspect { user, needed: 3 });
        breaker.figures(at(now)).failure_count
    };
    assert_eq!((fail(&mut here, 1, 10), fail(&mut there, 2, 11)), (0, 0));
    there.hear_suspects(&tell(&here));
    here.hear_suspects(&tell(&there));
    assert_eq!(fail(&mut here, 3, 12), 2, "its own two");
    let ticket = there.admit(at(13)).unwrap();
    there.succeeded(ticket, at(13), &SETTINGS);
    here.hear_suspects(&tell(&there));
    assert!(!here.standing().has_suspects());
    assert_eq!(fail(&mut there, 1, 14), 0);
    // What is from before the success is not taken over any more.
    there.hear_suspects(&Standing::read("0 closed 0 - 5@12,6@13,7@15").unwrap());
    assert!(there.standing().same_suspects(&Standing::read("0 closed 0 - 1@14,7@15").unwrap()));
}
