//! Statements that mean harm: they fail with an error, soon, and leave the engine as it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sql::Error;

struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<fiber::Workers>,
    engine: Arc<sql::Engine>,
}

impl Fixture {
    fn new(memory: u64) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let live = topology::Machine::live().unwrap();
        let workers = fiber::Workers::new(fiber::Layout::of(&live, &live, 2, false)).unwrap();
        let budget = memory::Budget::new(memory);
        let mut options = store::Options::default();
        options.pool.bytes = 8 << 20;
        options.pool.budget = Some(Arc::clone(&budget));
        let store = store::Store::create(directory.path().join("h.atoll"), &options).unwrap();
        let spill = sql::Options::spilling_to(directory.path());
        let engine = sql::Engine::new(store, Arc::clone(&workers), budget, spill).unwrap();
        Fixture {
            _directory: directory,
            workers,
            engine,
        }
    }

    fn sql(&self, text: &str) -> sql::Result<Vec<sql::Answer>> {
        self.workers
            .handle()
            .block_on(self.engine.session().execute(text))
    }

    fn rows(&self, text: &str) -> usize {
        self.sql(text).unwrap().pop().unwrap().rows()
    }
}

#[test]
fn depth_is_bounded() {
    let f = Fixture::new(256 << 20);
    let n = 10_000;
    let deep = [
        format!("select {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("select {}1{}", "abs(".repeat(n), ")".repeat(n)),
        format!("{}select 1{}", "select * from (".repeat(n), ") t".repeat(n)),
        format!(
            "select {}1{}",
            "case when true then ".repeat(n),
            " end".repeat(n)
        ),
        format!("select {}true", "not ".repeat(n)),
        format!("select {}1", "- ".repeat(n)),
        format!("select 1{}", " + 1".repeat(n)),
        format!("select true{}", " or false".repeat(n)),
        format!("select 1{}", " union all select 1".repeat(n)),
        format!("select {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("{}select 1", "explain ".repeat(n)),
    ];
    for text in deep {
        let e = f.sql(&text).unwrap_err();
        assert!(
            matches!(e, Error::TooComplex { .. } | Error::Syntax { .. }),
            "{}: {e}",
            &text[..40]
        );
    }
    // What the bounds admit must work.
    let ok = [
        format!("select {}1{}", "(".repeat(40), ")".repeat(40)),
        format!("select 1{}", " + 1".repeat(900)),
        format!(
            "select count(*) from (values (1), (2)) t(a) where 0 < a{}",
            " + a".repeat(12)
        ),
        format!(
            "select count(*) from (values (1), (2)) t(a) where 0 < a{}",
            " % (a + 1)".repeat(12)
        ),
        format!(
            "select count(*) from (values (1)) t(a) where a = 0{}",
            " or a = 1".repeat(400)
        ),
        format!("select 1{}", " union all select 1".repeat(300)),
    ];
    for text in ok {
        let asked = Instant::now();
        f.sql(&text)
            .unwrap_or_else(|e| panic!("{}: {e}", &text[..40]));
        println!("{:?} {}", asked.elapsed(), &text[..60]);
    }
}

#[test]
fn length_is_not_a_crime() {
    let f = Fixture::new(256 << 20);
    let long = "x".repeat(1 << 20);
    assert_eq!(f.rows(&format!("select '{long}' as a")), 1);
    let list = (0..50_000)
        .map(|i| i.to_string())
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(
        f.rows(&format!(
            "select * from (values (1), (70000)) t(a) where a in ({list})"
        )),
        1
    );
    let columns = (0..2_000)
        .map(|i| format!("{i} as c{i}"))
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(f.rows(&format!("select {columns}")), 1);
    for garbage in [
        "\0",
        "select \u{0}",
        "'",
        "\"",
        "/*",
        "$$",
        "select * from t where \u{1F4A3}",
        ";;;;",
        "select 1 as \"\"",
    ] {
        let _ = f.sql(garbage);
    }
    assert_eq!(f.rows("select 1"), 1);
}

#[test]
fn a_cross_join_explosion_is_cancelled() {
    let explosions = [
        "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b, generate_series(1, 1000000) c",
        // Collecting one side takes longer than we wait, and shorter.
        "select a.value from generate_series(1, 10000000) a, generate_series(1, 10000000) b where a.value * b.value = -1",
        "select a.value from generate_series(1, 1000000) a, generate_series(1, 1000000) b where a.value * b.value = -1",
        "select sum(a.value) over (order by b.value) from generate_series(1, 1000000) a, generate_series(1, 1000) b",
    ];
    for text in explosions {
        // A limit that none of them reaches before it is stopped.
        let f = Fixture::new(4 << 30);
        let stop = Arc::new(tokio::sync::Notify::new());
        let asked = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let session = f.engine.session();
                f.workers.handle().block_on(async {
                    tokio::select! {
                        done = session.execute(text) => panic!("{text}: {:?}", done.map(|_| "finished")),
                        () = stop.notified() => {}
                    }
                });
                Instant::now()
            });
            std::thread::sleep(Duration::from_millis(300));
            let asked = Instant::now();
            stop.notify_one();
            waiting.join().unwrap() - asked
        });
        assert!(asked < Duration::from_millis(100), "{text}: {asked:?}");
        let freed = Instant::now();
        let (done, wait) = std::sync::mpsc::channel();
        let session = f.engine.session();
        let next = f.workers.spawn(async move {
            let _ = done.send(session.execute("select 1").await.is_ok());
        });
        let answered = wait.recv_timeout(Duration::from_secs(10));
        drop(next);
        println!("{text}: workers free after {:?}", freed.elapsed());
        assert_eq!(answered, Ok(true), "{text}: the workers are still busy");
    }
}

