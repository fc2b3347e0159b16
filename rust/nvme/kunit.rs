// SPDX-License-Identifier: GPL-2.0

//! Unit tests: nvme-core over a transport whose target is made up.
//!
//! The target answers commands within `queue_rq`, and records what the transport does as pairs of a letter and the number
//! of a queue:
//!
//! | letter | step |
//! |---|---|
//! | C | a queue connects |
//! | S | a queue is stopped, and its gate is closed |
//! | O | a queue is stopped, and its gate is open |
//! | B | a capsule comes back whose command was not answered |
//! | K | the key of a cancelled request ends |
//! | E | a request ends that was not answered |
//! | F | a queue is freed |
//! | D | the controller is deleted |
//! | G | the controller is freed |
//! | X | a request got an answer or a capsule that it must not get |

use crate::{
    ctrl::Ctrl,
    host_queue::HostQueue,
    prelude::*,
    registration::create_ctrl,
    transport::Refusal,
    *, //
};
use kernel::{
    error::from_err_ptr,
    impl_has_work,
    new_work,
    page::BorrowedPage,
    time::{
        delay::fsleep,
        Delta, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

const WRITE: u8 = 1;
const READ: u8 = 2;
const IDENTIFY: u8 = 6;
const SET_FEATURES: u8 = 9;
const FABRICS: u8 = 0x7f;
/// The status "invalid field, do not retry".
const INVALID: u16 = 0x4002;
const CNTLID: u16 = 1;
/// Number of bytes that are written and read.
const BLOCK: usize = 512;

/// The target.
struct Target {
    steps: KVec<u8>,
    memory: [u8; BLOCK],
    /// The register CC.
    config: u32,
    /// Number of I/O queues that it grants.
    grants: u32,
    /// Number of entries of an I/O queue less 1.
    sqsize: u16,
    /// The queue whose connection it refuses.
    refuses: Option<u16>,
    /// The command, of an I/O queue or not, that gets no answer.
    silent: Option<(bool, u8)>,
    /// The device does not return the capsule of a command without an answer.
    keeps: bool,
    kept: Option<Sending<MadeUp>>,
    /// The device does not release the data of a read.
    keeps_data: bool,
    /// Number of times that commands of I/O queues are queued again before one is sent.
    busy: usize,
    kept_data: Option<Data>,
    /// Number of commands until the target answers again. The connection of the last one breaks.
    unanswered: usize,
}

kernel::sync::global_lock! {
    // SAFETY: `Test::begin` initialises the lock before anything else uses it.
    unsafe(uninit) static TARGET: Mutex<Target> = Target::new();
}

static IS_INITIALISED: Atomic<bool> = Atomic::new(false);

impl Target {
    const fn new() -> Self {
        Self {
            steps: KVec::new(),
            memory: [0; BLOCK],
            config: 0,
            grants: 2,
            sqsize: 7,
            refuses: None,
            silent: None,
            keeps: false,
            kept: None,
            keeps_data: false,
            busy: 0,
            kept_data: None,
            unanswered: 1,
        }
    }

    /// Executes a command. Returns its status and result, or `None` if there is no answer.
    fn execute(&mut self, is_io: bool, request: &mut Request<MadeUp>) -> Option<(u16, u64)> {
        let command = *request.command().as_bytes();
        let opcode = command[0];
        if self.unanswered != 0 && self.silent == Some((is_io, opcode)) {
            self.unanswered -= 1;
            return None;
        }
        let done = match (is_io, opcode) {
            (_, FABRICS) => return Some((0, self.fabrics(&command))),
            // The number of I/O queues less 1, twice.
            (false, SET_FEATURES) => return Some((0, u64::from(self.grants - 1) * 0x10001)),
            (false, IDENTIFY) if command[40] == 1 => copy(request, &mut identity()),
            (true, WRITE | READ) => copy(request, &mut self.memory),
            (false, READ) => Err(EINVAL),
            _ => Ok(()),
        };
        Some((done.map_or(INVALID, |()| 0), 0))
    }

    /// Executes Connect, Property Get or Property Set. Returns the result.
    fn fabrics(&mut self, command: &[u8; 64]) -> u64 {
        let (is_enabled, is_shut) = (self.config & 1, self.config >> 14 & 3 != 0);
        match (command[4], command[44]) {
            (1, _) => CNTLID.into(),
            (0, 0x14) => {
                let value = command[48..].first_chunk().copied();
                self.config = value.map_or(0, u32::from_le_bytes);
                0
            }
            // CAP: the NVM command set, a timeout of 500 ms, and the size of queues.
            (4, 0) => 1 << 37 | 1 << 24 | u64::from(self.sqsize),
            // VS: 1.3.
            (4, 8) => 0x10300,
            (4, 0x14) => self.config.into(),
            // CSTS: ready, or shut down.
            (4, 0x1c) => u64::from(is_enabled) | u64::from(is_shut) << 3,
            _ => 0,
        }
    }
}

/// Returns the data of Identify Controller.
fn identity() -> [u8; 4096] {
    let mut identity = [0; 4096];
    let mut set = |at: usize, bytes: &[u8]| identity[at..][..bytes.len()].copy_from_slice(bytes);
    set(78, &CNTLID.to_le_bytes());
    // An I/O controller, which has keep-alive, and accepts 64 commands and keyed descriptors.
    set(111, &[1]);
    set(320, &[1]);
    set(514, &[64]);
    set(536, &[1 << 2]);
    set(768, b"nqn.2014-08.org.example:made-up");
    // The sizes of capsules in units of 16 bytes.
    set(1792, &[4]);
    set(1796, &[1]);
    identity
}

/// Copies to the data of a request that reads, or from those of one that writes.
fn copy(request: &mut Request<MadeUp>, mut bytes: &mut [u8]) -> Result {
    let data = request.lend()?;
    for piece in data.as_slice() {
        let (offset, len) = (piece.bv_offset.try_into()?, piece.bv_len.try_into()?);
        let (now, rest) = bytes.split_at_mut_checked(len).ok_or(EINVAL)?;
        let page = NonNull::new(piece.bv_page).ok_or(EINVAL)?;
        // SAFETY: The data are lent, so the page stays, and nobody else uses it.
        unsafe {
            let page = BorrowedPage::from_raw(page);
            match data.is_writable() {
                true => page.write_raw(now.as_ptr(), offset, len),
                false => page.read_raw(now.as_mut_ptr(), offset, len),
            }
        }?;
        bytes = rest;
    }
    Ok(())
}

/// Records a step.
fn note(letter: u8, qid: u16) {
    let pair = [letter, b'0' + qid as u8];
    // A test fails that misses a step.
    let _ = TARGET.lock().steps.extend_from_slice(&pair, GFP_KERNEL);
}

/// Returns the steps since the last call.
fn steps() -> KVec<u8> {
    mem::replace(&mut TARGET.lock().steps, KVec::new())
}

/// The transport.
struct MadeUp;

impl TagParts for MadeUp {
    /// True if the device has kept the capsule.
    type Capsule = bool;
    /// Whether the target has a key.
    type Slot = bool;
    type Queue = Queue;
}

struct Place;

impl Drop for Place {
    fn drop(&mut self) {
        note(b'G', 0);
    }
}

struct Queue {
    qid: u16,
    events: Events<MadeUp>,
    unanswered: Pin<KBox<Mutex<Option<Sending<MadeUp>>>>>,
}

impl Drop for Queue {
    fn drop(&mut self) {
        note(b'F', self.qid);
    }
}

impl Transport for MadeUp {
    const MAY_SLEEP: bool = true;
    const STOP_LIMIT: Delta = Delta::from_millis(100);
    type Controller = Place;

    fn controller(_: &Options<'_>) -> Result<Place> {
        Ok(Place)
    }

    fn slot(_: &Place, _: u16) -> Result<(bool, bool)> {
        Ok((false, false))
    }

    fn connect(
        _: &Place,
        config: QueueConfig,
        events: Events<Self>,
        _: &dyn Fn() -> bool,
    ) -> Result<Queue> {
        let qid = config.qid;
        if TARGET.lock().refuses == Some(qid) || (config.cntlid == CNTLID) != (qid != 0) {
            return Err(ECONNREFUSED);
        }
        note(b'C', qid);
        Ok(Queue {
            qid,
            events,
            unanswered: KBox::pin_init(new_mutex!(None), GFP_KERNEL)?,
        })
    }
}

impl TransportQueue<MadeUp> for Queue {
    fn queue_rq(
        &self,
        mut request: Request<MadeUp>,
        _last: bool,
    ) -> Result<(), (Refusal, Request<MadeUp>)> {
        match request.take_capsule() {
            None => return Err((Refusal::Failed(EIO), request)),
            Some(true) => note(b'X', self.qid),
            Some(false) => (),
        }
        *request.slot() = request.has_data();
        let [_, _, id0, id1, ..] = *request.command().as_bytes();
        let mut target = TARGET.lock();
        if self.qid != 0 && target.busy != 0 {
            target.busy -= 1;
            request.put_capsule(false);
            *request.slot() = false;
            request.requeue();
            return Ok(());
        }
        let answer = target.execute(self.qid != 0, &mut request);
        if target.keeps_data && !request.is_write() && self.qid != 0 {
            target.kept_data = request.lend().ok();
        }
        let sending = request.into_sending();
        let Some((status, result)) = answer else {
            *self.unanswered.lock() = Some(sending);
            if target.unanswered == 0 {
                self.events.broken(EPIPE);
            }
            return Ok(());
        };
        drop(target);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&result.to_le_bytes());
        bytes[12..14].copy_from_slice(&[id0, id1]);
        bytes[14..].copy_from_slice(&(status << 1).to_le_bytes());
        let respond = || self.events.response(&bytes).ok().flatten();
        // In one order or the other.
        let request = match id0 & 1 {
            0 => respond().or(sending.sent(false)),
            _ => sending.sent(false).or_else(respond),
        };
        if let Some(mut request) = request {
            *request.slot() = false;
            request.complete();
        }
        Ok(())
    }

    fn max_segments(&self) -> u32 {
        16
    }

    fn commit_rqs(&self) {}

    fn async_event(&self, _: &[u8; 64]) -> Result {
        Ok(())
    }

    fn poll(&self) -> bool {
        false
    }

    fn abandon(&self, capsule: &mut Option<bool>, has_key: &mut bool) {
        *capsule = Some(false);
        if mem::take(has_key) {
            note(b'K', self.qid);
        }
    }

    fn stop(&self) {
        // If the gate is closed, nobody looks at a response to nothing.
        let is_closed = matches!(self.events.response(&[0; 16]), Ok(None));
        note(if is_closed { b'S' } else { b'O' }, self.qid);
        let sending = self.unanswered.lock().take();
        let mut target = TARGET.lock();
        if target.keeps && sending.is_some() {
            target.kept = sending;
            return;
        }
        drop(target);
        if let Some(sending) = sending {
            note(b'B', self.qid);
            if sending.sent(false).is_some() {
                note(b'X', self.qid);
            }
        }
    }
}

/// A test. Each has a new target.
struct Test;

impl Test {
    fn begin() -> Self {
        if !IS_INITIALISED.xchg(true, Full) {
            // SAFETY: Only the first caller comes here, and nothing has used the lock yet.
            unsafe { TARGET.init() };
        }
        Self
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        *TARGET.lock() = Target::new();
    }
}

/// Waits for a minute or longer.
fn wait(is_over: impl Fn() -> bool) -> Result {
    for _ in 0..60_000 {
        if is_over() {
            return Ok(());
        }
        fsleep(Delta::from_millis(1));
    }
    Err(ETIMEDOUT)
}

/// Returns an error from a test if a condition does not hold. An `assert!()` would end the task without dropping the
/// controller, which the module waits for.
macro_rules! expect {
    ($holds:expr) => {
        if !$holds {
            pr_err!("line {}: does not hold: {}\n", line!(), stringify!($holds));
            return Err(EINVAL);
        }
    };
}

/// nvme-core's controller.
#[derive(Clone, Copy)]
struct Core(*mut b::nvme_ctrl);

// SAFETY: Any task may use a controller. The tests wait for those that do.
unsafe impl Send for Core {}

impl Core {
    /// Sends a command to an I/O queue. Sleeps until it has ended.
    fn io(self, qid: u16, opcode: u8, data: &mut [u8]) -> Result {
        (self.status(qid, opcode, data)? == 0)
            .then_some(())
            .ok_or(EIO)
    }

    /// Sends a command of an I/O queue, and returns its status.
    fn status(self, qid: u16, opcode: u8, data: &mut [u8]) -> Result<c_int> {
        let mut command = [u64::from(opcode), 0, 0, 0, 0, 0, 0, 0];
        let (command, result) = ((&raw mut command).cast(), ptr::null_mut());
        let (buffer, len) = (data.as_mut_ptr().cast(), data.len().try_into()?);
        let (qid, flags) = (qid.into(), b::NVME_SUBMIT_NOWAIT | b::NVME_SUBMIT_RESERVED);
        // SAFETY: The controller has I/O queues. A command has 64 bytes. `buffer` has `len` bytes.
        Ok(unsafe {
            let queue = (*self.0).connect_q;
            b::__nvme_submit_sync_cmd(queue, command, result, buffer, len, qid, flags)
        })
    }

    /// Writes to an I/O queue, and reads from the last one.
    fn transfer(self, byte: u8, last: u16) -> Result {
        let mut data = KVec::from_elem(byte, BLOCK, GFP_KERNEL)?;
        self.io(1, WRITE, &mut data)?;
        data.fill(!byte);
        self.io(last, READ, &mut data)?;
        let is_same = data.iter().all(|&read| read == byte);
        is_same.then_some(()).ok_or(EINVAL)
    }

    /// Sends a command that gets no answer.
    fn read_in_vain(self, qid: u16) {
        let data = KVec::from_elem(0, BLOCK, GFP_KERNEL).map_err(Error::from);
        let read = data.and_then(|mut data| self.io(qid, READ, &mut data));
        note(if read.is_err() { b'E' } else { b'X' }, qid);
    }

    fn wait_live(self) -> Result {
        // SAFETY: The controller exists.
        let state = || unsafe { (&raw const (*self.0).state).read_volatile() };
        wait(|| state() == b::nvme_ctrl_state_NVME_CTRL_LIVE)
    }
}

/// A read that gets no answer, beside the test. `Queue::try_spawn()` won't do: in two modules, lockdep finds two names
/// of one lock class.
#[pin_data]
struct ReadInVain {
    core: Core,
    qid: u16,
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for ReadInVain { self.work }
}

impl WorkItem for ReadInVain {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        this.core.read_in_vain(this.qid);
    }
}

