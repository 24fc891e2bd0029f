"""Statements that programs send to look at a catalog, as they were recorded in `catalogs/*.sql`.

Each stands behind a line `-- for:`, which says what the program wants to know, and maybe `-- with:`, a query whose only row is what it is run with. What
has to come stands behind it: `-- rows:` how many, `-- wanted:` a row, `-- column: NAME = VALUE` a value of a column, `-- holds:` a text within a row,
`-- refused: CODE` that it is not supported yet, which is to be taken away when it is.
"""
import glob, os, re

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "catalogs")
EXPECTED = re.compile(r"^-- (for|with|rows|wanted|column|holds|refused): ?(.*)$")


def recorded(path):
    """The statements of a file: for what, with what, the text, and what has to come as pairs."""
    entries = []
    for line in open(path):
        line = line.rstrip("\n")
        if told := EXPECTED.match(line):
            kind, text = told.groups()
            if kind == "for":
                entries.append({"for": text, "with": None, "text": "", "wanted": []})
            elif kind == "with":
                entries[-1]["with"] = text
            else:
                entries[-1]["wanted"].append((kind, text))
        elif entries and not line.startswith("-- "):
            entries[-1]["text"] += line + "\n"
    return entries


def shown(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def trouble(db, entry):
    """What is wrong with the answer to a statement, or nothing."""
    import psycopg

    text = entry["text"].strip().removesuffix(";")
    cursor = psycopg.RawCursor(db)
    try:
        values = None
        if entry["with"]:
            row = db.execute(entry["with"]).fetchone()
            if not row:
                return f"nothing to run it with: {entry['with']}"
            # Java's drivers send numbers of things as bigint.
            values = [psycopg.types.numeric.Int8(value) if isinstance(value, int) else value for value in row]
        cursor.execute(text, values)
        rows = cursor.fetchall() if cursor.description else []
    except psycopg.Error as e:
        return None if ("refused", e.sqlstate) in entry["wanted"] else f"{e.sqlstate} {str(e).strip()}"
    names = [column.name for column in cursor.description or []]
    lines = ["|".join(map(shown, row)) for row in rows]
    for kind, wanted in entry["wanted"]:
        if kind == "rows":
            right = len(rows) == int(wanted)
        elif kind == "wanted":
            right = wanted in lines
        elif kind == "refused":
            right = False
        elif kind == "holds":
            right = any(wanted in line for line in lines)
        else:
            name, _, value = wanted.partition(" = ")
            at = names.index(name) if name in names else None
            right = at is not None and value in [shown(row[at]) for row in rows]
        if not right:
            return f"{kind} {wanted}, found {len(rows)} rows: {lines[:10]}"
    return None


def run(port, *_):
    import psycopg
    import psycopg.types.numeric

    db = psycopg.connect(host="127.0.0.1", port=port, user="ann", dbname="atoll", autocommit=True)
    for text in open(os.path.join(HERE, "fixture.sql")).read().split(";\n"):
        if text.strip():
            db.execute(text)
    troubles, count = [], 0
    for path in sorted(glob.glob(os.path.join(HERE, "*.sql"))):
        program = os.path.basename(path).removesuffix(".sql")
        for entry in recorded(path) if program != "fixture" else []:
            count += 1
            if wrong := trouble(db, entry):
                troubles.append(f"{program}, {entry['for']}: {wrong}")
    db.close()
    assert not troubles, f"{len(troubles)} of {count} statements\n" + "\n".join(troubles)
    print(f"     {count} statements")
