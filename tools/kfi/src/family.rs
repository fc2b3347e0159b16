// SPDX-License-Identifier: GPL-2.0

//! The family "kfi": offers of providers, and open objects.

use crate::{
    error::Error,
    names::{
        errno,
        Access,
        Caps,
        Class,
        EpType,
        Key,
        Mode,
        MrMode,
        State,
        Version, //
    },
    netlink::{
        attributes,
        Attribute,
        Family,
        Malformed,
        Outcome, //
    },
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{
        Read,
        Write, //
    }, //
};

const NAME: &str = "kfi";
const INFO_GET: u8 = 1;
const OBJECT_GET: u8 = 2;
/// The attribute `class` of a request and of an answer of `OBJECT_GET`.
const OBJECT_CLASS: u16 = 1;
/// How often a dump begins again after a change has interrupted it.
const ATTEMPTS: u32 = 5;

/// An offer of a provider, as kfi_getinfo() returns it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Offer {
    pub provider: String,
    pub fabric: String,
    pub domain: String,
    pub ep_type: EpType,
    pub version: Version,
    pub caps: Caps,
    pub mode: Mode,
    pub mr_mode: MrMode,
    pub mr_key_size: u64,
    pub mr_iov_limit: u64,
    pub mr_cnt: u64,
    pub max_msg_size: u64,
    pub inject_size: u64,
    pub tx_size: u64,
    pub rx_size: u64,
    pub tx_iov_limit: u64,
    pub rma_iov_limit: u64,
}

impl Offer {
    /// Returns the offer in an answer. An attribute that is missing is 0 or empty.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut offer = Self::default();
        for attribute in attributes(payload) {
            let a = attribute?;
            match a.kind {
                1 => offer.provider = a.text()?,
                2 => offer.fabric = a.text()?,
                3 => offer.domain = a.text()?,
                4 => offer.ep_type = EpType(a.u32()?),
                5 => offer.version = Version(a.u32()?),
                6 => offer.caps = Caps(a.uint()?),
                7 => offer.mode = Mode(a.uint()?),
                8 => offer.mr_mode = MrMode(a.u32()?.into()),
                9 => offer.mr_key_size = a.uint()?,
                10 => offer.mr_iov_limit = a.uint()?,
                11 => offer.mr_cnt = a.uint()?,
                12 => offer.max_msg_size = a.uint()?,
                13 => offer.inject_size = a.uint()?,
                14 => offer.tx_size = a.uint()?,
                15 => offer.rx_size = a.uint()?,
                16 => offer.tx_iov_limit = a.uint()?,
                17 => offer.rma_iov_limit = a.uint()?,
                // A newer kernel says more.
                _ => {}
            }
        }
        Ok(offer)
    }
}

/// An open object.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Object {
    pub class: Class,
    pub id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    pub provider: String,
    pub fabric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// In seconds.
    pub age: u32,
    /// For `kfi stats` only.
    #[serde(skip)]
    pub counters: Vec<(&'static str, u64)>,
    /// Refused calls by errno; for `kfi stats` only.
    #[serde(skip)]
    pub refusals: BTreeMap<String, u64>,
}

/// The names of the attributes that are counters.
const COUNTERS: &[(u16, &str)] = &[
    (13, "opened"),
    (14, "open"),
    (15, "pool_hits"),
    (16, "pool_misses"),
    (18, "sends"),
    (19, "send_bytes"),
    (20, "receives"),
    (21, "reads"),
    (22, "read_bytes"),
    (23, "writes"),
    (24, "write_bytes"),
    (25, "atomics"),
    (26, "completions"),
    (27, "failures"),
    (28, "received_bytes"),
    (29, "retries"),
];

/// Returns an errno and how many calls were refused with it.
fn refusals(nest: &Attribute<'_>) -> Result<(String, u64), Malformed> {
    let (mut of, mut count) = (0, 0);
    for attribute in nest.nested() {
        let a = attribute?;
        match a.kind {
            1 => of = a.u32()?,
            2 => count = a.uint()?,
            _ => {}
        }
    }
    Ok((errno(i32::try_from(of).unwrap_or(i32::MAX)), count))
}

impl Object {
    /// Returns the object in an answer.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut object = Self::default();
        let mut class = None;
        for attribute in attributes(payload) {
            let a = attribute?;
            match a.kind {
                OBJECT_CLASS => class = Some(Class(a.u32()?)),
                2 => object.id = a.uint()?,
                3 => object.parent = Some(a.uint()?),
                4 => object.provider = a.text()?,
                5 => object.fabric = a.text()?,
                6 => object.domain = Some(a.text()?),
                7 => object.owner = Some(a.text()?),
                8 => object.age = a.u32()?,
                9 => object.state = State(a.u32()?),
                10 => object.length = Some(a.uint()?),
                11 => object.access = Some(Access(a.uint()?)),
                12 => object.key = Some(Key(a.uint()?)),
                17 => object.refusals.extend([refusals(&a)?]),
                kind => {
                    if let Some((_, name)) = COUNTERS.iter().find(|i| i.0 == kind) {
                        object.counters.push((name, a.uint()?));
                    }
                }
            }
        }
        object.class = class.ok_or(Malformed("an object has no class"))?;
        Ok(object)
    }
}

/// The family on a socket.
pub struct Kfi<L>(Family<L>);

impl<L: Read + Write> Kfi<L> {
    pub fn open(link: L) -> Result<Self, Error> {
        Family::find(link, NAME)?.map(Self).ok_or(Error::new(
            "the kernel has no netlink family \"kfi\": load the core (modprobe kfabric)",
        ))
    }

    /// Returns the offers, sorted by their names.
    pub fn offers(&mut self) -> Result<Vec<Offer>, Error> {
        let mut offers = self.entries(INFO_GET, &[], Offer::parse)?;
        // Stable: the provider's order is that of its preference.
        offers.sort_by(|a, b| {
            let names = |i: &Offer| (i.provider.clone(), i.fabric.clone(), i.domain.clone());
            names(a).cmp(&names(b))
        });
        Ok(offers)
    }

    /// Returns the open objects, or those of one class, sorted by class and number.
    pub fn objects(&mut self, class: Option<Class>) -> Result<Vec<Object>, Error> {
        let value = class.map(|i| i.0.to_ne_bytes());
        let attributes: Vec<(u16, &[u8])> =
            value.iter().map(|i| (OBJECT_CLASS, i.as_slice())).collect();
        let mut objects = self.entries(OBJECT_GET, &attributes, Object::parse)?;
        objects.sort_by_key(|i| (i.class, i.parent, i.id));
        Ok(objects)
    }

    fn entries<T>(
        &mut self,
        command: u8,
        attributes: &[(u16, &[u8])],
        parse: fn(&[u8]) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Error> {
        let mut attempts = 0;
        loop {
            let mut entries = Vec::new();
            let outcome = self.0.dump(command, attributes, |payload| {
                entries.push(parse(payload)?);
                Ok(())
            })?;
            attempts += 1;
            match outcome {
                Outcome::Complete => return Ok(entries),
                Outcome::Refused(e) if e.errno == libc::EPERM => {
                    return Err(Error::new(format!("the kernel demands CAP_NET_ADMIN: {e}")))
                }
                Outcome::Refused(e) => return Err(Error::new(format!("the kernel refuses: {e}"))),
                Outcome::Interrupted if attempts < ATTEMPTS => {}
                Outcome::Interrupted => {
                    return Err(Error::new(
                        "objects open and close too fast for a complete list: run it again",
                    ))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
