/* Atoll in the process of a program in C, C++ or whatever calls C: the entry points and the options of its ADBC driver.
 *
 * The functions that a program then calls, and the structures that rows come in, are those of ADBC 1.1.0:
 * <arrow-adbc/adbc.h>, which this header does not need. It is in the packages of the driver manager (Debian of the Apache Arrow
 * project: libadbc-driver-manager-dev; conda-forge: libadbc-driver-manager; PyPI: adbc-driver-manager, in the folder
 * adbc_driver_manager/). There are three ways to the driver:
 *
 *   - Through the driver manager: AdbcDatabaseSetOption(&database, "driver", "/path/libatoll.so", &error). It loads the library and
 *     finds AdbcAtollInit or AdbcDriverInit by itself.
 *   - Linked: cc program.c -latoll, and AdbcAtollInit(ADBC_VERSION_1_1_0, &driver, &error), where driver is a struct AdbcDriver.
 *     The functions are then called as driver.DatabaseNew(&database, &error) and so on. tests/c/reef.c in the repository does this.
 *   - Loaded: the same with dlopen("libatoll.so", RTLD_NOW | RTLD_LOCAL) and dlsym(library, "AdbcAtollInit"). The library is not
 *     to be unloaded: threads of an open store run in it.
 *
 * What holds beside what ADBC says:
 *
 *   - A database is one store, which one process writes to; any number may read beside it. Several connections of one database may
 *     work at a time, each in a thread of its own. Statements of one connection begin one after the other; their streams may be
 *     read by several threads.
 *   - Closing the last of a database's handles and streams closes the store.
 *   - The handles of a process are not to be used in one that it forks; using them there is an error.
 *   - Errors have a status, a message that says what to do, and the SQLSTATE that PostgreSQL has for them. An error in the middle of
 *     a stream has them, too (AdbcErrorFromArrayStream).
 *   - A process that has handed over a null pointer or a stream of its own that is not one has only itself to blame.
 */
#ifndef ATOLL_H
#define ATOLL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct AdbcError;

/* Fills in the struct AdbcDriver that driver points to. version is ADBC_VERSION_1_1_0; others are refused. Returns an
 * AdbcStatusCode. The two are the same. */
uint8_t AdbcAtollInit(int version, void* driver, struct AdbcError* error);
uint8_t AdbcDriverInit(int version, void* driver, struct AdbcError* error);

/* Options of a database, set before AdbcDatabaseInit. All but the path have defaults that suit the machine. Numbers and truths may
 * be set as texts ("true", "false") or as integers. Any of them can be asked for afterwards. */

/* The file of the store: a path; "uri" takes file:///folder/reef.atoll and atoll:///folder/reef.atoll, too. Without either it is a
 * temporary store, which is gone when the database is closed. */
#define ATOLL_OPTION_PATH "path"
/* Whether the store is opened for reading only: "false". */
#define ATOLL_OPTION_READ_ONLY "atoll.read_only"
/* Whether a store that is not there is made: "true". */
#define ATOLL_OPTION_CREATE "atoll.create"
/* Threads that compute: one for each cpu. */
#define ATOLL_OPTION_THREADS "atoll.threads"
/* Bytes that pool and statements may use: three quarters of the memory. */
#define ATOLL_OPTION_MEMORY_LIMIT "atoll.memory_limit"
/* Bytes of these for the pool of pages: a third of the limit, a quarter of the memory at most. */
#define ATOLL_OPTION_POOL "atoll.pool"
/* Milliseconds for which a statement waits for the transaction of another connection: 10000. */
#define ATOLL_OPTION_LOCK_TIMEOUT "atoll.lock_timeout"

/* Options of connections and statements are those of ADBC:
 *
 *   adbc.connection.autocommit                     true, or false: commit and rollback end transactions
 *   adbc.connection.transaction.isolation_level    ...default, read_uncommitted, read_committed, repeatable_read and snapshot are
 *                                                  snapshots; ...serializable; linearizable there is not
 *   adbc.connection.catalog, .db_schema            "atoll" and "public", and no other
 *   adbc.connection.readonly                       as the database was opened
 *   adbc.ingest.target_table, .mode, .temporary    bulk ingest; .target_catalog and .target_db_schema as above
 *
 * There is no Substrait, there are no partitions of results, and no progress of statements: these are ADBC_STATUS_NOT_IMPLEMENTED. */

#ifdef __cplusplus
}
#endif

#endif /* ATOLL_H */
