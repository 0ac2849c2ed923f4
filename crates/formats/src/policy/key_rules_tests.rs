//! The rules that bind keys to each other and to their user.

use super::*;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;

const NOW: Timestamp = Timestamp(1_000_000);

fn key(id: i64, groups: &str) -> Key {
    let name = format!("key {id}");
    let provider_group = Groups::parse(groups);
    Key { id: KeyId(id), name, provider_group, ..Key::blank(UserId(1), NOW) }
}

fn code(result: Result<(), KeyRuleError>) -> &'static str {
    result.map_or_else(|error| error.code(), |()| "ok")
}

#[test]
fn names_are_unique_among_undeleted_keys() {
    let mut keys = [key(1, ""), key(2, "")];
    assert_eq!(code(name_is_free(&keys, "key 2", None)), "DUPLICATE_NAME");
    assert_eq!(code(name_is_free(&keys, "key 2", Some(KeyId(2)))), "ok");
    keys[1].deleted_at = Some(NOW);
    assert_eq!(code(name_is_free(&keys, "key 2", None)), "ok");
}

#[test]
fn each_limit_is_held_by_the_users() {
    type Set = fn(&mut Limits, i64);
    let cases: [(&str, Set); 5] = [
        ("KEY_LIMIT_5H_EXCEEDS_USER_LIMIT", |l, usd| l.five_hours = Some(NanoUsd::usd(usd))),
        ("KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT", |l, usd| l.daily = Some(NanoUsd::usd(usd))),
        ("KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT", |l, usd| l.weekly = Some(NanoUsd::usd(usd))),
        ("KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT", |l, usd| l.monthly = Some(NanoUsd::usd(usd))),
        ("KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT", |l, usd| l.total = Some(NanoUsd::usd(usd))),
    ];
    for (expected, set) in cases {
        let (mut key, mut user) = (Limits::default(), Limits::default());
        set(&mut key, 6);
        assert_eq!(code(limits_within(&key, &user)), "ok", "{expected}: the user has no limit");
        set(&mut user, 5);
        assert_eq!(code(limits_within(&key, &user)), expected);
        set(&mut key, 5);
        assert_eq!(code(limits_within(&key, &user)), "ok", "{expected}: equal");
        assert_eq!(
            code(limits_within(&Limits::default(), &user)),
            "ok",
            "{expected}: the key has no limit"
        );
        set(&mut user, 0);
        assert_eq!(code(limits_within(&key, &user)), expected, "0 allows nothing");
    }
    let sessions = |n| Limits { concurrent_sessions: n, ..Limits::default() };
    // Of a user that was given a limit below a key's before that was refused, the others change.
    let old = Limits { total: Some(NanoUsd::usd(1)), ..Limits::default() };
    let keys =
        [Key { limits: Limits { total: Some(NanoUsd::usd(2)), ..sessions(3) }, ..key(1, "") }];
    let lower = |to: Limits| code(keys_stay_within(keys.iter(), &old, &to));
    assert_eq!(lower(Limits { weekly: Some(NanoUsd::ZERO), ..old }), "ok");
    assert_eq!(
        lower(Limits { concurrent_sessions: 2, ..old }),
        "KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT"
    );
    let cases = [
        (3, 2, "KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT"),
        (2, 2, "ok"),
        (3, 0, "ok"),
        (0, 2, "ok"),
    ];
    for (key, user, expected) in cases {
        assert_eq!(
            code(limits_within(&sessions(key), &sessions(user))),
            expected,
            "{key} of {user}"
        );
    }
}

#[test]
fn the_last_usable_key_stays() {
    let mut keys = [key(1, ""), key(2, ""), key(3, "")];
    keys[1].is_enabled = false;
    keys[2].expires_at = Some(NOW);
    assert_eq!(code(may_disable(&keys, KeyId(1), NOW)), "CANNOT_DISABLE_LAST_KEY");
    assert_eq!(
        code(may_delete(&keys, KeyId(1), true, NOW)),
        "CANNOT_DELETE_LAST_KEY",
        "administrators too"
    );
    assert_eq!(code(may_delete(&keys, KeyId(3), false, NOW)), "ok", "an unusable key may go");
    keys[1].is_enabled = true;
    assert_eq!(code(may_disable(&keys, KeyId(1), NOW)), "ok");
    assert_eq!(code(may_delete(&keys, KeyId(1), false, NOW)), "ok");
    for key in &mut keys {
        key.is_enabled = false;
    }
    assert_eq!(code(leaves_usable_key(&keys, NOW)), "CANNOT_DISABLE_LAST_KEY");
    assert_eq!(code(may_delete(&keys[..1], KeyId(1), false, NOW)), "CANNOT_DELETE_LAST_GROUP_KEY");
    assert_eq!(code(may_delete(&keys[..1], KeyId(1), true, NOW)), "ok");
}

#[test]
fn groups_are_handed_on_only_by_those_who_hold_them() {
    let cases = [
        ("gold", "gold", "ok"),
        ("gold", "", "NO_DEFAULT_GROUP_PERMISSION"),
        ("gold", "default,silver", "NO_DEFAULT_GROUP_PERMISSION"),
        ("", "", "ok"),
        ("", "default", "ok"),
        ("gold,default", "gold,silver,*", "NO_GROUP_PERMISSION"),
        ("*", "silver,default", "ok"),
    ];
    for (held, wanted, expected) in cases {
        let result = may_assign_groups(&[key(1, held)], &Groups::parse(wanted));
        assert_eq!(code(result), expected, "{held:?} gives {wanted:?}");
    }
    let error =
        may_assign_groups(&[key(1, "gold")], &Groups::parse("iron,gold,silver")).unwrap_err();
    assert_eq!(error.params(), [("groups", "iron,silver".to_owned())]);
}

#[test]
fn effective_groups_are_the_union_with_the_default_spelled_out() {
    let mut keys = [key(1, "b,a"), key(2, ""), key(3, "c")];
    keys[2].deleted_at = Some(NOW);
    assert_eq!(effective_groups(&keys).to_string(), "a,b,default");
    assert_eq!(effective_groups(&[]).to_string(), "");
}
