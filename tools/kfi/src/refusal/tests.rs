// SPDX-License-Identifier: GPL-2.0

//! Unit tests of lines of a trace, as a kernel has printed them, and changed ones.

use super::*;

const LINE: &str = "          insmod-142     [001] .....    12.345678: kfi_refused: err=-61 \
                    why=\"no provider meets the hints\" index=-1 value=0x0";

fn parsed(line: &str) -> Refusal {
    match Line::parse(line) {
        Line::Refusal(refusal) => refusal,
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
    // Quotation marks in the text, and further fields.
    let line = LINE.replace(
        "meets the hints\" ",
        "meets \"the\"hints\" domain=\"rxe0\" call=x ",
    );
    assert_eq!(parsed(&line).reason, "no provider meets \"the\"hints");
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
        ("why=\"no", "why=no"),
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
