// SPDX-License-Identifier: GPL-2.0

//! For consumers in Rust: memory registration, connections and transfers that can't be misused.
//!
//! It goes through the same objects and tables of operations as the C API, so it works over every
//! provider, in whichever language that is written. Calls have the names that they have in C.
//!
//! An [`Info`] says what there is; a [`Fabric`] and a [`Domain`] are opened from it; memory goes
//! into a domain and comes out as an [`Mr`], which owns it until it is closed. What is open keeps
//! open what it depends on, so the order in which things are dropped doesn't matter.
//!
//! | C | Rust | memory |
//! |---|---|---|
//! | `kfi_mr_reg()` | [`Domain::reg`] | a [`Buffer`]: `KVec<u8>`, `VVec<u8>`, `KVVec<u8>`, a [`Part`] |
//! | `kfi_mr_regv()` | [`Domain::regv`] | [`Segments`], that is several buffers |
//! | `kfi_mr_regbv()` | [`Domain::regbv`] | [`Pages`]; somebody else's, as a [`BioVecList`] |
//! | `kfi_mr_regsgl()` | [`Domain::regsgl`] | a [`MappedList`], that is pages mapped for the device |
//! | `kfi_mr_regattr()` | [`Domain::regattr`] | any of these |
//! | any | [`Domain::reg_formed`] | somebody else's, [as that call takes it](Formed) |
//!
//! Many buffers are registered in one go by [`Domain::reg_many`], and many regions closed by
//! [`Mr::close_many`]: then the device is waited for once.
//!
//! A [`Counter`] and an [`Endpoint`] are opened in a domain, too. Once an [`EventQueue`] is
//! [bound](Domain::bind) to it, registrations don't wait for the device: the queue tells when a
//! region has its key.
//!
//! A [`Listener`] waits for peers, and a [`MsgEndpoint`] has one. It goes on step by step, from one
//! type to the next: created, enabled, connecting, connected. What it transfers is the memory of a
//! [`Request`], which is given away, and comes back by the endpoint's [`RequestQueue`] when the
//! transfer has ended: a [`Buffer`] or an [`MrPart`] by the call that a method is named after, a
//! [`LocalList`] of these, [`Pages`] or a [`BioVecList`] by its form for messages (`kfi_sendmsg()`,
//! `kfi_readmsg()`). Several endpoints may share their receives ([`SharedReceives`]). A
//! [`CompletionQueue`] is what is beneath.
//!
//! [`Mr::raw_key`] is what a peer needs to know about a region, as bytes; [`Domain::map_raw`] makes
//! a peer's usable here.
//!
//! All of it is for process context and may sleep, except what only tells names, numbers and
//! lengths, and what says so.
//!
//! # Examples
//!
//! ```
//! use kernel::prelude::*;
//! use kfabric::{consumer::{Caps, Domain, Fabric, Hints, MrMode}, Access};
//!
//! let offers = Hints::new()?
//!     .caps(Caps::RMA | Caps::REMOTE_READ)
//!     .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
//!     .getinfo()?;
//! let info = offers.first();
//! let domain = Domain::open(&Fabric::open(info)?, info)?;
//!
//! let mut mr = domain.reg(KVec::from_elem(0, 4096, GFP_KERNEL)?, Access::REMOTE_READ)?;
//! mr.write(0, b"for whoever has the key")?;
//! pr_info!("{} bytes at {:#x}, key {:#x}\n", mr.len(), mr.base(), mr.key());
//! // The peer reads.
//! let bytes: KVec<u8> = mr.close()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! C headers: [`include/kfabric.h`](srctree/include/kfabric.h),
//! [`include/kfi_domain.h`](srctree/include/kfi_domain.h),
//! [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

mod atomics;
mod batch;
mod buffer;
mod call;
mod cntr;
mod conn;
mod cq;
mod domain;
mod ep;
mod eq;
mod error;
mod fabric;
mod flagged;
mod formed;
mod handle;
mod handler;
mod info;
mod kunit;
mod listener;
mod local;
mod mapped_list;
mod memory;
mod mr;
mod msg_ep;
mod pages;
mod post;
mod raw;
mod register;
mod request;
mod srx;
mod volatile;

pub use crate::{
    region::{
        access::Access,
        rawkey::RemotePiece, //
    },
    support::errno::Errno, //
};
pub use batch::Later;
pub use buffer::{
    Buffer,
    Part,
    Segments, //
};
pub use cntr::Counter;
pub use conn::{
    ConnectionEvent,
    ConnectionHandler, //
};
pub use cq::{
    Completed,
    Completion,
    CompletionHandler,
    CompletionQueue,
    CompletionQueueOptions,
    Completions,
    TransferFailure, //
};
pub use domain::Domain;
pub use ep::{
    BindsRegions,
    Endpoint, //
};
pub use eq::{
    Bytes,
    Entry,
    Event,
    EventHandler,
    EventQueue,
    EventQueueOptions,
    Events,
    Failure,
    Next, //
};
pub use error::{
    CloseError,
    ConnectError,
    Refused,
    RegisterError,
    RegisterManyError, //
};
pub use fabric::Fabric;
pub use flagged::Flagged;
pub use formed::Formed;
pub use handler::NoHandler;
pub(crate) use handler::{
    exit,
    init,
    module_gone, //
};
pub use info::{
    Caps,
    Counts,
    Hints,
    Info,
    InfoList,
    MrMode,
    TransferFlags, //
};
pub use listener::{
    Incoming,
    ListenHandler,
    Listener,
    ListenerOptions, //
};
pub use local::{
    Local,
    LocalList,
    MrPart,
    Pieces,
    Run, //
};
pub use mapped_list::MappedList;
pub use memory::Backing;
pub use mr::Mr;
pub use msg_ep::{
    Active,
    Connected,
    Connecting,
    Created,
    Enabled,
    MsgEndpoint,
    Passive,
    Receives, //
};
pub use pages::{
    BioVecList,
    BioVecs,
    Pages, //
};
pub use post::Remote;
pub use raw::{
    MappedKey,
    RawKey, //
};
pub use register::{
    InPages,
    Options, //
};
pub use request::{
    Ended,
    Kind,
    Request,
    RequestHandler,
    RequestId,
    RequestQueue,
    RequestReader,
    Requests,
    Transfer, //
};
pub use srx::SharedReceives;
