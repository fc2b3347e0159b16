// SPDX-License-Identifier: GPL-2.0

//! `kfi stats --latency`: the durations of registrations, from the events at their begin and end.

use crate::{
    error::{
        tell,
        Error, //
    },
    refusal::Head,
    trace, //
};
use serde::Serialize;
use std::{
    collections::{
        BTreeMap,
        HashMap,
        VecDeque, //
    },
    time::Duration,
};

const BEGIN: &str = "kfi_mr_register";
const END: &str = "kfi_mr_registered";

/// The context that registers a region. The events of one context are in order.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Caller {
    Task(u32),
    /// An interrupt of this CPU. The letter distinguishes hardirqs and softirqs.
    Interrupt(u32, char),
}

/// An event of a registration.
#[derive(Debug, PartialEq)]
struct Event<'a> {
    caller: Caller,
    /// Microseconds on the clock of the trace.
    time: u64,
    is_end: bool,
    provider: &'a str,
    domain: &'a str,
    domain_id: u64,
    succeeds: bool,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The head, and then "kfi_mr_register: provider=verbs domain=rxe0 domain_id=2 mr=0 ...".
        let (head, fields) = line.split_once(": provider=")?;
        let (head, event) = head.rsplit_once(": ")?;
        let head = Head::parse(head)?;
        let (seconds, microseconds) = head.time.split_once('.')?;
        let (provider, fields) = fields.split_once(" domain=")?;
        let (domain, fields) = fields.split_once(" domain_id=")?;
        let error = fields.rsplit_once(" err=").map(|(_, err)| err);
        let seconds: u64 = seconds.parse().ok()?;
        let microseconds: u64 = microseconds.parse().ok()?;
        Some(Self {
            caller: match head.context {
                None | Some('.') => Caller::Task(head.pid),
                Some(context) => Caller::Interrupt(head.cpu, context),
            },
            time: seconds.checked_mul(1_000_000)?.checked_add(microseconds)?,
            is_end: event == END,
            provider,
            domain,
            domain_id: fields.split(' ').next()?.parse().ok()?,
            succeeds: error.is_none_or(|err| err.trim() == "0"),
        })
    }
}

/// A row of the histogram: registrations that took at most `up_to_us` microseconds, and more than half of that.
#[derive(Debug, PartialEq, Serialize)]
struct Bucket {
    up_to_us: u64,
    count: u64,
}

/// The durations of the registrations in a domain.
#[derive(Debug, PartialEq, Serialize)]
struct Latency {
    id: u64,
    provider: String,
    domain: String,
    registrations: u64,
    #[serde(rename = "latency")]
    buckets: Vec<Bucket>,
}

/// The registrations found in the events.
#[derive(Default)]
struct Registrations {
    /// Begin times of registrations that have not ended, by caller and domain.
    begun: HashMap<(Caller, u64), VecDeque<u64>>,
    domains: BTreeMap<u64, (String, String, BTreeMap<u64, u64>)>,
    /// Number of events that the trace buffer lost.
    lost: u64,
}

impl Registrations {
    fn add(&mut self, line: &str) {
        if let Some(event) = Event::parse(line) {
            self.event(event);
        } else if let Some((_, lost)) = line.split_once("[LOST ") {
            // The begin of the next end may be lost.
            self.begun.clear();
            self.lost += lost
                .split(' ')
                .next()
                .and_then(|i| i.parse().ok())
                .unwrap_or(1);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        let begun = self
            .begun
            .entry((event.caller, event.domain_id))
            .or_default();
        if !event.is_end {
            begun.push_back(event.time);
            return;
        }
        // If there is none, the registration began before the trace.
        let Some(begin) = begun.pop_front().filter(|_| event.succeeds) else {
            return;
        };
        let took = event.time.saturating_sub(begin);
        let up_to = took.checked_next_power_of_two().unwrap_or(u64::MAX);
        let of = |name: &str| name.to_owned();
        let (_, _, buckets) = self
            .domains
            .entry(event.domain_id)
            .or_insert_with(|| (of(event.provider), of(event.domain), BTreeMap::new()));
        *buckets.entry(up_to).or_default() += 1;
    }

    fn latencies(self) -> Vec<Latency> {
        let domains = self.domains.into_iter();
        domains
            .map(|(id, (provider, domain, buckets))| Latency {
                id,
                provider,
                domain,
                registrations: buckets.values().sum(),
                buckets: buckets
                    .into_iter()
                    .map(|(up_to_us, count)| Bucket { up_to_us, count })
                    .collect(),
            })
            .collect()
    }
}

fn text(all: &[Latency]) -> String {
    let mut text = String::new();
    for i in all {
        text += &format!("domain {}: {} {}\n", i.id, i.provider, i.domain);
        text += &format!("    registrations {}\n", i.registrations);
        for Bucket { up_to_us, count } in &i.buckets {
            text += &format!("    up to {up_to_us:>8} us {count:>8}\n");
        }
    }
    text
}

/// Prints the durations of registrations. Measures until a signal arrives, or for at most `seconds`.
pub fn run(json: bool, seconds: Option<u32>) -> Result<(), Error> {
    // The end first: a begin without its end would be taken for the begin of the caller's next registration.
    let events = [END, BEGIN].map(|i| format!("events/kfi/{i}"));
    let time = seconds.map(|i| Duration::from_secs(i.into()));
    let mut all = Registrations::default();
    trace::follow(&events.each_ref().map(String::as_str), time, |line| {
        all.add(line);
        Ok(())
    })?;
    if all.lost > 0 {
        tell(&format!(
            "kfi: the kernel's trace buffer overflowed: {} events are lost\n",
            all.lost
        ));
    }
    let all = all.latencies();
    match json {
        true => crate::print_json(&all),
        false => crate::print(&text(&all)),
    }
}

#[cfg(test)]
mod tests;
