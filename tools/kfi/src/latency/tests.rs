// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the durations of registrations: events are paired, counted and printed.

use super::*;

const BEGUN: &str =
    "          insmod-142     [001] .....    12.345678: kfi_mr_register: provider=verbs \
                     domain=rxe0 domain_id=2 mr=0 length=4096 access=0x3000";
const ENDED: &str =
    "          insmod-142     [000] .....    12.345778: kfi_mr_registered: provider=verbs \
                     domain=rxe0 domain_id=2 mr=17 length=4096 access=0x3000 err=0";

/// Returns the buckets of the first domain.
fn buckets(lines: &[&str]) -> Vec<(u64, u64)> {
    let mut all = Registrations::default();
    lines.iter().for_each(|i| all.add(i));
    let all = all.latencies();
    let buckets = all.first().map(|i| &i.buckets).into_iter().flatten();
    buckets.map(|i| (i.up_to_us, i.count)).collect()
}

#[test]
fn a_registration() {
    let event = Event {
        caller: Caller::Task(142),
        time: 12_345_678,
        is_end: false,
        provider: "verbs",
        domain: "rxe0",
        domain_id: 2,
        succeeds: true,
    };
    assert_eq!(Event::parse(BEGUN), Some(event));
    assert_eq!(buckets(&[BEGUN, ENDED]), [(128, 1)]);
    assert_eq!(buckets(&[BEGUN, &ENDED.replace("778", "742")]), [(64, 1)]);
    // A duration of less than a microsecond.
    assert_eq!(buckets(&[BEGUN, &ENDED.replace("778", "678")]), [(1, 1)]);
}

#[test]
fn several() {
    // All registrations of a batch begin before the first one ends.
    let late = ENDED.replace("778", "978");
    assert_eq!(buckets(&[BEGUN, BEGUN, ENDED, &late]), [(128, 1), (512, 1)]);
    // A failed registration is not counted, but its end belongs to its begin.
    let failed = ENDED.replace("err=0", "err=-12");
    assert_eq!(buckets(&[BEGUN, &failed, BEGUN, ENDED]), [(128, 1)]);
    assert_eq!(buckets(&[BEGUN, &failed, ENDED]), []);
}

#[test]
fn interrupts() {
    // A softirq interrupts the task, and also registers.
    let soft = |line: &str| line.replace(".....", "..s1.").replace("[000]", "[001]");
    let lines = [
        BEGUN,
        &soft(BEGUN).replace("678:", "700:"),
        &soft(ENDED).replace("778:", "730:"),
        ENDED,
    ];
    assert_eq!(buckets(&lines), [(32, 1), (128, 1)]);
}

#[test]
fn other_lines() {
    let renamed = BEGUN.replace("insmod-142 ", "a-b [1] (x)-142 (    142) ");
    assert_eq!(Event::parse(&renamed).unwrap().caller, Caller::Task(142));
    assert_eq!(buckets(&[ENDED, "", "provider=", " provider="]), []);
    let mut all = Registrations::default();
    for i in [BEGUN, "CPU:1 [LOST 17 EVENTS]", ENDED] {
        all.add(i);
    }
    assert_eq!((all.lost, all.latencies()), (17, vec![]));
}

#[test]
fn printed() {
    let all = [Latency {
        id: 2,
        provider: "verbs".to_owned(),
        domain: "rxe0".to_owned(),
        registrations: 3,
        buckets: vec![
            Bucket {
                up_to_us: 64,
                count: 2,
            },
            Bucket {
                up_to_us: 1024,
                count: 1,
            },
        ],
    }];
    assert_eq!(
        text(&all),
        "domain 2: verbs rxe0\n    registrations 3\n    up to       64 us        2\n    \
         up to     1024 us        1\n"
    );
    assert_eq!(
        serde_json::to_string(&all).unwrap(),
        "[{\"id\":2,\"provider\":\"verbs\",\"domain\":\"rxe0\",\"registrations\":3,\
         \"latency\":[{\"up_to_us\":64,\"count\":2},{\"up_to_us\":1024,\"count\":1}]}]"
    );
}
