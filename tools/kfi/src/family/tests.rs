// SPDX-License-Identifier: GPL-2.0

//! Unit tests of offers and objects: parsed, sorted, printed; and of answers that were changed.

use super::*;
use crate::{
    netlink::tests::{
        answer,
        done,
        entry,
        found,
        made,
        Recorded,
        FAMILY, //
    },
    output,
};

#[path = "recorded.rs"]
mod recorded;

fn object(class: u32, id: u64, more: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = made(1, &class.to_ne_bytes());
    bytes.extend(made(2, &id.to_ne_bytes()));
    bytes.extend(made(4, b"loop\0"));
    bytes.extend(made(5, b"loop\0"));
    bytes.extend(more.concat());
    entry(2, &bytes)
}

/// Returns a dump of a fabric, a domain, and two regions.
fn dumped() -> Vec<u8> {
    let region = [
        made(3, &7u64.to_ne_bytes()),
        made(6, b"loop0\0"),
        made(7, b"kfi_holder\0"),
        made(8, &65u32.to_ne_bytes()),
        made(9, &0u32.to_ne_bytes()),
        made(10, &4096u32.to_ne_bytes()),
        made(11, &0x3000u64.to_ne_bytes()),
        made(12, &0x72au64.to_ne_bytes()),
        made(99, b"of a newer kernel"),
    ];
    let domain = [made(3, &1u64.to_ne_bytes()), made(6, b"loop0\0")];
    [
        object(12, 10, &region),
        object(12, 9, &region[..4]),
        object(2, 7, &domain),
        object(1, 1, &[made(8, &200_000u32.to_ne_bytes())]),
        done(),
    ]
    .concat()
}

fn objects(answers: impl IntoIterator<Item = Vec<u8>>) -> Result<Vec<Object>, Error> {
    Kfi::open(Recorded::new(std::iter::once(found()).chain(answers)))?.objects(None)
}

#[test]
fn a_table_of_objects() {
    let objects = objects([dumped()]).unwrap();
    let expected = "\
CLASS   ID  PARENT  PROVIDER  FABRIC  DOMAIN  OWNER       STATE    AGE  LENGTH    KEY  ACCESS
fabric   1       -  loop      loop    -       -           open   2d07h       -      -  -
domain   7       1  loop      loop    loop0   -           open      0s       -      -  -
mr       9       7  loop      loop    loop0   kfi_holder  open   1m05s       -      -  -
mr      10       7  loop      loop    loop0   kfi_holder  open   1m05s    4096  0x72a  remote_read,remote_write
";
    assert_eq!(output::table(&objects), expected);
    // Columns without a value go.
    let expected = "\
CLASS   ID  PROVIDER  FABRIC  STATE    AGE
fabric   1  loop      loop    open   2d07h
";
    assert_eq!(output::table(&objects[..1]), expected);
    assert_eq!(
        serde_json::to_string(&objects[3]).unwrap(),
        "{\"class\":\"mr\",\"id\":10,\"parent\":7,\"provider\":\"loop\",\"fabric\":\"loop\",\
         \"domain\":\"loop0\",\"owner\":\"kfi_holder\",\"state\":\"open\",\"length\":4096,\
         \"access\":[\"KFI_REMOTE_READ\",\"KFI_REMOTE_WRITE\"],\"key\":\"0x72a\",\"age\":65}"
    );
}

#[test]
fn counters() {
    let refusal = |errno: u32, count: u64| {
        made(
            17,
            &[made(1, &errno.to_ne_bytes()), made(2, &count.to_ne_bytes())].concat(),
        )
    };
    let domain = [
        made(13, &6u32.to_ne_bytes()),
        made(14, &(1u64 << 40).to_ne_bytes()),
        refusal(22, 2),
        refusal(256, 1),
        made(29, &3u32.to_ne_bytes()),
    ];
    let found = objects([[object(2, 7, &domain), done()].concat()]).unwrap();
    assert_eq!(
        found[0].counters,
        [("opened", 6), ("open", 1 << 40), ("retries", 3)]
    );
    assert_eq!(
        Vec::from_iter(found[0].refusals.clone()),
        [("EINVAL".to_owned(), 2), ("EOTHER".to_owned(), 1)]
    );
}

