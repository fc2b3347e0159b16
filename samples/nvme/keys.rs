// SPDX-License-Identifier: GPL-2.0

//! Where the target finds the data of a command.
//!
//! A region is bound to the connection that its command goes over: its registration is posted there ahead
//! of the command, and both go to the device in one go. Nobody waits for it. The response says that the
//! key is not used any more, and mostly has ended it.

use crate::transport::Transport;
use kernel::{
    bindings::bio_vec,
    prelude::*, //
};
use kfabric::consumer::{
    Access,
    Backing,
    BioVecs,
    Buffer,
    Errno,
    Formed,
    Mr,
    Segments, //
};

/// The place of the data of a command, as the target gets it: address, length and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) addr: u64,
    /// Less than 2^24.
    pub(crate) len: u32,
    pub(crate) rkey: u32,
}

impl Key {
    /// Lets the target at a region, once it has the key by the next command on this connection.
    fn of<B: Backing>(mr: &Mr<B>, transport: &Transport) -> Result<Self, Errno> {
        mr.bind(transport.endpoint())?;
        mr.enable_more()?;
        Ok(Self {
            addr: mr.base(),
            len: u32::try_from(mr.len())
                .ok()
                .filter(|len| len >> 24 == 0)
                .ok_or(Errno::E2BIG)?,
            rkey: u32::try_from(mr.key()).map_err(|_| Errno::EKEYREJECTED)?,
        })
    }
}

/// An I/O request, with the list of its pages.
///
/// # Invariants
///
/// `list` is the memory of `request`, which is one that reads or writes.
struct Pages {
    request: block::Request,
    list: block::Pieces,
}

// SAFETY: By the type invariant, `list` is the memory of the request. That stays until the request
// has ended. The request can't end before it is taken out of this value. If this value is
// forgotten, it never ends. Its owner may touch the memory under I/O, and knows that. The memory of
// a request that writes may be read, since it was filled for that. The memory of a request that
// reads may be written.
unsafe impl BioVecs for Pages {
    fn bio_vecs(&self) -> &[bio_vec] {
        self.list.as_slice()
    }

    fn is_readable(&self) -> bool {
        self.request.op() == block::Op::Write
    }

    fn is_writable(&self) -> bool {
        self.request.op() == block::Op::Read
    }
}

/// By which call memory is registered: that of I/O requests, and, but for pages, that of other commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Reg,
    Regv,
    Regbv,
    Regsgl,
    Regattr,
}

impl Call {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "reg" => Self::Reg,
            "regv" => Self::Regv,
            "regbv" => Self::Regbv,
            "regsgl" => Self::Regsgl,
            "regattr" => Self::Regattr,
            _ => return None,
        })
    }

    /// Returns the maximum number of pieces of the memory, if a region has `most`.
    pub(crate) fn pieces(self, most: usize) -> usize {
        match self {
            Self::Reg => 1,
            _ => most,
        }
    }

    /// Registers pages by it. May sleep, but not for I/O.
    fn register(
        self,
        transport: &Transport,
        pages: Pages,
        access: Access,
    ) -> Result<Mr<Formed<Pages>>, (Errno, Option<Pages>)> {
        let domain = transport.domain();
        let formed = match self {
            Self::Reg => Formed::buffer(pages),
            Self::Regv => Formed::buffers(pages),
            Self::Regbv | Self::Regattr => Formed::bio_vecs(pages),
            Self::Regsgl => Formed::scatterlist(domain, pages, access)
                .map_err(|failed| (failed.errno(), failed.into_inner()))?,
        };
        let registered = match self {
            Self::Regattr => domain.regattr(formed, access, None),
            _ => domain.reg_formed(formed, access),
        };
        registered.map_err(|failed| {
            let errno = failed.errno();
            (errno, failed.into_inner().map(Formed::into_inner))
        })
    }
}

/// The pages of an I/O request, which a target can reach by a key.
///
/// The request can't end before the key has: closing the region is what gives it back.
pub(crate) struct KeyedIo(Mr<Formed<Pages>>, Call);

