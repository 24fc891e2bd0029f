//! Examples of every command.

/// Command lines, with what they do, by command.
pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            #[cfg(feature = "sql")]
            ("atoll quickstart", "try it: TPC-H data, the 22 queries"),
            #[cfg(feature = "sql")]
            (
                "atoll import reef.atoll fish fish.csv",
                "load a file into a table",
            ),
            #[cfg(feature = "sql")]
            ("atoll sql reef.atoll \"select count(*) from fish\"", "ask"),
            #[cfg(feature = "sql")]
            ("atoll sql reef.atoll", "a shell"),
            #[cfg(not(feature = "sql"))]
            (
                "atoll load graph web.atoll web-Google.txt.gz",
                "load a graph",
            ),
            #[cfg(not(feature = "sql"))]
            ("atoll array sea.atoll import depths.npy", "load an array"),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "quickstart",
        &[
            (
                "atoll quickstart --scale 0.1 --store tpch.atoll",
                "100 MB of raw data",
            ),
            (
                "atoll quickstart --repeat 10 --executor stream --json",
                "times of another executor",
            ),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "import",
        &[
            (
                "atoll import reef.atoll fish fish.parquet",
                "types as in the file",
            ),
            (
                "atoll import reef.atoll sites a.csv b.csv --append --header no",
                "rows of two files",
            ),
            (
                "atoll import reef.atoll sites sites.csv --schema \"id int, name text\" --primary-key id",
                "types and a key as said",
            ),
            (
                "atoll import sea.atoll depths depths.npy --chunk 250x250x500",
                "an array",
            ),
        ],
    ),
    (
        "export",
        &[
            (
                "atoll export sea.atoll depths depths.zarr",
                "an array as a Zarr folder",
            ),
            (
                "atoll export sea.atoll depths depths.npy --null -1",
                "for NumPy, -1 in place of nulls",
            ),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "sql",
        &[
            (
                "atoll sql \"select * from 'fish.csv'\"",
                "a file, without a store",
            ),
            ("atoll sql reef.atoll", "a shell; \\? lists its commands"),
            (
                "atoll sql reef.atoll --create -f schema.sql",
                "make a store, run a script",
            ),
            (
                "atoll sql reef.atoll \"select * from fish\" -o fish.csv",
                "results to a file",
            ),
            (
                "atoll sql reef.atoll -f q6.sql --analyze",
                "how a query ran",
            ),
            (
                "atoll sql reef.atoll -f q6.sql --executor staged --ring 3 --timing",
                "another executor, and its time",
            ),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "serve",
        &[
            (
                "atoll serve reef.atoll",
                "psql -h 127.0.0.1 reaches it, on this machine alone",
            ),
            (
                "atoll serve --users users --add-user ann",
                "ask for a password, keep what verifies it",
            ),
            (
                "atoll serve reef.atoll --listen 0.0.0.0:5432 --users users --tls cert.pem key.pem",
                "for other machines",
            ),
            (
                "atoll serve reef.atoll --metrics 127.0.0.1:9187 --statement-timeout 30s",
                "with metrics, and no statement longer than that",
            ),
            (
                "atoll serve reef.atoll --http 127.0.0.1:8123",
                "a page for a browser, and statements as JSON",
            ),
            (
                "atoll serve reef.atoll --flight 127.0.0.1:31337",
                "results as Arrow, for ADBC and pyarrow",
            ),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "laq",
        &[
            (
                "atoll laq tpch-1.atoll \"return(sum(lineitem.l_quantity))\"",
                "run a program",
            ),
            (
                "atoll laq tpch-1.atoll -f q6.laq --explain",
                "its matrices and pipelines",
            ),
        ],
    ),
    (
        "topology",
        &[
            ("atoll topology", "this machine"),
            ("atoll topology --machine opteron-8387", "another one"),
        ],
    ),
    (
        "afl",
        &[
            (
                "atoll afl seas.atoll --create \"create array depth <m:double> [x=0:99; y=0:99]\"",
                "a new array",
            ),
            (
                "atoll afl seas.atoll \"store(build(<m:double> [x=0:99; y=0:99], x * y), depth)\"",
                "filled by an expression",
            ),
            (
                "atoll afl seas.atoll \"aggregate(subarray(depth, 10, 10, 20, 20), avg(m), x)\" --analyze",
                "a query, and how it went",
            ),
        ],
    ),
    (
        "load",
        &[
            (
                "atoll load graph web.atoll web-Google.txt.gz",
                "an edge list into a store",
            ),
            (
                "atoll load seismic earth.atoll --gib 1 --chunks 100",
                "an array to try array queries with",
            ),
        ],
    ),
    (
        "load graph",
        &[
            (
                "atoll load graph web.atoll web-Google.txt.gz --name web",
                "an edge list of the Stanford collection",
            ),
            (
                "atoll load graph web.atoll roads.txt --undirected --weighted",
                "edges that lead both ways, with the third column as their weight",
            ),
        ],
    ),
    (
        "load seismic",
        &[
            (
                "atoll load seismic earth.atoll --gib 1 --chunks 1000",
                "three dimensions, doubles",
            ),
            (
                "atoll load seismic earth.atoll --trials --gib 1 --chunks 100 --name shots",
                "four dimensions, floats, a chunk for each trial",
            ),
        ],
    ),
    (
        "array",
        &[
            ("atoll array sea.atoll list", "the arrays of a store"),
            (
                "atoll array sea.atoll import depths.npy --dims lat,lon",
                "an array of NumPy into a store",
            ),
            (
                "atoll array sea.atoll import depths.zarr --name deep --json",
                "an array in the format Zarr, under another name",
            ),
            (
                "atoll array sea.atoll export out.zarr --name deep --pack zstd",
                "an array into a folder that zarr-python reads",
            ),
            ("atoll array sea.atoll delete --name deep", "an array less"),
        ],
    ),
    (
        "graph",
        &[
            ("atoll graph web.atoll list", "the graphs of a store"),
            (
                "atoll graph web.atoll bfs --source 42 --json",
                "how far everything is from vertex 42",
            ),
            (
                "atoll graph web.atoll bfs --sources 100 --cold",
                "searches from random vertices, and the pages that each reads",
            ),
            (
                "atoll graph web.atoll pagerank --top 20",
                "the vertices that most lead to",
            ),
            (
                "atoll graph web.atoll reorder --order gorder --sources 10",
                "fewer pages to read, measured before and after",
            ),
        ],
    ),
    (
        "pages",
        &[
            ("atoll pages reef.atoll stat", "sizes, kinds and ratios"),
            ("atoll pages reef.atoll check", "read and verify every page"),
            ("atoll pages reef.atoll dump", "which column lies where"),
            (
                "atoll pages create reef.pages --page-size 4KiB --pages 100000",
                "a store of raw pages",
            ),
            (
                "atoll pages reef.pages alloc",
                "random bytes in all of them",
            ),
            (
                "atoll pages reef.pages scan --threads 1,2,4 --partitions 1,128",
                "the time of each combination",
            ),
        ],
    ),
    #[cfg(feature = "sql")]
    (
        "set",
        &[
            ("atoll set reef.atoll", "what the store keeps"),
            ("atoll set reef.atoll plan=distr", "keep a plan"),
        ],
    ),
    (
        "where",
        &[
            ("atoll where --pid 4711", "a process, by mapping and thread"),
            (
                "atoll where reef.atoll --load",
                "a store, by table and column",
            ),
        ],
    ),
    (
        "watch",
        &[
            (
                "atoll watch --pid 4711 --for 10s",
                "ten seconds of a process",
            ),
            #[cfg(feature = "lab")]
            (
                "atoll watch --pid 4711 --plot watch.html --children",
                "with plots",
            ),
        ],
    ),
    (
        "pin",
        &[
            (
                "atoll pin --strategy compact -- ./server --threads 8",
                "run a command on fixed cpus",
            ),
            (
                "atoll pin --strategy sparse --dry-run --machine 4x4",
                "only show the placement",
            ),
            (
                "atoll pin --strategy shared --pid 4711",
                "a running process",
            ),
        ],
    ),
    (
        "tune",
        &[(
            "atoll tune --runs 20 -- ./server --threads 8",
            "the fastest placement found in 20 runs",
        )],
    ),
    (
        "govern",
        &[
            ("atoll govern --name postgres", "all processes of that name"),
            (
                "atoll govern --unit postgresql.service --max-cores 8",
                "a unit, at most 8 cores",
            ),
            (
                "atoll govern --dry-run --for 10s -- ./server",
                "decide, but change nothing",
            ),
        ],
    ),
    (
        "govern replay",
        &[(
            "atoll govern replay trace.json --th-max 80",
            "what another threshold would have done",
        )],
    ),
    (
        "govern undo",
        &[(
            "atoll govern undo --ended",
            "put back what a killed governor left behind",
        )],
    ),
    (
        "govern net",
        &[(
            "atoll govern net --format dot",
            "draw it: pipe it to `dot -Tsvg`",
        )],
    ),
    (
        "top",
        &[
            ("atoll top", "until Ctrl-C"),
            ("atoll top --once --json", "one look, for programs"),
        ],
    ),
    (
        "man",
        &[(
            "atoll man /usr/local/share/man/man1",
            "then `man atoll-sql`",
        )],
    ),
    #[cfg(feature = "lab")]
    (
        "lab",
        &[
            (
                "atoll lab machine --nodes 4 --cores 4 -- numactl --hardware",
                "a machine with four nodes",
            ),
            (
                "atoll lab placement --quick",
                "where accesses go under each strategy",
            ),
            #[cfg(feature = "sql")]
            (
                "atoll lab laq tpch-1.atoll --query 6",
                "queries by block size and threads",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab machine",
        &[
            (
                "atoll lab machine --machine opteron-8387 -- lscpu",
                "a shipped machine",
            ),
            (
                "atoll lab machine --nodes 2 --cores 2 --count -- ./scan",
                "count accesses by node",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab placement",
        &[
            (
                "atoll lab placement --quick --workload chunks",
                "does it work here?",
            ),
            (
                "atoll lab placement --strategy os,compact,sparse --threads 8",
                "three strategies",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab q1-nodes",
        &[(
            "atoll lab q1-nodes --on 0 --runs 3",
            "Q1 on the cores of node 0",
        )],
    ),
    #[cfg(feature = "lab")]
    (
        "lab pages",
        &[(
            "atoll lab pages --report pages.html",
            "the report to a file of your choice",
        )],
    ),
    #[cfg(feature = "lab")]
    (
        "lab figures",
        &[
            (
                "atoll lab figures",
                "what each showed, and how it is repeated",
            ),
            (
                "atoll lab figures T --run all --quick",
                "of the text on arrays, in their short forms",
            ),
            ("atoll lab figures B --run 4.3", "one figure of SMILE"),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab model",
        &[
            ("atoll lab model --quick", "does it work here?"),
            (
                "atoll lab model",
                "how near the model comes to loops on this machine",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab arrays",
        &[
            ("atoll lab arrays --quick", "does it work here?"),
            (
                "atoll lab arrays --figure 7,8 --emulate",
                "all mappings, and what an emulated machine counts of them",
            ),
            (
                "atoll lab arrays --figure 4 --machine 4x4 --gib 0.5",
                "another machine, and times on this one",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab pool",
        &[
            ("atoll lab pool --quick", "does it work here?"),
            (
                "atoll lab pool --figure 4.3..4.5 --scale 1",
                "threads, partitions and NUMA mode at full size",
            ),
        ],
    ),
    #[cfg(feature = "lab")]
    (
        "lab affinity",
        &[("atoll lab affinity --quick --json", "one JSON object")],
    ),
    #[cfg(feature = "lab")]
    (
        "lab exhaustive",
        &[(
            "atoll lab exhaustive --threads 4 --workload join --quick",
            "all placements of 4 threads",
        )],
    ),
    #[cfg(all(feature = "lab", feature = "sql"))]
    (
        "lab laq",
        &[(
            "atoll lab laq tpch-1.atoll --query 6,1 --blocks 64Ki..1Mi --threads 1..N",
            "two queries",
        )],
    ),
    #[cfg(all(feature = "lab", feature = "sql"))]
    (
        "lab plans",
        &[(
            "atoll lab plans --query 6 --plan shard,distr",
            "two plans of one query",
        )],
    ),
    #[cfg(feature = "lab")]
    (
        "lab elastic",
        &[("atoll lab elastic --quick", "governed and not, in turn")],
    ),
    #[cfg(feature = "lab")]
    (
        "lab elastic-nodes",
        &[(
            "atoll lab elastic-nodes --quick",
            "the same on an emulated machine",
        )],
    ),
];