/// A connected controller. Dropping it deletes the controller.
struct Connected {
    core: Core,
    _host: KBox<b::nvmf_host>,
}

impl Connected {
    /// Connects a controller with one queue for writing and one for reading.
    fn new() -> Result<Self> {
        let mut host = KBox::new(b::nvmf_host::default(), GFP_KERNEL)?;
        // One reference is the options'.
        host.ref_.refcount.refs.counter = 2;
        let copy = |text: &CStr| {
            // SAFETY: The argument is a string.
            unsafe { bindings::kstrdup(text.as_char_ptr(), bindings::GFP_KERNEL) }
        };
        let options = b::nvmf_ctrl_options {
            traddr: copy(c"made up"),
            subsysnqn: copy(c"nqn.2014-08.org.example:made-up"),
            host: &mut *host,
            max_reconnects: -1,
            fast_io_fail_tmo: -1,
            queue_size: 8,
            nr_io_queues: 1,
            nr_write_queues: 1,
            ..Default::default()
        };
        let options = KBox::into_raw(KBox::new(options, GFP_KERNEL)?);
        // SAFETY: The options are valid, and belong to the controller if there is one.
        let created = from_err_ptr(unsafe { create_ctrl::<MadeUp>(ptr::null_mut(), options) });
        let core = Core(created.inspect_err(|_| {
            // SAFETY: The options were allocated by `kmalloc()`, and nobody has them.
            unsafe { b::nvmf_free_options(options) };
        })?);
        Ok(Self { core, _host: host })
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // SAFETY: This value has a reference, which it gives up.
        unsafe {
            b::nvme_delete_ctrl(self.core.0);
            bindings::__flush_workqueue(b::nvme_delete_wq);
            note(b'D', 0);
            bindings::put_device((*self.core.0).device);
            b::nvme_helper_wait_uncounted();
        }
    }
}

