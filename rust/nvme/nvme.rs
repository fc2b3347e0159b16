// SPDX-License-Identifier: GPL-2.0

//! Transports under the kernel's NVMe core.
//!
//! nvme-core has controllers, namespaces, multipath, authentication and the rules of recovery. This
//! crate has everything unsafe in dealing with it. A [`Transport`] connects queues, sends commands
//! and registers memory.

mod command;
mod controller;
mod ctrl;
mod ctrl_ops;
mod data;
mod events;
mod failure;
mod host_queue;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod mq_ops;
mod pdu;
mod prelude;
mod queue;
mod registration;
mod request;
mod sendings;
mod setup;
mod state;
mod teardown;
mod transport;
mod work;

pub use self::{
    command::Command,
    data::Data,
    events::{
        Events,
        MalformedResponse, //
    },
    pdu::TagParts,
    registration::Registration,
    request::{
        Request,
        Sending, //
    },
    transport::{
        Options,
        QueueConfig,
        Refusal,
        Transport,
        TransportQueue, //
    }, //
};

/// The prefix of this crate's log lines.
const __LOG_PREFIX: &[u8] = b"kfi_nvme\0";
