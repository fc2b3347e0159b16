// SPDX-License-Identifier: GPL-2.0

//! Connections and transfers through the Rust API: one case each time the module is loaded, which fails to
//! load if the case does.

// Except where a trait is unsafe to implement, which says so.
#![deny(unsafe_code)]

mod access;
mod bio_vecs;
mod closing;
mod connect;
mod framed;
mod handlers;
mod lists;
mod message;
mod pair;
mod regions;
mod reuse;
mod shared;

use core::net::{
    IpAddr,
    Ipv4Addr,
    SocketAddr, //
};
use kernel::prelude::*;
use kfabric::consumer::MrMode;

module! {
    type: Module,
    name: "kfi_ep_rs",
    authors: ["kfabric developers"],
    description: "kfabric selftest: connections and transfers through the Rust API",
    license: "GPL",
    params: {
        verbs: u8 {
            default: 0,
            description: "1: over the provider verbs, 0: over loop",
        },
        address: u32 {
            default: 0xc000_0201,
            description: "the IPv4 address to listen at, as a number; 192.0.2.1 if not said",
        },
        case: u8 {
            default: 0,
            description: "which case, from 0",
        },
        cancel: u8 {
            default: 0,
            description: "1: the provider has kfi_cancel() (features.def: CANCEL)",
        },
        atomic_write: u8 {
            default: 0,
            description: "1: the provider has KFI_ATOMIC_WRITE (features.def: ATOMIC_WRITE)",
        },
        desc: u8 {
            default: 0,
            description: "1: regions have descriptors without KFI_MR_LOCAL (features.def: DESC)",
        },
        reuse: u8 {
            default: 0,
            description: "1: the provider has regions that are filled again (features.def: REUSE)",
        },
    },
}

type Case = fn(&pair::Place) -> Result;

/// In the order of `ep_rs.sh`.
const CASES: [Case; 25] = [
    connect::data_goes_both_ways,
    connect::rejections_are_told,
    connect::requests_that_are_dropped_are_rejected,
    message::messages_arrive,
    message::parts_and_data_arrive,
    message::what_is_refused_comes_back,
    access::reads_and_writes,
    access::pieces,
    access::flags,
    access::atomics,
    access::regions_lend_parts,
    lists::buffers,
    lists::regions,
    lists::pages,
    closing::what_was_posted_comes_back,
    closing::what_is_taken_back_comes_back,
    handlers::handlers_are_told,
    shared::whoever_has_a_message,
    shared::what_nobody_took_comes_back,
    regions::many_at_once,
    regions::what_has_to_be_waited_for,
    bio_vecs::regions,
    reuse::again_and_again,
    framed::messages,
    connect::queues_have_the_sizes_of_hints,
];

struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let params = params();
        let place = pair::Place {
            provider: match params.verbs {
                0 => c"loop",
                _ => c"verbs",
            },
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::from(params.address)), 0),
            cancels: params.cancel != 0,
            writes_atomically: params.atomic_write != 0,
            has_descriptors: params.desc != 0,
            reuses: params.reuse != 0,
            mode: MrMode::default(),
        };
        let case = CASES.get(usize::from(params.case)).ok_or(EINVAL)?;
        case(&place)?;
        pair::nothing_is_left()?;
        Ok(Self)
    }
}

struct Params {
    verbs: u8,
    address: u32,
    case: u8,
    cancel: u8,
    atomic_write: u8,
    desc: u8,
    reuse: u8,
}

// The kernel's parameters changed with 7.3.
#[cfg(kernel_7_3)]
fn params() -> Params {
    Params {
        verbs: module_parameters::verbs.value(),
        address: module_parameters::address.value(),
        case: module_parameters::case.value(),
        cancel: module_parameters::cancel.value(),
        atomic_write: module_parameters::atomic_write.value(),
        desc: module_parameters::desc.value(),
        reuse: module_parameters::reuse.value(),
    }
}

#[cfg(not(kernel_7_3))]
fn params() -> Params {
    Params {
        verbs: *module_parameters::verbs.value(),
        address: *module_parameters::address.value(),
        case: *module_parameters::case.value(),
        cancel: *module_parameters::cancel.value(),
        atomic_write: *module_parameters::atomic_write.value(),
        desc: *module_parameters::desc.value(),
        reuse: *module_parameters::reuse.value(),
    }
}
