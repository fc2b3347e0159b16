// SPDX-License-Identifier: GPL-2.0

//! Limits of endpoints on a device.

use kernel::prelude::*;
use kfabric::{
    num,
    provider::msg_ep::MsgLimits,
    Atomics,
    LocalRules,
    MappedAs,
    MAX_REMOTE, //
};
use rdma::{
    cm::{
        MAX_ACCEPT_DATA,
        MAX_REJECT_DATA,
        MAX_REQUEST_DATA, //
    },
    port,
    Device,
    Limits, //
};

/// Most bytes that are the consumer's again at once. Where a driver copies fewer into a request, the
/// provider maps a copy for the time of the request.
pub(super) const INJECT_SIZE: usize = 64;

/// Maximum number of requests in a queue for all devices: a queue has its memory all the time.
const QUEUE_MAX: u32 = 1024;

/// Maximum number of segments in a request, for the same reason.
const SEGMENTS_MAX: u32 = 16;

/// Entries of a queue that a driver reserves, and that draining needs.
const QUEUE_OWN: u32 = 2;

/// Returns the maximum number of segments in a request.
pub(super) fn segments(limits: &Limits) -> usize {
    num::index(limits.max_segments.min(SEGMENTS_MAX))
}

/// Returns the limits of endpoints on a device. May sleep.
///
/// # Errors
///
/// Returns the error of the device's query.
pub(crate) fn limits(device: &Device) -> Result<MsgLimits> {
    let limits = device.limits();
    let queue = limits.max_qp_wr.saturating_sub(QUEUE_OWN);
    // Both queues complete to one.
    let entries = (limits.max_cqe / 2).saturating_sub(QUEUE_OWN);
    let queue = num::index(queue.min(entries).min(QUEUE_MAX));
    let segments = segments(&limits);
    let shared = match num::index(limits.max_shared_segments) >= segments {
        true => num::index(limits.max_shared.saturating_sub(QUEUE_OWN)).min(queue),
        false => 0,
    };
    Ok(MsgLimits {
        local: LocalRules {
            by_region: true,
            mapped: match device.is_software() {
                true => MappedAs::Linear,
                false => MappedAs::Device,
            },
            peer_to_peer: false,
            segments,
            pieces: segments,
            bytes: port::max_message(device)?,
        },
        remote_pieces: MAX_REMOTE,
        atomics: Atomics {
            // A plain write. It is offered with the others only, so that `KFI_ATOMIC` means all three.
            write: limits.atomics,
            add: limits.atomics,
            compare_swap: limits.atomics,
        },
        tx_size: queue,
        rx_size: queue,
        shared_size: shared,
        inject_size: INJECT_SIZE,
        // iWARP has no immediate data.
        cq_data_size: match device.connects_freely() {
            true => size_of::<u32>(),
            false => 0,
        },
        cm_data_size: [MAX_REQUEST_DATA, MAX_ACCEPT_DATA, MAX_REJECT_DATA],
        bounded: true,
    })
}
