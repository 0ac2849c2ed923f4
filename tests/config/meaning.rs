//! What the settings mean together: a reload, secure cookies, the former form of a flag.

use tollgate::config;
use tollgate::policy::reservation::Reservation;

use super::load;

#[test]
fn a_reload_reports_what_needs_a_restart() {
    let old = load("auth: {admin_token: the-first-token-of-all}", &[]).unwrap();
    let new = load("auth: {admin_token: another-token-than-that}\nproxy: {threads: 2}\nretry: {deadline: 90s}\nlog: {level: debug}", &[])
        .unwrap();
    let changes = old.changes(&new);
    let text =
        |list: &[config::SettingChange]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let token = "auth.admin_token: (old value) -> (new value)";
    assert_eq!(
        text(&changes.live),
        [token, "retry.deadline: 1m -> 90s", "log.level: info -> debug"]
    );
    assert_eq!(text(&changes.restart), ["proxy.threads: 0 -> 2"]);
    assert!(
        changes.describe().starts_with(&format!("in effect now: {token}, retry.deadline: ")),
        "{}",
        changes.describe()
    );
    assert!(old.changes(&old).is_empty());
    assert_eq!((new.live.retry.deadline_ms, new.live.log_level.as_str()), (90_000, "debug"));
}

#[test]
fn cookies_are_secure_when_the_web_ui_is_reached_over_https() {
    let secure = |env: &[(&str, &str)]| load("", env).unwrap().secure_cookies();
    assert!(!secure(&[("APP_URL", "http://gate.example")]));
    assert!(secure(&[("APP_URL", "https://gate.example/")]));
    assert!(!secure(&[("APP_URL", "https://gate.example"), ("ENABLE_SECURE_COOKIES", "false")]));
    assert!(secure(&[("ENABLE_SECURE_COOKIES", "1")]));
}

#[test]
fn reservation_is_one_of_three_words() {
    let mode =
        |yaml: &str, env: &[(&str, &str)]| load(yaml, env).map(|config| config.limits.reservation);
    for (text, expected) in [
        ("expected", Reservation::Expected),
        ("strict", Reservation::Strict),
        ("off", Reservation::Off),
    ] {
        assert_eq!(
            mode(&format!("limits: {{ reservation: {text} }}"), &[]).unwrap(),
            expected,
            "{text}"
        );
        assert_eq!(
            mode("", &[("TOLLGATE_LIMITS_RESERVATION", text)]).unwrap(),
            expected,
            "{text} in the environment"
        );
    }
    for wrong in ["some", "true", "false"] {
        let problems = mode(&format!("limits: {{ reservation: {wrong} }}"), &[]).unwrap_err();
        let problems = problems.to_string();
        assert!(
            problems.contains("limits.reservation") && problems.contains("expected, strict, off"),
            "{problems}"
        );
    }
}
