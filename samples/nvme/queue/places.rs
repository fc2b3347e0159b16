// SPDX-License-Identifier: GPL-2.0

//! The places of a queue: what there is of each command that is under way, and of each that may be.

use super::io::Io;
use crate::{
    response::Response,
    transport::Capsule, //
};
use block::{
    Pieces,
    Status, //
};
use kernel::prelude::*;
use kfabric::{
    consumer::Errno,
    PushReserved, //
};

/// Number of bits of a command's id that are the number of its place. The bits above distinguish it
/// from the earlier commands in that place. So an answer to one of these isn't taken for one to
/// this.
const NUMBER_BITS: u32 = 12;

/// Returns the place that a command has, or had, by its id.
pub(super) fn number_of(id: u16) -> u16 {
    id & !(u16::MAX << NUMBER_BITS)
}

/// Returns the id of the next command in a place.
fn next_id(id: u16) -> u16 {
    id.wrapping_add(1 << NUMBER_BITS)
}

/// A place for a command.
struct Place {
    /// Of the command under way, or of the last one.
    id: u16,
    /// Unless it is being sent.
    capsule: Option<Capsule>,
    /// A command of this place is being sent, by this capsule or another.
    sending: bool,
    /// Room to list a request's memory, unless it is in use.
    list: Option<Pieces>,
    /// The purpose of the command under way.
    io: Option<Io>,
    /// How it has ended.
    response: Option<Response>,
    /// A command that is over, but its keys have to be ended.
    over: Option<(Io, Status)>,
}

/// The id, capsule and list of a command that begins.
pub(super) type Begun = (u16, Capsule, Option<Pieces>);

/// The places of a queue.
pub(super) struct Places {
    places: KVec<Place>,
    /// Capsules with room for data, for any place.
    roomy: KVec<Capsule>,
    /// Which places have something that is over, in the order in which it was.
    over: KVec<u16>,
    /// Why the connection is of no use any more, if that is so and nobody was told.
    pub(super) broken: Option<Errno>,
}

impl Places {
    /// Makes `depth` places, each with space to list `pieces` pieces of memory, and `count`
    /// capsules with space for `data` bytes of data. May sleep.
    pub(super) fn new(depth: u16, pieces: usize, (count, data): (u16, usize)) -> Result<Self> {
        if number_of(depth) != depth {
            return Err(EINVAL);
        }
        let mut places = KVec::with_capacity(depth.into(), GFP_KERNEL)?;
        for number in 0..depth {
            let place = Place {
                id: number,
                capsule: Some(Capsule::new(number, 0)?),
                sending: false,
                list: Some(Pieces::with_capacity(pieces)?),
                io: None,
                response: None,
                over: None,
            };
            places.push(place, GFP_KERNEL)?;
        }
        let mut roomy = KVec::with_capacity(count.into(), GFP_KERNEL)?;
        for _ in 0..count {
            roomy.push(Capsule::new(0, data)?, GFP_KERNEL)?;
        }
        Ok(Self {
            places,
            roomy,
            over: KVec::with_capacity(depth.into(), GFP_KERNEL)?,
            broken: None,
        })
    }

    pub(super) fn depth(&self) -> u16 {
        u16::try_from(self.places.len()).unwrap_or(u16::MAX)
    }

    fn get(&mut self, number: u16) -> Option<&mut Place> {
        self.places.get_mut(usize::from(number))
    }

    /// Takes a place for a command: its id, a capsule, with room for data if that is wanted and there is one, and
    /// room to list memory. `None` if it isn't free.
    pub(super) fn begin(&mut self, number: u16, data: bool) -> Option<Begun> {
        let place = self.places.get_mut(usize::from(number))?;
        if place.sending || place.io.is_some() {
            return None;
        }
        let roomy = if data { self.roomy.pop() } else { None };
        let capsule = roomy.or_else(|| place.capsule.take())?;
        place.sending = true;
        place.id = next_id(place.id);
        Some((place.id, capsule, place.list.take()))
    }

    /// Notes that a command is about to be sent from a place.
    pub(super) fn send(&mut self, number: u16, io: Io, list: Option<Pieces>) {
        if let Some(place) = self.get(number) {
            // Nothing that came before is about it.
            (place.io, place.list, place.response) = (Some(io), list, None);
        }
    }

    /// Takes a capsule back that was sent, or not.
    pub(super) fn give_back(&mut self, number: u16, capsule: Capsule) {
        let has_room = capsule.has_room();
        if let Some(place) = self.places.get_mut(usize::from(number)) {
            place.sending = false;
            if !has_room {
                place.capsule = Some(capsule);
                return;
            }
        }
        self.roomy.push_reserved(capsule);
    }

    /// Takes a list of memory back.
    pub(super) fn list(&mut self, number: u16, list: Option<Pieces>) {
        if let (Some(place), Some(list)) = (self.get(number), list) {
            place.list = Some(list);
        }
    }

    /// Notes a response; `false` if no command is under way that it answers.
    pub(super) fn respond(&mut self, response: Response) -> bool {
        match self.get(number_of(response.id)) {
            Some(place)
                if place.id == response.id && place.io.is_some() && place.response.is_none() =>
            {
                place.response = Some(response);
                true
            }
            _ => false,
        }
    }

    /// Returns what is over now, if the response is there, and the capsule back.
    pub(super) fn over(&mut self, number: u16) -> Option<(Io, Status)> {
        let place = self.get(number).filter(|place| !place.sending)?;
        let status = place.response.take()?.status.to_block();
        Some((place.io.take()?, status))
    }

    /// Keeps what is over until there is time to end its keys.
    pub(super) fn keep(&mut self, number: u16, io: Io, status: Status) {
        if let Some(place) = self.get(number) {
            place.over = Some((io, status));
            self.over.push_reserved(number);
        }
    }

    /// Returns what was kept first.
    pub(super) fn kept(&mut self) -> Option<(u16, Io, Status)> {
        while !self.over.is_empty() {
            let number = self.over.remove(0).ok()?;
            if let Some((io, status)) = self.get(number).and_then(|place| place.over.take()) {
                return Some((number, io, status));
            }
        }
        None
    }

    /// Takes what a command is for that has not ended.
    pub(super) fn abandon(&mut self, number: u16) -> Option<Io> {
        self.get(number)?.io.take()
    }
}

#[kernel::macros::kunit_tests(kfi_nvme_places)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_again_after_sixteen_commands() {
        let mut id = 0x0123;
        for command in 0..16 {
            assert_eq!(id, command << 12 | 0x0123);
            assert_eq!(number_of(id), 0x0123);
            id = next_id(id);
        }
        assert_eq!(id, 0x0123);
    }

    #[test]
    fn no_more_places_than_numbers() {
        assert!(Places::new(4096, 0, (0, 0)).is_err());
    }
}
