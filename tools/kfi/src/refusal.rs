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
    /// The slot or function that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The class of the object, and its number as `kfi list` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<u64>,
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
        write!(f, "{time:14.6}  {task}[{pid}]  {errno}  ")?;
        if let Some(call) = &self.call {
            write!(f, "{call}")?;
            if let (Some(class), Some(id)) = (&self.class, self.id) {
                write!(f, " on {class} {id}")?;
                if let Some(domain) = self.domain_id.filter(|_| class != "domain") {
                    write!(f, " in domain {domain}")?;
                }
            }
            if let Some(provider) = &self.provider {
                write!(f, " of {provider}")?;
            }
            if let Some(domain) = &self.domain {
                write!(f, " {domain}")?;
            }
            f.write_str("  ")?;
        }
        f.write_str(reason)?;
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
    Refusal(Box<Refusal>),
    /// Anything else, as the number of events that were lost.
    Other {
        text: String,
    },
}

impl Line {
    pub fn parse(line: &str) -> Self {
        refusal(line).map_or_else(
            || Self::Other {
                text: printable(line.trim()),
            },
            |refusal| Self::Refusal(Box::new(refusal)),
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

/// Replaces what terminals do not print.
fn printable(text: &str) -> String {
    text.replace(|i: char| i.is_control(), "?")
}

fn refusal(line: &str) -> Option<Refusal> {
    // The head, and then "call=reg provider=verbs domain=rxe0 domain_id=2 class=domain id=2 err=-22 why='...' index=-1
    // value=0x0".
    let (head, mut rest) = line.split_once(": kfi_refused: ")?;
    let head = Head::parse(head)?;
    let (mut errno_of, mut why, mut index, mut value) = (None, None, None, None);
    let (mut call, mut class, mut id) = (None, None, None);
    let (mut provider, mut domain, mut domain_id) = (None, None, None);
    let known = |text: &str| (!text.is_empty() && text != "none").then(|| printable(text));
    let number = |text: &str| text.parse::<u64>().ok().filter(|i| *i != 0);
    while let Some((name, text)) = field(&mut rest) {
        match name {
            "call" => call = known(text),
            "class" => class = known(text),
            "id" => id = number(text),
            "provider" => provider = known(text),
            "domain" => domain = known(text),
            "domain_id" => domain_id = number(text),
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
        task: printable(head.task),
        pid: head.pid,
        errno: errno_of?,
        call,
        class,
        id,
        provider,
        domain,
        domain_id,
        reason: printable(why?),
        segment: u64::try_from(index?).ok(),
        value: value?,
    })
}

/// Takes the next `name=value` or `name='value'` from the front of `rest`.
fn field<'a>(rest: &mut &'a str) -> Option<(&'a str, &'a str)> {
    let (name, after) = rest.trim_start().split_once('=')?;
    let (value, after) = match after.strip_prefix('\'') {
        // An apostrophe within the text is followed by neither a space nor the end.
        Some(quoted) => match quoted.split_once("' ") {
            Some(split) => split,
            None => (quoted.strip_suffix('\'')?, ""),
        },
        None => after.split_once(' ').unwrap_or((after, "")),
    };
    *rest = after;
    Some((name, value))
}

#[cfg(test)]
mod tests;
