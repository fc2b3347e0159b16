// SPDX-License-Identifier: GPL-2.0

//! The API for consumers in Rust: memory registration, connections and transfers.
//!
//! The API calls the same objects and operations as the C API. So it works with every provider, in
//! C or Rust. Calls have the names of the C API. Safe code can't misuse them.
//!
//! An [`Info`] is the offer of a provider. The consumer opens a [`Fabric`] and a [`Domain`] of it.
//! Registering memory moves it into an [`Mr`], and closing the region returns the memory. Each
//! object keeps the objects open that it depends on. So a consumer may drop its objects in any
//! order.
//!
//! | C | Rust | memory |
//! |---|---|---|
//! | `kfi_mr_reg()` | [`Domain::reg`] | a [`Buffer`]: `KVec<u8>`, `VVec<u8>`, `KVVec<u8>`, a [`Part`] |
//! | `kfi_mr_regv()` | [`Domain::regv`] | [`Segments`]: several buffers |
//! | `kfi_mr_regbv()` | [`Domain::regbv`] | [`Pages`], or a [`BioVecList`] of others' memory |
//! | `kfi_mr_regsgl()` | [`Domain::regsgl`] | a [`MappedList`]: pages that are mapped for the device |
//! | `kfi_mr_regattr()` | [`Domain::regattr`] | any of these |
//! | any | [`Domain::reg_formed`] | others' memory, [in the form of that call](Formed) |
//!
//! [`Domain::reg_many`] registers many buffers, and [`Mr::close_many`] closes many regions, with
//! one wait for the device.
//!
//! An [`EmptyMr`] is filled with the memory of a request in any context, and emptied again.
//!
//! A [`Counter`] and an [`Endpoint`] are opened in a domain, too. If an [`EventQueue`] is
//! [bound](Domain::bind) to a domain, registrations don't wait for the device. An event reports
//! that a region has its key.
//!
//! A [`Listener`] waits for peers. A [`MsgEndpoint`] is connected to one peer. Each of its states
//! is a type: created, enabled, connecting, connected. It transfers the memory of a [`Request`].
//! Posting a request consumes it, and the endpoint's [`RequestQueue`] returns it when the transfer
//! has completed.
//!
//! | memory of a request | posted by |
//! |---|---|
//! | a [`Buffer`] or an [`MrPart`] | the call with the name of the method |
//! | a [`LocalList`] of these, [`Pages`], a [`BioVecList`], a [`Framed`] | the call for messages (`kfi_sendmsg()`, `kfi_readmsg()`) |
//!
//! Several endpoints may share their receives ([`SharedReceives`]). A [`CompletionQueue`] is the
//! object below a request queue.
//!
//! [`Mr::raw_key`] returns the bytes that a peer needs to access a region. [`Domain::map_raw`] maps
//! those of a peer.
//!
//! # Context
//!
//! All calls need process context and may sleep, unless their documentation says otherwise. Calls
//! that only return names, numbers and lengths are possible in any context.
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
//! mr.write(0, b"for the peer with the key")?;
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
mod cntr;
mod conn;
mod cq;
mod domain;
mod ep;
mod eq;
mod error;
mod fabric;
mod flagged;
mod framed;
mod handle;
mod handler;
mod info;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod listener;
mod local;
mod mapped_list;
mod memory;
mod mr;
mod msg_ep;
mod pages;
mod post;
mod register;
mod request;
mod reuse;
mod srx;
mod volatile;

// The files of this directory import these names, and the names below, by `super::*`.
use crate::prelude::*;
use handle::{
    as_raw,
    close_last,
    op,
    open_by,
    Handle, //
};
use kfi_bindings as c;

pub use crate::{
    region::{
        access::Access,
        rawkey::RemotePiece, //
    },
    support::{
        errno::Errno,
        sockaddr::parse_address, //
    }, //
};
pub use batch::Later;
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
pub use framed::Framed;
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
pub use mapped_list::{
    Formed,
    MappedList, //
};
pub use memory::{
    Backing,
    Buffer,
    Part,
    Segments, //
};
pub use mr::{
    MappedKey,
    Mr,
    RawKey, //
};
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
pub use reuse::{
    EmptyMr,
    FilledMr, //
};
pub use srx::SharedReceives;
