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
const RESPONSE: usize = 16;
/// How many commands there is room for.
const ROOM: usize = 129;
/// How often a connection looks whether the module goes, in milliseconds.
const MOMENT: Option<u32> = Some(200);
/// How long who has connected may say nothing, in moments.
const SILENCE: u32 = 150;

/// The state that all connections share.
pub(crate) struct Rogue {
    pub(crate) stops: Atomic<bool>,
    /// One answer in `one_in` is a wrong one,
    pub(crate) one_in: u64,
    /// or each to a command that reads or writes, in this way, if that way exists.
    pub(crate) way: u64,
    pub(crate) seed: u64,
    /// How many connections there were, answers, and wrong ones.
    pub(crate) connections: Atomic<i32>,
    pub(crate) answers: Atomic<i32>,
    pub(crate) wrong: Atomic<i32>,
    /// The results of accesses that no key allows: how often they were refused, and done.
    pub(crate) refused: Atomic<i32>,
    pub(crate) reached: Atomic<i32>,
}

/// In how many ways an answer can be wrong that is by chance.
const BY_CHANCE: u64 = 11;
/// More ways: by the key of a command that has ended; against its rights; and by what was answered before to
/// another command in that place.
const LATE: u64 = 11;
const AGAINST_RIGHTS: u64 = 12;
const STALE: u64 = 13;
/// Beyond it is none.
const MOST: u64 = 13;

/// The kind of memory that is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Command,
    Answer,
    /// An access that no key allows.
    Forbidden,
}

type Queue = RequestQueue<KVec<u8>, Tag>;
type Endpoint = MsgEndpoint<Connected, KVec<u8>, Tag>;

/// A connection with a host.
struct Connection<'a> {
    rogue: &'a Rogue,
    endpoint: Endpoint,
    dice: Dice,
    /// The key of the command before, and where data of one before went that has been read.
    old_key: u64,
    old_place: Option<Remote>,
    /// The last answers, by the lower bits of the command's id: the tag of its request.
    old_answers: KVec<[u8; RESPONSE]>,
    /// How much of what no key allows is under way.
    forbidden: u32,
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
        old_place: None,
        old_answers: KVec::from_elem([0; RESPONSE], ROOM, GFP_KERNEL)?,
        forbidden: 0,
    };
    let mut silence = 0;
    // How what no key allows has ended is to be known in any case.
    while (!rogue.stops.load(Relaxed) || connection.forbidden > 0) && silence < SILENCE {
        silence += 1;
        match queue.wait(MOMENT)? {
            Some(Ended::Done(request, done)) if done.kind == Kind::Recv => {
                silence = 0;
                connection.answer(request)?;
            }
            Some(Ended::Done(request, _)) => {
                if *request.context() == Tag::Forbidden {
                    connection.forbidden = connection.forbidden.saturating_sub(1);
                    rogue.reached.fetch_add(1, Relaxed);
                }
            }
            None => (),
            Some(Ended::Failed(request, _)) => {
                if *request.context() == Tag::Forbidden {
                    rogue.refused.fetch_add(1, Relaxed);
                }
                break;
            }
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
        let mut response = KVec::from_elem(0, RESPONSE, GFP_KERNEL)?;
        put(&mut response, 0, &result.to_le_bytes());
        put(&mut response, 12, &get::<2>(&command, 2));

        self.rogue.answers.fetch_add(1, Relaxed);
        let mut invalidates = keyed.then_some(u64::from(key));
        let own = Remote {
            addr,
            key: u64::from(key),
        };
        let (mut again, mut to, mut tag) = (false, own, Tag::Answer);
        if let Some(way) = self.way(&command) {
            self.rogue.wrong.fetch_add(1, Relaxed);
            match way {
                0 => response.truncate(self.dice.index(16)),
                // No queue is as long.
                1 => put(
                    &mut response,
                    12,
                    &(self.dice.number() | 0x8000).to_le_bytes()[..2],
                ),
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
                    if self.rogue.way > MOST {
                        to.addr = to.addr.wrapping_add(self.dice.below(3) * 4096);
                    }
                    tag = Tag::Forbidden;
                }
                LATE => {
                    // The host has to end its keys itself. A host that reads one after the other
                    // has ended that one.
                    if let Some(old) = self.old_place {
                        (to, tag) = (old, Tag::Forbidden);
                    }
                    invalidates = None;
                }
                STALE => match self.old_answer(&response) {
                    Some(&mut old) if old != [0; RESPONSE] => return self.answer_again(&old),
                    _ => (),
                },
                AGAINST_RIGHTS => return self.against_rights(own, data.is_empty()),
                _ => return self.endpoint.shutdown().map_err(Error::from),
            }
        }
        self.old_key = own.key;
        let answer: [u8; RESPONSE] = get(&response, 0);
        if let Some(old) = self.old_answer(&answer) {
            *old = answer;
        }
        if command.first() == Some(&2) {
            self.old_place = Some(own);
        }
        if keyed && !data.is_empty() {
            let written = self.endpoint.write(Request::new(data, tag)?, to);
            if written.is_ok() && tag == Tag::Forbidden {
                self.forbidden += 1;
            }
        }
        if again {
            self.answer_again(&answer)?;
        }
        let response = Request::new(response, Tag::Answer)?;
        let _ = match invalidates {
            Some(key) => self.endpoint.send_invalidating(response, key),
            None => self.endpoint.send(response),
        };
        Ok(())
    }

    /// Returns the place for answers to commands with the tag of this one.
    fn old_answer(&mut self, response: &[u8]) -> Option<&mut [u8; RESPONSE]> {
        let tag = u16::from_le_bytes(get(response, 12)) & 0x0fff;
        self.old_answers.get_mut(usize::from(tag))
    }

    /// Answers as before, and does nothing for it.
    fn answer_again(&mut self, answer: &[u8; RESPONSE]) -> Result {
        let mut copy = KVec::new();
        copy.extend_from_slice(answer, GFP_KERNEL)?;
        let _ = self.endpoint.send(Request::new(copy, Tag::Answer)?);
        Ok(())
    }

    /// Returns the way in which the answer to a command is wrong, if it is.
    fn way(&mut self, command: &[u8; 64]) -> Option<u64> {
        let [opcode] = get(command, 0);
        match self.rogue.way {
            // Writing, reading.
            way if way <= MOST => matches!(opcode, 1 | 2).then_some(way),
            _ => {
                let wrong = self.dice.one_in(self.rogue.one_in);
                wrong.then(|| self.dice.below(BY_CHANCE))
            }
        }
    }

    /// Reads what is there to be written, or writes what is there to be read.
    fn against_rights(&mut self, to: Remote, writes: bool) -> Result {
        let request = Request::new(KVec::from_elem(0xa5, 64, GFP_KERNEL)?, Tag::Forbidden)?;
        let begun = if writes {
            self.endpoint.write(request, to)
        } else {
            self.endpoint.read(request, to)
        };
        if begun.is_ok() {
            self.forbidden += 1;
        }
        Ok(())
    }

    /// Returns the correct answer of a target to a command: the result, and data.
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