/// A request that could not be registered, and its list.
pub(crate) struct NotKeyed {
    pub(crate) request: block::Request,
    pub(crate) list: block::Pieces,
    pub(crate) errno: Errno,
}

impl KeyedIo {
    /// Lets the target read what a request writes, or write what it reads; nothing else. `list` is room for
    /// the list. May sleep, but not for I/O.
    pub(crate) fn new(
        transport: &Transport,
        call: Call,
        request: block::Request,
        mut list: block::Pieces,
    ) -> Result<(Self, Key), Option<NotKeyed>> {
        let access = match request.op() {
            block::Op::Read => Access::REMOTE_WRITE,
            _ => Access::REMOTE_READ,
        };
        if request.pieces(&mut list).is_err() {
            return Err(Some(NotKeyed {
                request,
                list,
                errno: Errno::ENOMEM,
            }));
        }
        // INVARIANT: Just listed.
        let pages = Pages { request, list };
        let refused = |pages: Pages, errno| NotKeyed {
            request: pages.request,
            list: pages.list,
            errno,
        };
        match call.register(transport, pages, access) {
            Ok(mr) => match Key::of(&mr, transport) {
                Ok(key) => Ok((Self(mr, call), key)),
                Err(errno) => Err(mr
                    .close()
                    .ok()
                    .map(|pages| refused(pages.into_inner(), errno))),
            },
            Err((errno, pages)) => Err(pages.map(|pages| refused(pages, errno))),
        }
    }

    /// Closes the region as [`close`](Self::close) does, if the target has ended the key and there
    /// is nothing to wait for. Any context.
    pub(crate) fn close_now(self) -> Result<(block::Request, block::Pieces), Self> {
        // A scatterlist is unmapped where one may sleep.
        if self.1 == Call::Regsgl {
            return Err(self);
        }
        let Self(mr, call) = self;
        let pages = mr.close_now();
        let Pages { request, list } = pages
            .map_err(|refused| Self(refused.into_inner(), call))?
            .into_inner();
        Ok((request, list))
    }

    /// Ends the key, and gives back the request and the list. If the device won't let go of the pages, the
    /// request never ends. May sleep, but not for I/O.
    pub(crate) fn close(self) -> Option<(block::Request, block::Pieces)> {
        let Pages { request, list } = self.0.close().ok()?.into_inner();
        Some((request, list))
    }
}

/// A buffer that a target can reach by a key.
pub(crate) enum KeyedBuffer<B: Buffer> {
    One(Mr<B>),
    List(Mr<Segments<B>>),
}

impl<B: Buffer> KeyedBuffer<B> {
    /// Lets the target in. A buffer has no pages to be listed: by the calls for these it is registered as by
    /// `kfi_mr_reg()`. May sleep.
    pub(crate) fn new(
        transport: &Transport,
        call: Call,
        buffer: B,
        access: Access,
    ) -> Result<(Self, Key), Errno> {
        let domain = transport.domain();
        let (keyed, key) = match call {
            Call::Regv => {
                let mut one = KVec::with_capacity(1, GFP_KERNEL)?;
                one.push(buffer, GFP_KERNEL)?;
                let mr = domain.regv(Segments::new(one), access)?;
                let key = Key::of(&mr, transport)?;
                (Self::List(mr), key)
            }
            _ => {
                let mr = match call {
                    Call::Regattr => domain.regattr(buffer, access, None)?,
                    _ => domain.reg(buffer, access)?,
                };
                let key = Key::of(&mr, transport)?;
                (Self::One(mr), key)
            }
        };
        Ok((keyed, key))
    }

    /// Ends the key, and gives back the buffer. May sleep.
    pub(crate) fn close(self) -> Result<B> {
        match self {
            Self::One(mr) => Ok(mr.close()?),
            Self::List(mr) => mr.close()?.into_inner().pop().ok_or(EIO),
        }
    }
}
