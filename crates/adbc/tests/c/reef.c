/* Atoll from C, by its ADBC driver alone:
 *
 *     cc -I FOLDER_OF_ATOLL_H -I FOLDER_ABOVE_ARROW_ADBC reef.c -L FOLDER_OF_LIBATOLL_SO -latoll -o reef
 *     LD_LIBRARY_PATH=FOLDER_OF_LIBATOLL_SO ./reef
 */
#include <arrow-adbc/adbc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll.h"

static struct AdbcDriver driver;

/* Ends the program if something has failed. */
static void check(AdbcStatusCode status, struct AdbcError* error) {
  if (status == ADBC_STATUS_OK) return;
  fprintf(stderr, "status %d, SQLSTATE %.5s: %s\n", status, error->sqlstate, error->message);
  if (error->release) error->release(error);
  exit(1);
}

/* Runs a statement that returns no rows, and says how many it has written. */
static int64_t run(struct AdbcConnection* connection, const char* text) {
  struct AdbcError error = ADBC_ERROR_INIT;
  struct AdbcStatement statement;
  int64_t rows = -1;
  memset(&statement, 0, sizeof statement);
  check(driver.StatementNew(connection, &statement, &error), &error);
  check(driver.StatementSetSqlQuery(&statement, text, &error), &error);
  check(driver.StatementExecuteQuery(&statement, NULL, &rows, &error), &error);
  check(driver.StatementRelease(&statement, &error), &error);
  return rows;
}

/* Prints the rows of a query with a text and a bigint. */
static void print(struct AdbcConnection* connection, const char* text) {
  struct AdbcError error = ADBC_ERROR_INIT;
  struct AdbcStatement statement;
  struct ArrowArrayStream rows;
  memset(&statement, 0, sizeof statement);
  memset(&rows, 0, sizeof rows);
  check(driver.StatementNew(connection, &statement, &error), &error);
  check(driver.StatementSetSqlQuery(&statement, text, &error), &error);
  check(driver.StatementExecuteQuery(&statement, &rows, NULL, &error), &error);
  for (;;) {
    struct ArrowArray batch;
    if (rows.get_next(&rows, &batch) != 0) {
      fprintf(stderr, "%s\n", rows.get_last_error(&rows));
      exit(1);
    }
    if (batch.release == NULL) break;
    const struct ArrowArray* names = batch.children[0];
    const struct ArrowArray* numbers = batch.children[1];
    const int32_t* ends = (const int32_t*)names->buffers[1] + names->offset;
    const char* bytes = names->buffers[2];
    const int64_t* values = (const int64_t*)numbers->buffers[1] + numbers->offset;
    for (int64_t at = 0; at < batch.length; at++)
      printf("%.*s %" PRId64 "\n", (int)(ends[at + 1] - ends[at]), bytes + ends[at], values[at]);
    batch.release(&batch);
  }
  rows.release(&rows);
  check(driver.StatementRelease(&statement, &error), &error);
}

int main(int count, char** words) {
  struct AdbcError error = ADBC_ERROR_INIT;
  struct AdbcDatabase database;
  struct AdbcConnection connection;
  memset(&driver, 0, sizeof driver);
  memset(&database, 0, sizeof database);
  memset(&connection, 0, sizeof connection);
  check(AdbcAtollInit(ADBC_VERSION_1_1_0, &driver, &error), &error);

  check(driver.DatabaseNew(&database, &error), &error);
  /* Without a path it is a temporary store. */
  if (count > 1) check(driver.DatabaseSetOption(&database, ATOLL_OPTION_PATH, words[1], &error), &error);
  check(driver.DatabaseSetOption(&database, ATOLL_OPTION_THREADS, "2", &error), &error);
  check(driver.DatabaseInit(&database, &error), &error);
  check(driver.ConnectionNew(&connection, &error), &error);
  check(driver.ConnectionInit(&connection, &database, &error), &error);

  run(&connection, "create table reef (name varchar, fish bigint)");
  printf("%" PRId64 " rows\n", run(&connection, "insert into reef values ('north', 12), ('south', 7), ('west', 23)"));
  print(&connection, "select name, fish from reef where fish > 10 order by fish");

  /* What is wrong is told with a status and an SQLSTATE. */
  struct AdbcStatement statement;
  struct ArrowArrayStream rows;
  memset(&statement, 0, sizeof statement);
  check(driver.StatementNew(&connection, &statement, &error), &error);
  check(driver.StatementSetSqlQuery(&statement, "select nothing from reef", &error), &error);
  AdbcStatusCode status = driver.StatementExecuteQuery(&statement, &rows, NULL, &error);
  printf("status %d, SQLSTATE %.5s\n", status, error.sqlstate);
  if (error.release) error.release(&error);
  check(driver.StatementRelease(&statement, &error), &error);

  check(driver.ConnectionRelease(&connection, &error), &error);
  check(driver.DatabaseRelease(&database, &error), &error);
  check(driver.release(&driver, &error), &error);
  return 0;
}