#[test]
fn the_memory_limit_spills_what_can_and_names_itself_for_what_cannot() {
    let f = Fixture::new(128 << 20);
    let sorted = "select count(*) from (select row_number() over (order by v % 1000, v) r from generate_series(1, 6000000) t(v)) where r > 0";
    assert_eq!(f.rows(sorted), 1);
    let join = "select count(*) from generate_series(1, 8000000) a(x) join generate_series(1, 8000000) b(y) on a.x = b.y \
                join (select value z, cast(value as varchar) s from generate_series(1, 8000000)) c on c.z = a.x where s <> 'x'";
    let e = f.sql(join).unwrap_err();
    assert!(matches!(e, Error::Memory { .. }), "{e:?}");
    let text = e.to_string();
    assert!(
        text.contains("memory limit of") && text.contains("--memory-limit"),
        "{text}"
    );
    assert!(!text.contains("datafusion"), "{text}");
    assert_eq!(f.rows("select 1"), 1);
}

#[test]
fn a_stream_delivers_and_stops_when_dropped() {
    let f = Fixture::new(256 << 20);
    let session = f.engine.session();
    f.workers.handle().block_on(async {
        let mut stream = session
            .stream("select value from generate_series(1, 100000)")
            .await
            .unwrap();
        let mut rows = 0;
        while let Some(batch) = stream.next_batch().await {
            rows += batch.unwrap().num_rows();
        }
        assert_eq!(rows, 100_000);
        let endless =
            "select a.value from generate_series(1, 10000000) a, generate_series(1, 10000000) b";
        let mut stream = session.stream(endless).await.unwrap();
        assert!(stream.next_batch().await.unwrap().is_ok());
        drop(stream);
        assert!(matches!(
            session.stream("select nope").await,
            Err(Error::UnknownColumn { .. })
        ));
        let mut stream = session
            .stream("select 1 / (value - 5) from generate_series(1, 10)")
            .await
            .unwrap();
        assert!(matches!(
            stream.next_batch().await,
            Some(Err(Error::Arithmetic { .. }))
        ));
        let mut table = session.stream("show tables").await.unwrap();
        assert!(table.next_batch().await.is_none());
    });
}

#[test]
fn one_writes_while_others_read() {
    let f = Fixture::new(256 << 20);
    f.sql("create table t (a bigint)").unwrap();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let session = f.engine.session();
            f.workers.spawn(async move {
                session
                    .execute("insert into t values (1), (2)")
                    .await
                    .map(|_| ())
            })
        })
        .collect();
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let session = f.engine.session();
            f.workers
                .spawn(async move { session.execute("select count(*) from t").await.map(|_| ()) })
        })
        .collect();
    f.workers.handle().block_on(async {
        for task in writers.into_iter().chain(readers) {
            task.await.unwrap().unwrap();
        }
    });
    assert_eq!(f.rows("select a from t"), 8);
}
