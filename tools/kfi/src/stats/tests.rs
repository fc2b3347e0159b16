// SPDX-License-Identifier: GPL-2.0

//! Unit tests of counters: printed, and compared with earlier ones.

use super::*;

fn domain(opened: u64, open: u64, refused: u64) -> Stats {
    Stats {
        class: Class::DOMAIN,
        id: 2,
        parent: Some(1),
        provider: "verbs".to_owned(),
        fabric: "rxe0".to_owned(),
        domain: Some("rxe0".to_owned()),
        owner: Some("kfi_holder".to_owned()),
        counters: vec![("opened", opened), ("open", open)],
        refusals: [("EINVAL".to_owned(), refused)].into(),
    }
}

fn endpoint(id: u64, sends: u64) -> Stats {
    Stats {
        class: Class::by_name("ep").unwrap(),
        id,
        parent: Some(2),
        counters: vec![("sends", sends), ("send_bytes", 1000 * sends)],
        refusals: BTreeMap::new(),
        ..domain(0, 0, 0)
    }
}

#[test]
fn printed() {
    assert_eq!(
        text(&[domain(6, 4, 2), endpoint(17, 3)]),
        "domain 2: verbs rxe0 of kfi_holder\n    opened 6 open 4\n    refused EINVAL 2\n\
         ep 17 in domain 2\n    sends 3 send_bytes 3000\n"
    );
    assert_eq!(
        serde_json::to_string(&domain(6, 4, 2)).unwrap(),
        "{\"class\":\"domain\",\"id\":2,\"parent\":1,\"provider\":\"verbs\",\"fabric\":\"rxe0\",\
         \"domain\":\"rxe0\",\"owner\":\"kfi_holder\",\"opened\":6,\"open\":4,\
         \"refusals\":{\"EINVAL\":2}}"
    );
}

#[test]
fn increase() {
    let before = [domain(6, 4, 2), endpoint(17, 3)];
    assert_eq!(grown(&before, &before), []);
    // The number of open regions alone is no increase.
    assert_eq!(grown(&before, &[domain(6, 3, 2)]), []);
    let mut refused = domain(0, 4, 1);
    assert_eq!(
        grown(&before, &[domain(6, 4, 3), endpoint(17, 3)]),
        [refused]
    );
    refused = domain(2, 5, 0);
    refused.refusals.clear();
    let now = [
        domain(8, 5, 2),
        endpoint(17, 4),
        endpoint(18, 1),
        endpoint(19, 0),
    ];
    assert_eq!(
        grown(&before, &now),
        [refused, endpoint(17, 1), endpoint(18, 1)]
    );
}
