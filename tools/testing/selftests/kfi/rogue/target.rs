// SPDX-License-Identifier: GPL-2.0

//! A connection of a target that answers as one should, mostly.

use crate::dice::Dice;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use kfabric::consumer::{
    CompletionQueueOptions,
    Connected,
    Domain,
    Ended,
    Fabric,
    Incoming,
    Kind,
    MsgEndpoint,
    Remote,
    Request,
    RequestQueue, //
};

/// A command with as much data as there may be behind it.
const CAPSULE: usize = 64 + 4096;
/// How many commands there is room for.
const ROOM: usize = 129;
/// How often a connection looks whether the module goes, in milliseconds.
const MOMENT: Option<u32> = Some(200);
/// How long who has connected may say nothing, in moments.
const SILENCE: u32 = 150;

/// What all connections share.
pub(crate) struct Rogue {
    pub(crate) stops: Atomic<bool>,
    /// One answer in so many is a wrong one.
    pub(crate) one_in: u64,
    pub(crate) seed: u64,
    /// How many connections there were, answers, and wrong ones.
    pub(crate) connections: Atomic<i32>,
    pub(crate) answers: Atomic<i32>,
    pub(crate) wrong: Atomic<i32>,
}

/// What there is in memory that is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Command,
    Answer,
}

type Queue = RequestQueue<KVec<u8>, Tag>;
type Endpoint = MsgEndpoint<Connected, KVec<u8>, Tag>;

/// A connection with a host.
struct Connection<'a> {
    rogue: &'a Rogue,
    endpoint: Endpoint,
    dice: Dice,
    /// A key of an earlier command's.
    old_key: u32,
}

/// Serves who has asked for a connection, until it ends. Sleeps.
pub(crate) fn serve(rogue: &Rogue, request: Incoming) -> Result {
    let number = rogue.connections.fetch_add(1, Relaxed);
    let mut dice = Dice::new(rogue.seed ^ u64::from(number.unsigned_abs()) << 32);
    if dice.one_in(4 * rogue.one_in) {
        request.reject(&[0, 0, 6, 0]).map_err(|_| EINVAL)?;
        return Ok(());
    }
    let domain = Domain::open(&Fabric::open(request.info())?, request.info())?;
    let options = CompletionQueueOptions::default().size(8 * ROOM).waits();
    let queue: Arc<Queue> = RequestQueue::open(&domain, options)?;
    let endpoint = request.endpoint(&domain, &queue, &queue)?.enable()?;
    for _ in 0..ROOM {
        let room = KVec::from_elem(0, CAPSULE, GFP_KERNEL)?;
        endpoint.recv(Request::new(room, Tag::Command)?)?;
    }
    let endpoint = endpoint.accept(&[0; 32])?.wait(Some(5000))?;
    let mut connection = Connection {
        rogue,
        endpoint,
        dice,
        old_key: 0,
    };
    let mut silence = 0;
    while !rogue.stops.load(Relaxed) && silence < SILENCE {
        silence += 1;
        match queue.wait(MOMENT)? {
            Some(Ended::Done(request, done)) if done.kind == Kind::Recv => {
                silence = 0;
                connection.answer(request)?;
            }
            Some(Ended::Done(..)) | None => (),
            Some(_) => break,
        }
    }
    Ok(())
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    let place = bytes.iter_mut().skip(at);
    place.zip(what).for_each(|(to, from)| *to = *from);
}

impl Connection<'_> {
    /// Answers a command, whose memory goes back to wait for another.
    fn answer(&mut self, request: Request<KVec<u8>, Tag>) -> Result {
        let command: [u8; 64] = get(request.memory(), 0);
        // Or the connection has gone.
        let _ = self.endpoint.recv(request);
        let (addr, key) = (
            u64::from_le_bytes(get(&command, 24)),
            u32::from_le_bytes(get(&command, 35)),
        );
        let len = u32::from_le_bytes(get(&command, 32)) & 0xff_ffff;
        let keyed = command.get(39).is_some_and(|kind| kind & 0x0f == 0x0f);
        let (result, mut data) = self.truth(&command, len)?;
        let mut response = KVec::from_elem(0, 16, GFP_KERNEL)?;
        put(&mut response, 0, &result.to_le_bytes());
        put(&mut response, 12, &get::<2>(&command, 2));

        self.rogue.answers.fetch_add(1, Relaxed);
        let mut invalidates = keyed.then_some(key);
        let (mut again, mut to) = (
            false,
            Remote {
                addr,
                key: u64::from(key),
            },
        );
        if self.dice.one_in(self.rogue.one_in) {
            self.rogue.wrong.fetch_add(1, Relaxed);
            match self.dice.below(11) {
                0 => response.truncate(self.dice.index(16)),
                1 => put(&mut response, 12, &self.dice.number().to_le_bytes()[..2]),
                2 => put(&mut response, 14, &self.dice.number().to_le_bytes()[..2]),
                3 => put(&mut response, 0, &self.dice.number().to_le_bytes()),
                4 => self.dice.fill(&mut response),
                5 => self.dice.fill(&mut data),
                6 => invalidates = Some(self.old_key),
                7 => invalidates = None,
                8 => again = true,
                9 => {
                    // More than asked for, or somewhere else.
                    data.extend_from_slice(&[0xa5; 64], GFP_KERNEL)?;
                    to.addr = to.addr.wrapping_add(self.dice.below(3) * 4096);
                }
                _ => return self.endpoint.shutdown().map_err(Error::from),
            }
        }
        self.old_key = key;
        if keyed && !data.is_empty() {
            let _ = self.endpoint.write(Request::new(data, Tag::Answer)?, to);
        }
        if again {
            let mut copy = KVec::new();
            copy.extend_from_slice(&response, GFP_KERNEL)?;
            let _ = self.endpoint.send(Request::new(copy, Tag::Answer)?);
        }
        let response = Request::new(response, Tag::Answer)?;
        let _ = match invalidates {
            Some(key) => self.endpoint.send_invalidating(response, u64::from(key)),
            None => self.endpoint.send(response),
        };
        Ok(())
    }

    /// What a target says to a command: the result, and data.
    fn truth(&mut self, command: &[u8; 64], len: u32) -> Result<(u64, KVec<u8>)> {
        let len = usize::try_from(len)?.min(1 << 20);
        let [opcode] = get(command, 0);
        let [kind] = get(command, 4);
        let admin_or_flush = u64::from_le_bytes(get(command, 40));
        let mut data = KVec::new();
        let result = match (opcode, kind) {
            // Connect; a property, CAP or CSTS.
            (0x7f, 1) => 1,
            (0x7f, 4) if admin_or_flush & 1 == 1 => 127 | 1 << 24,
            (0x7f, 4) => 1,
            // Identify.
            (0x06, _) => {
                data.resize(4096, 0, GFP_KERNEL)?;
                match get(command, 40) {
                    [1_u8] => {
                        put(&mut data, 77, &[5]);
                        put(&mut data, 536, &(1_u32 << 2 | 1 << 20).to_le_bytes());
                        put(&mut data, 1792, &260_u32.to_le_bytes());
                    }
                    [2] if get(command, 4) == [0_u8] => put(&mut data, 0, &[1]),
                    [2] => (),
                    _ => {
                        put(&mut data, 0, &2048_u64.to_le_bytes());
                        put(&mut data, 130, &[9]);
                    }
                }
                0
            }
            // Reading.
            (0x02, _) => {
                data.resize(len, 0x5a, GFP_KERNEL)?;
                0
            }
            _ => 0,
        };
        Ok((result, data))
    }
}
