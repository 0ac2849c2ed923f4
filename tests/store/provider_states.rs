//! How providers were, and when their credentials were used last.

use tollgate::domain::ids::{CredentialId, ProviderId};
use tollgate::store::{CredentialUse, LOOK_MS, ProviderLooks};

use super::make::NOON;
use super::{Place, on_both};

on_both!(looks_are_counted_once_and_kept_for_a_time, the_last_use_of_a_credential_stays);

const DAY_MS: i64 = 86_400_000;

async fn looks_are_counted_once_and_kept_for_a_time(place: Place) {
    let store = place.ready().await;
    let (one, other) = (ProviderId(1), ProviderId(2));
    let look = async |ms: i64, up: bool| {
        store.note_provider_states(NOON.plus_ms(ms), &[(one, up), (other, true)]).await.unwrap();
        let all = store.provider_states().await.unwrap();
        let of = |is_day: bool| -> Vec<ProviderLooks> {
            all.iter().filter(|one| one.is_day == is_day).copied().collect()
        };
        (of(false), of(true))
    };
    look(0, true).await;
    // Another node looks within the same five minutes.
    let (looks, days) = look(LOOK_MS - 1, false).await;
    assert_eq!((looks.len(), days.len()), (2, 2), "{looks:?} {days:?}");
    let (_, days) = look(LOOK_MS, false).await;
    let sums =
        |days: &[ProviderLooks]| days.iter().map(|day| (day.up, day.down)).collect::<Vec<_>>();
    assert_eq!(sums(&days), [(1, 1), (2, 0)]);
    assert_eq!(days[0].starts_at, NOON.plus_ms(-NOON.0.rem_euclid(DAY_MS)));
    let (looks, days) = look(LOOK_MS + DAY_MS, true).await;
    assert_eq!((looks.len(), days.len()), (4, 4), "a look of a day ago is kept: {looks:?}");
    let (looks, days) = look(91 * DAY_MS, true).await;
    assert_eq!((looks.len(), days.len()), (2, 4), "{looks:?} {days:?}");
}

async fn the_last_use_of_a_credential_stays(place: Place) {
    let store = place.ready().await;
    let noted = |at: i64, used: Option<i64>| CredentialUse {
        provider: ProviderId(1),
        credential: CredentialId(2),
        known_since: NOON.plus_ms(at),
        used_at: used.map(|at| NOON.plus_ms(at)),
    };
    for (use_of, kept) in [
        (noted(0, None), noted(0, None)),
        (noted(9, Some(5)), noted(0, Some(5))),
        (noted(9, Some(4)), noted(0, Some(5))),
        (noted(9, None), noted(0, Some(5))),
    ] {
        store.note_credential_uses(&[use_of]).await.unwrap();
        assert_eq!(store.credential_uses().await.unwrap(), [kept]);
    }
}