#[kernel::macros::kunit_tests(nvme_transport)]
mod tests {
    use super::*;

    #[test]
    fn connects_transfers_and_goes() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        connected.core.transfer(0x5a, 2)?;
        expect!(steps()[..] == *b"C0C1C2");
        drop(connected);
        expect!(steps()[..] == *b"S1S2F1F2S0F0D0G0");
        Ok(())
    }

    #[test]
    fn keys_end_before_requests() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        let core = connected.core;
        steps();
        TARGET.lock().silent = Some((true, READ));
        TARGET.lock().unanswered = 2;
        let read = pin_init!(ReadInVain {
            core,
            qid: 2,
            work <- new_work!("nvme_kunit"),
        });
        workqueue::system().enqueue(KBox::pin_init(read, GFP_KERNEL)?);
        wait(|| TARGET.lock().unanswered == 1)?;
        core.read_in_vain(1);
        let at = |step: &[u8]| TARGET.lock().steps.windows(2).position(|seen| seen == step);
        wait(|| at(b"E2").is_some())?;
        let is_before = |key, end| at(key).is_some_and(|key| Some(key) < at(end));
        expect!(is_before(b"K1", b"E1") && is_before(b"K2", b"E2"));
        core.wait_live()?;
        let mut seen = KVec::new();
        for step in steps().chunks(2).filter(|step| step[0] != b'E') {
            seen.extend_from_slice(step, GFP_KERNEL)?;
        }
        expect!(seen[..] == *b"S1B1S2B2K1K2F1F2S0F0C0C1C2");
        TARGET.lock().silent = None;
        core.transfer(0x22, 2)
    }

    #[test]
    fn capsules_are_given_up() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        let core = connected.core;
        steps();
        TARGET.lock().silent = Some((true, READ));
        TARGET.lock().keeps = true;
        core.read_in_vain(1);
        let at = |step: &[u8]| TARGET.lock().steps.windows(2).position(|seen| seen == step);
        expect!(at(b"K1").is_some() && at(b"K1") < at(b"E1"));
        // The queue can't be connected before the capsule comes back, which must not reach the request.
        let kept = TARGET.lock().kept.take();
        wait(|| TARGET.lock().steps.windows(6).any(|seen| seen == b"F0C0S0"))?;
        expect!(kept.is_some_and(|sending| sending.sent(true).is_none()));
        core.wait_live()?;
        TARGET.lock().silent = None;
        core.transfer(0x44, 2)?;
        expect!(at(b"X1").is_none());
        Ok(())
    }

    #[test]
    fn kept_data_are_leaked() -> Result {
        // With an answer, which says that the data are there, and without one.
        for silent in [None, Some((true, READ))] {
            let _test = Test::begin();
            let connected = Connected::new()?;
            TARGET.lock().silent = silent;
            TARGET.lock().keeps_data = true;
            // Its page has a reference count, unlike memory of `kmalloc()`.
            let mut data = VVec::from_elem(0, BLOCK, GFP_KERNEL)?;
            // Not an error of the path, after which multipath would send the same pages again.
            expect!(connected.core.status(1, READ, &mut data)? == 0x4281);
            // The next connection has used the tag again then.
            connected.core.wait_live()?;
            // SAFETY: The address is one of `vmalloc()`. The count is read as atomics are.
            let count = unsafe {
                let page = bindings::vmalloc_to_page(data.as_ptr().cast());
                (&raw const (*page)._refcount.counter).read_volatile()
            };
            expect!(count == 2);
        }
        Ok(())
    }

    #[test]
    fn unsent_requests_are_queued_again() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        TARGET.lock().busy = 3;
        connected.core.transfer(0x5a, 1)?;
        expect!(TARGET.lock().busy == 0);
        Ok(())
    }

    #[test]
    fn timeout_handlers_end_before_requests() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        let core = connected.core;
        TARGET.lock().refuses = Some(0);
        steps();
        // SAFETY: The controller exists.
        expect!(unsafe { b::nvme_reset_ctrl(core.0) } == 0);
        wait(|| steps().ends_with(b"F0"))?;
        // SAFETY: The controller exists, and so do its queues. No command is sent meanwhile.
        let are_idle = unsafe {
            let queues = [(*core.0).admin_q, (*core.0).fabrics_q, (*core.0).connect_q];
            queues.map(|queue| (*queue).timeout.entry.pprev.is_null())
        };
        expect!(are_idle == [true; 3]);
        TARGET.lock().refuses = None;
        core.wait_live()
    }

    #[test]
    fn failed_setup_is_undone() -> Result {
        // The target refuses a queue, or the connection breaks while a command waits for its answer.
        for (refuses, silent, seen) in [
            (Some(0), None, b"G0" as &[u8]),
            (Some(1), None, b"C0S0F0G0"),
            (Some(2), None, b"C0C1S1F1S0F0G0"),
            (None, Some((false, IDENTIFY)), b"C0S0B0K0F0G0"),
            (None, Some((false, SET_FEATURES)), b"C0S0B0F0G0"),
            (None, Some((true, FABRICS)), b"C0C1S1B1K1F1S0F0G0"),
        ] {
            let _test = Test::begin();
            TARGET.lock().refuses = refuses;
            TARGET.lock().silent = silent;
            let error = Connected::new().err().ok_or(EINVAL)?;
            expect!((error == ECONNREFUSED) == refuses.is_some());
            expect!(steps()[..] == *seen);
        }
        Ok(())
    }

    #[test]
    fn queues_change_at_reset() -> Result {
        let _test = Test::begin();
        let connected = Connected::new()?;
        let core = connected.core;
        for (grants, sqsize) in [(1, 7), (2, 7), (2, 1), (1, 1)] {
            TARGET.lock().grants = grants;
            TARGET.lock().sqsize = sqsize;
            // SAFETY: The controller exists.
            expect!(unsafe { b::nvme_reset_ctrl(core.0) } == 0);
            core.wait_live()?;
            // SAFETY: The controller exists.
            expect!(unsafe { (*core.0).queue_count } == grants + 1);
            core.transfer(0x33, grants.try_into()?)?;
        }
        Ok(())
    }

    #[test]
    fn fewer_places_than_tags() -> Result {
        let _test = Test::begin();
        let mut set = bindings::blk_mq_tag_set::default();
        set.queue_depth = 7;
        // SAFETY: The queue has no requests, and only reads the depth of the set.
        let queue = unsafe {
            let ctrl = Ctrl::new(ptr::null_mut(), ptr::null_mut());
            HostQueue::<MadeUp>::new(ctrl, 1, &mut set)
        }?;
        for (places, allowed) in [(7, 7), (2, 2)] {
            let config = QueueConfig {
                qid: 1,
                sqsize: places,
                cntlid: CNTLID,
                ..Default::default()
            };
            queue.open(&config, |events| {
                MadeUp::connect(&Place, config, events, &|| false)
            })?;
            expect!((0..7).filter(|_| queue.take_place()).count() == allowed);
            (0..7).for_each(|_| queue.put_place());
            expect!(queue.take_place());
            queue.stop();
            queue.free();
        }
        Ok(())
    }
}
