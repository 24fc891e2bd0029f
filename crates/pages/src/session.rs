//! Threads that read the pages of a file.

use std::ops::Range;
use std::sync::Arc;

use futures::executor::block_on;
use store::PageList;
use workers::{MAX_THREADS, Queues};

use crate::error::Result;
use crate::file::PageFile;
use crate::options::{MAX_PREFETCH, within};

/// Threads that read the pages of a [`PageFile`] as they were when the session was started. An
/// operator has them all for itself; several operators at the same time take turns page by page
/// only where one waits for the disk.
#[derive(Debug)]
pub struct Session {
    list: PageList,
    page_size: usize,
    /// The indexes into the list of the pages of each thread, ascending.
    shares: Vec<Arc<[u32]>>,
    queues: Queues,
    ahead: Option<Ahead>,
}

/// What loads pages before a thread comes to them.
#[derive(Debug, Clone)]
struct Ahead {
    queues: Arc<Queues>,
    degree: usize,
}

/// What one thread makes, on cache lines that no other thread writes to: two of 64 bytes, as
/// processors fetch them in pairs.
#[repr(align(128))]
struct Padded<T>(T);

impl Session {
    /// Starts `threads` threads, 1 to [`MAX_THREADS`], and with a `prefetch` other than 0
    /// as many that load the next `prefetch` pages of each, up to [`MAX_PREFETCH`].
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) if `threads` or `prefetch` is out of range;
    /// [`Error::Workers`](crate::Error::Workers) if the system does not give the threads.
    pub fn start(file: &PageFile, threads: usize, prefetch: usize) -> Result<Session> {
        within("threads", threads, 1, MAX_THREADS)?;
        within("pages to prefetch", prefetch, 0, MAX_PREFETCH)?;
        let layout = file.layout(threads);
        let queues = Queues::start(&layout)?;
        let ahead = match prefetch {
            0 => None,
            degree => Some(Ahead {
                queues: Arc::new(Queues::start(&layout)?),
                degree,
            }),
        };
        let list = file.store().view().list();
        let page_size = file.store().page_size();
        let deal = Deal::new(threads, list.pool().nodes(), list.len(), page_size);
        let mut shares = vec![Vec::with_capacity(list.len() / threads + 1); threads];
        for index in 0..list.len() {
            // Fits: there are at most 2^32 pages, and page 0 is protected.
            shares[deal.thread(list.page(index) as usize)].push(index as u32);
        }
        Ok(Session {
            list,
            page_size,
            shares: shares.into_iter().map(Arc::from).collect(),
            queues,
            ahead,
        })
    }

    /// How many threads read.
    pub fn threads(&self) -> usize {
        self.shares.len()
    }

    /// The pages that are read.
    pub fn pages(&self) -> &PageList {
        &self.list
    }

    /// The bytes of all pages that are read.
    pub fn bytes(&self) -> u64 {
        self.list.len() as u64 * self.page_size as u64
    }

    /// What the system refused when the threads were started, a line each; usually empty.
    pub fn notes(&self) -> &[String] {
        self.queues.notes()
    }

    /// Has each thread give its pages among those at `indexes` of the list, ascending, to `kernel`
    /// with the thread's own value, which begins as `start`; returns these values.
    ///
    /// # Errors
    /// Those of [`PageList::pin`], when all threads have ended.
    pub(crate) fn each<T, K>(&self, indexes: Range<usize>, start: &T, kernel: K) -> Result<Vec<T>>
    where
        T: Clone + Send + 'static,
        K: Fn(&mut T, u32, &[u8]) + Clone + Send + 'static,
    {
        let mut handles = Vec::with_capacity(self.threads());
        for (thread, share) in self.shares.iter().enumerate() {
            let cut = |end: usize| share.partition_point(|&index| (index as usize) < end);
            let walk = Walk {
                thread,
                list: self.list.clone(),
                share: share.clone(),
                own: cut(indexes.start)..cut(indexes.end),
                ahead: self.ahead.clone(),
            };
            let task = walk.run(Padded(start.clone()), kernel.clone());
            handles.push(self.queues.spawn_on(thread, task)?);
        }
        let ended: Vec<_> = handles.into_iter().map(block_on).collect();
        let mut values = Vec::with_capacity(ended.len());
        for value in ended {
            values.push(value??.0);
        }
        // What was read of a file that was cut while it was mapped is wrong.
        self.list.pool().intact()?;
        Ok(values)
    }
}

