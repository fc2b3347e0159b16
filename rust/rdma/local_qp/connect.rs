// SPDX-License-Identifier: GPL-2.0

//! A queue pair that is connected to itself.

use kernel::{
    bindings,
    prelude::*,
    sync::Arc, //
};

use super::path::{
    Place,
    SelfPath, //
};
use crate::{
    access::AccessFlags,
    cq::Cq,
    pd::Pd,
    qp::{
        Depths,
        Peer,
        Qp,
        ReadyToSend,
        Reliability, //
    }, //
};

/// A queue pair, where it is, and the size of its packets.
pub(super) struct Connected {
    pub(super) qp: Qp<ReadyToSend>,
    pub(super) cq: Arc<Cq>,
    pub(super) place: Place,
    pub(super) mtu: u32,
}

/// Makes a queue pair and connects it to itself this way. May sleep.
pub(super) fn connect(pd: &Arc<Pd>, depths: Depths, way: SelfPath) -> Result<Connected> {
    let SelfPath { place, path } = way;
    let mtu = path.mtu();
    let cq = Cq::alloc(pd.device(), depths.in_send_queue())?;
    let how = Reliability::default();
    // Peers may do nothing on this queue pair.
    let qp = Qp::create(pd, &cq, &cq, depths)?.init(place.port(), AccessFlags::default())?;
    let itself = Peer {
        number: qp.number(),
        psn: random_psn(),
    };
    let qp = qp
        .ready_to_receive(path, itself, &how)?
        .ready_to_send(itself.psn, &how)?;
    Ok(Connected { qp, cq, place, mtu })
}

/// Returns a random number for the first packet, which nobody can guess.
fn random_psn() -> u32 {
    // SAFETY: `get_random_u32` may always be called.
    let number = unsafe { bindings::get_random_u32() };
    number & 0xff_ffff
}
