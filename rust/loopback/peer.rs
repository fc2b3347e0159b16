// SPDX-License-Identifier: GPL-2.0

//! The accesses of peers, and the checks of each.

use crate::{
    exported::RegionContents,
    *, //
};
use core::iter;

/// The target of an access: a domain, perhaps through one of its endpoints.
pub(crate) struct Target<'a> {
    pub(crate) home: &'a ExportedDomain,
    pub(crate) endpoint: Option<Arc<EpCore>>,
}

/// The initiator of an access. The default has no rights of its own.
#[derive(Default)]
pub(crate) struct Initiator<'a> {
    pub(crate) home: Option<&'a ExportedDomain>,
    pub(crate) endpoint: Option<Arc<EpCore>>,
    pub(crate) mapped: Option<MappedKeys<'a>>,
}

impl Initiator<'_> {
    /// Returns its authorization key; empty for none.
    fn auth_key(&self) -> &[u8] {
        match (&self.endpoint, self.home) {
            (Some(endpoint), _) => endpoint.auth_key(),
            (None, Some(home)) => home.auth_key(),
            (None, None) => &[],
        }
    }

    /// Splits an access by a mapped key into pieces.
    fn resolve(&self, key: u64, addr: u64, len: u64) -> Result<KVVec<RemotePiece>, Refusal> {
        match &self.mapped {
            Some(mapped) => mapped.resolve(key, addr, len),
            None => Err(denied(c"nobody's mapped key").value(key)),
        }
    }
}

const fn denied(why: &'static CStr) -> Refusal {
    Refusal::new(Errno::EACCES, why)
}

impl Target<'_> {
    /// Copies between a peer's buffer and the bytes that key and address lead to. May sleep.
    ///
    /// An access is refused in one way only, `EACCES`: a peer that asks for what it may not have
    /// isn't told what there is.
    pub(crate) fn access(
        &self,
        initiator: &Initiator<'_>,
        addr: u64,
        key: u64,
        transfer: PeerBuffer<'_>,
    ) -> Result<(), Refusal> {
        let (base, len, needs) = (addr, widen(transfer.len()), transfer.needs());
        let parts = iter::once(transfer);
        let done = match key & MAPPED {
            0 => self.copy(initiator, &[RemotePiece { key, base, len }], needs, parts),
            _ => initiator
                .resolve(key, addr, len)
                .and_then(|pieces| self.copy(initiator, &pieces, needs, parts)),
        };
        done.map_err(|refusal| refusal.with_errno(Errno::EACCES))
    }

    /// Carries out an access of an endpoint, between pieces and the parts of a buffer of the same
    /// length. An access of 0 bytes needs no key, as with a device. May sleep.
    pub(crate) fn access_whole<'t>(
        &self,
        initiator: &Initiator<'_>,
        pieces: &[RemotePiece],
        needs: Access,
        parts: impl Iterator<Item = PeerBuffer<'t>>,
    ) -> Result<(), Refusal> {
        if pieces.iter().all(|piece| piece.len == 0) {
            return Ok(());
        }
        self.copy(initiator, pieces, needs, parts)
            .map_err(|refusal| refusal.with_errno(Errno::EACCES))
    }

    /// Copies between pieces and the parts of a buffer of the same length, and counts a write.
    /// Checks all pieces before it copies the first byte.
    fn copy<'t>(
        &self,
        initiator: &Initiator<'_>,
        pieces: &[RemotePiece],
        needs: Access,
        mut parts: impl Iterator<Item = PeerBuffer<'t>>,
    ) -> Result<(), Refusal> {
        for piece in pieces {
            let check = |live: &RegionContents, at| live.extent.check(at, piece.len, needs);
            self.enter(initiator, *piece, check)?;
        }
        let mut rest = None;
        for (number, piece) in pieces.iter().enumerate() {
            let last = number + 1 == pieces.len();
            self.enter(initiator, *piece, |live, from| {
                let mut at = from;
                while let left @ 1.. = piece.len - (at - from) {
                    let Some(part) = rest.take().or_else(|| parts.next()) else {
                        break;
                    };
                    let (here, after) = part.split_at(usize::try_from(left).unwrap_or(usize::MAX));
                    at += widen(here.len());
                    live.extent.copy(at - widen(here.len()), here)?;
                    rest = (!after.is_empty()).then_some(after);
                }
                let counts = last && needs == Access::REMOTE_WRITE && piece.len > 0;
                if let (true, Some(counter)) = (counts, live.counter()) {
                    counter.add(1);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Does an atomic operation of an endpoint on eight bytes, and returns their old value. An
    /// operation that modifies them counts as a write. May sleep.
    pub(crate) fn atomic(
        &self,
        initiator: &Initiator<'_>,
        piece: RemotePiece,
        what: AtomicOp,
    ) -> Result<u64, Refusal> {
        if !self.home.atomics() {
            return Err(denied(c"the domain was opened without KFI_ATOMIC"));
        }
        let mut before = 0;
        let done = self.enter(initiator, piece, |live, at| {
            before = live.extent.atomic(at, what)?;
            if let (true, Some(counter)) = (what.modifies(before), live.counter()) {
                counter.add(1);
            }
            Ok(())
        });
        done.map_err(|refusal| refusal.with_errno(Errno::EACCES))?;
        Ok(before)
    }

    /// Closes the region of a key to all peers for good. Only a peer that may access the region can
    /// request that. Sleeps until nobody uses its memory.
    pub(crate) fn invalidate(&self, initiator: &Initiator<'_>, key: u64) -> Result<(), Refusal> {
        let found = self.home.keys().get(key);
        let found = found.ok_or(denied(c"no such key").value(key))?;
        let nothing = RemotePiece {
            key,
            base: found.base,
            len: 0,
        };
        self.enter(initiator, nothing, |_, _| Ok(()))?;
        found.region.close();
        Ok(())
    }

    /// Enters a region and calls `f` with its memory and the offset of the piece. Closing the
    /// region, or the endpoint, waits for it.
    fn enter(
        &self,
        initiator: &Initiator<'_>,
        piece: RemotePiece,
        f: impl FnOnce(&RegionContents, u64) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let key = piece.key;
        let found = self.home.keys().get(key);
        let found = found.ok_or(denied(c"no such key").value(key))?;
        let at = found.place(piece)?;
        if found.region.auth_key() != initiator.auth_key() {
            return Err(denied(c"another authorization key"));
        }
        let inside = found.region.enter();
        let inside = inside.ok_or(denied(c"the region is not enabled").value(key))?;
        let live = inside.get();
        if let Some(own) = live.endpoint() {
            let asked = self.endpoint.as_ref().map(|endpoint| endpoint.id());
            if asked != Some(own.id()) {
                return Err(denied(c"the region is bound to another endpoint").value(own.id()));
            }
        }
        let _through = match &self.endpoint {
            Some(endpoint) => {
                let through = endpoint.enter();
                Some(through.ok_or(denied(c"the endpoint is not enabled"))?)
            }
            None => None,
        };
        f(live, at)
    }
}

impl Piece {
    /// Returns the offset of an access in the region, if all of it is in this piece.
    fn place(&self, access: RemotePiece) -> Result<u64, Refusal> {
        let beyond = denied(c"beyond the region").value(access.base);
        let at = access.base.checked_sub(self.base).ok_or(beyond)?;
        let end = at.checked_add(access.len).ok_or(beyond)?;
        if end <= self.len {
            Ok(self.at + at)
        } else {
            Err(beyond)
        }
    }
}
