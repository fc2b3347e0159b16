// SPDX-License-Identifier: GPL-2.0

//! Unit tests of lines of a trace, as a kernel has printed them, and changed ones.

use super::*;

const LINE: &str = "          insmod-142     [001] .....    12.345678: kfi_refused: call= \
                    provider= domain= domain_id=0 class=none id=0 err=-61 why='no provider meets the hints' index=-1 value=0x0";

fn parsed(line: &str) -> Refusal {
    match Line::parse(line) {
        Line::Refusal(refusal) => *refusal,
        Line::Other { text } => panic!("not understood: {text}"),
    }
}

#[test]
fn a_refusal() {
    let refusal = Refusal {
        time: 12.345678,
        task: "insmod".to_owned(),
        pid: 142,
        errno: "ENODATA".to_owned(),
        call: None,
        class: None,
        id: None,
        provider: None,
        domain: None,
        domain_id: None,
        reason: "no provider meets the hints".to_owned(),
        segment: None,
        value: 0,
    };
    assert_eq!(parsed(LINE), refusal);
    assert_eq!(
        Line::parse(LINE).to_string(),
        "     12.345678  insmod[142]  ENODATA  no provider meets the hints"
    );
    assert_eq!(
        serde_json::to_string(&Line::parse(LINE)).unwrap(),
        "{\"time\":12.345678,\"task\":\"insmod\",\"pid\":142,\"errno\":\"ENODATA\",\
         \"reason\":\"no provider meets the hints\",\"value\":0}"
    );
}

#[test]
fn a_segment_and_a_value() {
    let line = LINE.replace("index=-1 value=0x0", "index=3 value=0xffff888000000000");
    assert_eq!(parsed(&line).segment, Some(3));
    assert_eq!(parsed(&line).value, 0xffff_8880_0000_0000);
    assert!(Line::parse(&line)
        .to_string()
        .ends_with("hints  segment 3  value 0xffff888000000000"));
}

/// Returns how the line is printed with these fields, without the time.
fn with(fields: &str) -> String {
    let none = "call= provider= domain= domain_id=0 class=none id=0";
    let line = Line::parse(&LINE.replace(none, fields)).to_string();
    line.split_once("[142]  ").unwrap().1.to_owned()
}

#[test]
fn a_call_and_an_object() {
    let on = "domain_id=2 class=ep id=48";
    let line = format!("call=send provider=verbs domain=rxe0 {on}");
    assert_eq!(
        with(&line),
        "ENODATA  send on ep 48 in domain 2 of verbs rxe0  no provider meets the hints"
    );
    assert_eq!(
        with(&line.replace(on, "domain_id=2 class=domain id=2")),
        "ENODATA  send on domain 2 of verbs rxe0  no provider meets the hints"
    );
    assert_eq!(
        with("call=eq_open provider=verbs domain= domain_id=0 class=fabric id=1"),
        "ENODATA  eq_open on fabric 1 of verbs  no provider meets the hints"
    );
    assert_eq!(
        with("call=kfi_getinfo provider=verbs domain= domain_id=0 class=none id=0"),
        "ENODATA  kfi_getinfo of verbs  no provider meets the hints"
    );
    let json = serde_json::to_string(&Line::parse(
        &LINE.replace("class=none id=0", "class=mr id=7"),
    ));
    assert!(json
        .unwrap()
        .contains("\"errno\":\"ENODATA\",\"class\":\"mr\",\"id\":7,\"reason\""));
}

#[test]
fn other_forms_of_a_line() {
    // Names of tasks have spaces, hyphens and brackets.
    let line = LINE.replace("          insmod-142 ", "    a-b [1] (x)-7 ");
    assert_eq!(
        (parsed(&line).task.as_str(), parsed(&line).pid),
        ("a-b [1] (x)", 7)
    );
    // With record-tgid; without irq-info.
    let line = LINE.replace(
        "insmod-142     [001] .....",
        "insmod-142     (    142) [001]",
    );
    assert_eq!(
        (parsed(&line).task.as_str(), parsed(&line).pid),
        ("insmod", 142)
    );
    // Apostrophes in the text, and further fields.
    let line = LINE.replace(
        "meets the hints' ",
        "meets the user's hints' domain='rxe0' call=x ",
    );
    assert_eq!(parsed(&line).reason, "no provider meets the user's hints");
    let line = LINE.replace("meets the", "meets\u{1b} the");
    assert_eq!(parsed(&line).reason, "no provider meets? the hints");
}

#[test]
fn other_lines() {
    let lost = "CPU:1 [LOST 23 EVENTS]";
    assert_eq!(Line::parse(lost).to_string(), lost);
    for (from, to) in [
        ("err=-61", "err=x"),
        ("err=-61 ", ""),
        ("err=-61", "err=99999999999"),
        ("value=0x0", "value=0"),
        ("value=0x0", ""),
        ("why='no", "why=no"),
        ("12.345678", "12,3"),
        ("-142", ""),
        (" [001]", ""),
    ] {
        let line = LINE.replace(from, to);
        let text = line.trim().to_owned();
        assert_eq!(Line::parse(&line), Line::Other { text }, "{from} {to}");
    }
    for length in 0..LINE.len() {
        // Nothing panics, wherever it ends.
        let _ = Line::parse(&LINE[..length]).to_string();
        let _ = Line::parse(&LINE[length..]).to_string();
    }
}
