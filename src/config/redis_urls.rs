//! A list of Redis addresses as one text, with commas between them. An address may have commas of
//! its own, between hosts: what begins with no scheme belongs to the address before.

/// `rediss` is TLS.
const SCHEMES: [&str; 6] =
    ["redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"];

/// The most servers in a list.
const MOST: usize = 32;

/// Whether a text is a Redis address, as far as its scheme says.
pub(super) fn is_address(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| SCHEMES.contains(&scheme) && !rest.is_empty())
}

/// The addresses of a list; `None` if it is none.
pub(super) fn addresses(text: &str) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        match found.last_mut() {
            Some(before) if !piece.contains("://") => {
                before.push(',');
                before.push_str(piece);
            }
            _ => found.push(piece.to_owned()),
        }
    }
    let fits = found.len() <= MOST && found.iter().all(|address| is_address(address));
    fits.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_address_stay_together() {
        let list = "redis://a:1/0, redis+cluster://me:word@b:1,c:2,rediss://d";
        let made = addresses(list).unwrap();
        assert_eq!(made, ["redis://a:1/0", "redis+cluster://me:word@b:1,c:2", "rediss://d"]);
        for wrong in ["", "a,redis://b", "redis://a,http://b", "redis://a,redis://"] {
            assert_eq!(addresses(wrong), None, "{wrong}");
        }
        assert_eq!(addresses(&["redis://a"; 33].join(",")), None);
    }
}