/// Bytes of pages that a thread reads before the next has its turn.
const RUN: usize = 256 << 10;

/// Which thread reads a page: one on the page's node, and the pages of a node in runs, so that two threads do not write to
/// words on one cache line, and each reads on where the processor's prefetcher does.
#[derive(Debug, Clone, Copy)]
struct Deal {
    threads: usize,
    nodes: usize,
    /// Pages of a node side by side that one thread reads.
    run: usize,
}

impl Deal {
    fn new(threads: usize, nodes: usize, pages: usize, page_size: usize) -> Deal {
        // Where the threads are no multiple of the nodes, they are not dealt to nodes evenly either.
        let nodes = if threads.is_multiple_of(nodes) {
            nodes
        } else {
            1
        };
        // Of few pages, shorter runs: every thread is to have some.
        let run = (RUN / page_size).min(pages / (threads * 16)).max(1);
        Deal {
            threads,
            nodes,
            run,
        }
    }

    /// The raw page *p* lies on node *p* modulo 256 modulo the nodes, thread *t* is on node *t* modulo the nodes.
    fn thread(self, page: usize) -> usize {
        let (node, of_node) = (page % 256 % self.nodes, page / self.nodes);
        node + self.nodes * ((of_node / self.run) % (self.threads / self.nodes))
    }
}

/// The way of one thread through its pages.
struct Walk {
    thread: usize,
    list: PageList,
    share: Arc<[u32]>,
    /// Which of the share.
    own: Range<usize>,
    ahead: Option<Ahead>,
}

impl Walk {
    async fn run<T, K>(self, mut value: Padded<T>, kernel: K) -> store::Result<Padded<T>>
    where
        K: Fn(&mut T, u32, &[u8]),
    {
        let own = &self.share[self.own.clone()];
        let mut reader = self.list.reader();
        for (step, &index) in own.iter().enumerate() {
            let index = index as usize;
            if let Some(ahead) = &self.ahead {
                self.prefetch(ahead, step);
            }
            // A page that needs no load needs no future either.
            let resident = reader.is_alone().then(|| self.list.try_pin(index));
            let pin = match resident.flatten() {
                Some(pin) => pin,
                None => reader.pin(index).await?,
            };
            kernel(&mut value.0, self.list.page(index), &pin);
        }
        Ok(value)
    }

    /// Asks for pages up to `degree` after the one of this step: every half a degree of steps, for
    /// half of them at once.
    fn prefetch(&self, ahead: &Ahead, step: usize) {
        let half = ahead.degree.div_ceil(2);
        if !step.is_multiple_of(half) {
            return;
        }
        let first = match step {
            0 => 1,
            _ => step + ahead.degree - half + 1,
        };
        let own = &self.share[self.own.clone()];
        let end = (step + ahead.degree + 1).min(own.len());
        let Some(next) = own.get(first..end) else {
            return;
        };
        let absent = |&index: &u32| !self.list.is_resident(index as usize);
        if !next.iter().any(absent) {
            return;
        }
        let range = self.own.start + first..self.own.start + end;
        let (list, share) = (self.list.clone(), self.share.clone());
        let task = async move {
            list.prefetch(share[range].iter().map(|&index| index as usize));
        };
        // Round robin over the threads that prefetch, each reader from its own on. Without a
        // prefetch the page is loaded when it is read.
        let queue = (self.thread + step / half) % ahead.queues.len();
        drop(ahead.queues.spawn_on(queue, task));
    }
}
