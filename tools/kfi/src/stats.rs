// SPDX-License-Identifier: GPL-2.0

//! `kfi stats`: the counters of domains, endpoints and completion queues.

use crate::{
    error::Error,
    family::{
        Kfi,
        Object, //
    },
    names::Class,
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{
        self,
        Read,
        Write, //
    },
    thread,
    time::Duration,
};

/// The counters of an object.
#[derive(Debug, PartialEq, Serialize)]
pub struct Stats {
    class: Class,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    provider: String,
    fabric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// In the order of the kernel.
    #[serde(flatten, serialize_with = "map")]
    counters: Vec<(&'static str, u64)>,
    /// Refused calls by errno.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refusals: BTreeMap<String, u64>,
}

fn map<S: serde::Serializer>(counters: &[(&str, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(counters.iter().copied())
}

impl Stats {
    /// Returns the counters of an object, if it has some.
    fn new(object: Object) -> Option<Self> {
        (!object.counters.is_empty()).then_some(Self {
            class: object.class,
            id: object.id,
            parent: object.parent,
            provider: object.provider,
            fabric: object.fabric,
            domain: object.domain,
            owner: object.owner,
            counters: object.counters,
            refusals: object.refusals,
        })
    }

    /// Checks whether both are counters of one object.
    fn is_of(&self, other: &Self) -> bool {
        (self.class, self.parent, self.id) == (other.class, other.parent, other.id)
    }

    /// Returns the increase since `before`, if there is one. The number of open regions is no counter, and stays.
    fn since(&self, before: Option<&Self>) -> Option<Self> {
        let of = |name: &str| {
            let counters = before.iter().flat_map(|i| &i.counters);
            counters
                .clone()
                .find(|(i, _)| *i == name)
                .map_or(0, |i| i.1)
        };
        let counters: Vec<_> = self
            .counters
            .iter()
            .map(|&(name, now)| match name {
                "open" => (name, now),
                _ => (name, now.saturating_sub(of(name))),
            })
            .collect();
        let refusals: BTreeMap<_, _> = self
            .refusals
            .iter()
            .map(|(errno, now)| {
                let old = before.and_then(|i| i.refusals.get(errno));
                (errno.clone(), now.saturating_sub(old.copied().unwrap_or(0)))
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        let grows = counters
            .iter()
            .any(|(name, count)| *name != "open" && *count > 0);
        (grows || !refusals.is_empty()).then(|| Self {
            counters,
            refusals,
            provider: self.provider.clone(),
            fabric: self.fabric.clone(),
            domain: self.domain.clone(),
            owner: self.owner.clone(),
            ..*self
        })
    }
}

/// Returns counters as text.
pub fn text(all: &[Stats]) -> String {
    let mut text = String::new();
    for i in all {
        text += &format!("{} {}", i.class, i.id);
        match (i.class == Class::DOMAIN, i.parent) {
            (false, Some(domain)) => text += &format!(" in domain {domain}"),
            _ => {
                let name = i.domain.as_deref().unwrap_or("-");
                text += &format!(": {} {name}", i.provider);
                if let Some(owner) = &i.owner {
                    text += &format!(" of {owner}");
                }
            }
        }
        text += "\n   ";
        for (name, count) in &i.counters {
            text += &format!(" {name} {count}");
        }
        text += "\n";
        if !i.refusals.is_empty() {
            text += "    refused";
            for (errno, count) in &i.refusals {
                text += &format!(" {errno} {count}");
            }
            text += "\n";
        }
    }
    text
}

/// Writes a text. Returns false if nobody reads it.
fn write(text: &str) -> Result<bool, Error> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(true),
        Err(e) => Error::output(e).map(|()| false),
    }
}

/// Prints counters. Returns false if nobody reads them.
fn print(all: &[Stats], json: bool) -> Result<bool, Error> {
    match json {
        true => match serde_json::to_string_pretty(all) {
            Ok(text) => write(&(text + "\n")),
            Err(e) => Err(Error::new(format!("can't write JSON: {e}"))),
        },
        false => write(&text(all)),
    }
}

fn all<L: Read + Write>(kfi: &mut Kfi<L>) -> Result<Vec<Stats>, Error> {
    Ok(kfi
        .objects(None)?
        .into_iter()
        .filter_map(Stats::new)
        .collect())
}

/// Prints the counters. With `watch`, it prints the increase in each period of that many seconds after that.
pub fn run<L: Read + Write>(mut kfi: Kfi<L>, json: bool, watch: Option<u32>) -> Result<(), Error> {
    let mut before = all(&mut kfi)?;
    let mut goes_on = print(&before, json)?;
    while let (true, Some(seconds)) = (goes_on, watch) {
        thread::sleep(Duration::from_secs(seconds.into()));
        let now = all(&mut kfi)?;
        let grown = grown(&before, &now);
        goes_on = match grown.is_empty() && !json {
            // A period in which nothing has happened.
            true => write("-\n"),
            false => print(&grown, json),
        }?;
        before = now;
    }
    Ok(())
}

/// Returns the increase of each object that has one. New objects have counted from 0.
fn grown(before: &[Stats], now: &[Stats]) -> Vec<Stats> {
    now.iter()
        .filter_map(|i| i.since(before.iter().find(|old| i.is_of(old))))
        .collect()
}

#[cfg(test)]
mod tests;
