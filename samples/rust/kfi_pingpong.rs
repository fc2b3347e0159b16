// SPDX-License-Identifier: GPL-2.0

//! kfabric in Rust: connects two endpoints that play ping-pong with messages.
//!
//! Posting a request moves it with its buffer to the provider, and its completion returns it. So no
//! code can access or free a buffer during a transfer, and this module has no unsafe code.

#![forbid(unsafe_code)]

use core::net::{
    IpAddr,
    Ipv4Addr,
    SocketAddr, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    CompletionQueueOptions,
    Domain,
    Ended,
    Fabric,
    Hints,
    Kind,
    Listener,
    ListenerOptions,
    MrMode,
    MsgEndpoint,
    Request,
    RequestQueue, //
};

module! {
    type: Module,
    name: "kfi_pingpong",
    authors: ["kfabric developers"],
    description: "kfabric in Rust: two endpoints play ping-pong",
    license: "GPL",
    params: {
        verbs: u8 {
            default: 0,
            description: "1: use the provider verbs, 0: loop",
        },
        address: u32 {
            default: 0,
            description: "IPv4 address to listen at, as a number; over verbs, one of an RDMA device (default over loop: 192.0.2.1)",
        },
    },
}

const LEN: usize = 4096;
const PASSES: usize = 1000;
/// Maximum wait for the next completion, in milliseconds.
const PATIENCE: Option<u32> = Some(60_000);

fn play(provider: &CStr, address: SocketAddr) -> Result {
    let hints = || {
        let mode = MrMode::VIRT_ADDR | MrMode::PROV_KEY;
        Ok::<_, Error>(Hints::new()?.prov_name(provider)?.msg().mr_mode(mode))
    };

    // One side listens. The provider chooses the port.
    let offers = hints()?.source(address)?.getinfo().inspect_err(|_| {
        pr_err!(
            "no offer of the provider {provider:?} at {:?}: is its module loaded, and the address that of a device?\n",
            address.ip()
        )
    })?;
    let fabric = Fabric::open(offers.first())?;
    let listener = Listener::open(&fabric, offers.first(), ListenerOptions::default())?;

    // The other side asks it for a connection.
    let offers = hints()?.peer(listener.address()?)?.getinfo()?;
    let domain = Domain::open(&Fabric::open(offers.first())?, offers.first())?;
    let queue = RequestQueue::open(&domain, CompletionQueueOptions::default().waits())?;
    let ping = MsgEndpoint::open(&domain, offers.first(), &queue, &queue)?.enable()?;
    let ping = ping.connect(b"a game?")?;
    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    pr_info!("{}\n", core::str::from_utf8(request.data()).unwrap_or(""));
    let pong = request.endpoint(&domain, &queue, &queue)?.enable()?;
    let pong = pong.accept(b"")?;
    let players = [ping.wait(PATIENCE)?, pong.wait(PATIENCE)?];

    // Each side has two requests: one receives the ball while the other is sent. The context of a
    // request is the side.
    let request = |player: usize| {
        let ball = KVec::from_elem(0u8, LEN, GFP_KERNEL)?;
        Ok::<_, Error>(Request::new(ball, player)?)
    };
    let [ping, pong] = &players;
    ping.recv(request(0)?)?;
    pong.recv(request(1)?)?;
    pong.recv(request(1)?)?;
    ping.send(request(0)?)?;

    // A received message is counted and sent back. A sent one can receive again.
    let (mut passes, mut number) = (0, 0u8);
    while passes < PASSES {
        match queue.wait(PATIENCE)? {
            Some(Ended::Done(mut request, done)) if done.kind == Kind::Recv => {
                if request.memory().iter().any(|byte| *byte != number) {
                    return Err(EIO);
                }
                (passes, number) = (passes + 1, number.wrapping_add(1));
                request
                    .memory_mut()
                    .iter_mut()
                    .for_each(|byte| *byte = number);
                let player = players.get(*request.context()).ok_or(EINVAL)?;
                player.send(request)?;
            }
            Some(Ended::Done(request, _)) => {
                let player = players.get(*request.context()).ok_or(EINVAL)?;
                player.recv(request)?;
            }
            Some(
                Ended::Failed(_, failure) | Ended::Lost(failure) | Ended::InjectFailed(failure),
            ) => {
                return Err(failure.errno.into());
            }
            None => return Err(ETIMEDOUT),
        }
    }
    pr_info!("{passes} passes of {LEN} bytes\n");
    // Dropping closes all objects, in any order.
    Ok(())
}

struct Module;

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let (provider, address) = match (verbs(), address()) {
            (0, 0) => (c"loop", 0xc000_0201),
            (0, address) => (c"loop", address),
            (1, 0) => {
                pr_err!(
                    "verbs=1 needs address=: the IPv4 address of an RDMA device, as a number\n"
                );
                return Err(EINVAL);
            }
            (1, address) => (c"verbs", address),
            (verbs, _) => {
                pr_err!("verbs={verbs} is neither 0 nor 1\n");
                return Err(EINVAL);
            }
        };
        let address = IpAddr::V4(Ipv4Addr::from(address));
        play(provider, SocketAddr::new(address, 0))?;
        Ok(Self)
    }
}

// Kernel 7.3 changed the module parameters of Rust.
#[cfg(kernel_7_3)]
fn verbs() -> u8 {
    module_parameters::verbs.value()
}

#[cfg(kernel_7_3)]
fn address() -> u32 {
    module_parameters::address.value()
}

#[cfg(not(kernel_7_3))]
fn verbs() -> u8 {
    *module_parameters::verbs.value()
}

#[cfg(not(kernel_7_3))]
fn address() -> u32 {
    *module_parameters::address.value()
}
