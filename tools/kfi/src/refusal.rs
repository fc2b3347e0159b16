// SPDX-License-Identifier: GPL-2.0

//! Parser of trace lines: the head of a line, and the refused calls of the event kfi:kfi_refused.

use crate::names::errno;
use serde::Serialize;
use std::fmt;

/// A call that kfabric has refused.
#[derive(Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// Seconds of the trace's clock, which counts from the boot.
    pub time: f64,
    pub task: String,
    pub pid: u32,
    pub errno: String,
    pub reason: String,
    /// The offending segment, if the call has segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<u64>,
    pub value: u64,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            time,
            task,
            pid,
            errno,
            reason,
            ..
        } = self;
        write!(f, "{time:14.6}  {task}[{pid}]  {errno}  {reason}")?;
        if let Some(segment) = self.segment {
            write!(f, "  segment {segment}")?;
        }
        if self.value != 0 {
            write!(f, "  value {:#x}", self.value)?;
        }
        Ok(())
    }
}

/// A line of a trace.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    Refusal(Refusal),
    /// Anything else, as the number of events that were lost.
    Other {
        text: String,
    },
}

impl Line {
    pub fn parse(line: &str) -> Self {
        refusal(line).map_or_else(
            || Self::Other {
                text: line.trim().replace(|i: char| i.is_control(), "?"),
            },
            Self::Refusal,
        )
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusal(refusal) => refusal.fmt(f),
            Self::Other { text } => f.write_str(text),
        }
    }
}

/// The head of a trace line: "  insmod-123  [000] ...1.  12.345678".
#[derive(Debug)]
pub struct Head<'a> {
    pub task: &'a str,
    pub pid: u32,
    pub cpu: u32,
    /// The letter of an interrupt, or a dot in process context. `None` without the option irq-info.
    pub context: Option<char>,
    pub time: &'a str,
}

impl<'a> Head<'a> {
    pub fn parse(head: &'a str) -> Option<Self> {
        let (task, head) = head.rsplit_once(" [")?;
        // With the option record-tgid, a number in parentheses follows the task.
        let task = match task.trim_end().rsplit_once('(') {
            Some((task, group)) if group.ends_with(')') => task,
            _ => task,
        };
        let (task, pid) = task.trim().rsplit_once('-')?;
        let (cpu, head) = head.split_once(']')?;
        let (flags, time) = head.trim().rsplit_once(' ').unwrap_or(("", head.trim()));
        Some(Self {
            task,
            pid: pid.parse().ok()?,
            cpu: cpu.parse().ok()?,
            context: flags.chars().nth(2),
            time,
        })
    }
}

fn refusal(line: &str) -> Option<Refusal> {
    // The head, and then "err=-22 why="..." index=-1 value=0x0".
    let (head, mut rest) = line.split_once(": kfi_refused: ")?;
    let head = Head::parse(head)?;
    let (mut errno_of, mut why, mut index, mut value) = (None, None, None, None);
    while let Some((name, text)) = field(&mut rest) {
        match name {
            "err" => errno_of = Some(errno(text.parse().ok()?)),
            "why" => why = Some(text),
            "index" => index = Some(text.parse::<i64>().ok()?),
            "value" => {
                value = Some(u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?);
            }
            _ => {}
        }
    }
    Some(Refusal {
        time: head.time.parse().ok()?,
        task: head.task.replace(|i: char| i.is_control(), "?"),
        pid: head.pid,
        errno: errno_of?,
        reason: why?.replace(|i: char| i.is_control(), "?"),
        segment: u64::try_from(index?).ok(),
        value: value?,
    })
}

/// Takes the next `name=value` or `name="value"` from the front of `rest`.
fn field<'a>(rest: &mut &'a str) -> Option<(&'a str, &'a str)> {
    let (name, after) = rest.trim_start().split_once('=')?;
    let (value, after) = match after.strip_prefix('"') {
        // A quotation mark within the text is followed by no space and no end.
        Some(quoted) => match quoted.split_once("\" ") {
            Some(split) => split,
            None => (quoted.strip_suffix('"')?, ""),
        },
        None => after.split_once(' ').unwrap_or((after, "")),
    };
    *rest = after;
    Some((name, value))
}

#[cfg(test)]
mod tests;
