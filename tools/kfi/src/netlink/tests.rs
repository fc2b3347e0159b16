// SPDX-License-Identifier: GPL-2.0

//! Unit tests of netlink, on answers made up or recorded, whole, cut off and changed.

use super::*;
use std::collections::VecDeque;

/// The kernel: it answers with datagrams that are given, and remembers what it was asked.
#[derive(Default)]
pub struct Recorded {
    pub asked: Vec<Vec<u8>>,
    pub answers: VecDeque<Vec<u8>>,
}

impl Recorded {
    pub fn new(answers: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self {
            asked: Vec::new(),
            answers: answers.into_iter().collect(),
        }
    }
}

impl Read for Recorded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let answer = self.answers.pop_front().unwrap_or_default();
        let length = answer.len().min(buffer.len());
        buffer[..length].copy_from_slice(&answer[..length]);
        Ok(length)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.asked.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns an attribute with its padding.
pub fn made(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((value.len() as u16 + 4).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(align(bytes.len()), 0);
    bytes
}

/// Returns a message.
pub fn answer(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((payload.len() as u32 + 16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(align(bytes.len()), 0);
    bytes
}

/// The number of the family in answers that are made up.
pub const FAMILY: u16 = 42;

/// Returns what the kernel answers to the search for the family.
pub fn found() -> Vec<u8> {
    let mut payload = vec![1, 2, 0, 0];
    payload.extend(made(CTRL_ATTR_FAMILY_NAME, b"kfi\0"));
    payload.extend(made(CTRL_ATTR_FAMILY_ID, &FAMILY.to_ne_bytes()));
    answer(GENL_ID_CTRL, 0, 1, &payload)
}

/// Returns an entry of the dump that is asked for after the search.
pub fn entry(flags: u16, attributes: &[u8]) -> Vec<u8> {
    answer(FAMILY, flags, 2, &[&[1, 1, 0, 0], attributes].concat())
}

pub fn done() -> Vec<u8> {
    answer(NLMSG_DONE, 2, 2, &0i32.to_ne_bytes())
}

/// Asks for a dump, and returns its outcome and the number of its entries.
fn dump(answers: impl IntoIterator<Item = Vec<u8>>) -> Result<(Outcome, usize), Error> {
    let link = Recorded::new(std::iter::once(found()).chain(answers));
    let mut entries = 0;
    let outcome = Family::find(link, "kfi")?
        .expect("no family")
        .dump(2, &[], |payload| {
            entries += 1;
            attributes(payload).try_for_each(|i| i.map(drop))
        })?;
    Ok((outcome, entries))
}

fn malformed(answers: impl IntoIterator<Item = Vec<u8>>) -> String {
    let text = dump(answers).expect_err("accepted").to_string();
    text.trim_start_matches("the kernel's answer is malformed: ")
        .to_owned()
}

fn refused(message: Vec<u8>) -> Refused {
    match dump([message]) {
        Ok((Outcome::Refused(refused), 0)) => refused,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_padded() {
    let link = Recorded::new([found(), done()]);
    let mut family = Family::find(link, "kfi").unwrap().unwrap();
    family.dump(2, &[(1, &[1, 2, 3, 4])], |_| Ok(())).unwrap();
    let search = [&[3, 1, 0, 0][..], &made(CTRL_ATTR_FAMILY_NAME, b"kfi\0")].concat();
    let dump = [&[2, 1, 0, 0][..], &made(1, &[1, 2, 3, 4])].concat();
    assert_eq!(
        family.link.asked,
        [
            answer(GENL_ID_CTRL, NLM_F_REQUEST, 1, &search),
            answer(FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 2, &dump),
        ]
    );
}

#[test]
fn no_family() {
    let mut payload = (-libc::ENOENT).to_ne_bytes().to_vec();
    payload.extend(answer(GENL_ID_CTRL, 5, 1, &[3, 1, 0, 0]));
    let link = Recorded::new([answer(NLMSG_ERROR, 0, 1, &payload)]);
    assert!(Family::find(link, "kfi").unwrap().is_none());
}

#[test]
fn a_dump_has_parts() {
    let first = [entry(2, &made(1, &[0; 4])), entry(2, &[])].concat();
    assert_eq!(
        dump([first.clone(), entry(2, &[]), done()]),
        Ok((Outcome::Complete, 3))
    );
    // The end with the last part, and without a payload.
    let last = [entry(2, &[]), answer(NLMSG_DONE, 2, 2, &[])].concat();
    assert_eq!(dump([first, last]), Ok((Outcome::Complete, 3)));
    let noop = answer(NLMSG_NOOP, 0, 2, &[]);
    assert_eq!(dump([noop, done()]), Ok((Outcome::Complete, 0)));
    // An answer to a request before.
    let before = answer(FAMILY, 2, 1, &[1, 1, 0, 0]);
    assert_eq!(dump([before, done()]), Ok((Outcome::Complete, 0)));
}

#[test]
fn a_dump_is_interrupted() {
    let marked = entry(2 | NLM_F_DUMP_INTR, &[]);
    assert_eq!(
        dump([marked, entry(2, &[]), done()]),
        Ok((Outcome::Interrupted, 2))
    );
    let marked = answer(NLMSG_DONE, 2 | NLM_F_DUMP_INTR, 2, &[0; 4]);
    assert_eq!(dump([marked]), Ok((Outcome::Interrupted, 0)));
}

#[test]
fn the_kernel_says_why() {
    let text = made(NLMSGERR_ATTR_MSG, b"no such class\0");
    let offset = made(2, &[20, 0, 0, 0]);
    let request = answer(FAMILY, 0x301, 2, &[2, 1, 0, 0, 8, 0, 1, 0, 9, 0, 0, 0]);
    let errno = (-libc::EINVAL).to_ne_bytes();
    let why = |text: Option<&str>| Refused {
        errno: libc::EINVAL,
        text: text.map(str::to_owned),
    };

    let whole = [&errno[..], &request, &offset, &text].concat();
    let message = answer(NLMSG_ERROR, NLM_F_ACK_TLVS, 2, &whole);
    assert_eq!(refused(message), why(Some("no such class")));
    let capped = [&errno[..], &request[..16], &offset, &text].concat();
    let message = answer(NLMSG_ERROR, NLM_F_ACK_TLVS | NLM_F_CAPPED, 2, &capped);
    assert_eq!(refused(message), why(Some("no such class")));
    let message = answer(NLMSG_ERROR, 0, 2, &[&errno[..], &request].concat());
    assert_eq!(refused(message), why(None));
    // At the end of a dump, no request is between.
    let message = answer(NLMSG_DONE, NLM_F_ACK_TLVS, 2, &[&errno[..], &text].concat());
    assert_eq!(refused(message), why(Some("no such class")));

    assert_eq!(
        why(Some("no such class")).to_string(),
        "no such class (Invalid argument (os error 22))"
    );
}

#[test]
fn malformed_messages() {
    let long = |length: u32| {
        let mut bytes = entry(2, &[]);
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    };
    assert_eq!(
        malformed([vec![0; 15]]),
        "a message is shorter than its header"
    );
    for length in [0, 1, 15] {
        assert_eq!(
            malformed([long(length)]),
            "the length of a message is less than its header"
        );
    }
    for length in [21, u32::MAX - 2, u32::MAX] {
        assert_eq!(
            malformed([long(length)]),
            "a message is longer than its datagram"
        );
    }
    assert_eq!(malformed([long(16)]), "a message has no command");
    assert_eq!(
        malformed([answer(FAMILY + 1, 2, 2, &[0; 4])]),
        "a message is of another family"
    );
    assert_eq!(
        malformed([answer(NLMSG_OVERRUN, 0, 2, &[])]),
        "data was lost"
    );
    assert_eq!(
        malformed([answer(NLMSG_ERROR, 0, 2, &[1, 2])]),
        "an error is shorter than an errno"
    );
    for payload in [&[0xff; 4][..], &[0xff; 8], &[0xff; 40]] {
        assert_eq!(
            malformed([answer(NLMSG_ERROR, NLM_F_ACK_TLVS, 2, payload)]),
            "an error does not repeat its request"
        );
    }
    assert_eq!(
        malformed([entry(2, &[])]),
        "netlink: the kernel has ended its answer early"
    );
}

#[test]
fn malformed_attributes() {
    let attribute = |length: u16| [&length.to_ne_bytes()[..], &[1, 0, 7, 0]].concat();
    let first = |bytes: &[u8]| attributes(bytes).next().map(|i| i.map(drop));
    assert_eq!(first(&[]), None);
    for length in 1..4 {
        assert_eq!(
            first(&vec![9; length]),
            Some(Err(Malformed("an attribute is shorter than its header")))
        );
    }
    for length in 0..4 {
        assert_eq!(
            first(&attribute(length)),
            Some(Err(Malformed(
                "the length of an attribute is less than its header"
            )))
        );
    }
    for length in [7, 8, u16::MAX] {
        assert_eq!(
            first(&attribute(length)),
            Some(Err(Malformed("an attribute is longer than its message")))
        );
    }
    // Nothing is read behind a malformed one.
    assert_eq!(attributes(&[0; 8]).count(), 1);
    // The last one needs no padding.
    assert_eq!(first(&attribute(6)), Some(Ok(())));
}

#[test]
fn values() {
    fn of(value: &[u8]) -> Attribute<'_> {
        Attribute { kind: 1, value }
    }
    assert_eq!(of(&7u32.to_ne_bytes()).u32(), Ok(7));
    assert_eq!(of(&7u64.to_ne_bytes()).uint(), Ok(7));
    for length in [0, 3, 5, 8] {
        assert!(of(&vec![0; length]).u32().is_err());
    }
    assert_eq!(of(&7u32.to_ne_bytes()).uint(), Ok(7));
    for length in [0, 3, 5, 7, 9] {
        assert!(of(&vec![0; length]).uint().is_err());
    }
    for (value, text) in [
        (&b"rxe0\0"[..], "rxe0"),
        (b"rxe0", "rxe0"),
        (b"", ""),
        (b"a\0b\0", "a"),
        (b"\x1b[2J\n", "?[2J?"),
    ] {
        assert_eq!(of(value).text().as_deref(), Ok(text));
    }
    assert!(of(b"\xff\0").text().is_err());
    let nested = made(0x8000 | 3, &[1]);
    assert_eq!(attributes(&nested).next().unwrap().unwrap().kind, 3);
}
