// SPDX-License-Identifier: GPL-2.0

//! Compares the names with the headers of the API.

use super::*;
use std::{
    collections::BTreeMap,
    env,
    fs, //
};

fn header(name: &str) -> String {
    let directory = env::var("KFI_INCLUDE").unwrap_or("../../include".to_owned());
    fs::read_to_string(format!("{directory}/{name}")).unwrap()
}

/// Returns the bits that a header defines, by name.
fn defined(text: &str) -> BTreeMap<&str, u32> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line
                .strip_prefix("#define ")?
                .split_once(char::is_whitespace)?;
            let (_, bit) = value.trim().strip_prefix("(1")?.split_once("<< ")?;
            Some((name, bit.split(')').next()?.parse().ok()?))
        })
        .collect()
}

#[test]
fn bits_are_those_of_the_headers() {
    let text = header("kfabric.h");
    let defined = defined(&text);
    let tables = [Caps::NAMES, Mode::NAMES, MrMode::NAMES, Access::NAMES];
    for (bit, name) in tables.into_iter().flatten() {
        assert_eq!(defined.get(name), Some(bit), "{name}");
    }
    for name in defined.keys().filter(|i| i.starts_with("KFI_MR_")) {
        assert!(MrMode::NAMES.iter().any(|(_, i)| i == name), "{name}");
    }
}

#[test]
fn types_of_endpoints_are_those_of_the_header() {
    let text = header("kfabric.h");
    let (_, list) = text.split_once("enum kfi_ep_type {").unwrap();
    let names: Vec<_> = list
        .split('}')
        .next()
        .unwrap()
        .split(',')
        .map(str::trim)
        .collect();
    let numbered: Vec<_> = (0..).zip(names).collect();
    assert_eq!(numbered, EpType::NAMES);
}

#[test]
fn classes_and_states_are_those_of_the_specification() {
    let text = header("../Documentation/netlink/kfi.yaml");
    let names = |start: &str, end: &str| -> Vec<(u32, String)> {
        let (_, list) = text.split_once(start).unwrap();
        let mut found = Vec::new();
        for line in list.split(end).next().unwrap().lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name: ") {
                found.push((found.len() as u32, name.to_owned()));
            } else if let Some(number) = line.strip_prefix("value: ") {
                found.last_mut().unwrap().0 = number.parse().unwrap();
            }
        }
        found
    };
    let known = |names: &[(u32, &str)]| -> Vec<_> {
        names
            .iter()
            .map(|(number, name)| (*number, (*name).to_owned()))
            .collect()
    };
    assert_eq!(
        names("name: class\n    type: enum", "\n  -\n"),
        known(Class::NAMES)
    );
    assert_eq!(
        names("name: state\n    type: enum", "\n\n"),
        known(State::NAMES)
    );
}

/// Compares the attributes of the specification, and their order, with the core's numbers for them.
#[test]
fn attributes_are_those_of_the_core() {
    let specification = header("../Documentation/netlink/kfi.yaml");
    let core = header("../rust/helpers/netlink.h");
    let (_, sets) = specification.split_once("attribute-sets:").unwrap();
    let (sets, operations) = sets.split_once("operations:").unwrap();
    let (mut expected, mut prefix) = (String::from("enum {"), String::new());
    let after = |line: &str, start: &str| {
        let name = line.strip_prefix(start)?.strip_prefix("name: ")?;
        Some(name.to_uppercase().replace('-', "_"))
    };
    for (number, name) in operations
        .lines()
        .filter_map(|i| after(i, "      "))
        .enumerate()
    {
        expected += &format!(" KFI_CMD_{name}{}", if number == 0 { " = 1," } else { "," });
    }
    for line in sets.lines() {
        if let Some(set) = after(line, "    ") {
            prefix = set;
            expected += " }; enum {";
        } else if let Some(name) = after(line, "        ") {
            let first = expected.ends_with('{');
            expected += &format!(
                " KFI_A_{prefix}_{name}{}",
                if first { " = 1," } else { "," }
            );
        }
    }
    expected += " };";
    let (_, numbers) = core.split_once("#define KFI_FAMILY_VERSION\t1").unwrap();
    let words: Vec<_> = numbers
        .split("#endif")
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(words.join(" "), expected);
}

#[test]
fn errnos_are_those_of_the_header() {
    let text = header("kfi_errno.h");
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("#define"), Some(name), Some(errno))
                if name.strip_prefix("KFI_") == Some(errno) =>
            {
                assert!(ERRNOS.iter().any(|(_, i)| *i == errno), "{errno}");
            }
            (Some(name), Some("="), Some(number)) if name.starts_with("KFI_E") => {
                let number = number.trim_end_matches(',').parse().unwrap_or(256);
                assert_eq!(name.strip_prefix("KFI_"), Some(&*errno(number)));
            }
            _ => {}
        }
    }
}

#[test]
fn names() {
    assert_eq!(Mode(0).names(), Vec::<String>::new());
    assert_eq!(
        Access(0x3000).names(),
        ["KFI_REMOTE_READ", "KFI_REMOTE_WRITE"]
    );
    assert_eq!(Access(0x3000).short(), "remote_read,remote_write");
    // Bits without a name stay visible.
    assert_eq!(
        MrMode(1 << 40 | 1 << 3 | 1).names(),
        ["KFI_MR_VIRT_ADDR", "0x10000000001"]
    );
    assert_eq!(Caps(u64::MAX).names().len(), Caps::NAMES.len() + 1);

    assert_eq!(Class::by_name("mr"), Some(Class(12)));
    assert_eq!(Class::by_name("av"), None);
    assert_eq!(Class(6).to_string(), "srx");
    assert_eq!(Class(5).to_string(), "5");
    assert_eq!(State(u32::MAX).to_string(), "4294967295");

    assert_eq!(errno(-libc::EINVAL), "EINVAL");
    assert_eq!(errno(-266), "ENOKEY");
    assert_eq!(errno(i32::MIN), "2147483647");
    assert_eq!(Version(0x1_0007).to_string(), "1.7");
    assert_eq!(
        serde_json::to_string(&Key(u64::MAX)).unwrap(),
        "\"0xffffffffffffffff\""
    );
}