#[test]
fn offers() {
    let offer = |provider: &[u8], mr_mode: u32| {
        entry(
            2,
            &[
                made(1, provider),
                made(2, b"f\0"),
                made(3, b"d\0"),
                made(4, &1u32.to_ne_bytes()),
                made(5, &0x1_0002u32.to_ne_bytes()),
                made(6, &6u64.to_ne_bytes()),
                made(8, &mr_mode.to_ne_bytes()),
                made(17, &16u64.to_ne_bytes()),
            ]
            .concat(),
        )
    };
    let answers = [
        offer(b"verbs\0", 24),
        offer(b"loop\0", 24),
        offer(b"loop\0", 0),
        done(),
    ];
    let link = Recorded::new([found(), answers.concat()]);
    let offers = Kfi::open(link).unwrap().offers().unwrap();
    // The order of a provider's own stays.
    let modes: Vec<_> = offers
        .iter()
        .map(|i| (i.provider.as_str(), i.mr_mode.0))
        .collect();
    assert_eq!(modes, [("loop", 24), ("loop", 0), ("verbs", 24)]);
    let text = output::offers(&offers[1..2], true);
    assert!(text.starts_with(
        "provider: loop\n    fabric: f\n    domain: d\n    version: 1.2\n    type: KFI_EP_MSG\n    \
         mr_mode: 0\n    caps: KFI_MSG | KFI_RMA\n    mode: 0\n"
    ));
    assert!(text.ends_with("    tx_attr.rma_iov_limit: 16\n"));
    let json = serde_json::to_value(&offers[0]).unwrap();
    assert_eq!(
        json["mr_mode"],
        serde_json::json!(["KFI_MR_VIRT_ADDR", "KFI_MR_PROV_KEY"])
    );
    assert_eq!(json["version"], "1.2");
}

#[test]
fn a_class_is_asked_for() {
    let mut kfi = Kfi::open(Recorded::new([found(), done()])).unwrap();
    kfi.objects(Some(Class(12))).unwrap();
    let asked = [&[OBJECT_GET, 1, 0, 0][..], &made(1, &12u32.to_ne_bytes())].concat();
    assert_eq!(kfi.0.link().asked[1], answer(FAMILY, 0x301, 2, &asked));
}

#[test]
fn a_dump_begins_again() {
    let interrupted = |sequence| answer(3, 0x12, sequence, &0i32.to_ne_bytes());
    let complete = answer(3, 2, 4, &0i32.to_ne_bytes());
    assert_eq!(
        objects([interrupted(2), interrupted(3), complete]),
        Ok(vec![])
    );
    let e = objects((2..).take(5).map(interrupted)).unwrap_err();
    assert!(
        e.to_string().starts_with("objects open and close too fast"),
        "{e}"
    );
}

#[test]
fn refusals_are_told() {
    let refused = |errno: i32| answer(2, 0, 2, &[&(-errno).to_ne_bytes()[..], &[0; 16]].concat());
    let text = |errno| objects([refused(errno)]).unwrap_err().to_string();
    assert_eq!(
        text(libc::EPERM),
        "the kernel demands CAP_NET_ADMIN: Operation not permitted (os error 1)"
    );
    assert_eq!(
        text(libc::EINVAL),
        "the kernel refuses: Invalid argument (os error 22)"
    );
}

/// Returns recorded bytes.
fn bytes(text: &str) -> Vec<u8> {
    let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Asks as a recorded kernel was asked.
fn recorded(answer: &str) -> Kfi<Recorded> {
    let answers = [recorded::FAMILY, answer].map(bytes);
    Kfi::open(Recorded::new(answers.into_iter().chain([done()]))).unwrap()
}

#[test]
#[cfg(target_endian = "little")]
fn a_kernel_has_answered() {
    let objects = recorded(recorded::OBJECT).objects(None).unwrap();
    let names: Vec<_> = objects
        .iter()
        .map(|i| (i.class.to_string(), i.id, i.parent, i.owner.as_deref()))
        .collect();
    let owner = Some("kfi_holder");
    assert_eq!(
        names,
        [
            ("fabric".to_owned(), 1, None, owner),
            ("domain".to_owned(), 2, Some(1), owner),
            ("mr".to_owned(), 33, Some(2), owner),
        ]
    );
    assert_eq!(objects[2].length, Some(12288));
    assert_eq!(objects[2].access, Some(Access(0x3000)));
    assert!(objects[2].key.is_some());
    let offers = recorded(recorded::INFO).offers().unwrap();
    let offer = &offers[0];
    assert_eq!((offers.len(), offer.provider.as_str()), (2, "loop"));
    assert_eq!(
        (offer.domain.as_str(), offer.mr_iov_limit),
        ("loop0", 65536)
    );
    let text = |answer| {
        let e = recorded(answer).objects(None).unwrap_err();
        e.to_string()
    };
    assert_eq!(
        text(recorded::BAD),
        "the kernel refuses: invalid attribute length (Invalid argument (os error 22))"
    );
    assert!(text(recorded::UNKNOWN).starts_with("the kernel refuses: Operation not supported"));
}

/// Answers that break off anywhere, or of which some bytes are others, panic nowhere, and all end.
#[test]
fn hostile_answers() {
    let good = dumped();
    for length in 0..good.len() {
        assert!(objects([good[..length].to_vec()]).is_err(), "{length}");
    }
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    let mut refused = 0;
    for _ in 0..50_000 {
        let mut bytes = good.clone();
        for _ in 0..=next() % 4 {
            let at = next() % bytes.len();
            bytes[at] = [0, 1, 3, 4, 0x7f, 0x80, 0xff, next() as u8][next() % 8];
        }
        match objects([bytes]) {
            Ok(objects) => drop(output::table(&objects)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 5_000, "{refused}");
}
